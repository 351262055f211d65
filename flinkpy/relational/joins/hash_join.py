"""HashJoin of BATCH: one side is kept, found by key; the other passes by.

The task reads the side that is kept to its end first (``reads_first``); what comes of the other
side before waits. Rows of the kept side that must go out without a partner are marked, and go out
at the end. What does not fit into the operator's memory is spilled."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.columnar.column_operators import explained
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.joined_rows import JoinedRows
from flinkpy.relational.joins.spilling_join import JoinPlan, spilling_join
from flinkpy.relational.relational_operator import RelationalJoin, pieces


class HashJoinOperator(RelationalJoin):
    """Joins its inputs, whose rows have the schemas ``left`` and ``right``."""

    def __init__(
        self, spec: JoinSpec, left: pa.Schema, right: pa.Schema, schema: pa.Schema
    ) -> None:
        super().__init__(schema)
        self.spec = spec
        self.left = left
        self.right = right
        self.reads_first = 0 if spec.builds_left else 1

    def open(self) -> None:
        super().open()
        condition = self.compiled_if_any(self.spec.condition)
        pair = JoinedRows(self.left, self.right, self.schema, condition)
        plan = JoinPlan(self.spec, self.left, self.right, pair)
        memory = self._memory
        self._joined = spilling_join(plan, memory) if memory.is_limited else plan.in_memory()
        self._is_sealed = False
        self._waiting: list[pa.RecordBatch] = []

    def take(self, data: pa.RecordBatch, is_right: bool) -> Iterator[pa.RecordBatch]:
        if is_right != self.spec.builds_left:
            self._joined.add(data)
        elif self._is_sealed:
            yield from self._joined.probe(data)
        else:
            self._waiting.append(data)

    def end_input(self, input_index: int) -> None:
        if input_index != self.reads_first or self._is_sealed:
            return
        with explained(None, self.context):
            self._joined.seal()
            self._is_sealed = True
            waiting, self._waiting = self._waiting, []
            for data in waiting:
                for given in self._joined.probe(data):
                    for each in pieces(given):
                        self.output.emit(each)

    def last_batches(self) -> Iterator[ColumnBatch]:
        for given in self._joined.rest():
            yield from pieces(given)
