"""The operator that looks for a pattern in a stream of columns.

It finds what the operator over rows finds, with the same state, so a savepoint of one is one of the
other. Only events that can matter to the pattern become rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flinkpy.cep.automaton.partial_matches import Found
from flinkpy.cep.automaton.pattern_compiler import compiled
from flinkpy.cep.automaton.pattern_states import Automaton
from flinkpy.cep.match_functions import PatternProcessFunction
from flinkpy.cep.matching.candidates import Candidates
from flinkpy.cep.matching.events_on_disk import EventsOnDisk
from flinkpy.cep.matching.expression_conditions import ExpressionConditions
from flinkpy.cep.matching.generated_loop import expressions_of
from flinkpy.cep.matching.pending_columns import PendingColumns
from flinkpy.cep.matching.places import as_it_is, needs_no_events, with_rows
from flinkpy.cep.matching.row_matcher import some_at_once
from flinkpy.cep.matching_operator import PENDING
from flinkpy.cep.pattern_operator import Matched, PatternOperator
from flinkpy.columns.values.conversion import rows_of_batch
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import BatchForm, Work
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.output.output_isolation import private
from flinkpy.state.snapshots.frozen_tables import FrozenRegion

_AT_ONCE = 1 << 10  # matches whose rows are made together


class ColumnPatternOperator(PatternOperator):
    """Takes batches of columns; its key, if it has one, is of columns."""

    batch_form = BatchForm.AT_END_OF_TIME
    _waiting: PendingColumns

    def __init__(
        self, matched: Matched, function: PatternProcessFunction, key: KeySpec | None = None
    ) -> None:
        super().__init__(matched, function, key)
        self.key_columns = self.key.columns or ()

    def check(self, schema: Any) -> None:
        """Raises ProgramError for conditions that cannot be computed of columns of this schema."""
        ExpressionConditions(expressions_of(compiled(self.matched.pattern))).prepare(schema)

    def _open_pending(self, automaton: Automaton) -> None:
        conditions = ExpressionConditions(expressions_of(automaton))
        places = needs_no_events(automaton) and self._matcher.is_generated
        self._disk = EventsOnDisk(self.backend, PENDING, self.context.task)
        self._waiting = PendingColumns(
            Candidates(automaton), conditions, self.key_columns, places, self._disk
        )
        self._own = private if self._calls.copies else as_it_is
        self._waiting.restore(self.backend.register_region(PENDING, self._freeze_pending))
        self._arm()

    def _freeze_pending(self) -> FrozenRegion:
        return self._waiting.freeze(self._keys_of)

    # -- events ------------------------------------------------------------------------------------

    def process_batch(self, batch: Batch) -> Work:
        batch = columns(batch, self.context)
        if self.intake.event_time:
            self._wait_in_columns(batch)
            self._waiting.relieve(self._watermark)
            self.backend.after_records(len(batch))
            return
        now = self.context.timers.now_ms()
        self._add(batch.data, np.full(len(batch), now))
        yield from self._arrived(now, len(batch))

    def _wait_in_columns(self, batch: ColumnBatch) -> None:
        """Takes the events that are in time into the buffer."""
        stamps = batch.timestamps
        if stamps is None:
            raise self._without_timestamps()
        if int(stamps.min()) <= self._watermark:
            is_late = stamps <= self._watermark
            self._give_late(batch.take(np.flatnonzero(is_late)))
            batch = batch.take(np.flatnonzero(~is_late))
        if len(batch):
            self._add(batch.data, batch.timestamps)

    def _add(self, data: Any, times: Any) -> None:
        with explained(data, self.context):
            self._waiting.add(data, times)

    def _give_late(self, late: ColumnBatch) -> None:
        stamps = late.timestamps
        if self.intake.late_tag is None or stamps is None:
            self.drop_late(len(late))
        else:
            rows = RowBatch(rows_of_batch(late.data), stamps.tolist())
            self.output.emit_side(self.intake.late_tag, rows)

    # -- matches -----------------------------------------------------------------------------------

    def _taken(self, now: int) -> Iterator[Sequence[Found]]:
        for moment in self._disk.moments(now):
            for due in self._waiting.until(moment, self._matcher.runs, self._keys_of):
                found = self._matcher.take(due.keys, due.times, due.events, due.truths)
                yield from some_at_once(self._guarded(found), _AT_ONCE)

    def _with_own_events(self, found: Sequence[Found]) -> Sequence[Found]:
        return with_rows(found, self._own)
