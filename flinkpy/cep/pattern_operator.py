"""The operator that looks for a pattern in a stream, keyed or not.

State: the runs of each key, and the events that wait. A key that has neither leaves nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from flinkpy.cep.automaton.drawing import drawn
from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.partial_matches import STATE, Found, Runs
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.automaton.pattern_states import Automaton
from flinkpy.cep.match_calls import MatchCalls
from flinkpy.cep.match_functions import PatternProcessFunction
from flinkpy.cep.matching.calendar import PARTS, Calendar
from flinkpy.cep.matching.row_candidates import row_candidates
from flinkpy.cep.matching.row_matcher import RowMatcher
from flinkpy.cep.matching_operator import Intake, MatchingOperator
from flinkpy.cep.pattern import Pattern
from flinkpy.core.elements import Batch
from flinkpy.core.errors import ProgramError
from flinkpy.core.options.checkpointing import RECOVERY_IGNORE_UNCLAIMED
from flinkpy.core.options.patterns import MAX_PARTIAL_MATCHES
from flinkpy.core.options.schema import read
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator, Work
from flinkpy.operators.functions import close_function, open_function
from flinkpy.operators.row_batches import rows

logger = engine_logger(__name__)

RUNS = "_partial matches"  # the name of the state


@dataclass(frozen=True)
class Matched:
    """What to look for, and how events are taken."""

    pattern: Pattern
    intake: Intake


def single_key(event: object) -> int:
    """The key of all events of a stream without keys."""
    return 0


class PatternOperator(MatchingOperator[Found], OneInputOperator):
    """Looks for one pattern."""

    _matcher: RowMatcher

    def __init__(
        self, matched: Matched, function: PatternProcessFunction, key: KeySpec | None = None
    ) -> None:
        super().__init__(matched.intake, function, KeySpec(single_key) if key is None else key)
        self.matched = matched
        compiled(matched.pattern)  # refuses it while the program is built

    def drawing(self) -> str:
        return drawn(compiled(self.matched.pattern))

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        super().open()
        automaton = compiled(self.matched.pattern)
        self._functions = {
            id(function): function
            for condition in automaton.conditions()
            for function in condition.functions
        }
        for function in self._functions.values():
            open_function(function, self.context)
        self._calls = MatchCalls(self.function, self.error_policy, self.context)
        self._call = self._calls.call
        self._matcher = self._matcher_of(automaton)
        self._is_open = True
        self._restore_runs(automaton)
        self._open_pending(automaton)

    def _open_pending(self, automaton: Automaton) -> None:
        self.begin(self.intake.compare, row_candidates(automaton))

    def _matcher_of(self, automaton: Automaton) -> RowMatcher:
        exact = self._calls.handles_timeouts or automaton.gives_at_timeouts
        shortest = min(
            (ms for ms in (automaton.within_ms, *automaton.within_previous_ms.values()) if ms),
            default=1,
        )
        return RowMatcher(
            Interpreter(automaton, self.context.timers.now_ms, self._calls.handles_timeouts),
            Calendar(1 if exact else max(1, shortest // PARTS)),
            read(self.context.configuration, MAX_PARTIAL_MATCHES),
        )

    def _restore_runs(self, automaton: Automaton) -> None:
        runs = self.backend.engine_values(RUNS)
        self._leave_out_strange(automaton, runs)
        self._matcher.restore(runs)
        self.backend.held_values(RUNS, self._rebind, _same)

    def _rebind(self, runs: MutableMapping[Any, Runs]) -> None:
        self._matcher.runs = runs

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

    def close_matching(self) -> None:
        self._matcher.close()
        for function in self._functions.values():
            close_function(function)

    def _with_own_events(self, found: Sequence[Found]) -> Sequence[Found]:
        return self._calls.with_own_events(found)

    def process_batch(self, batch: Batch) -> Work:
        return self.take_rows(rows(batch))


def _same(runs: Runs) -> Runs:
    """Runs are replaced and never changed, so they need no copy."""
    return runs
