"""SUM and AVG of decimals, exact. Digits are added in 64 bits as long as no sum can leave them, and
else in 192 bits (``flinkpy.aggregates.wide_integers``). A result with too many digits is null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.aggregates import wide_integers
from flinkpy.aggregates.wide_integers import WIDE, widened
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.aggregates.accumulator_port import Accumulator, AggregateSite
from flinkpy.relational.aggregates.present_values import all_present
from flinkpy.relational.relational_operator import plain

_LIMIT = 1 << 63


class DigitSums:
    """For each group the exact sum of whole numbers."""

    def __init__(self) -> None:
        self._narrow = Grown(np.int64, 0)
        self._reach = 0  # how far from zero a narrow sum can be at most
        self._wide: Any = None  # what did not fit in there, as WIDE

    def add(self, digits: npt.NDArray[Any], groups: npt.NDArray[Any], size: int) -> None:
        """Adds the numbers of these rows: int64 or WIDE."""
        if not len(digits):
            return
        added = 0 if digits.dtype == WIDE else _reach(digits) * len(digits)
        if digits.dtype == WIDE or added >= _LIMIT:
            self._widen(wide_integers.grouped(digits, groups, size), size)
            return
        if self._reach + added >= _LIMIT:
            narrow = self._narrow.reach(size)
            self._widen(widened(narrow[:size].copy()), size)
            narrow[:] = 0
            self._reach = 0
        self._reach += added
        np.add.at(self._narrow.reach(size), groups, digits)

    def _widen(self, sums: npt.NDArray[Any], size: int) -> None:
        before = self._wide
        if before is not None and len(before) < size:
            before = np.concatenate((before, np.zeros(size - len(before), WIDE)))
        self._wide = sums if before is None else wide_integers.plus(before, sums)

    def all(self, size: int) -> Any:
        """The sums: int64, or WIDE."""
        narrow = self._narrow.reach(size)[:size]
        if self._wide is None:
            return narrow
        self._widen(widened(np.zeros(size, np.int64)), size)
        return wide_integers.plus(self._wide, widened(narrow))


class DecimalSum(Accumulator):
    """SUM of decimals: null for a group without a value, and beyond 38 digits."""

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        self._scale = site.arguments[0].scale
        self.partial_types = (pa.decimal128(38, self._scale), pa.int64())
        self.sums, self.counts = DigitSums(), Grown(np.int64, 0)

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        column = plain(columns[0])
        present = all_present([column])
        digits = wide_integers.of_decimals(column, present)
        self.sums.add(digits, groups, size)
        counted = np.bincount(groups if present is None else groups[present], minlength=size)
        self.counts.reach(size)[: len(counted)] += counted

    def results(self, size: int) -> pa.Array:
        return self._as_decimals(self._result, size)

    def _as_decimals(self, kind: pa.DataType, size: int) -> pa.Array:
        counts = self.counts.reach(size)[:size]
        return decimals_or_null(self.sums.all(size), kind, counts == 0)

    def partial(self, size: int) -> list[pa.Array]:
        counts = self.counts.reach(size)[:size]
        return [self._as_decimals(self.partial_types[0], size), pa.array(counts)]

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        present = all_present([columns[0]])
        self.sums.add(wide_integers.of_decimals(columns[0], present), groups, size)
        np.add.at(self.counts.reach(size), groups, columns[1].to_numpy())


class DecimalSum0(DecimalSum):
    """$SUM0 of decimals: 0 for a group without a value."""

    def _as_decimals(self, kind: pa.DataType, size: int) -> pa.Array:
        return decimals_or_null(self.sums.all(size), kind, None)


class DecimalAverage(DecimalSum):
    """AVG of decimals: the exact quotient, rounded half up to the scale of the result."""

    def results(self, size: int) -> pa.Array:
        counts = self.counts.reach(size)[:size]
        return decimal_averages(self.sums.all(size), counts, self._scale, self._result)


def decimal_averages(
    sums: npt.NDArray[Any], counts: npt.NDArray[Any], scale: int, kind: pa.DataType
) -> pa.Array:
    """The exact quotients, rounded half up to the scale of this type; null where the count is 0.
    ``sums`` are digits with this ``scale``."""
    factor = 10 ** max(kind.scale - scale, 0)
    divisors = np.maximum(counts, 1)
    largest = int(divisors.max()) if len(divisors) else 1
    if sums.dtype != WIDE and 2 * (_reach(sums) * factor + largest) < _LIMIT:
        scaled = np.abs(sums) * factor
        quotients = np.sign(sums) * ((2 * scaled + divisors) // (2 * divisors))
    else:
        quotients = wide_of(
            [
                _divided(value * factor, count)
                for value, count in zip(whole_numbers(sums), divisors.tolist())
            ]
        )
    return decimals_or_null(quotients, kind, counts == 0)


def decimals_or_null(
    values: npt.NDArray[Any], kind: pa.DataType, is_null: npt.NDArray[Any] | None
) -> pa.Array:
    """The numbers (int64 or WIDE) as the digits of decimals, null where ``is_null`` or where there
    are too many."""
    limit = 10**kind.precision
    words = np.empty((len(values), 2), np.int64)
    if values.dtype != WIDE:
        words[:, 0], words[:, 1] = values, values >> 63
        too_large = (values >= limit) | (values <= -limit) if limit < _LIMIT else None
    else:
        words[:, 0], words[:, 1] = values["low"].view(np.int64), values["middle"].view(np.int64)
        too_large = _too_large(values, limit)
    if too_large is not None and too_large.any():
        is_null = too_large if is_null is None else is_null | too_large
    validity = None
    if is_null is not None and is_null.any():
        validity = pa.array(~is_null).buffers()[1]
        words[is_null] = 0
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(words)])


def _too_large(values: npt.NDArray[Any], limit: int) -> Any:
    middle = values["middle"].view(np.int64)
    found = values["high"] != middle >> 63
    doubtful = ~found & (np.abs(middle.astype(np.float64)) >= float(limit >> 64) * 0.99)
    at = np.flatnonzero(doubtful)
    if len(at):
        found[at] = [abs(value) >= limit for value in whole_numbers(values[at])]
    return found


def whole_numbers(values: npt.NDArray[Any]) -> list[int]:
    """The numbers as Python's."""
    if values.dtype != WIDE:
        numbers: list[int] = values.tolist()
        return numbers
    return [low + (middle << 64) + (high << 128) for low, middle, high in values.tolist()]


def wide_of(numbers: Sequence[int]) -> Any:
    """Python's numbers as WIDE."""
    mask = (1 << 64) - 1
    return np.array(
        [(number & mask, (number >> 64) & mask, number >> 128) for number in numbers], WIDE
    )


def _divided(value: int, count: int) -> int:
    """Rounded half up, away from zero."""
    quotient = (2 * abs(value) + count) // (2 * count)
    return quotient if value >= 0 else -quotient


def _reach(numbers: npt.NDArray[Any]) -> int:
    return max(-int(numbers.min()), int(numbers.max())) if len(numbers) else 0
