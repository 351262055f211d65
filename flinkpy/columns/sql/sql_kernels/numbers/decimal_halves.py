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
_MANY = 1 << 12  # from so many numbers on, numpy takes new pages for each array


@dataclass(frozen=True)
class Halves:
    """The digits of an operand as integers of 64 bits: an array, or a number for a constant. No
    value is larger than ``reach``, with or without its sign."""

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

    def tightened(self) -> Halves:
        """With the reach that the values really have, where only a bound was known."""
        if isinstance(self.values, int):
            return self
        return Halves(self.values, self.scale, reach_of(self.values))


def digits_of_type(kind: LogicalType) -> tuple[int, int]:
    """Precision and scale of a number as a decimal."""
    if isinstance(kind, DecimalType):
        return kind.precision, kind.scale
    if isinstance(kind, IntegerType):
        return kind.digits, 0
    raise TypeError(f"{kind} is no exact number")


def halves_of(operand: Any, kind: LogicalType) -> Halves | None:
    """The digits of a column or of a constant that is not null; None if 64 bits do not hold
    them."""
    if isinstance(operand, DecimalColumn):
        return operand.halves()
    scale = digits_of_type(kind)[1]
    if isinstance(operand, pa.Scalar):
        value = operand.as_py()
        digits = value if isinstance(value, int) else int(value.scaleb(scale))
        return Halves(digits, scale, abs(digits)) if abs(digits) < _LIMIT else None
    if isinstance(kind, IntegerType):
        return Halves(_integers(operand), 0, 1 << (kind.bits - 1))
    numbers = _low_words(operand)
    if numbers is None:
        return None
    precision = operand.type.precision
    is_short = precision <= MOST_IN_A_HALF and not operand.null_count
    return Halves(numbers, scale, 10**precision if is_short else reach_of(numbers))


def integers_of(halves: Halves, validity: pa.BooleanArray | None) -> Any:
    """The digits as Arrow has integers: an array, or a scalar for a constant."""
    if np.ndim(halves.values) == 0:
        return pa.scalar(int(halves.values), pa.int64())
    numbers = halves.values
    assert not isinstance(numbers, int)
    return with_validity(pa.int64(), len(numbers), np.ascontiguousarray(numbers), validity)


class DecimalColumn:
    """A column of decimals as digits of 64 bits, as an Arrow array, or as both: the other form is
    made when it is needed. Between two functions of decimals there is no array."""

    def __init__(
        self,
        kind: DecimalType,
        array: pa.Array | None = None,
        halves: Halves | None = None,
        validity: pa.BooleanArray | None = None,
    ) -> None:
        self._kind = kind
        self._array = array
        self._halves = halves
        self._is_wide = False
        self.validity = _validity(array) if array is not None else validity

    def halves(self) -> Halves | None:
        """The digits; None if 64 bits do not hold them all."""
        if self._halves is None and not self._is_wide:
            self._halves = halves_of(self._array, self._kind)
            self._is_wide = self._halves is None
        return self._halves

    def array(self) -> pa.Array:
        """The column as an Arrow array."""
        if self._array is None:
            assert self._halves is not None
            values = self._halves.values
            assert not isinstance(values, int)
            words = numbers_of_pool(2 * len(values))
            words[::2] = values
            np.right_shift(values, 63, out=words[1::2])
            kind = pa.decimal128(self._kind.precision, self._kind.scale)
            self._array = with_validity(kind, len(values), words, self.validity)
        return self._array

    def filter(self, chosen: pa.BooleanArray) -> DecimalColumn:
        """The rows for which it is true."""
        halves = self._halves
        if halves is None or isinstance(halves.values, int):
            return DecimalColumn(self._kind, self.array().filter(chosen))
        # Arrow chooses by a mask several times faster than numpy
        kept = integers_of(halves, self.validity).filter(chosen)
        values = np.frombuffer(kept.buffers()[1] or b"", np.int64)
        few = Halves(values[kept.offset : kept.offset + len(kept)], halves.scale, halves.reach)
        return DecimalColumn(self._kind, None, few, _validity(kept))


def array_of_column(column: Any) -> Any:
    """An operand as Arrow has it: an array or a scalar."""
    return column.array() if isinstance(column, DecimalColumn) else column


def _validity(array: pa.Array) -> Any:
    return array.is_valid() if array.null_count else None


def _integers(array: pa.Array) -> Any:
    width = array.type.bit_width // 8
    numbers = np.frombuffer(array.buffers()[1] or b"", f"i{width}")
    return numbers[array.offset : array.offset + len(array)].astype(np.int64)


def _low_words(array: pa.Array) -> Any:
    words = np.frombuffer(array.buffers()[1] or b"", np.int64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))]
    low = numbers_of_pool(len(array))
    np.copyto(low, words[::2])
    if array.type.precision > MOST_IN_A_HALF and not np.array_equal(words[1::2], low >> 63):
        return None
    return low


def numbers_of_pool(count: int) -> Any:
    """Room for integers in memory of Arrow's pool, which gives memory out again that was used
    before. numpy asks the system, and each new page costs more than computing what it holds."""
    if count < _MANY:
        return np.empty(count, np.int64)
    return np.frombuffer(pa.allocate_buffer(8 * count), np.int64)


def reach_of(numbers: npt.NDArray[Any]) -> int:
    """How far these integers are from zero at most."""
    return max(-int(numbers.min()), int(numbers.max())) if len(numbers) else 0


def rounded_quotient(values: Any, unit: int) -> Any:
    """The integers divided by a power of ten, halves away from zero."""
    found = np.abs(values)
    found += unit // 2
    found //= unit
    return np.copysign(1, values).astype(np.int64) * found if (values < 0).any() else found


def decimals_of(found: Halves, kind: DecimalType, operands: Sequence[Any]) -> DecimalColumn:
    """The digits as decimals: null where an operand is, and where there are too many digits."""
    validity = validity_of(operands)
    values = np.asarray(found.values)
    limit = 10**kind.precision
    if kind.precision <= MOST_IN_A_HALF and found.reach >= limit and reach_of(values) >= limit:
        fits = pa.array(np.abs(values) < limit)
        validity = fits if validity is None else pc.and_(validity, fits)
    return DecimalColumn(kind, None, Halves(values, kind.scale, found.reach), validity)


def validity_of(operands: Sequence[Any]) -> Any:
    """Where all operands have a value; None: everywhere."""
    found = None
    for each in operands:
        if isinstance(each, DecimalColumn):
            validity = each.validity
        else:
            validity = _validity(each) if isinstance(each, pa.Array) else None
        if validity is not None:
            found = validity if found is None else pc.and_(found, validity)
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
