"""One schema for files whose columns grew: all columns by name, and the type that takes the values
of every file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias

import pyarrow as pa

# The type for the values of two types of which neither takes all values of the other; None if there
# is none
Otherwise: TypeAlias = Callable[[Any, Any], Any]

_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_FLOATS = (pa.float16(), pa.float32(), pa.float64())
_TEXTS = (pa.string(), pa.large_string())
_BYTES = (pa.binary(), pa.large_binary())
_UNITS = ("s", "ms", "us", "ns")
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}  # that an integer of so many bits has at most


def floats_for_integers(one: pa.DataType, other: pa.DataType) -> Any:
    """Floats for integers and floats. Whoever reads them refuses an integer that no float
    equals."""
    are_numbers = pa.types.is_integer(one) or pa.types.is_integer(other)
    return (
        pa.float64()
        if are_numbers and (pa.types.is_floating(one) or pa.types.is_floating(other))
        else None
    )


def floats_for_numbers(one: pa.DataType, other: pa.DataType) -> Any:
    """Also for large integers, which files of text are read into decimals for."""
    integers = [
        pa.int64() if pa.types.is_decimal(kind) and not kind.scale else kind
        for kind in (one, other)
    ]
    return floats_for_integers(*integers)


def merged_schema(
    schemas: Iterable[tuple[str, Any]],
    refuse: Callable[[str], Exception],
    wanted: Collection[str] | None = None,
    otherwise: Otherwise = floats_for_integers,
) -> Any:
    """The columns of all files (path and schema), in the order in which they first appear, with the
    type that takes the values of all; structs have the fields of all. Raises ``refuse(sentence)``
    for types of a ``wanted`` column (None: of any) that do not go together, with the paths of both
    files."""
    merged: dict[str, Any] = {}
    first: dict[str, str] = {}
    for path, schema in schemas:
        for field in schema:
            known = merged.get(field.name)
            if known is None or schema.names.count(field.name) > 1:
                merged.setdefault(field.name, field)
                first.setdefault(field.name, path)
                continue
            kind = common_type(known.type, field.type, otherwise)
            if kind is None and wanted is not None and field.name not in wanted:
                continue
            if kind is None:
                raise refuse(
                    f"column {field.name!r} is {known.type} in {first[field.name]} and "
                    f"{field.type} in {path}; "
                    "give schema= with one type for it"
                )
            if pa.types.is_null(known.type):
                first[field.name] = path
            merged[field.name] = known.with_type(kind).with_nullable(
                known.nullable or field.nullable
            )
    return pa.schema(list(merged.values()))


def common_type(
    one: pa.DataType, other: pa.DataType, otherwise: Otherwise = lambda one, other: None
) -> Any:
    """The type that takes all values of both without a change; where there is none, what
    ``otherwise`` says.

    >>> common_type(pa.int32(), pa.int64()), common_type(pa.int64(), pa.float64())
    (DataType(int64), None)
    >>> common_type(pa.list_(pa.int64()), pa.list_(pa.float64()), floats_for_integers)
    ListType(list<item: double>)
    """
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    for ladder in (_SIGNED, _UNSIGNED, _FLOATS, _TEXTS, _BYTES):
        if one in ladder and other in ladder:
            return max(one, other, key=ladder.index)
    if (one in _SIGNED and other in _UNSIGNED[:3]) or (other in _SIGNED and one in _UNSIGNED[:3]):
        return _signed_for_both(one, other)
    if _is_exact_number(one) and _is_exact_number(other):
        return _decimal_for_both(one, other)
    if pa.types.is_dictionary(one) or pa.types.is_dictionary(other):
        plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (one, other)]
        return common_type(plain[0], plain[1], otherwise)
    found = _of_time(one, other) or _nested(one, other, otherwise)
    return otherwise(one, other) if found is None else found


def _signed_for_both(one: pa.DataType, other: pa.DataType) -> Any:
    signed, unsigned = (one, other) if one in _SIGNED else (other, one)
    return _SIGNED[max(_SIGNED.index(signed), _UNSIGNED.index(unsigned) + 1)]


def _is_exact_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_decimal128(kind) or pa.types.is_decimal256(kind)
    )


def _decimal_for_both(one: pa.DataType, other: pa.DataType) -> Any:
    """The decimal that holds both: two decimals, a decimal and an integer, or integers that no
    integer type holds together."""
    digits = [
        (_DIGITS[kind.bit_width], 0)
        if pa.types.is_integer(kind)
        else (kind.precision - kind.scale, kind.scale)
        for kind in (one, other)
    ]
    scale = max(scale for _, scale in digits)
    precision = max(whole for whole, _ in digits) + scale
    if precision > 76:
        return None
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _of_time(one: pa.DataType, other: pa.DataType) -> Any:
    """The finer unit. The same instants in different zones are instants in UTC."""
    for is_a in (pa.types.is_timestamp, pa.types.is_time, pa.types.is_duration):
        if is_a(one) and is_a(other):
            unit = max(one.unit, other.unit, key=_UNITS.index)
            if is_a is pa.types.is_duration:
                return pa.duration(unit)
            if is_a is pa.types.is_time:
                return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
            if one.tz == other.tz:
                return pa.timestamp(unit, one.tz)
            return (
                pa.timestamp(unit, "UTC") if one.tz is not None and other.tz is not None else None
            )
    return None


def _nested(one: pa.DataType, other: pa.DataType, otherwise: Otherwise) -> Any:
    for is_a, list_of in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_a(one) and is_a(other):
            kind = common_type(one.value_type, other.value_type, otherwise)
            return None if kind is None else list_of(one.value_field.with_type(kind))
    if pa.types.is_map(one) and pa.types.is_map(other):
        key, item = (
            common_type(getattr(one, part), getattr(other, part), otherwise)
            for part in ("key_type", "item_type")
        )
        return None if key is None or item is None else pa.map_(key, item)
    if not (pa.types.is_struct(one) and pa.types.is_struct(other)):
        return None
    fields = {field.name: field for field in one}
    for field in other:
        known = fields.get(field.name)
        kind = field.type if known is None else common_type(known.type, field.type, otherwise)
        if kind is None:
            return None
        fields[field.name] = field if known is None else known.with_type(kind)
    return pa.struct(list(fields.values()))
