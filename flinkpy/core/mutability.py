"""Decides per batch, from the types of the values and their first level, whether a receiver could
change values in place; and copies them.

Copies are made only where a value reaches more than one party that could change it: two consumers
of one output, or a reduce's state and its output. Numbers, text, bytes, dates, enums and tuples of
these need no copy. Deeper levels are not examined: only tuples of such atoms count as safe, so a
tuple in a tuple counts as mutable."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import fractions
import uuid
from collections.abc import Callable, Collection
from itertools import chain
from typing import Any

ATOMS: set[type] = {
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
}


def _are_atoms(kinds: set[type]) -> bool:
    return kinds <= ATOMS or all(
        kind in ATOMS or issubclass(kind, enum.Enum) or _is_numpy_scalar(kind) for kind in kinds
    )


def _is_numpy_scalar(kind: type) -> bool:
    """Works without importing numpy: if there are numpy scalars, it is imported. ``void`` is
    excluded, as its fields can be set."""
    found = (
        kind.__module__ == "numpy"
        and kind.__name__ != "void"
        and any(each.__name__ == "generic" for each in kind.__mro__)
    )
    if found:
        ATOMS.add(kind)
    return found


def could_be_mutated(values: Collection[Any]) -> bool:
    """Whether any of the values could be changed in place.

    >>> (
    ...     could_be_mutated([("a", 1), None, 2.5]),
    ...     could_be_mutated([["a"]]),
    ...     could_be_mutated([("a", [])]),
    ... )
    (False, True, True)
    """
    kinds = set(map(type, values))
    tuples = {kind for kind in kinds if issubclass(kind, tuple)}
    if not _are_atoms(kinds - tuples):
        return True
    if not tuples:
        return False
    fields = chain.from_iterable(
        values
        if len(tuples) == len(kinds)
        else (value for value in values if isinstance(value, tuple))
    )
    return not _are_atoms(set(map(type, fields)))


def isolated(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` called with private copies of its two values, which are state: in-place changes
    by it, or by receivers of its results, do not reach the state."""
    return lambda one, other, *more: function(private_copy(one), private_copy(other), *more)


def is_safe(value: Any) -> bool:
    """Whether this one value cannot be changed in place."""
    kind = type(value)
    if kind in ATOMS:
        return True
    if kind is tuple:
        for field in value:
            if type(field) not in ATOMS:
                return not could_be_mutated((value,))
        return True
    return not could_be_mutated((value,))


def private_copy(value: Any) -> Any:
    """A copy that shares nothing changeable with the value; the value itself if nothing in it can
    be changed."""
    if is_safe(value):
        return value
    kind = type(value)
    if kind is list and _are_atoms(set(map(type, value))):
        return value.copy()
    if kind is dict and _are_atoms(set(map(type, value.values()))):
        return value.copy()
    return copy.deepcopy(value)
