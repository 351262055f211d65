"""WindowAggregate over TUMBLE, HOP and CUMULATE, and rows that change: they are held with those
that take them back until their window closes, and what is left of them is grouped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import Batch
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.relational.changed_rows import are_added
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.relational_operator import one_record_batch, with_schema
from flinkpy.relational.windows.changes.net_rows import are_left, are_there, results_of_changes
from flinkpy.relational.windows.held_aggregates import HeldAggregatesOperator
from flinkpy.relational.windows.held_windows import WindowedInput
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ADDED = "$added"
_MOST = 4096  # rows of a slice, before those that were taken back go


class ChangingAggregatesOperator(HeldAggregatesOperator):
    """Holds behind the columns of each row whether it comes or is taken back. The results are
    inserts."""

    takes_changes = ALL_CHANGES
    results_of = staticmethod(results_of_changes)
    most = _MOST

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        properties: Sequence[str],
        input: WindowedInput,
        clock: WallClock,
        schema: pa.Schema,
    ) -> None:
        held = replace(input, schema=input.schema.append(pa.field(_ADDED, pa.bool_())))
        super().__init__(calls, properties, held, clock, schema)
        self.rows_schema = input.schema

    def process_batch(self, batch: Batch) -> None:
        changes = columns(batch, self.context, self.takes_changes)
        with explained(changes.data, self.context):
            data = with_schema(changes.data, self.rows_schema)
            marked = [*data.columns, pa.array(are_added(changes))]
            [held] = self.inputs
            self.hold_rows(pa.RecordBatch.from_arrays(marked, schema=held.schema), 0)
            self._held.thin(self.most, self._thinned)

    def _thinned(self, side: int, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        return _left(one_record_batch(batches, self.inputs[side].schema))

    def results(self, window: TimeWindow, sides: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left, [input] = _left(sides[0]), self.inputs
        if left.num_rows:
            numbers = GroupNumbers([input.schema.get_field_index(each) for each in input.keys])
            groups = numbers.of(left)
            left = left.filter(pa.array(are_there(_added(left), groups, len(numbers))))
        if left.num_rows:
            yield from super().results(window, [left])


def _left(held: pa.RecordBatch) -> pa.RecordBatch:
    left = are_left(held.columns[:-1], _added(held))
    return held if left.all() else held.filter(pa.array(left))


def _added(held: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    added: npt.NDArray[np.bool_] = held.columns[-1].to_numpy(zero_copy_only=False)
    return added
