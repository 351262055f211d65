"""Key selectors made from field names."""

from __future__ import annotations

from typing import Any

from flinkpy.aggregates.fields import field_of
from flinkpy.common.typeinfo import (
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from flinkpy.datastream.checks import refuse


class FieldKey:
    """Selects the key of a row: one field, or a tuple of several.

    >>> FieldKey(("a",))({"a": 1, "b": 2}), FieldKey((1, 0))(("x", "y"))
    (1, ('y', 'x'))
    """

    def __init__(self, fields: tuple[int | str, ...]) -> None:
        self._fields = fields

    def __call__(self, value: object) -> Any:
        fields = self._fields
        if len(fields) == 1:
            return field_of(value, fields[0])
        return tuple([field_of(value, field) for field in fields])

    def __repr__(self) -> str:
        return f"FieldKey({', '.join(map(str, self._fields))})"


def check_key_type(key_type: TypeInformation | None, call: str) -> None:
    """Refuses a declared key type that cannot be hashed: lists and maps, also inside tuples and
    rows."""
    found = _unhashable(key_type)
    if found is not None:
        within = "" if found is key_type else f" (in {key_type!r})"
        raise refuse(
            f"{call}: a value of {found!r}{within} cannot be a key, as it cannot be hashed: "
            "key by text, numbers, bytes, dates, "
            "or tuples of these"
        )


def check_key_fields(names: tuple[str, ...], declared: TypeInformation | None, call: str) -> None:
    """Does the same for fields of declared rows. Also refuses fields that the rows do not have."""
    if not isinstance(declared, RowTypeInfo):
        return
    for name in names:
        if name not in declared.field_names:
            raise refuse(
                f"{call}: the rows have no field {name!r}; they have "
                f"{', '.join(declared.field_names)}"
            )
        check_key_type(
            declared.field_types[declared.field_names.index(name)], f"{call}: field {name!r}"
        )


def _unhashable(key_type: TypeInformation | None) -> TypeInformation | None:
    if isinstance(key_type, (TupleTypeInfo, RowTypeInfo)):
        return next(filter(None, map(_unhashable, key_type.field_types)), None)
    is_bytes = type(key_type) is PrimitiveArrayTypeInfo and key_type.element_type == Types.BYTE()
    return (
        key_type
        if isinstance(key_type, (MapTypeInfo, PrimitiveArrayTypeInfo)) and not is_bytes
        else None
    )
