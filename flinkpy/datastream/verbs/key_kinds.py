"""What the declared type of a key says about which keys can be equal: keys of another kind would
never find the state of the old ones."""

from __future__ import annotations

from flinkpy.common.typeinfo import BasicTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation

_EQUAL = {
    **dict.fromkeys(
        ("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "BIG_INT", "BIG_DEC"),
        "number",
    ),
    **dict.fromkeys(("STRING", "CHAR"), "string"),
}


def key_kind(declared: TypeInformation | None) -> str | None:
    """The kind of keys of this type; None if the type does not say it.

    >>> from flinkpy.common import Types
    >>> key_kind(Types.TUPLE([Types.STRING(), Types.LONG()])), key_kind(Types.PICKLED_BYTE_ARRAY())
    ('(string, number)', None)
    """
    if isinstance(declared, TupleTypeInfo):
        return _together([key_kind(each) for each in declared.field_types])
    return _EQUAL.get(declared.name, str(declared)) if isinstance(declared, BasicTypeInfo) else None


def kind_of_fields(names: tuple[str, ...], declared: TypeInformation | None) -> str | None:
    """The kind of keys that are these fields of rows of this type."""
    if not isinstance(declared, RowTypeInfo):
        return None
    kinds = [key_kind(declared.field_types[declared.field_names.index(name)]) for name in names]
    return kinds[0] if len(kinds) == 1 else _together(kinds)


def _together(kinds: list[str | None]) -> str | None:
    known = [kind for kind in kinds if kind is not None]
    return f"({', '.join(known)})" if len(known) == len(kinds) else None
