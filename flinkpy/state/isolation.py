"""State keeps values no one else can change: what can be changed in place is copied on its way in and on its way out.

Whether a value can be changed is found out once, when it is written: those that can are stored inside a :class:`Kept`, so reading costs one look
at a type, and numbers, text and tuples of these are never copied at all.
"""

from __future__ import annotations

from typing import Any

from flinkpy.core.mutability import is_safe, private_copy


class Kept:
    """A private copy of a value that can be changed in place."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Kept({self.value!r:.80})"


def protect(value: Any) -> Any:
    """The value as state stores it."""
    return value if is_safe(value) else Kept(private_copy(value))


def adopt(value: Any) -> Any:
    """The same for a value that nobody else has (it was just unpickled, or made by a function for this state): no copy."""
    return value if is_safe(value) else Kept(value)


def release(stored: Any) -> Any:
    """The stored value as the user gets it."""
    return private_copy(stored.value) if type(stored) is Kept else stored


def reveal(stored: Any) -> Any:
    """The stored value itself, for the engine's own use: do not hand it out."""
    return stored.value if type(stored) is Kept else stored
