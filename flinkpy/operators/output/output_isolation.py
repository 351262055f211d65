"""Output isolation: a function may change an object that it has already emitted, and emit it again,
without changing the record emitted before.

That is Flink's rule unless object reuse is enabled: what a function does later does not affect a
record it has emitted, and what happens to the record does not affect the function. The rule holds
however many records share a batch, and whether or not stages are fused. So each result of a
function is copied at once, if its type says that it could be changed. Numbers, text, bytes, dates,
enums, and tuples of these are not copied.

Everything else is copied in depth: lists, dicts, sets, arrays, data frames, Rows, dataclasses and
other objects. An object that a record holds twice is one object in the copy too. An object that
cannot be copied (a lock), or that releases something when it dies (``__del__``), is passed on as it
is; so is Arrow's data, which cannot be changed. With ``enable_object_reuse`` nothing is copied.

A coroutine or a generator is no value, and refused here (``flinkpy.core.codegen.idle_results``)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable
from itertools import chain
from operator import is_
from typing import Any

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.types import Row, named_row
from flinkpy.core.codegen.idle_results import IDLE, idle_result
from flinkpy.core.mutability import ATOMS, is_safe

_TUPLES: set[type] = {tuple}
ATOMS.add(OutputTag)  # it only names a side output


def private(value: Any) -> Any:
    """The value itself if it cannot be changed, else a copy.

    >>> pair, row = ("a", 1), [1, [2]]
    >>> private(pair) is pair, private(row) is row, private(row) == row
    (True, False, True)
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is tuple:
        if len(value) == 2:  # the usual ones, a little faster
            one, other = value
            if type(one) in ATOMS and type(other) in ATOMS:
                return value
        elif ATOMS.issuperset(map(type, value)):
            return value
    elif kind is dict:
        for part in value.values():
            if type(part) not in ATOMS:
                break
        else:
            return value.copy()
    elif (kind is list or kind is set) and ATOMS.issuperset(map(type, value)):
        return value.copy()
    return copied(value)


def all_private(values: list[Any] | tuple[Any, ...]) -> Iterable[Any]:
    """The same for all values of a list or tuple."""
    kinds = set(map(type, values))
    if kinds <= ATOMS or (
        kinds == _TUPLES and set(map(type, chain.from_iterable(values))) <= ATOMS
    ):
        return values
    return [private(value) for value in values]


def copied(value: object) -> Any:
    """A copy that shares nothing with the value that can be changed."""
    try:
        return _copy(value, {})
    except RecursionError:  # it is nested deeper than Python's stack
        return value


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    """``memo``: the copies made already, by the ids of their originals, as ``copy.deepcopy`` keeps
    them."""
    kind = type(value)
    if kind in ATOMS:
        return value
    found = memo.get(id(value))
    if found is not None:
        return found
    if kind is list:
        made: Any = []
        memo[id(value)] = made
        made += [part if type(part) in ATOMS else _copy(part, memo) for part in value]
        return made
    if kind is dict:
        memo[id(value)] = made = {}
        for name, part in value.items():  # names cannot change, or they would not be found
            made[name] = part if type(part) in ATOMS else _copy(part, memo)
        return made
    if kind is tuple:
        parts = [part if type(part) in ATOMS else _copy(part, memo) for part in value]
        return value if all(map(is_, parts, value)) else memo.setdefault(id(value), tuple(parts))
    if kind in _PLAIN or _is_plain(kind):
        memo[id(value)] = made = object.__new__(kind)
        made.__dict__.update(
            {
                name: part if type(part) in ATOMS else _copy(part, memo)
                for name, part in value.__dict__.items()
            }
        )
        return made
    return _copied_object(value, kind, memo)


_PLAIN: set[type] = set()


def _is_plain(kind: type) -> bool:
    """Whether its objects are nothing but their ``__dict__``, and copied as that."""
    own = {name for each in kind.__mro__[:-1] for name in vars(each)}
    found = (
        "__new__" not in own
        and "__dict__" in own
        and own.isdisjoint(_OWN_WAYS)
        and kind.__basicsize__ <= _Plain.__basicsize__
    )
    if found:
        _PLAIN.add(kind)
    return found


class _Plain:
    pass


_OWN_WAYS = {
    "__slots__",
    "__deepcopy__",
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__del__",
}


def _copied_object(value: Any, kind: type, memo: dict[int, Any]) -> Any:
    if kind in IDLE:
        raise idle_result(value)
    if is_safe(value) or hasattr(kind, "__del__") or kind.__module__.partition(".")[0] == "pyarrow":
        return value
    try:
        if issubclass(kind, Row):
            memo[id(value)] = row = named_row(value._fields, _copy(value._values, memo))
            row.set_row_kind(value.get_row_kind())
            return row
        return copy.deepcopy(value, memo)
    except RecursionError:
        raise
    except Exception:
        return value


def not_idle(value: Any) -> Any:
    """The value itself, where results are not copied; raises TypeError for a coroutine or a
    generator."""
    if type(value) in IDLE:
        raise idle_result(value)
    return value


def none_idle(values: Collection[Any]) -> Iterable[Any]:
    """The same for all values."""
    return values if IDLE.isdisjoint(map(type, values)) else [not_idle(value) for value in values]


def with_private_results(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The function of two records, with its result copied if it could be changed."""
    return lambda one, other: private(function(one, other))
