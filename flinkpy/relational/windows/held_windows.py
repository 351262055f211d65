"""What operators share that look at all rows of a window when it closes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkpy.core.elements import Batch
from flinkpy.operators.base import Work
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.relational.relational_operator import one_record_batch, pieces, with_schema
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.windows_in_time import WindowsInTime
from flinkpy.sql.rex.relational_terms import WindowKind, WindowSpec
from flinkpy.windowing.joins.rows_by_slice import RowsBySlice, SavedRows
from flinkpy.windowing.slicing import CumulativeSlicing, Slicing
from flinkpy.windowing.windows import TimeWindow

ROWS = "_rows of windows"  # the name of the state


def slicing_for(window: WindowSpec) -> Slicing:
    """How rows are cut into slices. Rows that are in windows already lie in the last moment of
    theirs, as in a window of one millisecond."""
    if window.bounds is not None:
        return Slicing(1, 1, 0)
    kind = CumulativeSlicing if window.kind is WindowKind.CUMULATE else Slicing
    return kind(window.size, window.step or window.size, window.offset)


@dataclass(frozen=True)
class WindowedInput:
    """Rows of this schema, their windows, and the columns that say to which subtask they go."""

    schema: pa.Schema
    window: WindowSpec
    keys: tuple[str, ...] = ()


class HoldsWindows(WindowsInTime):
    """Holds the rows of its inputs until their windows close. ``schema`` is that of the results.
    All inputs have windows of one kind, so those of the first count."""

    def __init__(
        self, inputs: Iterable[WindowedInput], clock: WallClock, schema: pa.Schema
    ) -> None:
        self.inputs = tuple(inputs)
        self.schema = schema
        super().__init__(clock, is_processing=self.inputs[0].window.is_processing)

    def results(self, window: TimeWindow, sides: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the rows of a window make: all rows of each side, at least one in all."""
        raise NotImplementedError(type(self).__name__)

    def open(self) -> None:
        self._held = RowsBySlice(
            slicing_for(self.inputs[0].window),
            [each.keys for each in self.inputs],
            self.context.task.max_parallelism,
        )
        for _, rows in self._held.restore(self.saved(), self._held.log_of(self.backend, ROWS)):
            self.check_restored(rows)
        super().open()

    def saved(self) -> Mapping[Any, list[SavedRows]]:
        """Registers the state, and gives what was saved of it."""
        found: Mapping[Any, list[SavedRows]] = self.backend.register_region(ROWS, self._held.freeze)
        return found

    def check_restored(self, rows: pa.RecordBatch) -> None:
        """Refuses rows that were saved by an operator which gave them another meaning."""

    @property
    def now(self) -> int:
        return self._held.windows.watermark

    @property
    def next_moment(self) -> int | None:
        return self._held.windows.next_moment

    def entries_held(self) -> int:
        return self._held.rows

    def bytes_held(self) -> int:
        return self._held.nbytes

    def hold(self, batch: Batch, side: int) -> None:
        """Takes the rows of a batch; drops those that are late."""
        input, data = self.inputs[side], columns(batch, self.context).data
        with explained(data, self.context):
            self.hold_rows(with_schema(data, input.schema), side)

    def hold_rows(self, data: pa.RecordBatch, side: int) -> None:
        """The same for rows in the columns of the side."""
        moments = self.moments(self.inputs[side].window, data)
        self.drop_late(self._held.add(side, data, moments))
        self._held.relieve()
        self.set_alarm()

    def advance(self, until: int) -> Work:
        for window, sides in self._held.closed(until):
            if not any(sides):  # it had closed for all its rows before a restart
                continue
            with explained(None, self.context):
                given = self.results(window, self._together(sides))
                for data in given:
                    for each in pieces(data):
                        self.output.emit(each)
                        yield

    def _together(self, sides: list[list[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        return [
            one_record_batch(batches, input.schema) for batches, input in zip(sides, self.inputs)
        ]
