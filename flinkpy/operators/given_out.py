"""What a function has given out is not its own any more: it may change an object and give it out again, and each counts as it was at its time.

That is Flink's rule where object reuse is not enabled, and here it must not depend on how many records happen to share a batch. So an object that can
be changed is copied as it is given out, if the function could still reach it. Whether it could is told by the references there are: a list that was
made to be returned has none but the one it is returned by. Functions that give what cannot change, as most do, are not looked after any more once a
batch has shown that: ``GivenOut`` for functions that yield. Those of fused stages need not be either where all they give is new: ``LookedAfter``.
What this leaves open: a function that gives such records for a whole batch, and only then begins to change what it gave out.

Lists, dicts, sets, tuples, Rows and dataclasses are copied; any other object (a data frame, a model) is handed on as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, is_dataclass
from sys import getrefcount
from typing import Any

from flinkpy.common.output_tag import OutputTag
from flinkpy.common.types import Row, named_row
from flinkpy.core.mutability import ATOMS, looks_mutable

ATOMS.add(OutputTag)  # it says where, and stays as it is
_FLAT = frozenset({set, bytearray})  # what they hold cannot change


def is_plain(value: Any) -> bool:
    """Whether it is one of the usual values that cannot change, told fast."""
    kind = type(value)
    return kind in ATOMS or (kind is tuple and ATOMS.issuperset(map(type, value)))


def _parts(value: Any) -> Collection[Any] | None:
    """What it holds; None for an object of which nothing is known."""
    kind = type(value)
    if kind is dict:
        return value.values()  # type: ignore[no-any-return]
    if kind is list or issubclass(kind, tuple):
        return value  # type: ignore[no-any-return]
    if kind in _FLAT:
        return ()
    if issubclass(kind, Row):
        return value._values  # type: ignore[no-any-return]
    if not is_dataclass(kind):
        return None
    return vars(value).values() if hasattr(value, "__dict__") else [getattr(value, each.name) for each in fields(kind)]


def _count(value: Any) -> int:
    return getrefcount(value)


def _relayed(value: Any) -> int:
    return _counted(value, 0)


def _counted(value: Any, known: int) -> int:
    return _count(value)


def _kept(function: Callable[[Any], Any]) -> int:
    value = function(())
    return _count(value)


def _looked_at(function: Callable[[Any], Any]) -> int:
    value = function(())
    return getrefcount(value)


# How many references an object has that nobody else knows of: counted in the very ways in which ``private`` is called below, as they differ between
# versions of Python.
_BY_MAP: int = next(map(_count, ([] for _ in (0,))))
_BY_MAP_RELAYED: int = next(map(_relayed, ([] for _ in (0,))))
_FROM_LIST_RELAYED: int = next(map(_relayed, [[]]))
_BY_CALL: int = _kept(list)
_UNNAMED: int = _count([])
_HERE: int = _looked_at(list)
_HOLDER: list[Any] = [[]]
_AS_PART: int = next(getrefcount(part) for part in _HOLDER)


def private(value: Any, known: int = _BY_MAP) -> Any:
    """The value if nobody else can change it, else a copy. ``known``: the references there are by the way it came here."""
    kind = type(value)
    if kind in ATOMS or (kind is tuple and ATOMS.issuperset(map(type, value))):
        return value
    references = getrefcount(value)  # before there are more
    parts = value.values() if kind is dict else _parts(value)
    if parts is None or (references <= known and (ATOMS.issuperset(map(type, parts)) or _are_private(parts))):
        return value
    return copied(value)


def _are_private(parts: Collection[Any]) -> bool:
    for part in parts:
        if not is_plain(part):
            count, inner = getrefcount(part), _parts(part)
            if inner is not None and (count > _AS_PART or not _are_private(inner)):
                return False
    return True


def copied(value: Any) -> Any:
    """A copy that shares nothing with the value that can change and is known."""
    try:
        return _copy(value)
    except RecursionError:  # it holds itself
        return copy.deepcopy(value)


def _copy(value: Any) -> Any:
    if is_plain(value):
        return value
    kind = type(value)
    if kind is list:
        return list(map(_copy, value))
    if kind is dict:
        return dict(zip(value, map(_copy, value.values())))
    if kind is tuple:
        return tuple(map(_copy, value))
    parts = _parts(value)
    if parts is None:
        return value
    if issubclass(kind, tuple):
        return kind._make(map(_copy, value)) if hasattr(kind, "_make") else value
    if issubclass(kind, Row):
        row = named_row(value._fields, map(_copy, parts))
        row.set_row_kind(value.get_row_kind())
        return row
    made = copy.copy(value)
    if kind not in _FLAT:
        names = list(vars(value)) if hasattr(value, "__dict__") else [each.name for each in fields(value)]
        for name, part in zip(names, parts):
            object.__setattr__(made, name, _copy(part))  # frozen or not
    return made


class GivenOut:
    """The results of a function that gives any number for each call, batch by batch."""

    __slots__ = ("_careful", "_looks")

    def __init__(self, object_reuse: bool) -> None:
        self._careful = self._looks = not object_reuse

    def way_into(self, values: list[Any]) -> Callable[[Iterable[Any]], None]:
        """Call it with what the function gives: that is appended, one by one."""
        extend = values.extend
        return (lambda given: extend(map(private, given))) if self._careful else extend

    def look_at(self, values: list[Any]) -> None:
        """All results of a batch, before they go on: the next batch is treated as this one shows."""
        if values and self._looks:
            mutable = looks_mutable(values)
            if mutable and not self._careful:
                values[:] = map(copied, values)
            self._careful = mutable


def with_private_results(function: Callable[[Any, Any], Any], many: bool) -> Callable[[Any, Any], Any]:
    """The function of two records, for good."""
    if not many:
        return lambda one, other: private(function(one, other), _UNNAMED)

    def each(one: Any, other: Any) -> Any:
        given = function(one, other)
        return None if given is None else map(private, given)

    return each


class LookedAfter:
    """The function of a map or flat_map stage with private results. What it says of itself is there to end that once it has shown how it works: such
    functions either keep what they give, or do not.
    """

    def __init__(self, function: Callable[[Any], Any], many: bool) -> None:
        self._function = function
        self.call: Callable[[Any], Any] = self._of_many if many else self._of_one
        self.was_called = self.gave_mutable = self.made_copies = False

    def _of_one(self, record: Any) -> Any:
        before = getrefcount(record)
        value = self._function(record)
        self.was_called = True
        if is_plain(value):
            return value
        self.gave_mutable = True
        if value is record and getrefcount(value) == before + 1 and _are_private(_parts(value) or ()):
            return value  # its own record, and not kept
        given = private(value, _BY_CALL)
        if given is not value:
            self.made_copies = True
        return given

    def _of_many(self, record: Any) -> Any:
        given = self._function(record)
        if type(given) is list and getrefcount(given) == _HERE:
            return map(self._of_new_list, given)
        return None if given is None else map(self._each, given)

    def _each(self, value: Any) -> Any:
        return self._private(value, _BY_MAP_RELAYED)

    def _of_new_list(self, value: Any) -> Any:
        return self._private(value, _FROM_LIST_RELAYED)

    def _private(self, value: Any, known: int) -> Any:
        self.was_called = True
        if is_plain(value):
            return value
        self.gave_mutable = True
        given = private(value, known)
        if given is not value:
            self.made_copies = True
        return given
