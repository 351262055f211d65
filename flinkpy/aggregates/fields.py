"""Access to one field of a record by index or name. A record may be a tuple, named tuple, list,
dict, Row, dataclass or other object."""

from __future__ import annotations

import copy
from typing import Any

Position = int | str | None  # None: the value itself


def is_indexed(record: object, position: int | str) -> bool:
    """Whether the field is accessed as ``record[position]``; otherwise it is an attribute."""
    return (
        isinstance(position, int)
        or isinstance(record, dict)
        or (not isinstance(record, tuple) and hasattr(type(record), "__getitem__"))
    )


def field_of(record: Any, position: Position) -> Any:
    """The field's value.

    >>> field_of((7, 8), 1), field_of({"a": 9}, "a"), field_of(5, None)
    (8, 9, 5)
    """
    if position is None:
        return record
    return record[position] if is_indexed(record, position) else getattr(record, str(position))


def with_field(record: Any, position: Position, value: Any) -> Any:
    """A new record that differs in one field.

    >>> with_field((7, 8), 1, 0)
    (7, 0)
    """
    if position is None:
        return value
    if isinstance(record, tuple):
        return _tuple_with(record, position, value)
    changed = copy.copy(record)
    if is_indexed(record, position):
        changed[position] = value
    else:
        # also for frozen dataclasses: nobody else has seen the copy
        object.__setattr__(changed, str(position), value)
    return changed


def _tuple_with(record: tuple[Any, ...], position: int | str, value: object) -> tuple[Any, ...]:
    if isinstance(position, str):
        # a named tuple
        named: tuple[Any, ...] = record._replace(**{position: value})  # type: ignore[attr-defined]
        return named
    index = position if position >= 0 else position + len(record)
    changed = (*record[:index], value, *record[index + 1 :])
    return changed if type(record) is tuple else type(record)(*changed)
