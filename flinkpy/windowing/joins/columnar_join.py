"""The window join of two streams of columns: batches are stored as they come, and each complete
window is joined at once by array kernels.

Without allowed lateness it gives the same results in the same order as the join of rows. A batch
that spans several slices is first cut at their borders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, ColumnBatch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import BatchForm, TwoInputOperator
from flinkpy.operators.columnar.column_operators import columns, one_batch
from flinkpy.operators.columnar.joined_columns import JoinedColumns
from flinkpy.operators.columnar.state_tables import (
    by_group,
    from_bytes,
    group_numbers,
    key_of_group,
    to_bytes,
)
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.windowing.assigners import no_timestamp
from flinkpy.windowing.joins.aligned_windows import AlignedWindows
from flinkpy.windowing.joins.column_matching import matching_pairs
from flinkpy.windowing.slicing import slicing_of
from flinkpy.windowing.windows import TimeWindow

CONTENTS = "_columnar window join contents"  # the name of the state
ROWS_AT_ONCE = 1 << 16  # of a batch of results
_FEW = 8  # up to this many slices are tried one by one, which is cheaper than sorting
# the watermark up to which its windows were fired before a restore; a record batch
Kept: TypeAlias = "tuple[int, Any]"
# a key of each key group -> start of the slice, side, watermark, batch
Saved: TypeAlias = "dict[int, list[tuple[int, int, int, bytes]]]"


class ColumnarJoinOperator(DropsLateRecords, KeyedStateOperator, TwoInputOperator):
    """Inner join by the named key columns, in tumbling or sliding event-time windows."""

    batch_form = BatchForm.AT_END_OF_TIME

    def __init__(self, left_keys: Sequence[str], right_keys: Sequence[str], assigner: Any) -> None:
        self.keys, self.assigner = (tuple(left_keys), tuple(right_keys)), assigner

    def output_schema(self, left: Any, right: Any) -> Any:
        """The schema of the results. Raises ProgramError for schemas that cannot be joined."""
        return JoinedColumns(self.keys, left, right, "join").schema

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        slicing = slicing_of(self.assigner)
        assert slicing is not None, "made for aligned windows only"
        self._windows = AlignedWindows(slicing)
        self._slices: dict[int, tuple[list[Kept], list[Kept]]] = {}
        self._schemas: list[Any] = [None, None]
        self._joined: JoinedColumns | None = None
        self._restore()

    def _add_to_slice(
        self, side: int, start: int, data: pa.RecordBatch, fired_until: int = MIN_TIMESTAMP
    ) -> None:
        held = self._slices.get(start)
        if held is None:
            held = self._slices[start] = ([], [])
            self._windows.open_slice(start)
        held[side].append((fired_until, data))

    # -- snapshots: rows by key group, under a key of the group ------------------------------------

    def entries_held(self) -> int:
        return sum(
            data.num_rows
            for sides in self._slices.values()
            for batches in sides
            for _, data in batches
        )

    def _frozen(self) -> Callable[[Turns], Saved]:
        """Batches are only added, and nobody changes one: so the lists and their lengths are the
        state of now."""
        held = [
            (start, side, batches, len(batches))
            for start, sides in self._slices.items()
            for side, batches in enumerate(sides)
        ]
        watermark, max_parallelism = self._windows.watermark, self.context.task.max_parallelism

        def saved(turns: Turns) -> Saved:
            found: Saved = {}
            for start, side, batches, count in held:
                for until, data in _concatenated(batches[:count], watermark):
                    for group, part in by_group(
                        data, group_numbers(data, self.keys[side], max_parallelism)
                    ):
                        found.setdefault(key_of_group(group, max_parallelism), []).append(
                            (start, side, until, to_bytes(part))
                        )
                        turns.give_way()
            return found

        return saved

    def _restore(self) -> None:
        for parts in self.backend.register_region(CONTENTS, self._frozen).values():
            for start, side, fired_until, data in parts:
                batch = from_bytes(data)
                self._check(side, batch.schema)
                self._add_to_slice(side, start, batch, fired_until)

    # -- records -----------------------------------------------------------------------------------

    def process_batch1(self, batch: Batch) -> None:
        self._add_batch(columns(batch, self.context), 0)

    def process_batch2(self, batch: Batch) -> None:
        self._add_batch(columns(batch, self.context), 1)

    def _add_batch(self, batch: ColumnBatch, side: int) -> None:
        stamps = batch.timestamps
        if stamps is None or (earliest := int(stamps.min())) == MIN_TIMESTAMP:
            raise no_timestamp(self.assigner)
        self._check(side, batch.data.schema)
        slicing = self._windows.slicing
        start = slicing.slice_of(earliest)
        if int(stamps.max()) < start + slicing.width:
            self._add_slice_part(side, start, batch.data, stamps)
            return
        starts = slicing.slices_of_all(stamps)
        last = int(starts.max())
        few = last - start <= _FEW * slicing.width
        for each in range(start, last + 1, slicing.width) if few else np.unique(starts).tolist():
            at = np.nonzero(starts == each)[0]
            if not len(at):
                continue
            first, count = int(at[0]), len(at)
            in_a_row = int(at[-1]) - first + 1 == count
            self._add_slice_part(
                side,
                each,
                batch.data.slice(first, count) if in_a_row else batch.data.take(pa.array(at)),
                stamps[at],
            )

    def _add_slice_part(self, side: int, start: int, data: pa.RecordBatch, stamps: Any) -> None:
        end = self._windows.slicing.last_window_end(start)
        if end is None or end - 1 <= self._windows.watermark:  # between two windows, or late
            self.drop_late(int((stamps <= self._windows.watermark).sum()))
        else:
            self._add_to_slice(side, start, data)

    def _check(self, side: int, schema: pa.Schema) -> None:
        known = self._schemas[side]
        if known is not None and known.equals(schema):
            return
        try:
            if known is not None:
                raise ProgramError("the columns of a joined stream changed while the job runs")
            self._schemas[side] = schema
            if None not in self._schemas:
                self._joined = JoinedColumns(self.keys, self._schemas[0], self._schemas[1], "join")
        except ProgramError as error:
            raise ProgramError(f"operator {self.context.name!r}: {error}") from None

    # -- windows -----------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> None:
        for window in self._windows.advance(watermark.timestamp):
            self._fire(window)
        for start in self._windows.ended_slices():
            self._slices.pop(start, None)
        super().process_watermark(watermark)

    def _fire(self, window: TimeWindow) -> None:
        last = window.max_timestamp()
        slices = [
            self._slices[start]
            for start in self._windows.slicing.slices_in(window)
            if start in self._slices
        ]
        sides = [
            [data for kept in slices for fired_until, data in kept[side] if fired_until < last]
            for side in (0, 1)
        ]
        if not all(sides) or self._joined is None:
            return
        left, right = (pa.Table.from_batches(batches) for batches in sides)
        ours, theirs = matching_pairs(
            [left.column(name) for name in self.keys[0]],
            [right.column(name) for name in self.keys[1]],
        )
        arrays = [_whole(column) for column in left.columns]
        others = [_whole(right.column(at)) for at in self._joined.right]
        for begin in range(0, len(ours), ROWS_AT_ONCE):
            at, there = (pa.array(each[begin : begin + ROWS_AT_ONCE]) for each in (ours, theirs))
            taken = [array.take(at) for array in arrays] + [array.take(there) for array in others]
            self.output.emit(
                ColumnBatch(
                    pa.RecordBatch.from_arrays(taken, schema=self._joined.schema),
                    np.full(len(at), last, dtype=np.int64),
                )
            )


def _concatenated(held: list[Kept], watermark: int) -> list[Kept]:
    """The same rows in few batches, because each batch is then cut into many key groups."""
    by_watermark: dict[int, list[Any]] = {}
    for fired_until, data in held:
        by_watermark.setdefault(max(fired_until, watermark), []).append(data)
    return [
        (until, one_batch(pa.Table.from_batches(batches)))
        for until, batches in by_watermark.items()
    ]


def _whole(column: Any) -> Any:
    """A chunked array as a single array."""
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
