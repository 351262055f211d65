"""What becomes of saved values when the program declares another type than it did when they were
saved.

A named row may have gained fields, at any depth, and they may stand in another order: of saved
values the new ones are None. Any other change is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from flinkpy.common.type_texts import type_of_text
from flinkpy.common.typeinfo import (
    ListTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from flinkpy.common.types import Row, named_row
from flinkpy.core.errors import ProgramError
from flinkpy.state.descriptors import StateKind

Change: TypeAlias = Callable[[Any], Any]

RULE = (
    "only fields may be added to a named row, and are None in what was saved; declare what "
    "was saved, or give the state another name "
    "and fill it anew"
)


def changed_values(kind: StateKind, expires: bool, saved: str, declared: str) -> Change | None:
    """From a value of a keyed state, as it stands in snapshots, to that of the declared type; None
    if there is no way. The types are given as text, as in a state's meta."""
    before, after = type_of_text(saved), type_of_text(declared)
    if before is None or after is None:
        return None
    if kind is StateKind.LIST:
        element = changed_elements(saved, declared, expires)
        return None if element is None else lambda values: list(map(element, values))
    if kind is StateKind.MAP:
        item = changed_entries(saved, declared, expires)
        return (
            None
            if item is None
            else lambda entries: {key: item(value) for key, value in entries.items()}
        )
    return _stamped(_change(before, after), expires)


def changed_elements(saved: str, declared: str, expires: bool = False) -> Change | None:
    """The same for an element of a list state."""
    before, after = type_of_text(saved), type_of_text(declared)
    if not isinstance(before, ListTypeInfo) or not isinstance(after, ListTypeInfo):
        return None
    return _stamped(_change(before.element_type, after.element_type), expires)


def changed_entries(saved: str, declared: str, expires: bool = False) -> Change | None:
    """The same for a value of a map state or a broadcast state, whose keys must be what they
    were."""
    before, after = type_of_text(saved), type_of_text(declared)
    if (
        not isinstance(before, MapTypeInfo)
        or not isinstance(after, MapTypeInfo)
        or before.key_type != after.key_type
    ):
        return None
    return _stamped(_change(before.value_type, after.value_type), expires)


def carried_out(change: Change, value: object, name: str) -> Any:
    """The changed value. ProgramError for a value that was not of the type that was declared for
    it."""
    try:
        return change(value)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise ProgramError(
            f"state {name!r} holds {value!r:.100}, which is not of the type that was declared "
            "when it was saved, so it "
            "cannot be brought into another one: declare what was saved"
        ) from error


def _stamped(change: Change | None, expires: bool) -> Change | None:
    return (
        (lambda saved: (change(saved[0]), saved[1])) if change is not None and expires else change
    )


def _change(before: TypeInformation, after: TypeInformation) -> Change | None:
    if before == after:
        return lambda value: value
    if type(before) is not type(after):
        return None
    if isinstance(before, RowTypeInfo) and isinstance(after, RowTypeInfo):
        return _row_change(before, after)
    if isinstance(before, TupleTypeInfo) and isinstance(after, TupleTypeInfo):
        changes = _all_changes(before.field_types, after.field_types)
        return (
            None
            if changes is None
            else _or_none(
                lambda value: type(value)(change(each) for change, each in zip(changes, value))
            )
        )
    if isinstance(before, MapTypeInfo) and isinstance(after, MapTypeInfo):
        item = (
            _change(before.value_type, after.value_type)
            if before.key_type == after.key_type
            else None
        )
        return (
            None
            if item is None
            else _or_none(lambda value: {key: item(each) for key, each in value.items()})
        )
    if isinstance(before, PrimitiveArrayTypeInfo) and isinstance(after, PrimitiveArrayTypeInfo):
        element = _change(before.element_type, after.element_type)
        return None if element is None else _or_none(lambda value: type(value)(map(element, value)))
    return None


def _or_none(change: Change) -> Change:
    return lambda value: None if value is None else change(value)


def _all_changes(
    before: Sequence[TypeInformation], after: Sequence[TypeInformation]
) -> list[Change] | None:
    changes = (
        [_change(*pair) for pair in zip(before, after)] if len(before) == len(after) else [None]
    )
    known = [change for change in changes if change is not None]
    return known if len(known) == len(changes) else None


def _row_change(before: RowTypeInfo, after: RowTypeInfo) -> Change | None:
    """By name. A value may be any that the type takes: a Row with names or without, a dict, a tuple
    or a list."""
    places = {name: at for at, name in enumerate(after.field_names)}
    if not all(name in places for name in before.field_names):
        return None
    changes = _all_changes(
        before.field_types, [after.field_types[places[name]] for name in before.field_names]
    )
    if changes is None:
        return None
    old_names, new_names = before.field_names, tuple(after.field_names)

    def change(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {
                name: each(value[name]) for name, each in zip(old_names, changes) if name in value
            }
            return {**value, **dict.fromkeys(new_names), **kept}
        by_name = isinstance(value, Row) and value._fields is not None
        values: list[Any] = [None] * len(new_names)
        for at, (name, each) in enumerate(zip(old_names, changes)):
            values[places[name]] = each(value[name] if by_name else value[at])
        if not isinstance(value, Row):
            return type(value)(values)
        row = named_row(new_names if by_name else None, values)
        row.set_row_kind(value.get_row_kind())
        return row

    return _or_none(change)
