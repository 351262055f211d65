"""WindowAggregate with calls that slices do not have: the rows of a window are held until it
closes, and then grouped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import Batch
from flinkpy.operators.base import OneInputOperator
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.aggregates.group_functions import accumulator_of
from flinkpy.relational.aggregates.hash_aggregate import CallOfGroups, sites_of
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.row_times import times_of
from flinkpy.relational.windows.held_windows import HoldsWindows, WindowedInput
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.window_times import window_property
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.windowing.windows import TimeWindow


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
        kinds = [field.type for field in self.schema]
        keys = [input.schema.get_field_index(name) for name in input.keys]
        numbers = GroupNumbers(keys)
        groups = numbers.of(data)
        size = len(numbers)
        arrays = numbers.key_columns()
        results = kinds[len(keys) : len(keys) + len(self.calls)]
        for call, site in zip(self.calls, sites_of(self.calls, input.schema, results)):
            of_groups = CallOfGroups(call, accumulator_of(site))
            of_groups.add(data, groups, size)
            arrays.append(of_groups.accumulator.results(size))
        [time] = self.times_of_windows(np.array([window.end])).tolist()
        for word, kind in zip(self.properties, kinds[len(arrays) :]):
            moment = window_property(word, window.end, time, input.window)
            arrays.append(times_of(np.full(size, moment, np.int64), kind))
        conformed = [
            array if array.type == kind else plain(array).cast(kind)
            for array, kind in zip(arrays, kinds)
        ]
        yield pa.RecordBatch.from_arrays(conformed, schema=self.schema)
