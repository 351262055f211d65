"""Aggregates of one slice as columns: for each key of it how many values there were, and what they make together.

Records are only put aside as they come; they are grouped when enough of them wait, or a window needs them. Grouping goes through the values in their
order, those grouped before first, so that sums of floats are rounded exactly as if they had been added one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.table.aggregates import adding, computed_in
from flinkpy.table.conversion import python_values

_LIMIT = 1 << 63
_WAITING = 1 << 15  # so many records are put aside before they are grouped; more where a slice has more keys than that
_CHOOSE: dict[str, Callable[[Any, Any], Any]] = {"min": min, "max": max}


@dataclass(frozen=True)
class Groups:
    """``codes``: to which group each record belongs (None: there is one group); ``firsts``: where the first record of each group is."""

    codes: Any
    firsts: Any

    def __len__(self) -> int:
        return len(self.firsts)


def groups_of(ids: Any, known: int) -> Groups:
    """One for each number, in the order they appear. All are below ``known``; None: all records are one group."""
    if ids is None:
        return Groups(None, np.zeros(1, np.int64))
    positions = np.arange(len(ids))
    first_of = np.empty(known, dtype=np.int64)  # only what is touched is written, and read
    first_of[ids[::-1]] = positions[::-1]  # the last assignment counts: the first record
    first = first_of[ids]
    is_first = first == positions
    return Groups((np.cumsum(is_first) - 1)[first], positions[is_first])


@dataclass(frozen=True)
class Part:
    """Some records or groups: the key's number of each; and for each aggregate how many values (None: one each) and the values (None: only counted).
    ``firsts``: the record of each, or the first of the group (without the aggregated column), where the result needs it."""

    size: int
    ids: Any
    counts: Sequence[Any]
    values: Sequence[Any]
    firsts: Any = None

    def taken(self, at: Any) -> Part:
        """Those at these positions."""
        counts = [None if each is None else each[at] for each in self.counts]
        values = [None if each is None else each[at] for each in self.values]
        firsts = None if self.firsts is None else self.firsts.take(pa.array(at))
        return Part(len(at), None if self.ids is None else self.ids[at], counts, values, firsts)


class ColumnAggregate:
    """One aggregate over columns. ``keeps_type``: a minimum has the column's own type, and a not-a-number that comes first stays, as with rows."""

    def __init__(self, kind: str, input_type: Any, keeps_type: bool = False) -> None:
        self.kind, self._keeps_type = kind, keeps_type
        self.computed_in = pa.int64() if kind == "count" else computed_in(kind, input_type)
        self.result_type = {"count": pa.int64(), "avg": pa.float64()}.get(kind, self.computed_in)
        if keeps_type and kind in ("min", "max"):
            self.result_type = input_type
        self.is_number = self.computed_in in (pa.int64(), pa.float64())
        self._nothing: Any = 0
        if kind in ("min", "max"):
            limits = np.iinfo(np.int64)
            self._nothing = np.nan if self.computed_in == pa.float64() else limits.max if kind == "min" else limits.min

    def taken_in(self, column: Any) -> tuple[Any, Any]:
        """Counts and values of the records of a column."""
        nulls = column.null_count
        counts = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64) if nulls else None
        if self.kind == "count":
            return counts, None
        if column.type != self.computed_in:
            column = column.cast(self.computed_in)
        if not self.is_number:
            values = np.empty(len(column), dtype=object)
            values[:] = python_values(column)
            return counts, values
        return counts, (column.fill_null(self._nothing) if nulls else column).to_numpy(zero_copy_only=False)

    def grouped(self, counts: Any, values: Any, groups: Groups) -> tuple[Any, Any]:
        """Those of each group."""
        size, codes = len(groups), groups.codes
        if counts is None:
            total = np.array([len(values)]) if codes is None else np.bincount(codes, minlength=size)
        else:
            total = np.array([counts.sum()]) if codes is None else np.bincount(codes, counts, size).astype(np.int64)
        if self.kind == "count":
            return total, None
        if codes is None:
            codes = np.zeros(len(values), np.int64) if not self.is_number else None
        if not self.is_number:
            return total, self._one_by_one(values, codes, size)
        if self.kind in ("sum", "avg"):
            return total, self._sums(values, codes, size)
        if self._keeps_type and self.computed_in == pa.float64() and np.isnan(values).any():
            return total, self._with_nan(counts, values, codes, size)
        pick = (np.fmin if self.kind == "min" else np.fmax) if self.computed_in == pa.float64() else np.minimum if self.kind == "min" else np.maximum
        if codes is None:
            return total, np.array([pick.reduce(values)])
        best = np.full(size, self._nothing, dtype=values.dtype)
        pick.at(best, codes, values)
        return total, best

    def result(self, counts: Any, values: Any) -> Any:
        """The aggregate of each group as an Arrow array; null where there was no value."""
        if self.kind == "count":
            return pa.array(counts)
        missing = counts == 0
        if self.kind == "avg":
            if self.is_number:
                return pa.array(values / np.maximum(counts, 1), mask=missing)
            return pa.array([float(value / count) if count else None for value, count in zip(values, counts.tolist())], pa.float64())
        array = self.saved(counts, values)
        return array if array.type == self.result_type else array.cast(self.result_type)

    def saved(self, counts: Any, values: Any) -> Any:
        """The values as an Arrow array that ``taken_in`` understands."""
        if not self.is_number:
            return pa.array(values.tolist(), self.computed_in)
        return pa.array(values, self.computed_in, mask=counts == 0)

    def _sums(self, values: Any, codes: Any, size: int) -> Any:
        if self.computed_in == pa.float64():  # both go from first to last
            return np.cumsum(values)[-1:] if codes is None else np.bincount(codes, values, size)
        reach = max(abs(int(values.min())), abs(int(values.max()))) * len(values)
        if reach >= _LIMIT:
            exact = self._one_by_one(values.astype(object), codes if codes is not None else np.zeros(len(values), np.int64), size)
            if any(not -_LIMIT <= value < _LIMIT for value in exact):
                raise OverflowError("a sum leaves 64 bits; cast the column to DataTypes.DOUBLE()")
            return exact.astype(np.int64)
        if codes is None:
            return np.array([values.sum()])
        sums = np.zeros(size, np.int64)
        np.add.at(sums, codes, values)
        return sums

    def _one_by_one(self, values: Any, codes: Any, size: int) -> Any:
        combine, found = _CHOOSE.get(self.kind, adding(self.computed_in)), np.full(size, None, dtype=object)
        for code, value in zip(codes.tolist(), values.tolist()):
            if value is not None:
                current = found[code]
                found[code] = value if current is None else combine(current, value)
        return found

    def _with_nan(self, counts: Any, values: Any, codes: Any, size: int) -> Any:
        """One by one, as rows are: a not-a-number is neither smaller nor larger than anything."""
        found: list[Any] = [None] * size
        codes = [0] * len(values) if codes is None else codes.tolist()
        for code, value, count in zip(codes, values.tolist(), [1] * len(values) if counts is None else counts.tolist()):
            current = found[code]
            if count and (current is None or (value < current if self.kind == "min" else value > current)):
                found[code] = value
        return np.array([np.nan if value is None else value for value in found])


