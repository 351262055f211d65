"""Arithmetic of decimals on whole arrays of 64 bits.

A decimal is the integer of all its digits; its scale stays outside. Decimals of up to 18 digits lie
in the low half of Arrow's 128 bits; others do if the values of the batch are small, as they mostly
are. Where the extremes of a batch do not prove that 64 bits are enough, the caller computes in
another way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.common.logical_types.logical_type import DecimalType, IntegerType, LogicalType

if TYPE_CHECKING:
    import numpy.typing as npt

MOST_IN_A_HALF = 18  # so many digits always lie in 64 bits
_LIMIT = 1 << 63


@dataclass(frozen=True)
class Halves:
    """The digits of an operand as integers of 64 bits: an array, or a number for a constant.
    ``reach`` is the largest size of a value."""

    values: npt.NDArray[np.int64] | int
    scale: int
    reach: int

    def times(self, power: int) -> Halves | None:
        """With so many more digits behind the point; None if that may leave 64 bits."""
        if power == 0:
            return self
        factor = 10**power
        if max(self.reach, 1) * factor >= _LIMIT:
            return None
        return Halves(self.values * factor, self.scale + power, self.reach * factor)


def digits_of_type(kind: LogicalType) -> tuple[int, int]:
    """Precision and scale of a number as a decimal."""
    if isinstance(kind, DecimalType):
        return kind.precision, kind.scale
    if isinstance(kind, IntegerType):
        return kind.digits, 0
    raise TypeError(f"{kind} is no exact number")


def halves_of(operand: Any, kind: LogicalType) -> Halves | None:
    """The digits of an array or of a constant that is not null; None if 64 bits do not hold
    them."""
    scale = digits_of_type(kind)[1]
    if isinstance(operand, pa.Scalar):
        value = operand.as_py()
        digits = value if isinstance(value, int) else int(value.scaleb(scale))
        return Halves(digits, scale, abs(digits)) if abs(digits) < _LIMIT else None
    if isinstance(kind, IntegerType):
        numbers = _integers(operand)
    else:
        found = _low_words(operand)
        if found is None:
            return None
        numbers = found
    return Halves(numbers, scale, reach_of(numbers))


def _integers(array: pa.Array) -> Any:
    width = array.type.bit_width // 8
    numbers = np.frombuffer(array.buffers()[1] or b"", f"i{width}")
    return numbers[array.offset : array.offset + len(array)].astype(np.int64)


def _low_words(array: pa.Array) -> Any:
    words = np.frombuffer(array.buffers()[1] or b"", np.int64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))]
    low = words[::2]
    if array.type.precision > MOST_IN_A_HALF and not np.array_equal(words[1::2], low >> 63):
        return None
    return low


def reach_of(numbers: npt.NDArray[Any]) -> int:
    """How far these integers are from zero at most."""
    return max(-int(numbers.min()), int(numbers.max())) if len(numbers) else 0


def rounded_quotient(values: Any, unit: int) -> Any:
    """The integers divided by a power of ten, halves away from zero."""
    if unit == 1:
        return values
    found = np.abs(values)
    found += unit // 2
    found //= unit
    return np.copysign(1, values).astype(np.int64) * found if (values < 0).any() else found


def decimals_of(
    values: npt.NDArray[np.int64], kind: DecimalType, operands: Sequence[Any]
) -> pa.Array:
    """The digits as decimals: null where an operand is, and where there are too many digits."""
    validity = validity_of(operands)
    if kind.precision <= MOST_IN_A_HALF and reach_of(values) >= 10**kind.precision:
        fits = pa.array(np.abs(values) < 10**kind.precision)
        validity = fits if validity is None else pc.and_(validity, fits)
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    np.right_shift(values, 63, out=words[:, 1])
    return with_validity(pa.decimal128(kind.precision, kind.scale), len(values), words, validity)


def validity_of(operands: Sequence[Any]) -> Any:
    """Where all operands have a value; None: everywhere."""
    found = None
    for each in operands:
        if isinstance(each, pa.Array) and each.null_count:
            found = each.is_valid() if found is None else pc.and_(found, each.is_valid())
    return found


def with_validity(kind: pa.DataType, rows: int, numbers: Any, validity: Any) -> Any:
    """An array over the memory of numpy, null where ``validity`` is false."""
    bitmap = None if validity is None else _bitmap(validity)
    return pa.Array.from_buffers(kind, rows, [bitmap, pa.py_buffer(numbers)])


def _bitmap(validity: pa.BooleanArray) -> Any:
    if validity.offset:
        validity = pa.concat_arrays([validity, pa.array([], pa.bool_())])
        if validity.offset:
            validity = pa.array(validity.to_numpy(zero_copy_only=False))
    return validity.buffers()[1]
