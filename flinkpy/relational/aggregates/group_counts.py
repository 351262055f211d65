"""COUNT, and the sums of numbers that are no decimals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.aggregates.accumulator_port import Accumulator, AggregateSite
from flinkpy.relational.aggregates.present_values import all_present, numbers_of, wrapped


class Count(Accumulator):
    """COUNT: rows in which no argument is null."""

    partial_types = (pa.int64(),)

    def __init__(self, site: AggregateSite) -> None:
        self._counts = Grown(np.int64, 0)

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        present = all_present(columns)
        counted = np.bincount(groups if present is None else groups[present], minlength=size)
        self._counts.reach(size)[: len(counted)] += counted

    def results(self, size: int) -> pa.Array:
        return pa.array(self._counts.reach(size)[:size])

    def partial(self, size: int) -> list[pa.Array]:
        return [self.results(size)]

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        np.add.at(self._counts.reach(size), groups, columns[0].to_numpy())


class Sum(Accumulator):
    """SUM of integers and floats: null for a group without a value. Integers wrap round in the
    width of the result; floats are added in the order of their rows."""

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        is_float = pa.types.is_floating(site.arguments[0])
        self.kind = pa.float64() if is_float else pa.int64()
        self.partial_types = (self.kind, pa.int64())
        self.sums = Grown(self.kind.to_pandas_dtype(), 0)
        self.counts = Grown(np.int64, 0)

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        values, present = numbers_of(columns[0])
        if present is not None:
            values, groups = values[present], groups[present]
        self._add(values, groups, np.bincount(groups, minlength=size), size)

    def _add(
        self,
        values: npt.NDArray[Any],
        groups: npt.NDArray[Any],
        counted: npt.NDArray[Any],
        size: int,
    ) -> None:
        sums = self.sums.reach(size)
        with np.errstate(invalid="ignore", over="ignore"):
            np.add.at(sums, groups, values.astype(sums.dtype, copy=False))
        self.counts.reach(size)[: len(counted)] += counted

    def results(self, size: int) -> pa.Array:
        sums, counts = self.sums.reach(size)[:size], self.counts.reach(size)[:size]
        return wrapped(sums, self._result, counts == 0)

    def partial(self, size: int) -> list[pa.Array]:
        return [pa.array(self.sums.reach(size)[:size]), pa.array(self.counts.reach(size)[:size])]

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        counted = np.zeros(size, np.int64)
        np.add.at(counted, groups, columns[1].to_numpy())
        self._add(columns[0].to_numpy(), groups, counted, size)


class Sum0(Sum):
    """$SUM0: as SUM, but 0 for a group without a value."""

    def results(self, size: int) -> pa.Array:
        return wrapped(self.sums.reach(size)[:size], self._result, None)


class Average(Sum):
    """AVG of integers and floats: integers are cut towards zero."""

    def results(self, size: int) -> pa.Array:
        sums, counts = self.sums.reach(size)[:size], self.counts.reach(size)[:size]
        return averages(sums, counts, self._result)


def averages(sums: npt.NDArray[Any], counts: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """The quotients as a column of this type; null where the count is 0."""
    divisors = np.maximum(counts, 1)
    with np.errstate(invalid="ignore"):
        means = sums / divisors if sums.dtype == np.float64 else _cut(sums, divisors)
    return wrapped(means, kind, counts == 0)


def _cut(sums: npt.NDArray[Any], divisors: npt.NDArray[Any]) -> Any:
    """The quotients, cut towards zero. The least integer has no absolute value, so the rest is
    looked at instead."""
    quotients = sums // divisors
    return quotients + ((quotients < 0) & (quotients * divisors != sums))
