"""One schema for files whose columns grew: all columns by name, and the type that takes the values of every file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pyarrow as pa

_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_FLOATS = (pa.float16(), pa.float32(), pa.float64())
_TEXTS = (pa.string(), pa.large_string())
_BYTES = (pa.binary(), pa.large_binary())


def merged_schema(
    schemas: Iterable[tuple[str, Any]], refuse: Callable[[str], Exception], wanted: Collection[str] | None = None, *,
    integers_are_floats: bool = False,
) -> Any:
    """The columns of all files (path and schema), in the order in which they first appear. Smaller integers and floats
    become larger ones; structs have the fields of all. ``integers_are_floats`` is for JSON, see :func:`common_type`.
    Raises ``refuse(sentence)`` for types of a ``wanted`` column (None: of any) that do not go together, with the paths of
    both files."""
    merged: dict[str, Any] = {}
    first: dict[str, str] = {}
    for path, schema in schemas:
        for field in schema:
            known = merged.get(field.name)
            if known is None or schema.names.count(field.name) > 1:
                merged.setdefault(field.name, field)
                first.setdefault(field.name, path)
                continue
            kind = common_type(known.type, field.type, integers_are_floats)
            if kind is None and wanted is not None and field.name not in wanted:
                continue
            if kind is None:
                raise refuse(f"column {field.name!r} is {known.type} in {first[field.name]} and {field.type} in {path}; "
                             "give schema= with one type for it")
            if pa.types.is_null(known.type):
                first[field.name] = path
            merged[field.name] = known.with_type(kind).with_nullable(known.nullable or field.nullable)
    return pa.schema(list(merged.values()))


def common_type(one: Any, other: Any, integers_are_floats: bool = False) -> Any:
    """The type that takes all values of both without a change; None if there is none. With ``integers_are_floats`` 64-bit integers and floats
    become floats; whoever reads them refuses an integer that no float equals.

    >>> common_type(pa.int32(), pa.int64()), common_type(pa.int64(), pa.float64())
    (DataType(int64), None)
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
    if pa.types.is_decimal128(one) and pa.types.is_decimal128(other):
        scale = max(one.scale, other.scale)
        precision = max(one.precision - one.scale, other.precision - other.scale) + scale
        return pa.decimal128(precision, scale) if precision <= 38 else None
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and one.tz == other.tz:
        return max(one, other, key=lambda kind: ("s", "ms", "us", "ns").index(kind.unit))
    if integers_are_floats and {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_dictionary(one) or pa.types.is_dictionary(other):
        return common_type(*(kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (one, other)))
    return _common_nested(one, other, integers_are_floats)


def _signed_for_both(one: Any, other: Any) -> Any:
    signed, unsigned = (one, other) if one in _SIGNED else (other, one)
    return _SIGNED[max(_SIGNED.index(signed), _UNSIGNED.index(unsigned) + 1)]


def _common_nested(one: Any, other: Any, integers_are_floats: bool) -> Any:
    if pa.types.is_list(one) and pa.types.is_list(other):
        kind = common_type(one.value_type, other.value_type, integers_are_floats)
        return None if kind is None else pa.list_(one.value_field.with_type(kind))
    if not (pa.types.is_struct(one) and pa.types.is_struct(other)):
        return None
    fields = {field.name: field for field in one}
    for field in other:
        known = fields.get(field.name)
        kind = field.type if known is None else common_type(known.type, field.type, integers_are_floats)
        if kind is None:
            return None
        fields[field.name] = field if known is None else known.with_type(kind)
    return pa.struct(list(fields.values()))
