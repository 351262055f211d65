"""Two streams as one, for joins that run in the general window operator. Each record says which
stream it comes from, and the window functions separate a window's contents again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from flinkpy.core.mutability import could_be_mutated, isolated
from flinkpy.operators.functions import Function, KeySelector, RuntimeContext, method_of
from flinkpy.operators.process.join_functions import never_joins
from flinkpy.windowing.window_functions import WindowFunction


class TaggedUnion(NamedTuple):
    """A record of one of two streams. The assigners, triggers and evictors of a join see these.

    >>> record = TaggedUnion.one("left")
    >>> record.is_one(), record.get_one(), record.get_two()
    (True, 'left', None)
    """

    number: int
    value: Any

    @staticmethod
    def one(value: object) -> TaggedUnion:
        return TaggedUnion(1, value)

    @staticmethod
    def two(value: object) -> TaggedUnion:
        return TaggedUnion(2, value)

    def is_one(self) -> bool:
        """Whether it is a record of the first stream."""
        return self.number == 1

    def get_one(self) -> Any:
        """The record if it is of the first stream, else None."""
        return self.value if self.number == 1 else None

    def get_two(self) -> Any:
        return self.value if self.number == 2 else None


class TaggedKey(KeySelector):
    """Selects the key with the selector of the record's stream."""

    def __init__(self, first: object, second: object) -> None:
        self._selectors = first, second
        self._found: tuple[Callable[[Any], Any], ...] | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        _open(self._selectors, runtime_context)

    def close(self) -> None:
        _close(self._selectors)

    def get_key(self, value: TaggedUnion) -> Any:
        if self._found is None:
            self._found = tuple(method_of(selector, "get_key") for selector in self._selectors)
        return self._found[value[0] - 1](value[1])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": None}


class _FunctionOfBoth(WindowFunction):
    """A window function that calls the user's function with the records of both streams."""

    method: str

    def __init__(self, function: object) -> None:
        method_of(function, self.method)
        self._function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        _open((self._function,), runtime_context)

    def close(self) -> None:
        _close((self._function,))

    def _parts(self, inputs: Iterable[TaggedUnion]) -> tuple[list[Any], list[Any]]:
        sides: tuple[list[Any], list[Any]] = [], []
        for number, value in inputs:
            sides[number - 1].append(value)
        return sides


class CoGroup(_FunctionOfBoth):
    """A CoGroupFunction as a window function."""

    method = "co_group"

    def apply(
        self, key: object, window: object, inputs: Iterable[TaggedUnion]
    ) -> Iterable[Any] | None:
        given: Iterable[Any] | None = method_of(self._function, "co_group")(*self._parts(inputs))
        return given


class JoinPairs(_FunctionOfBoth):
    """A JoinFunction, or with ``flat`` a FlatJoinFunction, as a window function."""

    method = "join"

    def __init__(self, function: object, flat: bool) -> None:
        super().__init__(function)
        self._flat = flat

    def apply(self, key: object, window: object, inputs: Iterable[TaggedUnion]) -> Iterable[Any]:
        if never_joins(key):
            return
        first, second = self._parts(inputs)
        join = method_of(self._function, "join")
        if could_be_mutated(first) or could_be_mutated(second):
            join = isolated(join)  # because each record is in several pairs
        for one in first:
            for other in second:
                given = join(one, other)
                if not self._flat:
                    yield given
                elif given is not None:
                    yield from given


def _open(functions: Iterable[Any], runtime_context: RuntimeContext) -> None:
    for function in functions:
        if isinstance(function, Function):
            function.open(runtime_context)


def _close(functions: Iterable[Any]) -> None:
    for function in functions:
        if isinstance(function, Function):
            function.close()
