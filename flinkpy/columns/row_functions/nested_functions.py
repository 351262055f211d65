"""Structs, lists and maps: what their functions mean for one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def get(struct: Any, field: str | int) -> Any:
    """A field by name, or by position from 0."""
    return (
        struct[field]
        if isinstance(field, str) or not isinstance(struct, dict)
        else list(struct.values())[field]
    )


def at(items: Any, index: Any) -> Any:
    """An item of a list, counted from 1, or the value of a key of a map; None if there is none."""
    if isinstance(items, dict):
        return items.get(index)
    if index < 1:
        raise IndexError("lists are counted from 1")
    return items[index - 1] if index <= len(items) else None


def array_contains(items: Any, needle: Any) -> bool | None:
    """Whether an item equals the needle; a needle that is None is found among items that are
    None."""
    if items is None:
        return None
    return (
        any(item is None for item in items)
        if needle is None
        else any(item is not None and bool(item == needle) for item in items)
    )


STRICT: dict[str, Callable[..., Any]] = {"get": get, "at": at, "cardinality": len}
WITH_NULLS: dict[str, Callable[..., Any]] = {"array_contains": array_contains}
