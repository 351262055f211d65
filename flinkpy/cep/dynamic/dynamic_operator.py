"""The operator that looks for patterns that come, change and go while the job runs. Input 1 has the
events, input 2 the updates of patterns, which every subtask gets.

An update counts for the events that are taken after it has come. In event time events wait for the
watermark, so it counts for those that wait, too.

State: the patterns, the runs of each key by pattern, and the events that wait."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from flinkpy.cep.automaton.drawing import drawn
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.dynamic.dynamic_calls import DynamicMatchCalls
from flinkpy.cep.dynamic.dynamic_matcher import DynamicMatcher, FoundByPattern
from flinkpy.cep.dynamic.known_patterns import KnownPatterns
from flinkpy.cep.dynamic.pattern_updates import PatternUpdate
from flinkpy.cep.dynamic.runs_of_key import RunsOfKey
from flinkpy.cep.match_functions import PatternProcessFunction
from flinkpy.cep.matching_operator import Intake, MatchingOperator
from flinkpy.core.elements import MAX_TIMESTAMP, Batch, RowBatch, Watermark
from flinkpy.core.options.patterns import MAX_PARTIAL_MATCHES
from flinkpy.core.options.schema import read
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import BatchForm, OneInputOperator, TwoInputOperator, Work
from flinkpy.operators.row_batches import rows

logger = engine_logger(__name__)

MOST_DRAWN = 10  # of the patterns that are there from the beginning

RUNS = "_partial matches by pattern"  # the name of the state


@dataclass(frozen=True)
class Watched:
    """The patterns that are there from the beginning, how events are taken, and the side output of
    refused updates."""

    initial: tuple[PatternUpdate, ...]
    intake: Intake
    refused_tag: str | None


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


class DynamicPatternOperator(MatchingOperator[FoundByPattern], TwoInputOperator):
    """Looks for all patterns that are there."""

    batch_form = BatchForm.BROADCAST_FIRST
    _matcher: DynamicMatcher

    def __init__(self, watched: Watched, function: PatternProcessFunction, key: KeySpec) -> None:
        super().__init__(watched.intake, function, key)
        self.watched = watched

    def drawing(self) -> str | None:
        parts = [
            f"{update.id}, version {update.version}\n{drawn(compiled(update.pattern))}"
            for update in self.watched.initial[:MOST_DRAWN]
            if update.pattern is not None
        ]
        return "\n".join(parts) or None

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        super().open()
        calls = DynamicMatchCalls(self.function, self.error_policy, self.context)
        self._calls, self._call = calls, calls.call_for
        most = read(self.context.configuration, MAX_PARTIAL_MATCHES)
        self._matcher = DynamicMatcher(self.context.timers.now_ms, calls.handles_timeouts, most)
        self._known = KnownPatterns(self._matcher, self.context)
        self._is_open = True
        self._matcher.restore(self.backend.engine_values(RUNS))
        self.backend.held_values(RUNS, self._rebind, RunsOfKey.copy)
        self._known.end_finished()
        self._report(self.watched.initial)
        self.begin(self.intake.compare)

    def _rebind(self, runs: MutableMapping[Any, RunsOfKey]) -> None:
        self._matcher.runs = runs

    def close_matching(self) -> None:
        self._known.close()

    def measures(self, now_ms: int) -> dict[str, float]:
        if not self._is_open:
            return super().measures(now_ms)
        return {
            **super().measures(now_ms),
            "numPatterns": len(self._matcher.patterns),
            "numPatternsRefused": self._known.refused,
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

    def _with_own_events(self, found: Sequence[FoundByPattern]) -> Sequence[FoundByPattern]:
        self._calls.with_own_events([each.found for each in found])
        return found

    def process_batch1(self, batch: Batch) -> Work:
        return self.take_rows(rows(batch))
