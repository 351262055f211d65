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
from flinkpy.relational.aggregates.accumulator_port import (
    AggregateSite,
    ChangingAccumulator,
    Groups,
    count_rows,
)
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
        self.reach(size)
        if not len(digits):
            return
        added = 0 if digits.dtype == WIDE else _reach(digits) * len(digits)
        if digits.dtype == WIDE or added >= _LIMIT:
            touched, codes = np.unique(groups, return_inverse=True)
            self._add_wide(wide_integers.grouped(digits, codes, len(touched)), touched)
            return
        if self._reach + added >= _LIMIT:
            narrow = self._narrow.values
            self._add_wide(widened(narrow.copy()), np.arange(len(narrow)))
            narrow[:] = 0
            self._reach = 0
        self._reach += added
        np.add.at(self._narrow.values, groups, digits)

    def _add_wide(self, sums: npt.NDArray[Any], groups: npt.NDArray[Any]) -> None:
        """Adds to these groups, each of which is there once."""
        if self._wide is None:
            self._wide = widened(np.zeros(len(self._narrow.values), np.int64))
        self._wide[groups] = wide_integers.plus(self._wide[groups], sums)

    def reach(self, size: int) -> None:
        """There are so many groups."""
        narrow = self._narrow.reach(size)
        if self._wide is not None and len(self._wide) < len(narrow):
            more = widened(np.zeros(len(narrow) - len(self._wide), np.int64))
            self._wide = np.concatenate((self._wide, more))

    def of(self, groups: Groups) -> Any:
        """The sums of these groups: int64, or WIDE."""
        narrow = self._narrow.values[groups]
        if self._wide is None:
            return narrow
        return wide_integers.plus(self._wide[groups], widened(narrow))

    def clear(self, groups: npt.NDArray[np.int64]) -> None:
        """The sums of these groups are 0."""
        self._narrow.values[groups] = 0
        if self._wide is not None:
            self._wide[groups] = widened(np.zeros(len(groups), np.int64))


class DecimalSum(ChangingAccumulator):
    """SUM of decimals: null for a group without a value, and beyond 38 digits."""

    retracts = True

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        self._scale = site.arguments[0].scale
        # sums beyond 38 digits are null only as results: what is taken back can make them fit
        self.partial_types = (pa.decimal256(76, self._scale), pa.int64())
        self.sums, self.counts = DigitSums(), Grown(np.int64, 0)

    def reach(self, size: int) -> None:
        self.sums.reach(size)
        self.counts.reach(size)

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        column = plain(columns[0])
        present = all_present([column])
        self.sums.add(_signed(wide_integers.of_decimals(column, present), signs), groups, size)
        if present is not None:
            groups, signs = groups[present], None if signs is None else signs[present]
        count_rows(self.counts, groups, signs, size)

    def results_of(self, groups: Groups) -> pa.Array:
        return self._as_decimals(self._result, groups)

    def _as_decimals(self, kind: pa.DataType, groups: Groups) -> pa.Array:
        return decimals_or_null(self.sums.of(groups), kind, self.counts.values[groups] == 0)

    def partial_of(self, groups: Groups) -> list[pa.Array]:
        counts = pa.array(self.counts.values[groups])
        return [_as_decimals256(self.sums.of(groups), self.partial_types[0]), counts]

    def clear(self, groups: npt.NDArray[np.int64]) -> None:
        self.sums.clear(groups)
        self.counts.values[groups] = 0

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        self.sums.add(_of_decimals256(columns[0]), groups, size)
        np.add.at(self.counts.reach(size), groups, columns[1].to_numpy())


def _as_decimals256(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """The numbers (int64 or WIDE) as the digits of decimals of 256 bits, which hold them all."""
    values = widened(values)
    words = np.empty((len(values), 4), np.int64)
    words[:, 0], words[:, 1] = values["low"].view(np.int64), values["middle"].view(np.int64)
    words[:, 2], words[:, 3] = values["high"], values["high"] >> 63
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(words)])


def _of_decimals256(column: pa.Array) -> Any:
    """The digits of what ``_as_decimals256`` has made: int64 if all fit, else WIDE."""
    words = np.frombuffer(column.buffers()[1] or b"", np.int64, 4 * (column.offset + len(column)))
    words = words.reshape(-1, 4)[column.offset :]
    low, signs = np.ascontiguousarray(words[:, 0]), words[:, 0] >> 63
    if (words[:, 1] == signs).all() and (words[:, 2] == signs).all():
        return low
    found = np.empty(len(words), WIDE)
    found["low"], found["middle"] = words[:, 0].view(np.uint64), words[:, 1].view(np.uint64)
    found["high"] = words[:, 2]
    return found


def _signed(digits: npt.NDArray[Any], signs: npt.NDArray[Any] | None) -> Any:
    """The numbers, with the other sign where they are taken back."""
    if signs is None:
        return digits
    if digits.dtype != WIDE:
        return digits * signs
    return np.where(signs < 0, wide_integers.minus(digits), digits)


class DecimalSum0(DecimalSum):
    """$SUM0 of decimals: 0 for a group without a value."""

    def _as_decimals(self, kind: pa.DataType, groups: Groups) -> pa.Array:
        return decimals_or_null(self.sums.of(groups), kind, None)


class DecimalAverage(DecimalSum):
    """AVG of decimals: the exact quotient, rounded half up to the scale of the result."""

    def results_of(self, groups: Groups) -> pa.Array:
        counts = self.counts.values[groups]
        return decimal_averages(self.sums.of(groups), counts, self._scale, self._result)


def decimal_averages(
    sums: npt.NDArray[Any], counts: npt.NDArray[Any], scale: int, kind: pa.DataType
) -> pa.Array:
    """The exact quotients, rounded half up to the scale of this type; null where the count is 0.
    ``sums`` are digits with this ``scale``."""
    factor = 10 ** max(kind.scale - scale, 0)
    # more rows may have been taken back than came
    divisors, signs = np.maximum(np.abs(counts), 1), np.where(counts < 0, -1, 1)
    largest = int(divisors.max()) if len(divisors) else 1
    if sums.dtype != WIDE and 2 * (_reach(sums) * factor + largest) < _LIMIT:
        scaled = np.abs(sums) * factor
        quotients = signs * np.sign(sums) * ((2 * scaled + divisors) // (2 * divisors))
    else:
        quotients = wide_of(
            [
                _divided(value * sign * factor, count)
                for value, sign, count in zip(
                    whole_numbers(sums), signs.tolist(), divisors.tolist()
                )
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
