"""How a stream gets its event times and watermarks: a picklable description, and the classes that programs derive from.

``flinkpy.operators.event_time.watermarks`` carries it out, once per subtask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import index
from typing import Any, Protocol, TypeAlias, runtime_checkable

from flinkpy.common.time import to_milliseconds
from flinkpy.core.elements import MIN_TIMESTAMP, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse


class TimestampAssigner(ABC):
    """Finds a record's event time.

    >>> class SentAt(TimestampAssigner):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value["sent_ms"]
    >>> SentAt().extract_timestamp({"sent_ms": 1000}, -1)
    1000
    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Milliseconds since 1970-01-01 UTC; ``record_timestamp`` is what the source gave, or a negative number."""


def watermark_of(given: Any) -> Watermark:
    """What was given as a watermark: one, or its timestamp."""
    if isinstance(given, Watermark):
        return given
    try:
        if type(given) is not bool:
            return Watermark(index(given))
    except TypeError:
        pass
    raise TypeError(f"a watermark is Watermark(timestamp), or the timestamp itself, a whole number of milliseconds; this is {given!r:.80}")


class WatermarkOutput(ABC):
    """Takes a generator's watermarks. One at or below the last one is dropped; a greater one makes an idle stream active."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark | int) -> None:
        """No record with a timestamp at or below this one (milliseconds) is expected any more."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Operators downstream do not wait for this stream."""

    @abstractmethod
    def mark_active(self) -> None:
        """Operators downstream wait for this stream again."""


