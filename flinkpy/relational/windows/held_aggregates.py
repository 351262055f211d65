"""WindowAggregate with calls that slices do not have: the rows of a window are held until it
closes, and then grouped. Rows that change are held, too: one that is taken back before its window
closes is as if it had never come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import Batch
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.aggregates.calls_of_groups import CallOfGroups, sites_of
from flinkpy.relational.aggregates.group_functions import accumulator_of
from flinkpy.relational.changed_rows import are_added
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.relational_operator import one_record_batch, with_schema
from flinkpy.relational.state.taken_back import contents, taken_back
from flinkpy.relational.windows.held_windows import HoldsWindows, WindowedInput
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.window_times import times_in, with_times
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import numpy.typing as npt


_ADDED = "$added"
_MOST = 4096  # rows of a slice, before those that were taken back go


class HeldAggregatesOperator(HoldsWindows, OneInputOperator):
    """For each window and key: the key's columns, the calls, and of the window what ``properties``
    names."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        properties: Sequence[str],
        input: WindowedInput,
        clock: WallClock,
        schema: pa.Schema,
    ) -> None:
        super().__init__((input,), clock, schema)
        self.calls = tuple(calls)
        self.properties = tuple(properties)

    def open(self) -> None:
        super().open()
        self._functions = OpenedCalls(self.calls, self.context)

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return self.schema

    def process_batch(self, batch: Batch) -> None:
        self.hold(batch, 0)

    def results(self, window: TimeWindow, sides: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        [data], [input] = sides, self.inputs
        keys = [input.schema.get_field_index(name) for name in input.keys]
        numbers = GroupNumbers(keys)
        groups = numbers.of(data)
        size = len(numbers)
        kinds = [field.type for field in self.schema][len(keys) : len(keys) + len(self.calls)]
        results = results_of_groups(self.calls, kinds, data, groups, size)
        [time] = self.times_of_windows(np.array([window.end])).tolist()
        times = times_in(input.window, window.end, time, size)
        yield with_times([*numbers.key_columns(), *results], self.properties, times, self.schema)


class ChangingAggregatesOperator(HeldAggregatesOperator):
    """Holds the rows of windows, and with each whether it comes or goes. The rows that are left of
    a window when it closes are grouped; where none is left, there is no group. The results are
    inserts."""

    takes_changes = ALL_CHANGES
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
            self.hold_rows(self._marked(data, are_added(changes)), 0)
            self._held.thin(self.most, self._thinned)

    def _marked(self, data: pa.RecordBatch, added: object) -> pa.RecordBatch:
        [held] = self.inputs
        return pa.RecordBatch.from_arrays([*data.columns, pa.array(added)], schema=held.schema)

    def _thinned(self, side: int, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        left = self._left(one_record_batch(batches, self.inputs[side].schema))
        return self._marked(left, np.ones(left.num_rows, np.bool_))

    def _left(self, held: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that were not taken back."""
        data = held.select(range(len(self.rows_schema)))
        added = held.column(len(self.rows_schema)).to_numpy(zero_copy_only=False)
        if added.all():
            return data
        stay, _ = taken_back(contents(data), np.arange(held.num_rows), added)
        return data.filter(pa.array(stay))

    def results(self, window: TimeWindow, sides: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left = self._left(sides[0])
        if left.num_rows:
            yield from super().results(window, [left])


def results_of_groups(
    calls: Sequence[AggregateCall],
    kinds: Sequence[pa.DataType],
    data: pa.RecordBatch,
    groups: npt.NDArray[np.int64],
    size: int,
) -> list[pa.Array]:
    """The results of each call, of these types, for all groups of these rows."""
    arrays = []
    for call, site in zip(calls, sites_of(calls, data.schema, kinds)):
        of_groups = CallOfGroups(call, accumulator_of(site))
        of_groups.add(data, groups, size)
        arrays.append(of_groups.accumulator.results(size))
    return arrays
