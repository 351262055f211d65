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
from flinkpy.relational.aggregates.accumulator_port import AggregateSite, ArrayAccumulator, Groups
from flinkpy.relational.aggregates.present_values import numbers_of, wrapped
from flinkpy.relational.relational_operator import plain


class Variance(ArrayAccumulator):
    """These four functions. They are computed as DOUBLE; the result is cast to its type. Rows are
    taken back as a part with a negative count."""

    partial_types = (pa.float64(), pa.float64(), pa.float64())
    retracts = True

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        self._is_sample = site.function.upper() in ("STDDEV_SAMP", "VAR_SAMP", "VARIANCE", "STDDEV")
        self._is_root = site.function.upper().startswith("STDDEV")
        self._counts, self._means = Grown(np.float64, 0), Grown(np.float64, 0)
        self._squares = Grown(np.float64, 0)
        self.arrays = (self._counts, self._means, self._squares)

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        column = plain(columns[0])
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        values, present = numbers_of(column)
        if present is not None:
            values, groups = values[present], groups[present]
            signs = None if signs is None else signs[present]
        values = values.astype(np.float64)
        self.reach(size)
        if signs is None:
            self._change(values, groups, 1)
            return
        # those that are taken first: so no group has fewer values than are taken back
        for sign in (1, -1):
            chosen = signs == sign
            self._change(values[chosen], groups[chosen], sign)

    def _change(self, values: npt.NDArray[Any], groups: npt.NDArray[Any], sign: int) -> None:
        if not len(values):
            return
        touched, codes = np.unique(groups, return_inverse=True)
        counts = np.bincount(codes).astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            means = np.bincount(codes, values) / counts
            squares = np.bincount(codes, np.square(values - means[codes]))
            self._merge(touched, sign * counts, means, sign * squares)

    def _merge(
        self,
        groups: npt.NDArray[Any],
        counts: npt.NDArray[Any],
        means: npt.NDArray[Any],
        squares: npt.NDArray[Any],
    ) -> None:
        """Merges a part of each of these groups, which are there once."""
        before, mean = self._counts.values[groups], self._means.values[groups]
        total = before + counts
        share = counts / np.where(total == 0, 1, total)
        distance = np.where(counts != 0, means - mean, 0.0)
        merged = self._squares.values[groups] + squares + np.square(distance) * before * share
        # what is left of a group without values is rounding
        self._squares.values[groups] = np.where(total > 0, merged, 0.0)
        self._means.values[groups] = np.where(total > 0, mean + distance * share, 0.0)
        self._counts.values[groups] = total

    def results_of(self, groups: Groups) -> pa.Array:
        counts, squares = self._counts.values[groups], self._squares.values[groups]
        divisors = counts - 1 if self._is_sample else counts
        with np.errstate(invalid="ignore"):
            # rounding can make what was taken back more than there was
            found = np.where(squares < 0, 0.0, squares) / np.maximum(divisors, 1)
            found = np.sqrt(found) if self._is_root else found
        is_null = divisors <= 0
        if pa.types.is_decimal(self._result):
            return _as_decimals(found, is_null, self._result)
        return wrapped(found, self._result, is_null)

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        """A group may come several times; a pass takes each once."""
        self.reach(size)
        counts, means, squares = (column.to_numpy() for column in columns)
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
        turn = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
        for number in range(int(turn.max()) + 1 if len(turn) else 0):
            at = order[turn == number]
            with np.errstate(invalid="ignore", over="ignore"):
                self._merge(groups[at], counts[at], means[at], squares[at])

    @property
    def part_types(self) -> tuple[pa.DataType, ...]:
        return self.partial_types * 2

    def part(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> list[pa.Array]:
        """What comes and what goes by itself: what is left of fewer rows than are taken back has no
        mean."""
        comes = np.ones(len(groups), np.bool_) if signs is None else signs > 0
        found = []
        for chosen in (comes, ~comes):
            rows = [column.filter(pa.array(chosen)) for column in columns]
            found += super().part(rows, groups[chosen], None, size)
        return found

    def take_part(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        width = len(self.partial_types)
        self.merge(columns[:width], groups, size)
        counts, means, squares = columns[width:]
        self.merge([pc.negate(counts), means, pc.negate(squares)], groups, size)


def _as_decimals(
    values: npt.NDArray[Any], is_null: npt.NDArray[Any], kind: pa.DataType
) -> pa.Array:
    """Floats as decimals of this scale, rounded; null beyond its digits."""
    with np.errstate(invalid="ignore"):
        fits = np.abs(values) < 10.0 ** (kind.precision - kind.scale)
    valid = ~is_null & fits
    rounded = pa.array(np.where(valid, values, 0.0)).cast(kind)
    return pc.if_else(pa.array(valid), rounded, pa.scalar(None, kind))
