"""Integers of 192 bits in numpy arrays: exact sums of decimals, without a Python object for each.

A decimal is the integer of all its digits; its scale stays outside. No sum of a real number of
decimals of 38 digits leaves 192 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.algebra import Runs

if TYPE_CHECKING:
    import numpy.typing as npt

WIDE = np.dtype([("low", np.uint64), ("middle", np.uint64), ("high", np.int64)])
_LIMIT = 1 << 63
_HALF = np.int64(32)
_LOW_HALF = np.uint64((1 << 32) - 1)
_LARGEST = (10**38 - 1) >> 64
_EXACT_FLOATS = 1 << 53  # every integer below equals a float
# Five roundings, each by half of the last bit, and those of the comparison
_DOUBT = 4 * np.finfo(np.longdouble).eps


def of_decimals(column: pa.Array, present: npt.NDArray[np.bool_] | None) -> Any:
    """The digits of decimals of 128 bits: an array of int64 if all values fit, else of WIDE.
    ``present`` says where there is a value (None: everywhere); elsewhere is 0."""
    words = np.frombuffer(column.buffers()[1] or b"", np.int64)
    words = words[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = words[::2], words[1::2]
    if present is not None:
        low, high = np.where(present, low, 0), np.where(present, high, 0)
    if (high == low >> 63).all():
        return np.ascontiguousarray(low)
    found = np.empty(len(low), WIDE)
    found["low"], found["middle"] = low.view(np.uint64), high.view(np.uint64)
    found["high"] = high >> 63
    return found


def to_decimals(
    values: npt.NDArray[Any], kind: pa.DataType, mask: npt.NDArray[np.bool_] | None
) -> Any:
    """The values as decimals of this type, null where ``mask``. Raises OverflowError if one has
    more than 38 digits."""
    middle = values["middle"].view(np.int64)
    words = np.empty((len(values), 2), np.uint64)
    words[:, 0], words[:, 1] = values["low"], values["middle"]
    decimals = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(words)])
    fits = bool((values["high"] == middle >> 63).all())
    if fits and len(values) and max(-int(middle.min()), int(middle.max())) >= _LARGEST:
        try:
            decimals.validate(full=True)
        except pa.ArrowInvalid:
            fits = False
    if not fits:
        raise OverflowError(
            f"a sum leaves the precision of {kind}; cast the column to DataTypes.DOUBLE()"
        )
    if mask is None or not mask.any():
        return decimals
    validity = pa.array(~mask).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [validity, decimals.buffers()[1]])


def widened(values: npt.NDArray[Any]) -> Any:
    """The same integers as WIDE."""
    return values if values.dtype == WIDE else _shifted(values, 0)


def joined(parts: Sequence[Any]) -> Any:
    """Arrays of int64 and of WIDE as one array."""
    if any(each.dtype == WIDE for each in parts):
        parts = [widened(each) for each in parts]
    return np.concatenate(parts)


def plus(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Any:
    """The sums of two arrays of WIDE."""
    found = np.empty(len(left), WIDE)
    found["low"] = low = left["low"] + right["low"]
    middle = left["middle"] + right["middle"]
    carry = middle < left["middle"]
    found["middle"] = total = middle + (low < left["low"])
    found["high"] = left["high"] + right["high"] + (carry | (total < middle))
    return found


def grouped(
    values: npt.NDArray[Any], codes: npt.NDArray[np.int64] | None, groups: int, before: Any = None
) -> Any:
    """The sum of each group, as WIDE; with what it had ``before``. ``codes``: the groups of the
    values; None: one group."""
    found = before
    for digits, shift in _digits(values):
        if codes is None:
            sums = np.array([digits.sum()])
        else:
            sums = np.zeros(groups, np.int64)
            np.add.at(sums, codes, digits)
        added = _shifted(sums, shift)
        found = added if found is None else plus(found, added)
    return found


def running(runs: Runs) -> Any:
    """The sum after each number of each run, as WIDE."""
    found = np.repeat(runs.before, runs.lengths)
    for digits, shift in _digits(runs.numbers):
        with np.errstate(over="ignore"):  # differences are right also beyond 64 bits
            total = np.cumsum(digits)
            total -= np.repeat(total[runs.starts] - digits[runs.starts], runs.lengths)
        found = plus(found, _shifted(total, shift))
    return found


def nearest_floats(values: npt.NDArray[Any], counts: npt.NDArray[Any], unit: int) -> Any:
    """The float nearest to each value divided by its count and by the unit, which are positive."""
    negative = values["high"] < 0
    size = np.where(negative, minus(values), values) if negative.any() else values
    found = size["low"].astype(np.float64) / (counts.astype(np.float64) * float(unit))
    is_small = (size["low"] | size["middle"]) < _EXACT_FLOATS  # then one division rounds once
    is_small &= (size["middle"] == 0) & (size["high"] == 0) & (counts <= _EXACT_FLOATS // unit)
    large = np.flatnonzero(~is_small)
    if len(large):
        found[large] = _large_to_floats(size[large], counts[large], unit)
    return np.where(negative, -found, found)


def _large_to_floats(sizes: npt.NDArray[Any], counts: npt.NDArray[Any], unit: int) -> Any:
    """Computed in long doubles. Where these leave two floats in doubt, which is seldom, Python
    divides the integers."""
    long = np.longdouble
    quotients = sizes["low"].astype(long) + np.ldexp(sizes["middle"].astype(long), 64)
    if sizes["high"].any():
        quotients += np.ldexp(sizes["high"].astype(long), 128)
    quotients /= counts.astype(long) * long(unit)
    found = quotients.astype(np.float64)
    doubt = quotients * _DOUBT
    at_once = (quotients - doubt).astype(np.float64) == (quotients + doubt).astype(np.float64)
    unsure = np.flatnonzero(~at_once)
    found[unsure] = [
        (low + (middle << 64) + (high << 128)) / (count * unit)
        for (low, middle, high), count in zip(sizes[unsure].tolist(), counts[unsure].tolist())
    ]
    return found


def minus(values: npt.NDArray[Any]) -> Any:
    """The values of WIDE with the other sign."""
    flipped = np.empty(len(values), WIDE)
    for name in WIDE.names or ():
        flipped[name] = ~values[name]
    return plus(flipped, widened(np.ones(len(values), np.int64)))


def _digits(values: npt.NDArray[Any]) -> list[tuple[Any, int]]:
    """The values as digits, each of which can be added up in 64 bits, and by how many bits each is
    shifted. Only the last has a sign."""
    if values.dtype != WIDE:
        if _reach(values) * len(values) < _LIMIT:
            return [(values, 0)]
        return [(_low_half(values.view(np.uint64)), 0), (values >> _HALF, 32)]
    low, middle = values["low"], values["middle"]
    found = [(_low_half(low), 0), (_high_half(low), 32)]
    signed = middle.view(np.int64)
    if (values["high"] == signed >> 63).all() and _reach(signed) * len(values) < _LIMIT:
        return [*found, (signed, 64)]
    return [*found, (_low_half(middle), 64), (_high_half(middle), 96), (values["high"], 128)]


def _low_half(words: npt.NDArray[Any]) -> Any:
    return (words & _LOW_HALF).view(np.int64)


def _high_half(words: npt.NDArray[Any]) -> Any:
    return (words >> np.uint64(32)).view(np.int64)


def _reach(numbers: npt.NDArray[Any]) -> int:
    """How far these integers are from zero at most."""
    return max(-int(numbers.min()), int(numbers.max())) if len(numbers) else 0


def _shifted(numbers: npt.NDArray[Any], bits: int) -> Any:
    """int64 as WIDE, shifted to the left by 0, 32, 64, 96 or 128 bits."""
    found = np.zeros(len(numbers), WIDE)
    lower, upper = (numbers << _HALF).view(np.uint64), numbers >> _HALF
    if bits == 0:
        found["low"], found["middle"] = numbers.view(np.uint64), (numbers >> 63).view(np.uint64)
    elif bits == 32:
        found["low"], found["middle"] = lower, upper.view(np.uint64)
    elif bits == 64:
        found["middle"] = numbers.view(np.uint64)
    elif bits == 96:
        found["middle"] = lower
    found["high"] = {96: upper, 128: numbers}.get(bits, numbers >> 63)
    return found
