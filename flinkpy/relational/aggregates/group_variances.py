"""STDDEV_POP, STDDEV_SAMP, VAR_POP, VAR_SAMP: from counts, means, and sums of squared distances
from the mean, which are merged part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.aggregates.accumulator_port import Accumulator, AggregateSite
from flinkpy.relational.aggregates.present_values import numbers_of, wrapped
from flinkpy.relational.relational_operator import plain


class Variance(Accumulator):
    """These four functions. They are computed as DOUBLE; the result is cast to its type."""

    partial_types = (pa.float64(), pa.float64(), pa.float64())

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        self._is_sample = site.function.upper() in ("STDDEV_SAMP", "VAR_SAMP", "VARIANCE", "STDDEV")
        self._is_root = site.function.upper().startswith("STDDEV")
        self._counts, self._means = Grown(np.float64, 0), Grown(np.float64, 0)
        self._squares = Grown(np.float64, 0)

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        column = plain(columns[0])
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        values, present = numbers_of(column)
        if present is not None:
            values, groups = values[present], groups[present]
        values = values.astype(np.float64)
        counts = np.bincount(groups, minlength=size).astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            means = np.bincount(groups, values, size) / np.maximum(counts, 1)
            squares = np.bincount(groups, np.square(values - means[groups]), size)
            self._merge(counts, means, squares, size)

    def _merge(
        self,
        counts: npt.NDArray[Any],
        means: npt.NDArray[Any],
        squares: npt.NDArray[Any],
        size: int,
    ) -> None:
        before, mean = self._counts.reach(size), self._means.reach(size)
        total = before[:size] + counts
        share = counts / np.maximum(total, 1)
        distance = means - mean[:size]
        distance = np.where(counts > 0, distance, 0.0)
        self._squares.reach(size)[:size] += squares + np.square(distance) * before[:size] * share
        mean[:size] += distance * share
        before[:size] = total

    def results(self, size: int) -> pa.Array:
        counts, squares = self._counts.reach(size)[:size], self._squares.reach(size)[:size]
        divisors = counts - 1 if self._is_sample else counts
        with np.errstate(invalid="ignore"):
            found = squares / np.maximum(divisors, 1)
            found = np.sqrt(found) if self._is_root else found
        is_null = divisors <= 0
        if pa.types.is_decimal(self._result):
            return _as_decimals(found, is_null, self._result)
        return wrapped(found, self._result, is_null)

    def partial(self, size: int) -> list[pa.Array]:
        return [
            pa.array(each.reach(size)[:size]) for each in (self._counts, self._means, self._squares)
        ]

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        """A group may come several times; a pass takes each once."""
        counts, means, squares = (column.to_numpy() for column in columns)
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
        turn = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
        for number in range(int(turn.max()) + 1 if len(turn) else 0):
            at = order[turn == number]
            part = [np.zeros(size) for _ in range(3)]
            for array, values in zip(part, (counts, means, squares)):
                array[groups[at]] = values[at]
            with np.errstate(invalid="ignore", over="ignore"):
                self._merge(part[0], part[1], part[2], size)


def _as_decimals(
    values: npt.NDArray[Any], is_null: npt.NDArray[Any], kind: pa.DataType
) -> pa.Array:
    """Floats as decimals of this scale, rounded; null beyond its digits."""
    with np.errstate(invalid="ignore"):
        fits = np.abs(values) < 10.0 ** (kind.precision - kind.scale)
    valid = ~is_null & fits
    rounded = pa.array(np.where(valid, values, 0.0)).cast(kind)
    return pc.if_else(pa.array(valid), rounded, pa.scalar(None, kind))
