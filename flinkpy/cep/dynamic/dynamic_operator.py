"""The operator that looks for patterns that come, change and go while the job runs. Input 1 has the
events, input 2 the updates of patterns, which every subtask gets.

An update counts for the events that are taken after it has come. In event time events wait for the
watermark, so it counts for those that wait, too.

State: the patterns, the runs of each key by pattern, and the events that wait."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from flinkpy.cep.automaton.drawing import drawn
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.dynamic.dynamic_calls import DynamicMatchCalls
from flinkpy.cep.dynamic.dynamic_matcher import DynamicMatcher, FoundByPattern
from flinkpy.cep.dynamic.known_patterns import KnownPatterns
from flinkpy.cep.dynamic.pattern_updates import PatternUpdate
from flinkpy.cep.dynamic.runs_of_key import RunsOfKey
from flinkpy.cep.event_keys import keys_of_events
from flinkpy.cep.match_functions import PatternProcessFunction
from flinkpy.cep.matching.pending_events import Compare, PendingEvents
from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, RowBatch, Watermark
from flinkpy.core.errors import FlinkpyError, ProgramError, UserCodeError
from flinkpy.core.options.patterns import MAX_PARTIAL_MATCHES
from flinkpy.core.options.schema import read
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import BatchForm, Guarding, OneInputOperator, TwoInputOperator, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.functions import close_function, open_function
from flinkpy.operators.keyed_state import EndsKeys
from flinkpy.operators.row_batches import rows
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.wake_up import WakeUp
from flinkpy.operators.yielding import emit_results
from flinkpy.state.snapshots.frozen_tables import FrozenRegion

logger = engine_logger(__name__)

MOST_DRAWN = 10  # of the patterns that are there from the beginning

# the names of the state
RUNS = "_partial matches by pattern"
PENDING = "_pending events"


@dataclass(frozen=True)
class Watched:
    """How events are watched: the patterns that are there from the beginning, the order of events
    of equal time, the side outputs of late events and of refused updates, and whether the time is
    that of the events."""

    initial: tuple[PatternUpdate, ...] = ()
    compare: Compare | None = None
    late_tag: str | None = None
    refused_tag: str | None = None
    event_time: bool = True


class UpdatesOperator(OneInputOperator):
    """Passes updates on, and takes them out of event time: a stream of patterns is quiet for long,
    and must not hold the events back."""

    batch_form = BatchForm.AS_IN_STREAM

    def open(self) -> None:
        self.output.emit_control(Watermark(MAX_TIMESTAMP))

    def process_batch(self, batch: Batch) -> None:
        self.output.emit(RowBatch(rows(batch).values, None))

    def process_watermark(self, watermark: Watermark) -> None:
        """It has ended event time already."""

    def process_watermark_status(self, status: object) -> None:
        """The same."""


class DynamicPatternOperator(DropsLateRecords, EndsKeys, TwoInputOperator):
    """Calls a PatternProcessFunction with the matches of all patterns. Without a key its
    parallelism must be 1."""

    parks = True
    batch_form = BatchForm.BROADCAST_FIRST
    emits_changes = INSERT_ONLY
    guarding = Guarding.BY_ITSELF
    error_policy = ErrorPolicy()
    _is_open = False

    def __init__(self, watched: Watched, function: PatternProcessFunction, key: KeySpec) -> None:
        key_function(key)
        self.key, self.watched, self.function = key, watched, function

    def set_error_policy(self, policy: ErrorPolicy) -> None:
        """Sets what happens to matches whose function raises."""
        self.error_policy = policy

    def drawing(self) -> str | None:
        parts = [
            f"{update.id}, version {update.version}\n{drawn(compiled(update.pattern))}"
            for update in self.watched.initial[:MOST_DRAWN]
            if update.pattern is not None
        ]
        return "\n".join(parts) or None

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        for function in (self.key.selector, self.function):
            open_function(function, self.context)
        self._select = key_function(self.key)
        self._watermark = MIN_TIMESTAMP
        self._calls = DynamicMatchCalls(self.function, self.error_policy, self.context)
        self._wake_up = WakeUp(self.context.timers, self._on_processing_time)
        most = read(self.context.configuration, MAX_PARTIAL_MATCHES)
        self._matcher = DynamicMatcher(
            self.context.timers.now_ms, self._calls.handles_timeouts, most
        )
        self._known = KnownPatterns(self._matcher, self.context)
        self._is_open = True
        self._matcher.restore(self.backend.engine_values(RUNS))
        self.backend.layer_engine_values(RUNS, self._rebind, RunsOfKey.copy)
        self._known.end_finished()
        self._report(self.watched.initial)
        self._pending = PendingEvents(self.watched.compare)
        self._pending.restore(self.backend.register_region(PENDING, self._freeze_pending))
        self._arm()

    def _rebind(self, runs: MutableMapping[Any, RunsOfKey]) -> None:
        self._matcher.runs = runs

    def _freeze_pending(self) -> FrozenRegion:
        return self._pending.by_key(self._keys_of)

    def close(self) -> None:
        try:
            if self._is_open:
                self._wake_up.cancel()
                self._known.close()
                close_function(self.function)
        finally:
            super().close()
            close_function(self.key.selector)

    def measures(self, now_ms: int) -> dict[str, float]:
        if not self._is_open:
            return super().measures(now_ms)
        return {
            **super().measures(now_ms),
            "numPatterns": len(self._matcher.patterns),
            "numPatternsRefused": self._known.refused,
            "numPartialMatches": self._matcher.partial_matches,
            "maxPartialMatchesOfKey": self._matcher.most_of_a_key,
            "patternMatchedTimes": self._calls.matches,
        }

    # -- patterns ----------------------------------------------------------------------------------

    def process_batch2(self, batch: Batch) -> None:
        self._report(rows(batch).values)
        self._arm()

    def _report(self, updates: Sequence[object]) -> None:
        """Carries updates out, and reports those that are refused, once for all subtasks."""
        refused = self._known.take(updates)
        if not refused or self.context.task.subtask_index > 0:
            return
        for each in refused:
            logger.warning(
                "the pattern %r (version %r) is refused: %s", each.id, each.version, each.reason
            )
        if self.watched.refused_tag is not None:
            self.output.emit_side(self.watched.refused_tag, RowBatch(list(refused), None))

    # -- events ------------------------------------------------------------------------------------

    def process_batch1(self, batch: Batch) -> Work:
        batch = rows(batch)
        if self.watched.event_time:
            self._wait(batch)
            self.backend.after_records(len(batch))
            return
        now = self.context.timers.now_ms()
        arrived = PendingEvents(self.watched.compare)
        arrived.add([now] * len(batch), batch.values)
        yield from self._emit(self._found(arrived, now))
        self._end_batch(len(batch))

    def _wait(self, batch: RowBatch) -> None:
        """Takes the events that are in time into the buffer."""
        stamps = batch.timestamps
        if stamps is None:
            raise ProgramError(
                f"operator {self.context.name!r}: patterns in event time need records with "
                "timestamps, and these have none: call assign_timestamps_and_watermarks(...) "
                "before, or in_processing_time()"
            )
        watermark = self._watermark
        if min(stamps) > watermark:
            self._pending.add(stamps, batch.values)
            return
        late = self._pending.add_in_time(stamps, batch.values, watermark)
        if self.watched.late_tag is None:
            self.drop_late(len(late))
        else:
            self.output.emit_side(self.watched.late_tag, late)

    def process_watermark(self, watermark: Watermark) -> Work:
        if self.watched.event_time:
            self._watermark = watermark.timestamp
            yield from self._emit(self._found(self._pending, watermark.timestamp))
            self.backend.after_records(0)
        super().process_watermark(watermark)

    def end_key(self) -> Work:
        yield from self._emit(self._found(self._pending, MAX_TIMESTAMP))
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
        if not self.watched.event_time:
            self._wake_up.at(self._matcher.calendar.next_time())

    # -- matches -----------------------------------------------------------------------------------

    def _keys_of(self, events: list[Any]) -> list[Any]:
        return keys_of_events(self._select, events, self.context)

    def _found(self, events: PendingEvents, now: int) -> Iterator[FoundByPattern]:
        times, values = events.until(now)
        if values:
            keys = self._keys_of(values)
            yield from self._guarded(self._matcher.take(keys, times, values))
        yield from self._guarded(self._matcher.advance(now))

    def _guarded(self, found: Iterator[FoundByPattern]) -> Iterator[FoundByPattern]:
        """Names the event at which a condition raised."""
        try:
            yield from found
        except FlinkpyError:
            raise
        except BaseException as error:
            version, event = self._matcher.at_fault()
            found_at = user_code_error(error, self.context, *([] if event is None else [event]))
            if version is not None and isinstance(found_at, UserCodeError):
                found_at.cause += f" (in version {version.number} of the pattern {version.id!r})"
            raise found_at from error

    def _emit(self, found: Iterator[FoundByPattern]) -> Work:
        stamps = repeat(None) if self.watched.event_time else None
        calls = self._calls
        return emit_results(calls.call_for, found, stamps, calls.context, self, endless=True)