class WatermarkGenerator(ABC):
    """Says how far event time has come. Each subtask has one of its own, and calls it in its own thread.

    A *periodic* one looks at records in ``on_event`` and emits in ``on_periodic_emit``, a *punctuated* one emits in ``on_event`` when a
    record says so. The watermark then follows that record directly, so later records of the same batch may already be late.

    >>> class OnMarker(WatermarkGenerator):
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event == "marker":
    ...             output.emit_watermark(event_timestamp)
    >>> WatermarkStrategy.for_generator(OnMarker).generator.__name__
    'OnMarker'
    """

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called after every record; ``event_timestamp`` is MIN_TIMESTAMP if the record has none."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called every ``pipeline.auto-watermark-interval``, and when the input ends."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """The greatest timestamp so far, minus the bound, minus one: so a record that is late by exactly the bound is still in time."""

    def __init__(self, max_out_of_orderness: timedelta) -> None:
        self._bound = to_milliseconds(max_out_of_orderness)
        self.greatest: int = MIN_TIMESTAMP

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.greatest = max(self.greatest, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(self.current)

    @property
    def current(self) -> int:
        """The watermark as of now; MIN_TIMESTAMP or less before the first record."""
        return self.greatest - self._bound - 1


@runtime_checkable
class ColumnExpression(Protocol):
    """An expression of ``flinkpy.columns``, which is a package above this one."""

    @property
    def inputs(self) -> tuple[Any, ...]: ...

    def column_name(self, where: str) -> str: ...


AssignerLike: TypeAlias = TimestampAssigner | Callable[..., Any] | str | ColumnExpression
GeneratorLike: TypeAlias = WatermarkGenerator | Callable[[], WatermarkGenerator]


@dataclass(frozen=True)
class WatermarkAlignment:
    """Sources of one group do not run ahead of the slowest by more than ``max_drift``."""

    group: str
    max_drift: timedelta
    update_interval: timedelta


@dataclass(frozen=True)
class WatermarkStrategy:
    """
    >>> WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=5)).with_idleness(timedelta(minutes=1)).max_out_of_orderness
    datetime.timedelta(seconds=5)
    """

    max_out_of_orderness: timedelta | None = None  # None, and no generator: no watermarks
    timestamp_assigner: AssignerLike | None = None  # None: as the source gave them
    idle_timeout: timedelta | None = None
    alignment: WatermarkAlignment | None = None
    generator: GeneratorLike | None = None

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Event time does not advance until the stream ends."""
        return WatermarkStrategy()

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Timestamps of each subtask of the stream never go back."""
        return WatermarkStrategy(timedelta())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: timedelta) -> WatermarkStrategy:
        """A record arrives at most so long after a record with a greater timestamp."""
        if _span(max_out_of_orderness, "for_bounded_out_of_orderness()") < timedelta():
            raise refuse(f"out-of-orderness cannot be negative ({max_out_of_orderness})")
        return WatermarkStrategy(max_out_of_orderness)

    @staticmethod
    def for_generator(generator: GeneratorLike) -> WatermarkStrategy:
        """The program's own: a WatermarkGenerator, its class, or a function that makes one. Each subtask gets one for itself."""
        is_generator = isinstance(generator, WatermarkGenerator)
        if not is_generator and not callable(generator):
            raise refuse(f"for_generator() takes a WatermarkGenerator, or a function that makes one; this is {generator!r:.80}")
        if isinstance(generator, type) and not issubclass(generator, WatermarkGenerator):
            raise refuse(f"for_generator(): {generator.__name__} is no WatermarkGenerator; derive it from that class")
        return WatermarkStrategy(generator=generator)

    def with_timestamp_assigner(self, timestamp_assigner: AssignerLike) -> WatermarkStrategy:
        """Where a record's event time is found, in milliseconds since 1970-01-01 UTC: a TimestampAssigner; a function of the record, or of
        the record and its timestamp so far; the name of a field or column; an expression over columns (then whole batches are
        stamped by one kernel). Fields and columns may also hold dates and times; those without a zone are UTC.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[1])
        >>> strategy.with_timestamp_assigner("departure").timestamp_assigner
        'departure'
        """
        if isinstance(timestamp_assigner, type):
            raise refuse(f"with_timestamp_assigner takes an object, not a class: write {timestamp_assigner.__name__}()")
        if not isinstance(timestamp_assigner, (TimestampAssigner, str, ColumnExpression)) and not callable(timestamp_assigner):
            raise refuse("with_timestamp_assigner takes a TimestampAssigner, a function, the name of a field, or an expression; "
                               f"this is {timestamp_assigner!r:.80}")
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: timedelta) -> WatermarkStrategy:
        """A subtask that gets no record for so long is idle, and no longer holds back the watermark."""
        if _span(idle_timeout, "with_idleness()") <= timedelta():
            raise refuse(f"the idle timeout must be positive ({idle_timeout})")
        return replace(self, idle_timeout=idle_timeout)

    def with_watermark_alignment(self, watermark_group: str, max_allowed_watermark_drift: timedelta,
                                 update_interval: timedelta | None = None) -> WatermarkStrategy:
        """Keeps the sources of a group together: a subtask whose event time is ahead of the slowest of the group by more than the drift stops
        reading until that one has come nearer. For strategies of sources (``env.from_source``); a group spans all sources of a job that name
        it. Give sources that may fall silent ``with_idleness``, or the others wait for them.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment("all", timedelta(seconds=20))
        >>> strategy.alignment.update_interval
        datetime.timedelta(seconds=1)
        """
        interval = timedelta(seconds=1) if update_interval is None else update_interval
        if not isinstance(watermark_group, str) or not watermark_group:
            raise refuse(f"a watermark group has a name, this is {watermark_group!r:.80}")
        if min(_span(max_allowed_watermark_drift, "the allowed drift"), _span(interval, "the update interval")) <= timedelta():
            raise refuse(f"drift and update interval must be positive ({max_allowed_watermark_drift}, {interval})")
        return replace(self, alignment=WatermarkAlignment(watermark_group, max_allowed_watermark_drift, interval))

    @property
    def does_nothing(self) -> bool:
        """Whether it neither assigns timestamps nor makes watermarks."""
        return all(each is None for each in (self.max_out_of_orderness, self.timestamp_assigner, self.idle_timeout, self.alignment, self.generator))

    def create_generator(self) -> WatermarkGenerator | None:
        """One for a subtask; None: no watermarks. Raises ProgramError if the program's function makes something else."""
        if self.max_out_of_orderness is not None:
            return BoundedOutOfOrdernessWatermarks(self.max_out_of_orderness)
        if self.generator is None or isinstance(self.generator, WatermarkGenerator):
            return self.generator
        made = self.generator()
        if not isinstance(made, WatermarkGenerator):
            raise ProgramError(f"for_generator(): the function made {made!r:.80}, which is no WatermarkGenerator")
        return made


def _span(span: Any, where: str) -> timedelta:
    if not isinstance(span, timedelta):
        raise refuse(f"{where} takes a Duration, such as Duration.of_seconds(5), this is {span!r:.80}")
    return span
