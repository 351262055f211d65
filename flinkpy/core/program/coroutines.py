"""Finds functions declared with ``async def`` where nobody would await them.

Called like any function, such a function does nothing: it returns a coroutine, which a filter takes
for true, a map for its result, and ``open`` or ``close`` drops. So does a generator in place of
``open``, ``close``, ``write``, ``flush`` or a source's ``run``. So operators are searched while the
program is built. Whatever they hold is looked at: functions, and methods that stand for one of
flinkpy's own."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from flinkpy.core.program.program_line import refuse

ADVICE = (
    "is declared with 'async def', and nothing here would await it: declare it with 'def', or "
    "have it called by "
    "AsyncDataStream.unordered_wait(...)"
)
_OF_A_GENERATOR = (
    "has a 'yield', so a call of it only makes a generator, which nothing here would run: its body "
    "calls what it is given (ctx.collect(...) in a source), without 'yield'"
)
_OF_A_SINK = ("open", "close", "write", "flush")
_GIVE_NOTHING = (*_OF_A_SINK, "run")
# Of objects that derive from no class of flinkpy
_WITHOUT_BASE = ("__call__", "write", "flush", "run", "add", "merge", "get_result", "open", "close")
_MANY = 100  # a collection with more is data


def refuse_coroutines(holder: object, call: str) -> None:
    """Raises ProgramError, with the user's line, if a function that ``holder`` is or holds is a
    coroutine function. ``call`` says in the error what was given it."""
    found = _found_in(holder)
    if found is not None:
        raise refuse(f"{call}: {' '.join(found)}")


def refuse_coroutine_methods(kind: type, call: str) -> None:
    """The same for the methods of a class whose objects are made later, or have just been made in a
    task."""
    found = _idle_method(kind)
    if found is not None:
        method, why = found
        raise refuse(f"{call}: {kind.__name__}.{method} {why}")


def coroutine_in(holder: object) -> str | None:
    """The name of a coroutine function that ``holder`` is, or holds; None if there is none.

    >>> async def look_up(key):
    ...     return key
    >>> coroutine_in(functools.partial(look_up, 1)), coroutine_in(len)
    ('look_up', None)
    """
    found = _found_in(holder)
    return None if found is None else found[0]


def _found_in(holder: object) -> tuple[str, str] | None:
    """The name of a function that ``holder`` is or holds and whose body would never run, and why
    not."""
    seen: set[int] = set()
    waiting = [holder]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type):
            continue
        seen.add(id(each))
        if is_coroutine_function(each):
            return str(getattr(each, "__qualname__", each)).rpartition("<locals>.")[2], ADVICE
        found = None if isinstance(each, FunctionType) else _idle_method(type(each))  # type: ignore[arg-type]  # a type is hashable
        if found is not None:
            method, why = found
            return f"{type(each).__name__}.{method}", why
        waiting.extend(_held_by(each))
    return None


def is_coroutine_function(function: object) -> bool:
    """Whether calling it gives something to be awaited, or to be iterated over with ``async
    for``."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


@functools.lru_cache(maxsize=1024)
def _idle_method(kind: type) -> tuple[str, str] | None:
    """A method of the class whose body would never run, and why not: a coroutine or generator
    function that stands for one of flinkpy's that is none."""
    bases = kind.__mro__
    ours = [base for base in bases if _is_ours(base)]
    if ours and ours[0] is bases[0]:
        return None
    names = (
        dict.fromkeys(name for base in bases if not _is_ours(base) for name in vars(base))
        if ours
        else _WITHOUT_BASE
    )
    give_nothing = _GIVE_NOTHING if ours else _called_of_a_sink(bases)
    for name in names:
        given, expected = _defined(bases, name), _defined(ours, name)
        if ours and expected is None:
            continue
        if is_coroutine_function(given) and not is_coroutine_function(expected):
            return name, ADVICE
        if (
            name in give_nothing
            and inspect.isgeneratorfunction(given)
            and not inspect.isgeneratorfunction(expected)
        ):
            return name, _OF_A_GENERATOR
    return None


def _called_of_a_sink(bases: Any) -> tuple[str, ...]:
    """What is called of an object that derives from no class of flinkpy if it is a sink. Methods of
    these names that a function has beside ``__call__`` are its own affair."""
    is_sink = _defined(bases, "write") is not None and _defined(bases, "__call__") is None
    return _OF_A_SINK if is_sink else ()


def _defined(bases: Any, name: str) -> Any:
    found = next((vars(base)[name] for base in bases if name in vars(base)), None)
    return getattr(found, "__func__", found)  # of a static method


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("flinkpy.")


def _held_by(value: object) -> Iterator[Any]:
    """What flinkpy's own objects and functions hold, and collections; nothing of other objects."""
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        if str(value.__module__).startswith("flinkpy."):
            for cell in value.__closure__ or ():
                with contextlib.suppress(ValueError):  # a variable that is not assigned yet
                    yield cell.cell_contents
    elif isinstance(value, (list, tuple, set, frozenset)):
        if len(value) <= _MANY:
            yield from value
    elif isinstance(value, dict):
        if len(value) <= _MANY:
            yield from value.values()
    elif _is_ours(type(value)) and not getattr(value, "awaits_functions", False):
        yield from getattr(value, "__dict__", {}).values()
        yield from (
            getattr(value, name, None) for base in type(value).__mro__ for name in _slots(base)
        )


def _slots(base: type) -> tuple[str, ...]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
