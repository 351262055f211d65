"""What the operators of patterns share, for one pattern and for those that come and go.

In event time events wait for the watermark in one buffer. Then the matcher takes them in the order
of their time, and after them the keys whose partial matches time out. In processing time each batch
is taken as it comes, and a timer looks after what times out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Generic, Protocol, TypeVar

from flinkpy.cep.event_keys import keys_of_events
from flinkpy.cep.match_calls import MatchCalls
from flinkpy.cep.match_functions import PatternProcessFunction
from flinkpy.cep.matching.calendar import Calendar
from flinkpy.cep.matching.events_on_disk import EventsOnDisk
from flinkpy.cep.matching.pending_events import Compare, PendingEvents
from flinkpy.cep.matching.row_candidates import Due
from flinkpy.cep.matching.row_matcher import Fault
from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, RowBatch, Watermark
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import Guarding, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.functions import close_function, open_function
from flinkpy.operators.keyed_state import EndsKeys
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.user_errors import is_of_function, raise_told, user_code_error
from flinkpy.operators.wake_up import WakeUp
from flinkpy.operators.yielding import emit_results
from flinkpy.state.snapshots.frozen_tables import FrozenRegion

PENDING = "_pending events"  # the name of the state

Given = TypeVar("Given")  # what the matcher finds
Gives = TypeVar("Gives", covariant=True)  # the same, of what only gives it


@dataclass(frozen=True)
class Intake:
    """How events are taken: the order of events of equal time, the side output of late events, and
    whether the time is that of the events."""

    compare: Compare | None = None
    late_tag: str | None = None
    event_time: bool = True


class Matcher(Protocol[Gives]):
    """Matches events of many keys. What it finds it gives some at a time."""

    calendar: Calendar
    partial_matches: int
    most_of_a_key: int

    def take(
        self, keys: Iterable[Any], times: Iterable[int], events: Iterable[Any]
    ) -> Iterator[Sequence[Gives]]: ...

    def advance(self, now: int) -> Iterator[Sequence[Gives]]: ...

    def forget_all(self) -> None: ...

    def at_fault(self, error: BaseException) -> Fault: ...


class MatchingOperator(DropsLateRecords, EndsKeys, Generic[Given]):
    """Calls a PatternProcessFunction with the matches. Without a key its parallelism must be 1.

    ``open`` of a derived class makes the matcher and the calls, and then calls ``begin``."""

    parks = True
    emits_changes = INSERT_ONLY
    guarding = Guarding.BY_ITSELF
    error_policy = ErrorPolicy()
    _is_open = False
    _matcher: Matcher[Given]
    _calls: MatchCalls
    _call: Callable[[Given, Any], Iterable[Any] | None]  # calls the function with a match
    _pending: PendingEvents

    def __init__(self, intake: Intake, function: PatternProcessFunction, key: KeySpec) -> None:
        key_function(key)
        self.intake, self.function, self.key = intake, function, key

    def set_error_policy(self, policy: ErrorPolicy) -> None:
        """Sets what happens to matches whose function raises."""
        self.error_policy = policy

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        for function in (self.key.selector, self.function):
            open_function(function, self.context)
        self._select = key_function(self.key)
        self._watermark = MIN_TIMESTAMP
        self._wake_up = WakeUp(self.context.timers, self._on_processing_time)

    def begin(self, compare: Compare | None, due: Due | None = None) -> None:
        """Restores the events that waited, and looks after what times out."""
        self._disk = EventsOnDisk(self.backend, PENDING, self.context.task)
        self._pending = PendingEvents(compare, due, self._disk)
        self._pending.restore(self.backend.register_region(PENDING, self._freeze_pending))
        self._arm()

    def _freeze_pending(self) -> FrozenRegion:
        return self._pending.by_key(self._keys_of)

    def close(self) -> None:
        try:
            if self._is_open:
                self._wake_up.cancel()
                self.close_matching()
                close_function(self.function)
        finally:
            super().close()
            close_function(self.key.selector)

    @abstractmethod
    def close_matching(self) -> None:
        """Closes the functions in conditions."""

    def measures(self, now_ms: int) -> dict[str, float]:
        if not self._is_open:
            return super().measures(now_ms)
        return {
            **super().measures(now_ms),
            "numPartialMatches": self._matcher.partial_matches,
            "maxPartialMatchesOfKey": self._matcher.most_of_a_key,
            "patternMatchedTimes": self._calls.matches,
        }

    # -- events ------------------------------------------------------------------------------------

    def take_rows(self, batch: RowBatch) -> Work:
        """Takes events that have just come."""
        if self.intake.event_time:
            self._wait(batch)
            self._pending.relieve(self._watermark, self._keys_of)
            self.backend.after_records(len(batch))
            return
        now = self.context.timers.now_ms()
        self._pending.add([now] * len(batch), batch.values)
        yield from self._arrived(now, len(batch))

    def _wait(self, batch: RowBatch) -> None:
        """Takes the events that are in time into the buffer."""
        stamps = batch.timestamps
        if stamps is None:
            raise self._without_timestamps()
        watermark = self._watermark
        if min(stamps) > watermark:
            self._pending.add(stamps, batch.values)
            return
        late = self._pending.add_in_time(stamps, batch.values, watermark)
        if self.intake.late_tag is None:
            self.drop_late(len(late))
        else:
            self.output.emit_side(self.intake.late_tag, late)

    def _without_timestamps(self) -> ProgramError:
        return ProgramError(
            f"operator {self.context.name!r}: a pattern in event time needs records with "
            "timestamps, and these have none: call assign_timestamps_and_watermarks(...) "
            "before, or in_processing_time()"
        )

    def _arrived(self, now: int, records: int) -> Work:
        """In processing time: looks at events that have just come into the buffer."""
        yield from self._emit(self._due(now))
        self._end_batch(records)

    def process_watermark(self, watermark: Watermark) -> Work:
        if self.intake.event_time:
            self._watermark = watermark.timestamp
            yield from self._emit(self._due(watermark.timestamp))
            self.backend.after_records(0)
        super().process_watermark(watermark)

    def end_key(self) -> Work:
        yield from self._emit(self._due(MAX_TIMESTAMP))
        self._matcher.forget_all()

    def _on_processing_time(self, now: int) -> None:
        self.do(self._time_out(now))

    def _time_out(self, now: int) -> Work:
        yield from self._emit(self._guarded(self._matcher.advance(now)))
        self._end_batch(0)

    def _end_batch(self, records: int) -> None:
        self.backend.after_records(records)
        self._arm()

    def _arm(self) -> None:
        if not self.intake.event_time:
            self._wake_up.at(self._matcher.calendar.next_time())

    # -- matches -----------------------------------------------------------------------------------

    def _keys_of(self, events: list[Any]) -> list[Any]:
        return keys_of_events(self._select, events, self.context)

    def _due(self, now: int) -> Iterator[Sequence[Given]]:
        """What is found because time has come to ``now``."""
        yield from self._taken(now)
        yield from self._guarded(self._matcher.advance(now))

    def _taken(self, now: int) -> Iterator[Sequence[Given]]:
        """What is found in the events that have waited for this time."""
        for moment in self._disk.moments(now):
            times, values = self._pending.until(moment)
            if values:
                yield from self._guarded(self._matcher.take(self._keys_of(values), times, values))

    def _guarded(self, found: Iterator[Sequence[Given]]) -> Iterator[Sequence[Given]]:
        """Names the event at which a condition raised, and the pattern, if there are several."""
        try:
            yield from found
        except BaseException as error:
            if not is_of_function(error):
                raise_told(error, self.context)
            fault = self._matcher.at_fault(error)
            events = () if fault.event is None else (fault.event,)
            named = user_code_error(fault.error, self.context, *events)
            if isinstance(named, UserCodeError):
                named.cause += fault.of_pattern
            raise named from fault.error

    @abstractmethod
    def _with_own_events(self, found: Sequence[Given]) -> Sequence[Given]:
        """The same, with events that the function may change."""

    def _emit(self, found: Iterator[Sequence[Given]]) -> Work:
        stamps = repeat(None) if self.intake.event_time else None
        each = chain.from_iterable(map(self._with_own_events, found))
        return emit_results(self._call, each, stamps, self._calls.context, self, endless=True)
