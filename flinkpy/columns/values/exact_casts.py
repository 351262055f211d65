"""Casts of columns that never change a value.

Arrow's safe casts are not always safe: they drop time zones or invent them, cut timestamps to
dates, leave out fields of structs, and turn floats that are too large into infinity."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def cast_exactly(column: pa.Array, field: pa.Field) -> Any:
    """The column with the field's type. Raises ArrowInvalid, which names the field, if a value
    would change."""
    have, wanted = column.type, field.type
    loss = _loss(have, wanted)
    if loss is not None:
        raise pa.ArrowInvalid(f"column {field.name!r} is {have}, and {wanted} {loss}")
    try:
        cast = column.cast(wanted)
    except pa.ArrowException as error:
        numbers = (
            _equal_decimals(column, wanted)
            if pa.types.is_decimal(wanted)
            else _equal_floats(column, wanted)
        )
        if numbers is not None:
            return numbers
        raise pa.ArrowInvalid(f"column {field.name!r}: {error}") from error
    if (
        pa.types.is_floating(have)
        and not have.equals(wanted)
        and pa.types.is_floating(wanted)
        and _infinities(cast) != _infinities(column)
    ):
        raise pa.ArrowInvalid(f"column {field.name!r} has values too large for {wanted}")
    return cast


def _loss(have: pa.DataType, wanted: pa.DataType) -> str | None:
    """What the cast would lose or invent, whatever the values are; None if nothing."""
    is_a = pa.types
    if is_a.is_timestamp(have):
        if is_a.is_timestamp(wanted) and (have.tz is None) != (wanted.tz is None):
            return "has no zone" if wanted.tz is None else "has one"
        return "would cut it" if is_a.is_date(wanted) or is_a.is_time(wanted) else None
    if is_a.is_struct(have) and is_a.is_struct(wanted):
        more = [field.name for field in have if wanted.get_field_index(field.name) < 0]
        losses = (
            [f"has no field {more[0]!r}"]
            if more
            else [_loss(field.type, wanted.field(field.name).type) for field in have]
        )
        return next((loss for loss in losses if loss is not None), None)
    if is_a.is_map(have) and is_a.is_map(wanted):
        return _loss(have.key_type, wanted.key_type) or _loss(have.item_type, wanted.item_type)
    if (
        is_a.is_nested(have)
        and is_a.is_nested(wanted)
        and hasattr(have, "value_type")
        and hasattr(wanted, "value_type")
    ):
        return _loss(have.value_type, wanted.value_type)
    return None


def _equal_floats(column: pa.Array, wanted: pa.DataType) -> Any:
    """Integers as the floats that equal them; None if there are none for all. (Arrow refuses every
    integer beyond those that all have one.)"""
    if not (pa.types.is_integer(column.type) and pa.types.is_floating(wanted)):
        return None
    floats = column.cast(wanted, safe=False)
    try:
        return floats if floats.cast(column.type).equals(column) else None
    except pa.ArrowException:  # a float at the edge of the integers is beyond them
        return None


def _equal_decimals(column: pa.Array, wanted: pa.DataType) -> Any:
    """Integers as decimals of few digits; None if one has more. (Arrow asks for room for every
    integer of the type.)"""
    if not pa.types.is_integer(column.type):
        return None
    try:
        return column.cast(pa.decimal256(76, wanted.scale)).cast(wanted)
    except pa.ArrowException:
        return None


def _infinities(column: pa.Array) -> int:
    return pc.sum(pc.is_inf(column)).as_py() or 0
