"""How a stream gets its event times and watermarks: a description that can be pickled, and the
classes that programs derive from.

``flinkpy.operators.event_time.watermarks`` applies it, once per subtask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol, TypeAlias, runtime_checkable

from flinkpy.common.time import to_milliseconds
from flinkpy.core.elements import BEYOND_TIME, MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.coroutines import refuse_coroutine_methods
from flinkpy.core.program.program_line import refuse
from flinkpy.core.users_values import whole_number


class TimestampAssigner(ABC):
    """Extracts a record's event time.

    >>> class SentAt(TimestampAssigner):
    ...     def extract_timestamp(self, value, record_timestamp):
    ...         return value["sent_ms"]
    >>> SentAt().extract_timestamp({"sent_ms": 1000}, -1)
    1000
    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The event time in milliseconds since 1970-01-01 UTC. ``record_timestamp`` is the
        timestamp from the source, or a negative number."""


def watermark_of(given: Any) -> Watermark:
    """A watermark, from a Watermark or a timestamp; raises TypeError for anything else, and
    ValueError for numbers beyond the end of event time."""
    timestamp = given.timestamp if isinstance(given, Watermark) else given
    moment = whole_number(timestamp)
    if moment is None:
        raise TypeError(
            "a watermark is Watermark(timestamp), or the timestamp itself, a whole number of "
            f"milliseconds; this is {given!r:.80}"
        )
    if moment >= BEYOND_TIME and moment != MAX_TIMESTAMP:
        raise ValueError(
            f"a watermark is below 2**62, or 2**63 - 1, which ends event time; this is {moment}"
        )
    return Watermark(moment)


class WatermarkOutput(ABC):
    """Takes a generator's watermarks. A watermark that is not above the last one is dropped; a
    higher one makes an idle stream active."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark | int) -> None:
        """Says that no record with a timestamp at or below this one (milliseconds) is expected any
        more."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Says that operators downstream need not wait for this stream."""

    @abstractmethod
    def mark_active(self) -> None:
        """Says that operators downstream must wait for this stream again."""


