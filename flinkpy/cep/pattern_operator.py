"""The operator that looks for a pattern in a stream, keyed or not.

In event time events wait for the watermark in one buffer. Then the matcher takes them in the order
of their time, and after them the keys whose partial matches time out. In processing time each batch
is taken as it comes, and a timer looks after what times out.

State: the runs of each key, and the events that wait. A key that has neither leaves nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from flinkpy.cep.automaton.drawing import drawn
from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.partial_matches import STATE, Found, Runs
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.automaton.pattern_states import Automaton
from flinkpy.cep.event_keys import keys_of_events
from flinkpy.cep.match_calls import MatchCalls
from flinkpy.cep.match_functions import PatternProcessFunction
from flinkpy.cep.matching.calendar import PARTS, Calendar
from flinkpy.cep.matching.pending_events import Compare, PendingEvents
from flinkpy.cep.matching.row_candidates import row_candidates
from flinkpy.cep.matching.row_matcher import RowMatcher
from flinkpy.cep.pattern import Pattern
from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, RowBatch, Watermark
from flinkpy.core.errors import FlinkpyError, ProgramError
from flinkpy.core.options.checkpointing import RECOVERY_IGNORE_UNCLAIMED
from flinkpy.core.options.patterns import MAX_PARTIAL_MATCHES
from flinkpy.core.options.schema import read
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import Guarding, OneInputOperator, Work
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

# the names of the state
RUNS = "_partial matches"
PENDING = "_pending events"


@dataclass(frozen=True)
class Matched:
    """What to look for, and how: the pattern, the order of events of equal time, the side output of
    late events, and whether the time is that of the events."""

    pattern: Pattern
    compare: Compare | None = None
    late_tag: str | None = None
    event_time: bool = True


def single_key(event: object) -> int:
    """The key of all events of a stream without keys."""
    return 0


class PatternOperator(DropsLateRecords, EndsKeys, OneInputOperator):
    """Calls a PatternProcessFunction with the matches. Without a key its parallelism must be 1."""

    parks = True
    emits_changes = INSERT_ONLY
    guarding = Guarding.BY_ITSELF
    error_policy = ErrorPolicy()
    _is_open = False

    def __init__(
        self, matched: Matched, function: PatternProcessFunction, key: KeySpec | None = None
    ) -> None:
        self.key = KeySpec(single_key) if key is None else key
        key_function(self.key)
        self.matched, self.function = matched, function
        compiled(matched.pattern)  # refuses it while the program is built

    def set_error_policy(self, policy: ErrorPolicy) -> None:
        """Sets what happens to matches whose function raises."""
        self.error_policy = policy

    def drawing(self) -> str:
        return drawn(compiled(self.matched.pattern))

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        automaton = compiled(self.matched.pattern)
        self._functions = {
            id(function): function
            for condition in automaton.conditions()
            for function in condition.functions
        }
        for function in (self.key.selector, self.function, *self._functions.values()):
            open_function(function, self.context)
        self._is_open = True
        self._select = key_function(self.key)
        self._watermark = MIN_TIMESTAMP
        self._calls = MatchCalls(self.function, self.error_policy, self.context)
        self._wake_up = WakeUp(self.context.timers, self._on_processing_time)
        self._open_state(automaton)

    def _open_state(self, automaton: Automaton) -> None:
        self._open_matcher(automaton)
        self._pending = PendingEvents(self.matched.compare, row_candidates(automaton))
        self._pending.restore(self.backend.register_region(PENDING, self._freeze_pending))
        self._arm()

    def _open_matcher(self, automaton: Automaton) -> None:
        exact = self._calls.handles_timeouts or automaton.gives_at_timeouts
        shortest = min(
            (ms for ms in (automaton.within_ms, *automaton.within_previous_ms.values()) if ms),
            default=1,
        )
        self._matcher = RowMatcher(
            Interpreter(automaton, self.context.timers.now_ms, self._calls.handles_timeouts),
            Calendar(1 if exact else max(1, shortest // PARTS)),
            read(self.context.configuration, MAX_PARTIAL_MATCHES),
        )
        runs = self.backend.engine_values(RUNS)
        self._leave_out_strange(automaton, runs)
        self._matcher.restore(runs)
        self.backend.layer_engine_values(RUNS, self._rebind, _same)

    def _rebind(self, runs: MutableMapping[Any, Runs]) -> None:
        self._matcher.runs = runs

    def _freeze_pending(self) -> FrozenRegion:
        return self._pending.by_key(self._keys_of)

    def _leave_out_strange(self, automaton: Automaton, runs: MutableMapping[Any, Runs]) -> None:
        """Refuses partial matches in states that the pattern does not have, as it has changed; or
        drops them, if the job may start without state that it has no place for."""
        known = automaton.by_name()
        strange: Counter[str] = Counter()
        for kept in runs.values():
            strange.update(run[STATE] for run in kept if run[STATE] not in known)
        if not strange:
            return
        what = (
            f"operator {self.context.name!r}: its state has {strange.total():,} partial matches in "
            f"the states {', '.join(sorted(strange))}, which the pattern of this program does not "
            f"have; it has {', '.join(known)}."
        )
        if not read(self.context.configuration, RECOVERY_IGNORE_UNCLAIMED):
            raise ProgramError(
                f"{what} Start with --allow-non-restored-state "
                f"({RECOVERY_IGNORE_UNCLAIMED.key}) to drop them, or give the operator another "
                "uid to begin anew"
            )
        logger.warning("%s They are dropped", what)
        for key, kept in list(runs.items()):
            left = Runs(run for run in kept if run[STATE] in known)
            if left:
                runs[key] = left
            else:
                del runs[key]

    def close(self) -> None:
        try:
            if self._is_open:
                self._wake_up.cancel()
                self._matcher.close()
                for function in (self.function, *self._functions.values()):
                    close_function(function)
        finally:
            super().close()
            close_function(self.key.selector)

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

    def process_batch(self, batch: Batch) -> Work:
        batch = rows(batch)
        if self.matched.event_time:
            self._wait(batch)
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
        if self.matched.late_tag is None:
            self.drop_late(len(late))
        else:
            self.output.emit_side(self.matched.late_tag, late)

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
        if self.matched.event_time:
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
        if not self.matched.event_time:
            self._wake_up.at(self._matcher.calendar.next_time())

    # -- matches -----------------------------------------------------------------------------------

    def _keys_of(self, events: list[Any]) -> list[Any]:
        return keys_of_events(self._select, events, self.context)

    def _due(self, now: int) -> Iterator[Found]:
        """What is found because time has come to ``now``."""
        yield from self._taken(now)
        yield from self._guarded(self._matcher.advance(now))

    def _taken(self, now: int) -> Iterator[Found]:
        """What is found in the events that have waited for this time."""
        times, values = self._pending.until(now)
        if values:
            yield from self._guarded(self._matcher.take(self._keys_of(values), times, values))

    def _guarded(self, found: Iterator[Found]) -> Iterator[Found]:
        """Names the event at which a condition raised."""
        try:
            yield from found
        except FlinkpyError:
            raise
        except BaseException as error:
            error, event = self._matcher.at_fault(error)
            raise user_code_error(error, self.context, *([] if event is None else [event])) from (
                error
            )

    def _emit(self, found: Iterator[Found]) -> Work:
        stamps = repeat(None) if self.matched.event_time else None
        calls = self._calls
        return emit_results(calls.call, found, stamps, calls.context, self, endless=True)


def _same(runs: Runs) -> Runs:
    """Runs are replaced and never changed, so they need no copy."""
    return runs
