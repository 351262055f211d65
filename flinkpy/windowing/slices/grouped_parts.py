"""Aggregates of one slice as columns: for each key of it how many values there were, and what they
make together.

Records are only put aside as they come; they are grouped when enough of them wait, or a window
needs them. Grouping goes through the values in their order, those grouped before first, so that
sums of floats are rounded exactly as if they had been added one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.of_columns import ColumnAggregate

if TYPE_CHECKING:
    import numpy.typing as npt

# so many records are put aside before they are grouped; more where a slice has more keys than that
_WAITING = 1 << 15
_KEY = 64  # bytes that the number of a key takes beside it


@dataclass(frozen=True)
class Groups:
    """``codes``: to which group each record belongs (None: there is one group); ``firsts``: where
    the first record of each group is."""

    codes: Any
    firsts: Any

    def __len__(self) -> int:
        return len(self.firsts)


def groups_of(ids: npt.NDArray[np.int64] | None, known: int) -> Groups:
    """One for each number, in the order they appear. All are below ``known``; None: all records are
    one group."""
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
    """Some records or groups: the key's number of each; and for each aggregate how many values
    (None: one each) and the values (None: only counted). ``firsts``: the record of each, or the
    first of the group (without the aggregated column), where the result needs it."""

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

    @property
    def nbytes(self) -> int:
        """How much memory it takes, with the keys that it names."""
        arrays = [self.ids, *self.counts, *self.values, self.firsts]
        size: int = sum(each.nbytes for each in arrays if each is not None)
        return size + _KEY * self.size


class SliceColumns:
    """One slice: parts that wait, the first of them grouped before. If it does not group, records
    stay apart until a window needs them: others, which come first, lie elsewhere."""

    def __init__(self, groups: bool = True) -> None:
        self._parts: list[Part] = []
        self._waiting = self._grouped = 0
        self._groups = groups

    def add(self, part: Part, aggregates: Sequence[ColumnAggregate], known: int) -> None:
        """Puts records aside."""
        self._parts.append(part)
        self._waiting += part.size
        if self._groups and self._waiting > max(_WAITING, 2 * self._grouped):
            self.grouped(aggregates, known)

    def grouped(self, aggregates: Sequence[ColumnAggregate], known: int) -> Part:
        """All of them, grouped by key."""
        if self._waiting:
            self._parts = [together(self._parts, aggregates, known)]
            self._waiting, self._grouped = 0, self._parts[0].size
        return self._parts[0]

    def parts(self, aggregates: Sequence[ColumnAggregate], known: int) -> list[Part]:
        """All of them, grouped by key if it groups."""
        return [self.grouped(aggregates, known)] if self._groups and self._parts else self._parts

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(part.nbytes for part in self._parts)

    def freeze(self) -> SliceColumns:
        """The slice of now. Parts are never changed."""
        frozen = SliceColumns(self._groups)
        frozen._parts = self._parts.copy()
        frozen._waiting = self._waiting
        frozen._grouped = self._grouped
        return frozen

    @property
    def ids(self) -> list[Any]:
        return [part.ids for part in self._parts]

    def __len__(self) -> int:
        """Groups, and records that wait."""
        return self._grouped + self._waiting


def together(parts: Sequence[Part], aggregates: Sequence[ColumnAggregate], known: int) -> Part:
    """Parts as one, grouped by key."""
    ids = None if parts[0].ids is None else np.concatenate([part.ids for part in parts])
    groups = groups_of(ids, known)
    counts, values = [], []
    for at, aggregate in enumerate(aggregates):
        sizes = [part.size for part in parts]
        counts.append(
            aggregate.counted(
                _counts([part.counts[at] for part in parts], sizes),
                sum(sizes),
                groups.codes,
                len(groups),
            )
        )
        joined = (
            None if aggregate.only_counts else aggregate.joined([part.values[at] for part in parts])
        )
        values.append(
            None if joined is None else aggregate.grouped(joined, groups.codes, len(groups))
        )
    return Part(
        len(groups),
        None if ids is None else ids[groups.firsts],
        counts,
        values,
        _firsts(parts, groups.firsts),
    )


def _counts(counts: list[Any], sizes: list[int]) -> Any:
    if all(each is None for each in counts):
        return None
    return np.concatenate(
        [np.ones(size, np.int64) if each is None else each for each, size in zip(counts, sizes)]
    )


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
    return (
        taken[0]
        if len(taken) == 1
        else pa.Table.from_batches(taken).combine_chunks().to_batches()[0]
    )