class WatermarkGenerator(ABC):
    """Says how far event time has advanced. Each subtask has its own generator, and calls it in its
    own thread.

    A *periodic* generator looks at records in ``on_event`` and emits in ``on_periodic_emit``; a
    *punctuated* one emits in ``on_event`` when a record says so. The watermark then follows that
    record directly, so later records of the same batch may already be late.

    >>> class OnMarker(WatermarkGenerator):
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event == "marker":
    ...             output.emit_watermark(event_timestamp)
    >>> WatermarkStrategy.for_generator(OnMarker).generator.__name__
    'OnMarker'
    """

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called after every record; ``event_timestamp`` is MIN_TIMESTAMP if the record has
        none."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called every ``pipeline.auto-watermark-interval``, and when the input ends."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """The greatest timestamp so far, minus the bound, minus one; so a record that is late by
    exactly the bound is still in time."""

    def __init__(self, max_out_of_orderness: timedelta) -> None:
        self._bound = to_milliseconds(max_out_of_orderness)
        self.greatest: int = MIN_TIMESTAMP

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.greatest = max(self.greatest, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(self.current)

    @property
    def current(self) -> int:
        """The current watermark; MIN_TIMESTAMP or less before the first record."""
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
    """The sources of one group do not run ahead of the slowest by more than ``max_drift``."""

    group: str
    max_drift: timedelta
    update_interval: timedelta


@dataclass(frozen=True)
class WatermarkStrategy:
    """
    >>> WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=5)).with_idleness(
    ...     timedelta(minutes=1)
    ... ).max_out_of_orderness
    datetime.timedelta(seconds=5)
    """

    max_out_of_orderness: timedelta | None = None  # None, and no generator: no watermarks
    timestamp_assigner: AssignerLike | None = None  # None: the timestamps of the source
    idle_timeout: timedelta | None = None
    alignment: WatermarkAlignment | None = None
    generator: GeneratorLike | None = None

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """No watermarks: event time does not advance until the stream ends."""
        return WatermarkStrategy()

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """For streams whose timestamps never go back within a subtask."""
        return WatermarkStrategy(timedelta())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: timedelta) -> WatermarkStrategy:
        """For streams in which a record comes at most this long after a record with a greater
        timestamp. Raises ProgramError for a negative duration."""
        if _span(max_out_of_orderness, "for_bounded_out_of_orderness()") < timedelta():
            raise refuse(f"out-of-orderness cannot be negative ({max_out_of_orderness})")
        return WatermarkStrategy(max_out_of_orderness)

    @staticmethod
    def for_generator(generator: GeneratorLike) -> WatermarkStrategy:
        """A generator of your own: a WatermarkGenerator, its class, or a function that makes one.
        Each subtask gets its own."""
        is_generator = isinstance(generator, WatermarkGenerator)
        if not is_generator and not callable(generator):
            raise refuse(
                "for_generator() takes a WatermarkGenerator, or a function that makes one; "
                f"this is {generator!r:.80}"
            )
        if isinstance(generator, type) and not issubclass(generator, WatermarkGenerator):
            raise refuse(
                f"for_generator(): {generator.__name__} is no WatermarkGenerator; derive it "
                "from that class"
            )
        if isinstance(generator, type):
            refuse_coroutine_methods(generator, "for_generator()")
        return WatermarkStrategy(generator=generator)

    def with_timestamp_assigner(self, timestamp_assigner: AssignerLike) -> WatermarkStrategy:
        """Sets where a record's event time is found, in milliseconds since 1970-01-01 UTC: a
        TimestampAssigner; a function of the record, or of the record and its previous timestamp;
        the name of a field or column; or an expression over columns (then one kernel computes the
        timestamps of a whole batch). Fields and columns may also hold dates and datetimes; those
        without a zone are taken as UTC. Raises ProgramError for anything else.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        ...     lambda event: event[1]
        ... )
        >>> strategy.with_timestamp_assigner("departure").timestamp_assigner
        'departure'
        """
        if isinstance(timestamp_assigner, type):
            raise refuse(
                "with_timestamp_assigner takes an object, not a class: write "
                f"{timestamp_assigner.__name__}()"
            )
        if not isinstance(
            timestamp_assigner, (TimestampAssigner, str, ColumnExpression)
        ) and not callable(timestamp_assigner):
            raise refuse(
                "with_timestamp_assigner takes a TimestampAssigner, a function, the name of a "
                "field, or an expression; "
                f"this is {timestamp_assigner!r:.80}"
            )
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: timedelta) -> WatermarkStrategy:
        """Makes a subtask idle if it gets no record for this long, so that it no longer holds back
        the watermark. Raises ProgramError unless the timeout is positive."""
        if _span(idle_timeout, "with_idleness()") <= timedelta():
            raise refuse(f"the idle timeout must be positive ({idle_timeout})")
        return replace(self, idle_timeout=idle_timeout)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: timedelta,
        update_interval: timedelta | None = None,
    ) -> WatermarkStrategy:
        """Keeps the sources of a group together: if the event time of a subtask is ahead of the
        group's slowest by more than the drift, it stops reading until the slowest has come nearer.
        Only for strategies of sources (``env.from_source``); a group spans all sources of a job
        that name it. Give sources that may fall silent ``with_idleness``, or the others wait for
        them. Raises ProgramError for an empty name and for durations that are not positive.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        ...     "all", timedelta(seconds=20)
        ... )
        >>> strategy.alignment.update_interval
        datetime.timedelta(seconds=1)
        """
        interval = timedelta(seconds=1) if update_interval is None else update_interval
        if not isinstance(watermark_group, str) or not watermark_group:
            raise refuse(f"a watermark group has a name, this is {watermark_group!r:.80}")
        if (
            min(
                _span(max_allowed_watermark_drift, "the allowed drift"),
                _span(interval, "the update interval"),
            )
            <= timedelta()
        ):
            raise refuse(
                f"drift and update interval must be positive ({max_allowed_watermark_drift}, "
                f"{interval})"
            )
        return replace(
            self,
            alignment=WatermarkAlignment(watermark_group, max_allowed_watermark_drift, interval),
        )

    @property
    def does_nothing(self) -> bool:
        """Whether it neither assigns timestamps nor generates watermarks."""
        return all(
            each is None
            for each in (
                self.max_out_of_orderness,
                self.timestamp_assigner,
                self.idle_timeout,
                self.alignment,
                self.generator,
            )
        )

    def create_generator(self) -> WatermarkGenerator | None:
        """A generator for one subtask; None: no watermarks. Raises ProgramError if the program's
        function returns something else."""
        if self.max_out_of_orderness is not None:
            return BoundedOutOfOrdernessWatermarks(self.max_out_of_orderness)
        if self.generator is None or isinstance(self.generator, WatermarkGenerator):
            return self.generator
        made = self.generator()
        if not isinstance(made, WatermarkGenerator):
            raise ProgramError(
                f"for_generator(): the function made {made!r:.80}, which is no WatermarkGenerator"
            )
        refuse_coroutine_methods(type(made), "for_generator()")
        return made


def _span(span: object, where: str) -> timedelta:
    if not isinstance(span, timedelta):
        raise refuse(
            f"{where} takes a Duration, such as Duration.of_seconds(5), this is {span!r:.80}"
        )
    return span
