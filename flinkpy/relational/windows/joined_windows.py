"""WindowJoin: the rows of one window of both inputs are joined when the window closes, by a hash
join of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from flinkpy.core.elements import Batch
from flinkpy.operators.base import TwoInputOperator
from flinkpy.relational.joins.join_of_tables import JoinOfTables, JoinSpec
from flinkpy.relational.joins.joined_rows import JoinedRows
from flinkpy.relational.relational_operator import CompilesCalcs
from flinkpy.relational.windows.held_windows import HoldsWindows, WindowedInput
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.windowing.windows import TimeWindow


class JoinedWindowsOperator(HoldsWindows, CompilesCalcs, TwoInputOperator):
    """Joins two inputs whose rows are in windows already."""

    def __init__(
        self,
        spec: JoinSpec,
        left: WindowedInput,
        right: WindowedInput,
        clock: WallClock,
        schema: pa.Schema,
    ) -> None:
        super().__init__((left, right), clock, schema)
        self.spec = spec

    def output_schema(self, left: pa.Schema, right: pa.Schema) -> Any:
        return self.schema

    def open(self) -> None:
        super().open()
        left, right = (each.schema for each in self.inputs)
        condition = self.compiled_if_any(self.spec.condition)
        self._pair = JoinedRows(left, right, self.schema, condition)

    def process_batch1(self, batch: Batch) -> None:
        self.hold(batch, 0)

    def process_batch2(self, batch: Batch) -> None:
        self.hold(batch, 1)

    def results(self, window: TimeWindow, sides: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left, right = sides
        builds_left = left.num_rows < right.num_rows
        spec = replace(self.spec, builds_left=builds_left)
        one, other = (each.schema for each in self.inputs)
        joined = JoinOfTables(spec, one, other, self._pair)
        kept, others = (left, right) if builds_left else (right, left)
        joined.add(kept)
        joined.seal()
        if others.num_rows:
            yield from joined.probe(others)
        yield from joined.rest()
