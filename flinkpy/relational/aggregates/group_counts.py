"""COUNT, and the sums of numbers that are no decimals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.columns.values.numpy_types import numpy_type
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.aggregates.accumulator_port import (
    AggregateSite,
    ArrayAccumulator,
    Groups,
    count_rows,
)
from flinkpy.relational.aggregates.present_values import all_present, numbers_of, wrapped


class Count(ArrayAccumulator):
    """COUNT: rows in which no argument is null."""

    partial_types = (pa.int64(),)
    retracts = True

    def __init__(self, site: AggregateSite) -> None:
        self._counts = Grown(np.int64, 0)
        self.arrays = (self._counts,)

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        present = all_present(columns)
        if present is not None:
            groups, signs = groups[present], None if signs is None else signs[present]
        count_rows(self._counts, groups, signs, size)

    def results_of(self, groups: Groups) -> pa.Array:
        return pa.array(self._counts.values[groups])

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        np.add.at(self._counts.reach(size), groups, columns[0].to_numpy())


class Sum(ArrayAccumulator):
    """SUM of integers and floats: null for a group without a value. Integers wrap round in the
    width of the result; floats are added in the order of their rows. What is taken back is
    subtracted, so sums of floats keep what rounding left."""

    retracts = True

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        is_float = pa.types.is_floating(site.arguments[0])
        self.kind = pa.float64() if is_float else pa.int64()
        self.partial_types = (self.kind, pa.int64())
        self.sums = Grown(numpy_type(self.kind), 0)
        self.counts = Grown(np.int64, 0)
        self.arrays = (self.sums, self.counts)

    def shares(self, other: Sum) -> None:
        """Gives results from the numbers of another one, which takes the same rows."""
        self.sums, self.counts, self.arrays = other.sums, other.counts, other.arrays

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        values, present = numbers_of(columns[0])
        if present is not None:
            values, groups = values[present], groups[present]
            signs = None if signs is None else signs[present]
        sums = self.sums.reach(size)
        values = values.astype(sums.dtype, copy=False)
        with np.errstate(invalid="ignore", over="ignore"):
            np.add.at(sums, groups, values if signs is None else values * signs)
        count_rows(self.counts, groups, signs, size)

    def results_of(self, groups: Groups) -> pa.Array:
        return wrapped(self.sums.values[groups], self._result, self.counts.values[groups] == 0)

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            np.add.at(self.sums.reach(size), groups, columns[0].to_numpy())
        np.add.at(self.counts.reach(size), groups, columns[1].to_numpy())


class Sum0(Sum):
    """$SUM0: as SUM, but 0 for a group without a value."""

    def results_of(self, groups: Groups) -> pa.Array:
        return wrapped(self.sums.values[groups], self._result, None)


class Average(Sum):
    """AVG of integers and floats: integers are cut towards zero."""

    def results_of(self, groups: Groups) -> pa.Array:
        return averages(self.sums.values[groups], self.counts.values[groups], self._result)


def averages(sums: npt.NDArray[Any], counts: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """The quotients as a column of this type; null where the count is 0."""
    divisors = np.where(counts == 0, 1, counts)  # more rows may have been taken back than came
    with np.errstate(invalid="ignore"):
        means = sums / divisors if sums.dtype == np.float64 else _cut(sums, divisors)
    return wrapped(means, kind, counts == 0)


def _cut(sums: npt.NDArray[Any], divisors: npt.NDArray[Any]) -> Any:
    """The quotients, cut towards zero. The least integer has no absolute value, so the rest is
    looked at instead."""
    quotients = sums // divisors
    return quotients + ((quotients < 0) & (quotients * divisors != sums))
