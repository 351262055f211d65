"""WindowRank and WindowDeduplicate: the first rows of each partition of a window, when the window
closes. Rows that cannot be among them are dropped before."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from flinkpy.core.elements import Batch
from flinkpy.operators.base import OneInputOperator
from flinkpy.relational.ordering.rank_rows import RankedRows, RankSpec
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.relational.windows.held_windows import HoldsWindows, WindowedInput
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.windowing.windows import TimeWindow


class RankedWindowsOperator(HoldsWindows, OneInputOperator):
    """Gives the rows with these ranks; they are in windows already."""

    most = 1 << 13  # rows of a window, before those behind the last wanted rank are dropped

    def __init__(
        self, spec: RankSpec, input: WindowedInput, clock: WallClock, schema: pa.Schema
    ) -> None:
        super().__init__((input,), clock, schema)
        self.spec = spec

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return self.schema

    def process_batch(self, batch: Batch) -> None:
        self.hold(batch, 0)
        self._held.thin(self.most, self._thinned)

    def _thinned(self, side: int, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        return RankedRows.of(self.spec, one_record_batch(batches, self.inputs[0].schema)).kept()

    def results(self, window: TimeWindow, sides: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from RankedRows.of(self.spec, sides[0]).results(self.schema)
