"""IntervalJoin of STREAMING: rows of one key meet if the event time of the right one lies within an
interval around that of the left one.

A row is kept as long as a row that is in time may meet it. Then it goes, and if it met none and its
side is kept (LEFT, RIGHT, FULL), it goes out with nulls. A row that comes late meets what is still
kept, as in Flink. Results may be older than the watermark by the length of the interval, so the
watermark goes on later by that.

Rows beyond their share of memory lie in mapped files, with what finds them, as those of regular
joins do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, ColumnBatch, Watermark
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.column_operators import explained
from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.operators.columnar.tables_by_group import from_bytes
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.joins.frozen_keyed_rows import MET, FrozenKeyedRows
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.keyed_rows import KeyedRows
from flinkpy.relational.joins.unending_join import UnendingJoin
from flinkpy.relational.key_columns import key_names
from flinkpy.relational.relational_operator import (
    ROWS_AT_ONCE,
    one_record_batch,
    pieces,
    with_schema,
)
from flinkpy.relational.row_times import milliseconds
from flinkpy.relational.state.group_times import GroupTimes, Saved
from flinkpy.sql.rex.relational_terms import Interval

REGIONS = ("left", "right")
_FAR = 1 << 62  # times beyond are as good as without end
_SPARE_KEYS = 1 << 12


class IntervalRowsJoinOperator(UnendingJoin):
    """Joins rows that are in this interval."""

    batch_form = BatchForm.AT_END_OF_TIME

    def __init__(
        self,
        spec: JoinSpec,
        interval: Interval,
        left: pa.Schema,
        right: pa.Schema,
        schema: pa.Schema,
    ) -> None:
        super().__init__(spec, left, right, schema)
        self.interval = interval

    def open(self) -> None:
        super().open()
        self._sides = KeyedRows(self.left, self._memory), KeyedRows(self.right, self._memory)
        spec, interval, task = self.spec, self.interval, self.context.task
        self._time_columns = interval.left_time, interval.right_time
        # a row of each side at t meets rows of the other from t + lower to t + upper
        self._lower = interval.lower, -interval.upper
        self._upper = interval.upper, -interval.lower
        self._delay = max(0, *self._upper)
        self._keeps = spec.keeps_left, spec.keeps_right
        self._times = GroupTimes(task), GroupTimes(task)
        for side, name in enumerate(REGIONS):
            times = self.backend.register_region(name, self._frozen_times(side))
            # snapshots of before had the rows beside the times
            earlier = map(from_bytes, self._times[side].restore(times))
            rows = self.backend.register_chunks(f"{name} rows", self._frozen_rows(side))
            for each in chain(earlier, rows):
                self._take_back(each, side)

    # -- snapshots ---------------------------------------------------------------------------------

    def _frozen_times(self, side: int) -> Callable[[], Callable[[Turns], Saved]]:
        return lambda: self._times[side].freeze(lambda turns: {})

    def _frozen_rows(self, side: int) -> Callable[[], FrozenKeyedRows]:
        keys, most = self._columns[side], self.context.task.max_parallelism
        return lambda: FrozenKeyedRows(self._sides[side], self._over(side), keys, most)

    def _take_back(self, saved: pa.RecordBatch, side: int) -> None:
        data = with_schema(saved.select(self._schemas[side].names), self._schemas[side])
        met = saved.column(MET).to_numpy(zero_copy_only=False).copy()
        self._sides[side].add(data, self.numbers(data, side)[0], self._times_of(data, side), met)

    # -- rows --------------------------------------------------------------------------------------

    def _times_of(self, data: pa.RecordBatch, side: int) -> Any:
        at = self._time_columns[side]
        return milliseconds(data.column(at), data.schema.names[at])

    def entries_held(self) -> int:
        return sum(map(len, self._sides))

    def bytes_held(self) -> int:
        return held_bytes(self._sides, self._index)

    def free_memory(self) -> None:
        self._memory.free()

    def take(self, batch: ColumnBatch, side: int) -> None:
        self.emit_together(self._joined_rows(batch.data, side))

    def _joined_rows(self, data: pa.RecordBatch, side: int) -> Iterator[pa.RecordBatch]:
        ids, mask = self.numbers(data, side)
        if mask is not None:  # a key that is null meets nothing
            if self._keeps[side]:
                yield self._padded(data.filter(pa.array(~mask.to_numpy(False))), side)
            data = data.filter(mask)
        times = self._times_of(data, side)
        now = np.clip(self._times[side].of(data, self._columns[side]), -_FAR, _FAR)
        # what the other side has let go of is not met, whether it is still there or not
        low = np.maximum(times, now + 1) + self._lower[side]
        found = self._sides[1 - side].pairs(ids, low, times + self._upper[side])
        met = np.zeros(data.num_rows, np.bool_)
        for at, chunk, rows, left, right in self.met_pairs(data, side, found):
            met[at] = True
            chunk.met[rows] = True
            yield self._joined.joined(left, right)
        waits = times + self._upper[side] > now
        if waits.all():
            self._sides[side].add(data, ids, times, met)
            return
        kept = data.filter(pa.array(waits))
        self._sides[side].add(kept, ids[waits], times[waits], met[waits])
        if self._keeps[side]:
            yield self._padded(data.filter(pa.array(~waits & ~met)), side)

    def met_pairs(
        self, data: pa.RecordBatch, side: int, found: Iterable[tuple[Any, Any, Any]]
    ) -> Iterator[tuple[Any, Any, Any, pa.RecordBatch, pa.RecordBatch]]:
        """Of these pairs of rows of a batch and rows of chunks those for which the condition is
        true: positions, chunk, rows of the chunk, and both as left and right rows."""
        for at, chunk, rows in found:
            mine, theirs = data.take(pa.array(at)), chunk.data.take(pa.array(rows))
            left, right = (theirs, mine) if side else (mine, theirs)
            passed = self._joined.passing(left, right)
            if passed is not None and not passed.all():
                if not passed.any():
                    continue
                mask = pa.array(passed)
                at, rows, left, right = (
                    at[passed],
                    rows[passed],
                    left.filter(mask),
                    right.filter(mask),
                )
            yield at, chunk, rows, left, right

    def _padded(self, data: pa.RecordBatch, side: int) -> pa.RecordBatch:
        return self._joined.joined(*((None, data) if side else (data, None)))

    def emit_together(self, parts: Iterable[pa.RecordBatch]) -> None:
        """Emits results in few batches."""
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for part in parts:
            if rows + part.num_rows > ROWS_AT_ONCE and waiting:
                self._emit(waiting)
                waiting, rows = [], 0
            waiting.append(part)
            rows += part.num_rows
        if waiting:
            self._emit(waiting)

    def _emit(self, parts: list[pa.RecordBatch]) -> None:
        for each in pieces(one_record_batch(parts, self.schema)):
            if len(each):
                self.output.emit(each)

    # -- time --------------------------------------------------------------------------------------

    def _over(self, side: int) -> int:
        """Rows of this side up to this time meet nothing any more."""
        now = min(max(self._times[side].watermark, -_FAR), _FAR)
        return now - self._upper[side]

    def process_watermark(self, watermark: Watermark) -> None:
        for each in self._times:
            each.advance(watermark.timestamp)
        with explained(None, self.context):
            self.emit_together(self._alone_for_ever())
            for side, rows in enumerate(self._sides):
                rows.drop_until(self._over(side))
            if len(self._index) > 2 * self.entries_held() + _SPARE_KEYS:
                self._forget_keys()
        if watermark.timestamp == MAX_TIMESTAMP:
            self.output.emit_control(watermark)
        elif watermark.timestamp - self._delay > MIN_TIMESTAMP:
            self.output.emit_control(Watermark(watermark.timestamp - self._delay))

    def _alone_for_ever(self) -> Iterator[pa.RecordBatch]:
        """The rows that go without having met one, if they are to be kept."""
        for side, rows in enumerate(self._sides):
            for chunk in rows.chunks if self._keeps[side] else ():
                over = chunk.over(self._over(side))
                alone = over[~chunk.met[over]]
                if len(alone):
                    chunk.met[alone] = True
                    yield self._padded(chunk.data.take(pa.array(alone)), side)

    def _forget_keys(self) -> None:
        """Numbers the keys anew, when most of them have no rows any more."""
        names = key_names(len(self._columns[0]))
        self._index = KeyIndex(names, empty=self._memory.arrays.empty)
        for side, rows in enumerate(self._sides):
            rows.number_anew(partial(self._ids, side))

    def _ids(self, side: int, data: pa.RecordBatch) -> Any:
        return self.numbers(data, side)[0]