class SliceColumns:
    """One slice: parts that wait, the first of them grouped before."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._waiting = self._grouped = 0

    def add(self, part: Part, aggregates: Sequence[ColumnAggregate], known: int) -> None:
        """Puts records aside."""
        self._parts.append(part)
        self._waiting += part.size
        if self._waiting > max(_WAITING, 2 * self._grouped):
            self.grouped(aggregates, known)

    def grouped(self, aggregates: Sequence[ColumnAggregate], known: int) -> Part:
        """All of them, grouped by key."""
        if self._waiting:
            self._parts = [together(self._parts, aggregates, known)]
            self._waiting, self._grouped = 0, self._parts[0].size
        return self._parts[0]

    def renumber(self, numbers: Any) -> None:
        """``numbers[old]`` is the new number of a key."""
        self._parts = [Part(part.size, numbers[part.ids], part.counts, part.values, part.firsts) for part in self._parts]

    @property
    def ids(self) -> list[Any]:
        return [part.ids for part in self._parts]


def together(parts: Sequence[Part], aggregates: Sequence[ColumnAggregate], known: int) -> Part:
    """Parts as one, grouped by key."""
    ids = None if parts[0].ids is None else np.concatenate([part.ids for part in parts])
    groups = groups_of(ids, known)
    counts, values = [], []
    for at, aggregate in enumerate(aggregates):
        of_aggregate = _counts([part.counts[at] for part in parts], [part.size for part in parts])
        joined = None if aggregate.kind == "count" else np.concatenate([part.values[at] for part in parts])
        if joined is None and of_aggregate is None:
            joined = np.broadcast_to(np.int64(0), (sum(part.size for part in parts),))  # only its length is asked
        count, value = aggregate.grouped(of_aggregate, joined, groups)
        counts.append(count)
        values.append(value)
    return Part(len(groups), None if ids is None else ids[groups.firsts], counts, values, _firsts(parts, groups.firsts))


def _counts(counts: list[Any], sizes: list[int]) -> Any:
    if all(each is None for each in counts):
        return None
    return np.concatenate([np.ones(size, np.int64) if each is None else each for each, size in zip(counts, sizes)])


def _firsts(parts: Sequence[Part], positions: Any) -> Any:
    """The records at ascending positions in all the parts together."""
    if parts[0].firsts is None:
        return None
    taken, begin = [], 0
    for part in parts:
        end = begin + part.size
        low, high = np.searchsorted(positions, (begin, end))
        if high > low:
            taken.append(part.firsts.take(pa.array(positions[low:high] - begin)))
        begin = end
    return taken[0] if len(taken) == 1 else pa.Table.from_batches(taken).combine_chunks().to_batches()[0]
