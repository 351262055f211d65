"""Arguments that are cast to what they have in common."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BooleanType,
    DecimalType,
    LogicalType,
    NullType,
    TypeFamily,
)
from flinkpy.common.logical_types.type_merging import (
    as_decimal,
    common_argument_type,
    common_type,
    comparison_type,
)
from flinkpy.sql.functions.built_in_function import Together, Types


def in_common(*places: int, start: int = 0) -> Together:
    """The arguments at these places, or all from ``start`` on, are cast to their common type."""

    def together(types: Types) -> Types | None:
        chosen = places or tuple(range(start, len(types)))
        common = common_argument_type([types[each] for each in chosen])
        if common is None:
            return None
        return tuple(
            _cast(each, common) if place in chosen else each for place, each in enumerate(types)
        )

    return together


def compared(types: Types) -> Types | None:
    """All are cast to the type in which they are compared."""
    typed = [each for each in types if not isinstance(each, NullType)]
    if not typed:
        return tuple(DataTypes.STRING() for _ in types)
    wanted: LogicalType | None = typed[0]
    for each in typed[1:]:
        wanted = None if wanted is None else comparison_type(wanted, each)
    return None if wanted is None else tuple(_cast(each, wanted) for each in types)


def comparable(types: Types) -> Types | None:
    """They can be compared, and stay as they are."""
    return None if compared(types) is None else types


def calculated(types: Types) -> Types | None:
    """Two numbers for + - * / %: integers and floats in their common type, decimals each with its
    digits."""
    typed = next((each for each in types if not isinstance(each, NullType)), DataTypes.INT())
    left, right = (typed.nullable() if isinstance(each, NullType) else each for each in types)
    has_decimal = isinstance(left, DecimalType) or isinstance(right, DecimalType)
    if has_decimal and all(each.is_a(TypeFamily.EXACT_NUMERIC) for each in (left, right)):
        return as_decimal(left), as_decimal(right)
    common = common_type((left, right))
    return None if common is None else (_cast(left, common), _cast(right, common))


def alternating(types: Types) -> Types | None:
    """Keys and values in turn: the keys in their common type, and the values in theirs."""
    if len(types) % 2:
        return None
    key, value = common_argument_type(types[::2]), common_argument_type(types[1::2])
    if key is None or value is None:
        return None
    return tuple(_cast(each, value if place % 2 else key) for place, each in enumerate(types))


def branches(types: Types) -> Types | None:
    """Conditions and values in turn, and the value of ELSE: the values in their common type."""
    last = len(types) - 1
    conditions = range(0, last, 2)
    if last % 2:
        return None
    if not all(isinstance(types[each], (BooleanType, NullType)) for each in conditions):
        return None
    common = common_type([*types[1::2], types[last]])
    if common is None:
        return None
    return tuple(
        _cast(each, BooleanType() if place in conditions else common)
        for place, each in enumerate(types)
    )


def with_element(types: Types) -> Types | None:
    """An array and a value: the elements and the value in their common type."""
    array, value = types
    if not isinstance(array, ArrayType):
        return None
    element = common_argument_type([array.element, value])
    if element is None:
        return None
    return replace(array, element=element), _cast(value, element)


def _cast(type: LogicalType, wanted: LogicalType) -> LogicalType:
    return wanted.with_nullable(type.is_nullable)
