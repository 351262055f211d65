"""OVER of STREAMING from the first row of a partition on: of each partition one row is kept, with
what its rows so far come to. It stands before the new rows, as if it were the first of them, so
frames are computed as ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.relational.aggregates.group_counts import averages
from flinkpy.relational.aggregates.group_decimals import decimal_averages, decimals_or_null
from flinkpy.relational.aggregates.present_values import wrapped
from flinkpy.relational.in_time.frames_in_time import RowsOfNow, earlier_rows, forget, in_partitions
from flinkpy.relational.joins.keyed_rows import KeyedRows
from flinkpy.relational.ordering.over_frames import FrameBounds
from flinkpy.relational.ordering.over_functions import OverRows, over, summed
from flinkpy.relational.ordering.partitioned_rows import PartitionedRows
from flinkpy.relational.windows.sql_slices import aggregated_column
from flinkpy.sql.rex.relational_terms import OverGroup
from flinkpy.sql.rex.rex_nodes import AggregateCall

SUMS = ("SUM", "AVG", "$SUM0")
CHOSEN = ("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE")
# by how many rows, and groups of peers, came before
NUMBERS: dict[str, Callable[[PartitionedRows], Any]] = {
    "ROW_NUMBER": PartitionedRows.row_numbers,
    "RANK": PartitionedRows.ranks,
    "DENSE_RANK": PartitionedRows.dense_ranks,
}


def can_run(group: OverGroup, call: AggregateCall, inputs: pa.Schema) -> bool:
    """Whether one row says all of a partition that this call needs."""
    if call.function in NUMBERS:
        return True
    if group.frame.lower is not None or call.distinct or call.order_by:
        return False
    if call.function in SUMS:
        kind = inputs.field(call.arguments[0]).type
        return bool(
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)
        )
    return call.function == "COUNT" or call.function in CHOSEN


class RunningFrames:
    """Results of these calls of a window; ``kinds`` are their types."""

    def __init__(
        self,
        group: OverGroup,
        calls: Sequence[AggregateCall],
        inputs: pa.Schema,
        kinds: Sequence[pa.DataType],
        *,
        peers_count: bool,
    ) -> None:
        self._calls = tuple(calls)
        self._partition = group.partition
        self._peers_count = peers_count
        self._kinds = [
            _kept_type(call, inputs, kind) if call.arguments else pa.bool_()
            for call, kind in zip(calls, kinds)
        ]
        fields = [inputs.field(at).with_name(f"key {at}") for at in group.partition]
        fields += [pa.field("rows", pa.int64()), pa.field("peers", pa.int64())]
        for number, kind in enumerate(self._kinds):
            fields += [pa.field(f"count {number}", pa.int64()), pa.field(f"value {number}", kind)]
        self.schema = pa.schema(fields)
        self.kept = KeyedRows(self.schema)

    def results(self, now: RowsOfNow, kinds: Sequence[pa.DataType]) -> list[pa.Array]:
        """A column of each call, for the rows of now."""
        earlier = earlier_rows(self.kept, self.schema, now)
        before = len(earlier.ids)
        rows = in_partitions(earlier, now, apart=True)
        behind = rows.peer_ends if self._peers_count else np.arange(len(rows.order)) + 1
        frames = FrameBounds(rows.starts, behind)
        back = np.empty(len(rows.order), np.int64)
        back[rows.order] = np.arange(len(rows.order))
        last = np.flatnonzero(np.append(rows.begins[1:], True))
        run = _Run(earlier.data, now, rows, frames)
        found, kept = [], self._keys(now, run, last)
        for number, (call, kind) in enumerate(zip(self._calls, kinds)):
            column, count, value = run.call(call, number, self._kinds[number], kind, last)
            found.append(column.take(pa.array(back[before:])))
            kept += [count, value]
        forget(self.kept, now)
        made = pa.RecordBatch.from_arrays(kept, schema=self.schema)
        self.kept.add(made, now.partitions)
        return found

    def _keys(self, now: RowsOfNow, run: _Run, last: Any) -> list[pa.Array]:
        """The keys of the partitions of now, and how many rows and groups of peers they have."""
        at = pa.array(run.rows.order[last] - run.earlier.num_rows)
        keys = [now.data.column(column).take(at) for column in self._partition]
        counts = [run.numbered(word)[last] for word in ("ROW_NUMBER", "DENSE_RANK")]
        return [*keys, *map(pa.array, counts)]


class _Run:
    """Rows of now behind the rows that stand for those before them."""

    def __init__(
        self, earlier: pa.RecordBatch, now: RowsOfNow, rows: PartitionedRows, frames: FrameBounds
    ) -> None:
        self.earlier = earlier
        self.rows = rows
        self._now = now
        self._frames = frames
        self._order = pa.array(rows.order)
        first = rows.order[rows.starts]  # the position of the first row of each place's partition
        self._has_earlier = first < earlier.num_rows
        self._first = np.where(self._has_earlier, first, 0)

    def _before(self, name: str) -> Any:
        """A number of the earlier rows, for each place."""
        if not self.earlier.num_rows:
            return np.zeros(len(self.rows.order), np.int64)
        values = self.earlier.column(name).to_numpy()
        return np.where(self._has_earlier, values[self._first], 0)

    def numbered(self, word: str) -> Any:
        """ROW_NUMBER and the like: the row that stands for the earlier ones does not count."""
        before = self._before("peers" if word == "DENSE_RANK" else "rows")
        return NUMBERS[word](self.rows) - self._has_earlier + before

    def call(
        self, call: AggregateCall, number: int, kept: pa.DataType, kind: pa.DataType, last: Any
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        """The results of a call by place; then what it comes to for each partition: how many
        values there are, and the value that is kept."""
        if call.function in NUMBERS:
            nothing = pa.nulls(len(last), kept)
            results = wrapped(self.numbered(call.function), kind, None)
            return results, pa.array(np.zeros(len(last), np.int64)), nothing
        column = aggregated_column(call, self._now.data)
        counts = self._counts(column, number)
        count = pa.array(counts[last])
        if call.function == "COUNT":
            return wrapped(counts, kind, None), count, pa.nulls(len(last), kept)
        column = pa.concat_arrays([self.earlier.column(f"value {number}"), column.cast(kept)])
        data = pa.RecordBatch.from_arrays([column.take(self._order)], names=["value"])
        over_rows = OverRows(data, self.rows, self._frames)
        if call.function not in SUMS:
            found = over(AggregateCall(call.function, (0,), call.type), over_rows, kept)
            return found.cast(kind), count, found.take(pa.array(last))
        sums, results = _sums(call, over_rows, counts, kind)
        is_null = counts[last] == 0
        if pa.types.is_decimal(kept):
            return results, count, decimals_or_null(sums[last], kept, is_null)
        return results, count, pa.array(sums[last], kept, mask=is_null, from_pandas=False)

    def _counts(self, column: pa.Array, number: int) -> Any:
        """How many values each frame has."""
        present = np.concatenate(
            (np.zeros(self.earlier.num_rows, np.int64), column.is_valid().to_numpy(False))
        )
        before = np.append(0, np.cumsum(present[self.rows.order]))
        frames = self._frames
        return before[frames.behind] - before[frames.first] + self._before(f"count {number}")


def _sums(
    call: AggregateCall, over_rows: OverRows, counts: Any, kind: pa.DataType
) -> tuple[Any, pa.Array]:
    """The sum of each frame, and what the call makes of it."""
    column = over_rows.data.column(0)
    found = summed(column, over_rows)
    assert found is not None  # frames begin where partitions do
    sums = found[0]
    if call.function == "AVG":
        if pa.types.is_decimal(kind):
            return sums, decimal_averages(sums, counts, column.type.scale, kind)
        return sums, averages(sums, counts, kind)
    is_null = None if call.function == "$SUM0" else counts == 0
    if pa.types.is_decimal(kind):
        return sums, decimals_or_null(sums, kind, is_null)
    return sums, wrapped(sums, kind, is_null)


def _kept_type(call: AggregateCall, inputs: pa.Schema, kind: pa.DataType) -> pa.DataType:
    if call.function == "COUNT" or call.function in NUMBERS:
        return pa.bool_()
    if call.function not in SUMS:
        return kind
    argument = inputs.field(call.arguments[0]).type
    if pa.types.is_decimal(argument):
        return pa.decimal128(38, argument.scale)
    return pa.float64() if pa.types.is_floating(argument) else pa.int64()
