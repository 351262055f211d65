"""WindowAggregate with DISTINCT: for each slice and key what has been accumulated, and the values
that were there, until a window closes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.elements import Batch
from flinkpy.operators.base import OneInputOperator, Work
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.tables_by_group import from_bytes
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.relational_operator import one_record_batch, with_schema
from flinkpy.relational.windows.held_windows import ROWS, HoldsWindows, WindowedInput
from flinkpy.relational.windows.meanings import check_meaning, meaning_in, meaning_of
from flinkpy.relational.windows.partial_groups import PartialGroups, with_places
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.window_times import times_in, with_times
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.state.snapshots.arrow_streams import to_bytes
from flinkpy.windowing.joins.rows_by_slice import SavedRows
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import numpy.typing as npt


PARTS = "_parts of windows"  # the name of the state


class PartialAggregatesOperator(HoldsWindows, OneInputOperator):
    """For each window and key: the key's columns, the calls, and of the window what ``properties``
    names."""

    most = 1 << 16  # rows that wait, or of the tables of a slice, before they are put together

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        properties: Sequence[str],
        input: WindowedInput,
        clock: WallClock,
        schema: pa.Schema,
    ) -> None:
        self.calls = tuple(calls)
        self.properties = tuple(properties)
        self.input = input
        names, at = input.schema.names, len(input.keys)
        self.meaning = meaning_of(calls, input.keys, input.window, names)
        self.groups = PartialGroups(
            [names.index(each) for each in input.keys],
            calls,
            input.schema,
            [field.type for field in schema][at : at + len(self.calls)],
            self.meaning,
        )
        window, keys = input.window, self.groups.keys
        super().__init__(
            [WindowedInput(each, window, keys) for each in self.groups.schemas], clock, schema
        )

    def open(self) -> None:
        self._functions = OpenedCalls(self.calls, self.context)
        self._waiting: list[tuple[pa.RecordBatch, npt.NDArray[np.int64]]] = []
        self._waiting_rows = 0
        super().open()

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    def saved(self) -> Mapping[Any, list[SavedRows]]:
        found: Mapping[Any, list[SavedRows]] = self.backend.register_region(PARTS, self._frozen)
        for each in found.values():
            self.check_restored(from_bytes(each[0][-1]))
        # savepoints of flinkpy 0.9 have the rows themselves
        rows = self.backend.register_region(ROWS, dict)
        return found or {key: self._parts_of(each) for key, each in rows.items()}

    def check_restored(self, rows: pa.RecordBatch) -> None:
        check_meaning(self.context.name, meaning_in(rows.schema), self.meaning)

    def _parts_of(self, rows: list[SavedRows]) -> list[SavedRows]:
        parts = []
        for start, _, fired_until, saved in rows:
            data = from_bytes(saved)
            tables = self.groups.of(data, np.full(data.num_rows, start, np.int64))
            parts += [
                (start, side, fired_until, to_bytes(table)) for side, table in enumerate(tables)
            ]
        return parts

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return self.schema

    def entries_held(self) -> int:
        return self._held.rows + self._waiting_rows

    def bytes_held(self) -> int:
        return super().bytes_held() + held_bytes(self._waiting)

    def process_batch(self, batch: Batch) -> None:
        data = columns(batch, self.context).data
        with explained(data, self.context):
            self._take(with_schema(data, self.input.schema))
        self.set_alarm()

    def _take(self, data: pa.RecordBatch) -> None:
        moments = self.moments(self.input.window, data)
        slicing = self._held.windows.slicing
        slices = slicing.slices_of_all(moments)
        starts, which = np.unique(slices, return_inverse=True)
        last = map(slicing.last_window_end, starts.tolist())
        is_over = np.array([end is None or end - 1 <= self.now for end in last], np.bool_)
        if is_over.any():  # late, or between two windows
            gone = is_over[which]
            self.drop_late(int((moments[gone] <= self.now).sum()))
            data, slices, starts = data.filter(pa.array(~gone)), slices[~gone], starts[~is_over]
        if not data.num_rows:
            return
        self._waiting.append((data, slices))
        self._waiting_rows += data.num_rows
        is_new = any(start not in self._held.starts for start in starts.tolist())
        if is_new or self._waiting_rows > max(self.most, self._held.rows):
            self._settle()

    def _settle(self) -> None:
        """What rows have waited become parts: many at once, which costs less for each of them."""
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        if not waiting:
            return
        data = one_record_batch([data for data, _ in waiting], self.input.schema)
        slices = np.concatenate([slices for _, slices in waiting])
        for side, table in enumerate(self.groups.of(data, slices)):
            if table.num_rows:
                self._held.add(side, table, table.column(0).to_numpy())
        self._held.thin(self.most, self._merged)
        self._held.relieve()

    def _frozen(self) -> Callable[[Turns], dict[int, list[SavedRows]]]:
        self._settle()
        return self._held.freeze()

    def advance(self, until: int) -> Work:
        first = self.next_moment
        if first is not None and first <= until:
            self._settle()
        yield from super().advance(until)

    def _merged(self, side: int, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        return self.groups.merged(side, one_record_batch(batches, self.groups.schemas[side]))

    def results(self, window: TimeWindow, sides: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The slices of a window are one place."""
        tables = [with_places(each, np.zeros(each.num_rows, np.int64)) for each in sides]
        tables = [self.groups.merged(side, each) for side, each in enumerate(tables)]
        places, keys, results = self.groups.results(tables)
        [time] = self.times_of_windows(np.array([window.end])).tolist()
        times = times_in(self.input.window, window.end, time, len(places))
        yield with_times([*keys, *results], self.properties, times, self.schema)
