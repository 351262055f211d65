"""OverAggregate of BATCH: aggregates over the rows around each row, by one sort for each window.
What does not fit into memory lies in files by partition, if all windows have a column of it in
common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.spilling.key_partitions import KeyPartitions
from flinkpy.operators.spilling.portions import portions
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.ordering.over_frames import bounds_of
from flinkpy.relational.ordering.over_functions import OverRows, over
from flinkpy.relational.ordering.partitioned_rows import partitioned
from flinkpy.relational.ordering.rank_rows import RANKED
from flinkpy.relational.relational_operator import (
    BlockingOperator,
    one_record_batch,
    pieces,
    with_schema,
)
from flinkpy.sql.rex.relational_terms import OverGroup


class OverAggregateOperator(BlockingOperator):
    """Each row with the results of all groups of aggregates behind it, in the order of the first
    group. ``inputs`` is the schema of its input. One subtask must see all rows of a partition."""

    def __init__(self, groups: Sequence[OverGroup], inputs: pa.Schema, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.groups = tuple(groups)
        self.inputs = inputs

    def open(self) -> None:
        super().open()
        memory, common = self._memory, self._common_columns()
        self._rows = KeyPartitions(
            common, memory, keeps=memory.kept if common else None, weight=RANKED
        )
        calls = [call for group in self.groups for call in group.calls]
        self._functions = OpenedCalls(calls, self.context)

    def _common_columns(self) -> tuple[int, ...]:
        """Rows that differ in these are in no partition together, whatever the window."""
        of_groups = [set(group.partition) for group in self.groups]
        return tuple(sorted(set.intersection(*of_groups))) if of_groups else ()

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    def take(self, data: pa.RecordBatch) -> None:
        self._rows.add(with_schema(data, self.inputs))

    def last_batches(self) -> Iterator[ColumnBatch]:
        for rows in portions(self._rows):
            yield from self._with_results(one_record_batch(rows, self.inputs))

    def _with_results(self, data: pa.RecordBatch) -> Iterator[ColumnBatch]:
        """The rows of some partitions with the results of all calls."""
        order, columns = None, list(data.columns)
        for group in self.groups:
            rows = partitioned(data, group.partition, group.keys)
            ordered = data.take(pa.array(rows.order))
            frames = bounds_of(rows, group.frame, group.keys, ordered.columns)
            back = np.empty(len(rows.order), np.int64)
            back[rows.order] = np.arange(len(rows.order))
            for call in group.calls:
                kind = self.schema.field(len(columns)).type
                found = over(call, OverRows(ordered, rows, frames), kind)
                columns.append(found.take(pa.array(back)))
            order = rows.order if order is None else order
        result = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        yield from pieces(result if order is None else result.take(pa.array(order)))
