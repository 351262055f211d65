"""The functions of OVER over frames. Each gives a column in the order of the partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.aggregates import wide_integers
from flinkpy.aggregates.algebra import Runs
from flinkpy.aggregates.wide_integers import WIDE, widened
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.key_index import look_alike
from flinkpy.relational.aggregates.calls_of_groups import CallOfGroups, sites_of
from flinkpy.relational.aggregates.group_counts import averages
from flinkpy.relational.aggregates.group_decimals import decimal_averages, decimals_or_null
from flinkpy.relational.aggregates.group_functions import accumulator_of
from flinkpy.relational.aggregates.present_values import all_present, numbers_of, wrapped
from flinkpy.relational.ordering.over_frames import FrameBounds
from flinkpy.relational.ordering.partitioned_rows import PartitionedRows
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.sort_codes import ascending_codes, new_values, sorted_positions
from flinkpy.sql.rex.rex_nodes import AggregateCall

_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class OverRows:
    """The rows of partitions in their order, and their frames."""

    data: pa.RecordBatch
    rows: PartitionedRows
    frames: FrameBounds

    def argument(self, call: AggregateCall, number: int = 0) -> pa.Array:
        """The column of an argument."""
        return plain(self.data.column(call.arguments[number]))


def over(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    """The results of a call as a column of this type."""
    function = call.function.upper()
    found = _BY_PLACE.get(function)
    if found is not None:
        return found(call, over_rows, kind)
    is_plain = not call.distinct and call.filter is None and not call.order_by
    by_frames = _BY_FRAMES.get(function) if is_plain else None
    result = None if by_frames is None else by_frames(call, over_rows, kind)
    return _of_any_frames(call, over_rows, kind) if result is None else result


# -- by place, whatever the frame ------------------------------------------------------------------


def _row_number(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    return wrapped(over_rows.rows.row_numbers(), kind, None)


def _rank(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    return wrapped(over_rows.rows.ranks(), kind, None)


def _dense_rank(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    return wrapped(over_rows.rows.dense_ranks(), kind, None)


def _percent_rank(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    rows = over_rows.rows
    others = np.maximum(rows.ends - rows.starts - 1, 1)
    return wrapped((rows.ranks() - 1) / others, kind, None)


def _cume_dist(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    rows = over_rows.rows
    return wrapped((rows.peer_ends - rows.starts) / (rows.ends - rows.starts), kind, None)


def _ntile(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    """The first buckets have one row more where the rows do not divide evenly."""
    rows = over_rows.rows
    buckets, _ = numbers_of(over_rows.argument(call))
    buckets = buckets.astype(np.int64)
    if len(buckets) and buckets.min() < 1:
        raise ProgramError("NTILE needs a number of buckets above 0")
    size, larger = np.divmod(rows.ends - rows.starts, buckets)
    place = rows.row_numbers() - 1
    in_larger = place < larger * (size + 1)
    bucket = np.where(
        in_larger,
        place // (size + 1),
        larger + (place - larger * (size + 1)) // np.maximum(size, 1),
    )
    return wrapped(bucket + 1, kind, None)


def _lag(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    return _shifted(call, over_rows, kind, -1)


def _lead(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    return _shifted(call, over_rows, kind, 1)


def _shifted(
    call: AggregateCall, over_rows: OverRows, kind: pa.DataType, direction: int
) -> pa.Array:
    rows, values = over_rows.rows, over_rows.argument(call)
    distance: Any = 1
    if len(call.arguments) > 1:
        distance = numbers_of(over_rows.argument(call, 1))[0].astype(np.int64)
    places = np.arange(len(values)) + direction * distance
    is_there = (places >= rows.starts) & (places < rows.ends)
    found = values.take(pa.array(places, mask=~is_there)).cast(kind)
    if len(call.arguments) > 2:
        default = over_rows.argument(call, 2).cast(kind)
        found = pc.if_else(pa.array(is_there), found, default)
    return found


# -- by frames -------------------------------------------------------------------------------------


def _count(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    columns = [over_rows.argument(call, at) for at in range(len(call.arguments))]
    return wrapped(_present_in(over_rows.frames, all_present(columns)), kind, None)


def _present_in(frames: FrameBounds, present: npt.NDArray[Any] | None) -> Any:
    """How many rows of each frame have a value."""
    if present is None:
        return frames.behind - frames.first
    before = np.append(0, np.cumsum(present))
    return before[frames.behind] - before[frames.first]


def _sum(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array | None:
    found = summed(over_rows.argument(call), over_rows)
    if found is None:
        return None
    sums, counts = found
    if pa.types.is_decimal(kind):
        return decimals_or_null(sums, kind, counts == 0)
    return wrapped(sums, kind, counts == 0)


def _average(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array | None:
    column = over_rows.argument(call)
    found = summed(column, over_rows)
    if found is None:
        return None
    if pa.types.is_decimal(kind):
        return decimal_averages(*found, column.type.scale, kind)
    return averages(*found, kind)


def summed(column: pa.Array, over_rows: OverRows) -> tuple[Any, Any] | None:
    """The sum of each frame's values, and how many there are; None for floats in frames of which
    sums before and behind cannot be subtracted without another rounding."""
    frames, kind = over_rows.frames, column.type
    if pa.types.is_decimal(kind):
        present = all_present([column])
        digits = wide_integers.of_decimals(column, present)
        return _summed_digits(digits, frames), _present_in(frames, present)
    values, present = numbers_of(column)
    if present is not None:
        values = np.where(present, values, 0)
    if values.dtype.kind == "f":
        if not np.array_equal(frames.first, over_rows.rows.starts):
            return None
        return _running_floats(values, over_rows), _present_in(frames, present)
    with np.errstate(over="ignore"):
        before = np.append(np.int64(0), np.cumsum(values, dtype=np.int64))
        sums = before[frames.behind] - before[frames.first]
    return sums, _present_in(frames, present)


def _summed_digits(digits: npt.NDArray[Any], frames: FrameBounds) -> Any:
    if not len(digits):
        return np.empty(0, np.int64)
    narrow = digits.dtype != WIDE
    if narrow and len(digits) * max(-int(digits.min()), int(digits.max())) < 1 << 63:
        before = np.append(0, np.cumsum(digits))
        return before[frames.behind] - before[frames.first]
    nothing = widened(np.zeros(1, np.int64))
    runs = Runs(digits, np.array([0]), np.array([len(digits) - 1]), nothing)
    sums = np.concatenate((nothing, wide_integers.running(runs)))
    return wide_integers.plus(sums[frames.behind], wide_integers.minus(sums[frames.first]))


def _running_floats(values: npt.NDArray[Any], over_rows: OverRows) -> Any:
    """Added from the first row of the partition on, so that no sum depends on another partition."""
    places = np.append(np.flatnonzero(over_rows.rows.begins), len(values))
    sums = np.empty(len(values) + 1)
    with np.errstate(invalid="ignore", over="ignore"):
        for start, end in zip(places[:-1].tolist(), places[1:].tolist()):
            np.cumsum(values[start:end], out=sums[start:end])
    frames = over_rows.frames
    return np.where(frames.behind > frames.first, sums[frames.behind - 1], 0.0)


def _extreme(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    """MIN and MAX, by the ranks of values: text and decimals too."""
    column, frames = over_rows.argument(call), over_rows.frames
    is_least = call.function.upper() == "MIN"
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind)
    codes = list(ascending_codes(column))
    if not look_alike(column.type):  # of equal values the first one: 0.0 and -0.0 look different
        codes.append(np.arange(len(column)) * (1 if is_least else -1))
    order = sorted_positions(codes, len(column))
    ranks = np.empty(len(column), np.int64)
    ranks[order] = np.cumsum(new_values([code[order] for code in codes], len(order)))
    by_rank = np.zeros(len(column) + 2, np.int64)
    present = all_present([column])
    places = np.arange(len(column)) if present is None else np.flatnonzero(present)
    by_rank[ranks[places]] = places  # a null has the code of some value
    if present is not None:
        ranks = np.where(present, ranks, len(column) + 1 if is_least else 0)
    extreme_of: Any = np.minimum if is_least else np.maximum
    found = _extreme_in(ranks, frames, extreme_of)
    is_null = _present_in(frames, present) == 0
    return column.take(pa.array(by_rank[np.where(is_null, 0, found)], mask=is_null)).cast(kind)


def _extreme_in(ranks: npt.NDArray[Any], frames: FrameBounds, extreme_of: Any) -> Any:
    """The extreme of each frame, by the extremes of all stretches whose length is a power of 2."""
    lengths = frames.behind - frames.first
    found = np.zeros(len(ranks), np.int64)
    found[lengths == 1] = ranks[frames.first[lengths == 1]]
    level, width = ranks, 1
    while 2 * width <= len(ranks) and 2 * width <= lengths.max(initial=0):
        level = extreme_of(level[:-width], level[width:])
        width *= 2
        at = np.flatnonzero((lengths >= width) & (lengths < 2 * width))
        found[at] = extreme_of(level[frames.first[at]], level[frames.behind[at] - width])
    return found


def _first_value(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    """The first value of the frame that is not null."""
    column, frames = over_rows.argument(call), over_rows.frames
    present = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    nearest = np.searchsorted(present, frames.first)
    places = np.append(present, len(column))[nearest]
    return column.take(pa.array(places, mask=places >= frames.behind)).cast(kind)


def _last_value(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    column, frames = over_rows.argument(call), over_rows.frames
    present = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    nearest = np.searchsorted(present, frames.behind) - 1
    places = np.append(present, -1)[nearest]
    return column.take(pa.array(places, mask=places < frames.first)).cast(kind)


# -- any function ----------------------------------------------------------------------------------


def _of_any_frames(call: AggregateCall, over_rows: OverRows, kind: pa.DataType) -> pa.Array:
    """By the accumulators of groups. Where each frame is its partition, a partition is a group;
    else each frame is one, so a row counts as often as there are frames with it."""
    rows, frames, data = over_rows.rows, over_rows.frames, over_rows.data
    whole = np.array_equal(frames.first, rows.starts) and np.array_equal(frames.behind, rows.ends)
    if whole:
        size = int(rows.numbers[-1]) + 1 if data.num_rows else 0
        return _grouped(call, data, rows.numbers, size, kind).take(pa.array(rows.numbers))
    lengths = frames.behind - frames.first
    ends = np.cumsum(lengths)
    parts, begin = [pa.array([], kind)], 0
    while begin < data.num_rows:
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, side="right")))
        counts = lengths[begin:end]
        groups = np.repeat(np.arange(end - begin), counts)
        within = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
        taken = data.take(pa.array(frames.first[begin:end][groups] + within))
        parts.append(_grouped(call, taken, groups, end - begin, kind))
        begin = end
    return pa.concat_arrays(parts)


def _grouped(
    call: AggregateCall,
    data: pa.RecordBatch,
    groups: npt.NDArray[Any],
    size: int,
    kind: pa.DataType,
) -> pa.Array:
    [site] = sites_of([call], data.schema, [kind])
    accumulated = CallOfGroups(call, accumulator_of(site))
    accumulated.add(data, groups, size)
    found = accumulated.accumulator.results(size)
    return found if found.type == kind else found.cast(kind)


_Over = Callable[[AggregateCall, OverRows, pa.DataType], Any]

_BY_PLACE: dict[str, _Over] = {
    "ROW_NUMBER": _row_number,
    "RANK": _rank,
    "DENSE_RANK": _dense_rank,
    "PERCENT_RANK": _percent_rank,
    "CUME_DIST": _cume_dist,
    "NTILE": _ntile,
    "LAG": _lag,
    "LEAD": _lead,
}
_BY_FRAMES: dict[str, _Over] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _extreme,
    "MAX": _extreme,
    "FIRST_VALUE": _first_value,
    "LAST_VALUE": _last_value,
}
FUNCTIONS_OF_PLACES: Sequence[str] = tuple(_BY_PLACE)
"""Those that depend on the row's place only, and not on the frame."""
