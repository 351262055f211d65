"""WindowAggregate with calls that slices do not have: the rows of a window are held until it
closes, and then grouped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import Batch
from flinkpy.operators.base import OneInputOperator
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.aggregates.calls_of_groups import CallOfGroups, sites_of
from flinkpy.relational.aggregates.group_functions import accumulator_of
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.windows.held_windows import HoldsWindows, WindowedInput
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.window_times import times_in, with_times
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import numpy.typing as npt


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


class HeldAggregatesOperator(HoldsWindows, OneInputOperator):
    """For each window and key: the key's columns, the calls, and of the window what ``properties``
    names."""

    results_of = staticmethod(results_of_groups)

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
        results = self.results_of(self.calls, kinds, data, groups, size)
        [time] = self.times_of_windows(np.array([window.end])).tolist()
        times = times_in(input.window, window.end, time, size)
        yield with_times([*numbers.key_columns(), *results], self.properties, times, self.schema)
