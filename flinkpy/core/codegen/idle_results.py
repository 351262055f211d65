"""Results that are work not done: a coroutine that nobody awaits, a generator that nobody iterates
over.

Functions that are declared so are found while the program is built
(``flinkpy.core.program.coroutines``). A function that only calls one, as ``lambda x: fetch(x)``, is
found here, when its result arrives: it can be neither copied nor sent to another worker, a filter
would take it for true, and a sink would drop it. The checks stand where a value is looked at
anyway: values that are no plain ones when they are copied, keys that are not found, truth values
that are not ``True``. With ``enable_object_reuse`` only a result itself is looked at, and not what
it holds."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Iterable, Iterator
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
)
from typing import Any

IDLE: frozenset[type] = frozenset({CoroutineType, AsyncGeneratorType, GeneratorType})
_NOT_CALLED = (FunctionType, MethodType, BuiltinFunctionType, MethodWrapperType, functools.partial)
# Types whose truth says something; others are added once they have been looked at
TRUTHS: set[type] = {bool, int, float, str, bytes, type(None), list, tuple, dict, set}


class IdleResultError(TypeError):
    """A function's result is work not done. The program is wrong and not a record, so no error
    policy diverts it."""


def idle_result(value: object, what: str = "it") -> IdleResultError:
    """The error for a result that is of one of the types ``IDLE``.

    >>> print(idle_result(each for each in "ab"))
    it gave a generator, whose body has not run: give a value, as list(...) of it is
    """
    name = str(getattr(value, "__qualname__", value)).rpartition("<locals>.")[2]
    if isinstance(value, GeneratorType):
        made = "a generator" if name == "<genexpr>" else f"the generator of {name}"
        return IdleResultError(
            f"{what} gave {made}, whose body has not run: give a value, as list(...) of it is"
        )
    if isinstance(value, CoroutineType):
        value.close()  # or Python would warn of it too
    made = "the coroutine of" if isinstance(value, CoroutineType) else "the async generator of"
    return IdleResultError(
        f"{what} gave {made} {name}, which is declared with 'async def', and nothing here would "
        "await it: declare it with 'def', or have it called by AsyncDataStream.unordered_wait(...)"
    )


def refuse_idle(value: object, what: str = "it") -> None:
    """Raises IdleResultError for a result that nobody would look at, if it is work not done."""
    if type(value) in IDLE:
        raise idle_result(value, what)


def refuse_idle_records(values: Iterable[object], function: object) -> None:
    """Raises IdleResultError if a source's function gave a record that is work not done."""
    if not IDLE.isdisjoint(map(type, values)):
        error = idle_result(next(value for value in values if type(value) in IDLE))
        error.function_at_fault = function  # type: ignore[attr-defined]
        raise error


def look_at_truth(value: object) -> bool:
    """True; raises IdleResultError for a value that is true whatever it is about: a coroutine, a
    generator and other iterators, something to be awaited, a function that was not called. Looks
    once at each type."""
    kind = type(value)
    if kind in IDLE:
        raise idle_result(value, "the condition")
    if not (hasattr(kind, "__bool__") or hasattr(kind, "__len__")):
        if isinstance(value, _NOT_CALLED):
            name = getattr(value, "__name__", "")
            raise IdleResultError(
                f"the condition gave the function {name or value!r} itself, which is always true: "
                f"call it, {name or 'function'}(...)"
            )
        if isinstance(value, (Iterator, Awaitable)):
            raise IdleResultError(
                f"the condition gave {value!r:.80}, which is always true: give a truth value, as "
                "any(...) of it is"
            )
    TRUTHS.add(kind)
    return True


def is_true(value: Any) -> bool:
    """Whether a condition holds; raises IdleResultError for what says nothing about that."""
    if not value:
        return False
    if value is not True and type(value) not in TRUTHS:
        look_at_truth(value)
    return True
