"""Aggregates of all records over columns: the operator of ``aggregate(...)`` on a stream without keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flinkpy.columns.aggregate_plan import AggregateCall
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.columnar.group_aggregate import KeyedAggregatesOperator

EVERYTHING = "(all records)"  # the column that all records have in common, with the key 0


class AggregatesOfAllOperator(KeyedAggregatesOperator):
    """Aggregates per key with a single key. In a batch job there is a row even if no record comes, provided that the
    columns are known while the program is built (``schema``)."""

    def __init__(self, calls: Sequence[AggregateCall], schema: Any) -> None:
        super().__init__((EVERYTHING,), calls)
        self.schema = schema

    def last_rows(self) -> ColumnBatch | None:
        last = super().last_rows()
        if last is not None or self.schema is None:
            return last
        self.prepare_for(self.schema)
        results = [each.results(1) for each in self._accumulators]
        return ColumnBatch(pa.RecordBatch.from_arrays([pa.array([0], pa.int64()), *results], schema=self._result))
