"""BITMAP_BUILD_AGG and the set operations over bitmaps: the sets of all groups are one sorted array
of codes, a group in the high half of each and a number in the low half."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.columns.sql.sql_kernels.bitmaps.bitmap_columns import (
    Codes,
    bitmaps_of,
    codes_of,
    counts_of,
    numbers_of,
    rows_of,
    with_rows,
)
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.aggregates.accumulator_port import Accumulator, AggregateSite
from flinkpy.relational.aggregates.present_values import all_present
from flinkpy.relational.aggregates.present_values import numbers_of as values_of
from flinkpy.relational.relational_operator import plain


class BitmapOfGroup(Accumulator):
    """What these share: the union of the sets of a group. The result is the set, or how many
    numbers it has; null for a group without a value."""

    partial_types = (pa.binary(),)

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        self._codes: Codes = np.empty(0, np.uint64)
        self._waiting: list[Codes] = []  # not yet in ``_codes``
        self._has = Grown(np.bool_, False)

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        column = plain(columns[0])
        present = all_present([column])
        if present is not None:
            column, groups = column.filter(pa.array(present)), groups[present]
        codes = codes_of(column)
        codes = with_rows(groups[rows_of(codes)], numbers_of(codes))
        has = self._has.reach(size)
        self._take(codes, np.bincount(groups, minlength=size), has[:size])
        has[groups] = True

    def _take(self, codes: Codes, counts: npt.NDArray[Any], had: npt.NDArray[Any]) -> None:
        """Takes the numbers of new bitmaps, each as often as a bitmap has it. ``counts`` is how
        many bitmaps each group gets, and ``had`` which groups got one before."""
        self._waiting.append(codes)
        if sum(map(len, self._waiting)) > len(self._codes):
            self._settle()

    def _settle(self) -> Codes:
        if self._waiting:
            self._codes = np.unique(np.concatenate([self._codes, *self._waiting]))
            self._waiting = []
        return self._codes

    def results(self, size: int) -> pa.Array:
        codes, missing = self._settle(), ~self._has.reach(size)[:size]
        if pa.types.is_integer(self._result):
            return pa.array(counts_of(codes, size), mask=missing).cast(self._result)
        return bitmaps_of(codes, size, missing)

    def partial(self, size: int) -> list[pa.Array]:
        return [bitmaps_of(self._settle(), size, ~self._has.reach(size)[:size])]

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        BitmapOfGroup.add(self, columns, groups, size)


class BuiltBitmap(BitmapOfGroup):
    """The integers of each group as a set."""

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        values, present = values_of(columns[0])
        if present is not None:
            values, groups = values[present], groups[present]
        has = self._has.reach(size)
        self._take(with_rows(groups, values), groups, has)
        has[groups] = True


class CommonBitmap(BitmapOfGroup):
    """What is in all sets of a group."""

    def _take(self, codes: Codes, counts: npt.NDArray[Any], had: npt.NDArray[Any]) -> None:
        numbers, times = np.unique(codes, return_counts=True)
        owners = rows_of(numbers)
        in_all = times == counts[owners]
        numbers, owners = numbers[in_all], owners[in_all]
        kept = self._codes[counts[rows_of(self._codes)] == 0]
        both = np.intersect1d(self._codes, numbers, assume_unique=True)
        self._codes = np.sort(np.concatenate([kept, both, numbers[~had[owners]]]))


class OddBitmap(BitmapOfGroup):
    """What is in an odd number of sets of a group."""

    def _take(self, codes: Codes, counts: npt.NDArray[Any], had: npt.NDArray[Any]) -> None:
        numbers, times = np.unique(codes, return_counts=True)
        self._codes = np.setxor1d(self._codes, numbers[times % 2 == 1], assume_unique=True)
