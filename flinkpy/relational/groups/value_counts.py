"""How often each group has each value: for DISTINCT, and for extremes that can be taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.state.key_numbers import KeyNumbers
from flinkpy.relational.state.multi_map import MultiMap

Numbers = npt.NDArray[np.int64]
# the groups of entries, and their columns
Entries = tuple[Numbers, pa.RecordBatch]


@dataclass(frozen=True)
class CountedBatch:
    """The distinct values of a batch: their numbers, their groups, and the position of the first
    row of each. For each filter: which values a group has now and had not before, and the other way
    round."""

    numbers: Numbers
    groups: Numbers
    firsts: Numbers
    came: Sequence[npt.NDArray[np.bool_]]
    went: Sequence[npt.NDArray[np.bool_]]


class ValueCounts:
    """Counts of values of these types by group, one for each of the ``filters`` that choose rows. A
    value whose counts are all 0 is forgotten. A count is never below 0: a row that is taken back
    but was never there changes nothing."""

    def __init__(self, kinds: Sequence[pa.DataType], filters: int = 1) -> None:
        values = [pa.field(f"value {at}", kind) for at, kind in enumerate(kinds)]
        self._numbers = KeyNumbers(pa.schema([pa.field("group", pa.int64()), *values]))
        self._counts = [Grown(np.int64, 0) for _ in range(filters)]
        self._of_groups = MultiMap()
        counted = [pa.field(f"count {at}", pa.int64()) for at in range(filters)]
        self.schema = pa.schema([*values, *counted])
        """Of the columns that a snapshot has beside the group."""

    def __len__(self) -> int:
        return len(self._numbers)

    def change(
        self,
        groups: npt.NDArray[Any],
        columns: Sequence[pa.Array],
        signs: npt.NDArray[Any] | None,
        chosen: Sequence[npt.NDArray[np.bool_] | None],
    ) -> CountedBatch:
        """Counts rows; those with the sign -1 are taken back. ``chosen``: the rows that each filter
        takes; None: all."""
        return self.add(groups, columns, [added_by(signs, mask, len(groups)) for mask in chosen])

    def add(
        self,
        groups: npt.NDArray[Any],
        columns: Sequence[pa.Array],
        added: Sequence[npt.NDArray[np.int64]],
    ) -> CountedBatch:
        """Counts rows of which each adds any number, which for each filter is another one."""
        rows = pa.RecordBatch.from_arrays(
            [pa.array(groups, pa.int64()), *map(plain, columns)], schema=self._numbers.schema
        )
        keyed = self._numbers.of(rows)
        numbers, owners = keyed.ids, groups[keyed.firsts]
        self._of_groups.add(owners[keyed.is_new], numbers[keyed.is_new])
        came, went = [], []
        is_empty = np.ones(len(numbers), np.bool_)
        for counts, of_rows in zip(self._counts, added):
            sums = np.zeros(len(numbers), np.int64)
            np.add.at(sums, keyed.codes, of_rows)
            before = counts.reach(self._numbers.size)[numbers]
            after = np.maximum(before + sums, 0)
            counts.values[numbers] = after
            came.append((before == 0) & (after > 0))
            went.append((before > 0) & (after == 0))
            is_empty &= after == 0
        if is_empty.any():
            self._of_groups.remove(owners[is_empty], numbers[is_empty])
            self._numbers.free(numbers[is_empty])
        return CountedBatch(numbers, owners, keyed.firsts, came, went)

    def of_groups(self, groups: Numbers) -> tuple[Numbers, Numbers]:
        """Positions of these groups, and the numbers of the values that they have."""
        return self._of_groups.pairs(groups)

    def value_of(self, numbers: Numbers) -> pa.Array:
        """The first column of these values."""
        return self._numbers.keys_of(numbers).column(1)

    def clear(self, groups: Numbers) -> None:
        """These groups have no values."""
        positions, numbers = self._of_groups.pairs(groups)
        self._of_groups.remove(groups[positions], numbers)
        for counts in self._counts:
            counts.values[numbers] = 0
        self._numbers.free(numbers)

    def freeze(self) -> Callable[[], Entries]:
        """What gives the values of now with their counts."""
        known, counts = self._numbers.freeze(), [each.values.copy() for each in self._counts]

        def entries() -> Entries:
            numbers = known.numbers()
            group, *values = known.take(numbers).columns
            counted = [pa.array(each[numbers]) for each in counts]
            batch = pa.RecordBatch.from_arrays([*values, *counted], schema=self.schema)
            return group.to_numpy(), batch

        return entries

    def restore(self, entries: Entries) -> Numbers:
        """Takes back what ``freeze`` has given, which is not there yet; gives the numbers of the
        values."""
        groups, batch = entries
        values = batch.columns[: len(batch.columns) - len(self._counts)]
        rows = pa.RecordBatch.from_arrays([pa.array(groups), *values], schema=self._numbers.schema)
        numbers: Numbers = self._numbers.numbers(rows)
        self._of_groups.add(groups, numbers)
        for counts, column in zip(self._counts, batch.columns[len(values) :]):
            counts.reach(self._numbers.size)[numbers] = column.to_numpy()
        return numbers


def added_by(
    signs: npt.NDArray[Any] | None, chosen: npt.NDArray[np.bool_] | None, rows: int
) -> npt.NDArray[np.int64]:
    """What each row adds: 1 or its sign, and 0 where it is not chosen."""
    added = np.ones(rows, np.int64) if signs is None else signs
    return added if chosen is None else np.where(chosen, added, 0)
