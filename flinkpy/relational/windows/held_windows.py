"""What operators share that look at all rows of a window when it closes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flinkpy.core.elements import Batch, Watermark
from flinkpy.operators.base import BatchForm, Work
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.relational.relational_operator import one_record_batch, pieces, with_schema
from flinkpy.relational.row_times import milliseconds
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.sql.rex.relational_terms import WindowSpec
from flinkpy.windowing.joins.rows_by_slice import RowsBySlice
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import numpy.typing as npt

ROWS = "_rows of windows"  # the name of the state


def slicing_for(window: WindowSpec) -> Slicing:
    """How rows are cut into slices. Rows that are in windows already lie in the last moment of
    theirs, as in a window of one millisecond."""
    if window.bounds is not None:
        return Slicing(1, 1, 0)
    return Slicing(window.size, window.step or window.size, window.offset)


def moments_of(window: WindowSpec, clock: WallClock, data: pa.RecordBatch) -> npt.NDArray[Any]:
    """Where each row lies in time, by the clock that the windows go by."""
    found: npt.NDArray[Any]
    if window.bounds is not None:
        found = milliseconds(data.column(window.bounds[1]), "window_end") - 1
    else:
        name = data.schema.names[window.time]
        found = clock.local(milliseconds(data.column(window.time), name))
    return found


@dataclass(frozen=True)
class WindowedInput:
    """Rows of this schema, their windows, and the columns that say to which subtask they go."""

    schema: pa.Schema
    window: WindowSpec
    keys: tuple[str, ...] = ()


class HoldsWindows(DropsLateRecords, KeyedStateOperator):
    """Holds the rows of its inputs until their windows close. ``schema`` is that of the results.
    All inputs have windows of one kind, so those of the first count."""

    batch_form = BatchForm.AT_END_OF_TIME
    parks = True

    def __init__(
        self, inputs: Iterable[WindowedInput], clock: WallClock, schema: pa.Schema
    ) -> None:
        self.inputs = tuple(inputs)
        self.clock = clock
        self.schema = schema

    def results(self, window: TimeWindow, sides: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the rows of a window make: all rows of each side, at least one in all."""
        raise NotImplementedError(type(self).__name__)

    def open(self) -> None:
        self._held = RowsBySlice(
            slicing_for(self.inputs[0].window),
            [each.keys for each in self.inputs],
            self.context.task.max_parallelism,
        )
        for _ in self._held.restore(self.backend.register_region(ROWS, self._held.freeze)):
            pass

    def entries_held(self) -> int:
        return self._held.rows

    def hold(self, batch: Batch, side: int) -> None:
        """Takes the rows of a batch; drops those that are late."""
        input, data = self.inputs[side], columns(batch, self.context).data
        with explained(data, self.context):
            data = with_schema(data, input.schema)
            moments = moments_of(input.window, self.clock, data)
            self.drop_late(self._held.add(side, data, moments))

    def process_watermark(self, watermark: Watermark) -> Work:
        until = self.clock.passed(watermark.timestamp)
        if until > self._held.windows.watermark:
            for window, sides in self._held.closed(until):
                with explained(None, self.context):
                    given = self.results(window, self._together(sides))
                    for data in given:
                        for each in pieces(data):
                            self.output.emit(each)
                            yield
        super().process_watermark(watermark)

    def _together(self, sides: list[list[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        return [
            one_record_batch(batches, input.schema) for batches, input in zip(sides, self.inputs)
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Only the operator's arguments travel to the workers."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
