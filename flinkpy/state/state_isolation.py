"""Isolation of state: nobody else can change a stored value. A value that can be changed in place
is copied when it is written and when it is read.

Whether a value can be changed is found out once, when it is written. If it can, it is stored inside
a :class:`PrivateCopy`, so reading needs one check of a type, and numbers, text and tuples of these
are never copied."""

from __future__ import annotations

from collections.abc import Mapping
from pickle import PicklingError
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.mutability import could_be_mutated, is_safe, private_copy


class PrivateCopy:
    """A private copy of a value that can be changed in place."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"PrivateCopy({self.value!r:.80})"


def protect(value: object) -> Any:
    """The value as state stores it. TypeError for one that cannot be copied."""
    if is_safe(value):
        return value
    try:
        return PrivateCopy(private_copy(value))
    except (TypeError, PicklingError) as error:
        raise TypeError(
            f"a {type(value).__name__} cannot be kept in state: {error}; keep what it is made "
            "of, and make it in open()"
        ) from None


def adopt(value: object) -> Any:
    """The value as state stores it, without a copy: for a value that nobody else has, as it was
    just unpickled or made for this state."""
    return value if is_safe(value) else PrivateCopy(value)


def release(stored: object) -> Any:
    """A stored value as the program gets it."""
    return private_copy(stored.value) if type(stored) is PrivateCopy else stored


def reveal(stored: object) -> Any:
    """The stored value itself, for the engine only: never pass it to the program."""
    return stored.value if type(stored) is PrivateCopy else stored


def settled(name: str, values: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The values of a state so that nobody changes them any more: copies, where they could be
    changed in place. Raises ProgramError for one that cannot be copied."""
    if not could_be_mutated(values.values()):
        return values
    try:
        return {key: private_copy(value) for key, value in values.items()}
    except Exception as error:
        raise not_saved(name, error) from error


def not_saved(name: str, error: Exception) -> ProgramError:
    """A value of the state cannot be copied."""
    return ProgramError(f"the state of {name!r} cannot be saved: {type(error).__name__}: {error}")
