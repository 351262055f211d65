"""The types in which operands are computed, and the casts to them: numbers, decimals, text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Types: TypeAlias = "list[Any]"
Kernel: TypeAlias = Callable[..., Any]  # takes arrays, and scalars for constant operands

INT, FLOAT, TEXT, BOOL = pa.int64(), pa.float64(), pa.string(), pa.bool_()
ANY_INT = pa.decimal128(20, 0)  # holds every 64-bit integer, with and without a sign
_DIGITS, _UNSIGNED_DIGITS = 19, 20  # of the largest 64-bit integers
# Numbers with this many digits, and powers of ten up to this one, are exact as floats
_EXACT_DIGITS, _EXACT_SCALE = 15, 22


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text, dictionary-encoded or not."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (is_dictionary(kind) and is_text(kind.value_type))
    )


def is_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


class BeyondSigned(ArithmeticError):
    """An integer of 2**63 or more, where numbers are computed as signed 64-bit integers."""

    def __str__(self) -> str:
        return self.about("a column")

    def about(self, column: str) -> str:
        """The message, with the column's name."""
        return (
            f"{column} has whole numbers from 2**63 on, and these are computed in 64 bits "
            "with a sign: cast it to Types.BIG_INT(), "
            "which is exact, or to DataTypes.DOUBLE()"
        )


def signed(values: pa.Array | pa.Scalar) -> Any:
    """A uint64 column as int64; raises BeyondSigned if a number does not fit."""
    try:
        return values.cast(INT)
    except pa.ArrowInvalid:
        raise BeyondSigned from None


def as_computed(values: pa.Array | pa.Scalar, wanted: pa.DataType) -> Any:
    """The column in the type in which its aggregate is computed."""
    change = bring(values.type, wanted)
    return values if change is None else change(values)


def large_columns(data: Any) -> list[str]:
    """The names of a batch's columns that contain numbers of 2**63 or more."""
    return [
        name
        for name, column in zip(data.schema.names, data.columns)
        if pa.types.is_uint64(column.type) and (pc.max(column).as_py() or 0) >= 1 << 63
    ]


def bring(kind: pa.DataType, wanted: pa.DataType) -> Callable[[Any], Any] | None:
    """The cast that an operand of this type needs; None if it needs none."""
    if kind == wanted:
        return None
    if wanted == FLOAT:  # an integer or a decimal becomes the nearest float
        return (
            _to_float
            if pa.types.is_integer(kind)
            else _decimals_to_floats
            if pa.types.is_decimal(kind)
            else _cast_to_float
        )
    if wanted == INT and pa.types.is_uint64(kind):
        return signed
    return lambda values: values.cast(wanted)


def _cast_to_float(values: pa.Array | pa.Scalar) -> Any:
    return values.cast(FLOAT, safe=False)


def _to_float(values: pa.Array | pa.Scalar) -> Any:
    """Uses numpy if there are no nulls: starting an Arrow cast takes longer than casting a
    batch."""
    if isinstance(values, pa.Scalar) or values.null_count:
        return _cast_to_float(values)
    numbers = values.to_numpy().astype(np.float64)
    return pa.Array.from_buffers(FLOAT, len(numbers), [None, pa.py_buffer(numbers)])


def _decimals_to_floats(values: pa.Array | pa.Scalar) -> Any:
    """Arrow's own cast rounds twice. For short decimals a division rounds once; other decimals are
    parsed from their text."""
    kind = values.type
    if isinstance(values, pa.Scalar):
        return pa.scalar(None if values.as_py() is None else float(values.as_py()), FLOAT)
    if not (
        pa.types.is_decimal128(kind)
        and kind.precision <= _EXACT_DIGITS
        and 0 <= kind.scale <= _EXACT_SCALE
    ):
        return values.cast(TEXT).cast(FLOAT)
    low_halves = np.frombuffer(values.buffers()[1], np.int64)[
        2 * values.offset : 2 * (values.offset + len(values)) : 2
    ]
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(low_halves / 10.0**kind.scale, FLOAT, mask=mask)


def counted_in(kind: pa.DataType) -> Any:
    """The integer type behind a temporal type; None for other types. Python's datetimes are slower,
    and have no nanoseconds."""
    if not pa.types.is_temporal(kind) or pa.types.is_interval(kind):
        return None
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def wide(kind: pa.DataType) -> Any:
    """The type in which numbers of this type are computed; raises TypeError if it is not
    numeric."""
    if pa.types.is_integer(kind):
        return INT
    if pa.types.is_floating(kind):
        return FLOAT
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return kind
    raise TypeError("it needs numbers")


def common_number(types: Types) -> Any:
    """The type in which numbers of these types are computed together."""
    kinds = [wide(kind) for kind in types]
    known = [kind for kind in kinds if not pa.types.is_null(kind)]
    if not known:
        return INT
    if FLOAT in known:
        return FLOAT
    return (
        _common_decimal([kind for kind in types if not pa.types.is_null(kind)])
        if any(map(pa.types.is_decimal, known))
        else INT
    )


def digits_of(kind: pa.DataType) -> tuple[int, int]:
    """The numbers of digits of a decimal or an integer before and after the point."""
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return (_UNSIGNED_DIGITS if pa.types.is_uint64(kind) else _DIGITS), 0


def _common_decimal(kinds: Types) -> Any:
    """The decimal that holds every value of these decimals and integers."""
    if len(set(kinds)) == 1:
        return kinds[0]
    parts = list(map(digits_of, kinds))
    scale = max(behind for _, behind in parts)
    digits = max(before for before, _ in parts) + scale
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def common_type(types: Types) -> Any:
    """The type that all operands can be cast to: one kind of numbers, text, or the type they
    share."""
    known = [kind for kind in types if not pa.types.is_null(kind)]
    if not known:
        return pa.null()
    if all(is_text(kind) for kind in known):
        return TEXT
    # Zones only affect display
    if (
        all(pa.types.is_timestamp(kind) for kind in known)
        and len({kind.tz is None for kind in known}) == 1
    ):
        return (
            pa.timestamp("ns" if any(kind.unit == "ns" for kind in known) else "us", known[0].tz)
            if len(set(known)) > 1
            else known[0]
        )
    if (
        all(kind == known[0] for kind in known)
        and not pa.types.is_integer(known[0])
        and not pa.types.is_floating(known[0])
    ):
        return known[0]
    try:
        return common_number(known)
    except TypeError:
        has_dates = any(map(pa.types.is_date, known)) and any(map(pa.types.is_timestamp, known))
        raise TypeError(
            "they are of different kinds"
            + (
                "; cast the date to DataTypes.TIMESTAMP(), or take the timestamp's .to_date"
                if has_dates
                else ""
            )
        ) from None


def with_casts(kernel: Kernel, types: Types, wanted: pa.DataType) -> Kernel:
    """The kernel, with casts before it for the operands that need one."""
    casts = [bring(kind, wanted) for kind in types]
    if not any(casts):
        return kernel
    # usually a column and a constant
    if len(casts) == 2 and casts[0] is not None and casts[1] is None:
        first = casts[0]
        return lambda left, right: kernel(first(left), right)
    return lambda *values: kernel(
        *[value if cast is None else cast(value) for cast, value in zip(casts, values)]
    )
