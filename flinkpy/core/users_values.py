"""Values that functions of users gave: as text for messages, whatever their methods do, and
checked."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from operator import index
from typing import Any

RECORD_REPR_CHARS = 200


def bounded_repr(value: object, limit: int = RECORD_REPR_CHARS) -> str:
    """The value's repr with at most ``limit`` characters, whatever its ``__repr__`` does."""
    try:
        text = repr(value) if not _is_large(value) else reprlib.repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_large(value: object) -> bool:
    return (
        isinstance(value, (str, bytes, list, tuple, dict, set, frozenset))
        and len(value) > RECORD_REPR_CHARS
    )


def unbuilt(value: object) -> str:
    """What to add to a sentence that refuses this value: a builder was given where what it builds
    is wanted."""
    return (
        "; call its build()"
        if type(value).__name__.endswith("Builder") and callable(getattr(value, "build", None))
        else ""
    )


def several(found: object, call: str, what: str) -> Iterable[Any]:
    """What the user's function gave, if one can iterate over it. TypeError if not: it says which
    call gives what."""
    if not isinstance(found, Iterable):
        raise TypeError(
            f"{call} gives {bounded_repr(found, 60)}; it must return {what} in a list, or "
            "yield each"
        )
    return found


def whole_number(value: Any) -> int | None:
    """The value as an int if it is a whole number, such as numpy's; None for anything else, and for
    booleans, also numpy's, which older versions take for an index.

    >>> whole_number(7), whole_number(True), whole_number(7.0)
    (7, None, None)
    """
    if type(value).__name__ in ("bool", "bool_"):
        return None
    try:
        return index(value)
    except TypeError:
        return None
