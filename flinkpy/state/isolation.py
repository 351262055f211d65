"""Isolation of state: nobody else can change a stored value. A value that can be changed in place is copied when it is written and when it is read.

Whether a value can be changed is found out once, when it is written. If it can, it is stored inside a :class:`PrivateCopy`, so reading needs
one check of a type, and numbers, text and tuples of these are never copied.
"""

from __future__ import annotations

from typing import Any

from flinkpy.core.mutability import is_safe, private_copy


class PrivateCopy:
    """A private copy of a value that can be changed in place."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"PrivateCopy({self.value!r:.80})"


def protect(value: Any) -> Any:
    """The value as state stores it."""
    return value if is_safe(value) else PrivateCopy(private_copy(value))


def adopt(value: Any) -> Any:
    """The value as state stores it, without a copy: for a value that nobody else has, as it was just unpickled or made for this state."""
    return value if is_safe(value) else PrivateCopy(value)


def release(stored: Any) -> Any:
    """A stored value as the program gets it."""
    return private_copy(stored.value) if type(stored) is PrivateCopy else stored


def reveal(stored: Any) -> Any:
    """The stored value itself, for the engine only: never pass it to the program."""
    return stored.value if type(stored) is PrivateCopy else stored
