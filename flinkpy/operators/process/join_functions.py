"""User functions of joins: what becomes of two records, or of two groups of records, that belong together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeAlias

from flinkpy.operators.functions import Function


def never_joins(key: Any) -> bool:
    """Whether a join finds no partner for the key, as in SQL: None, or a tuple with a None in it.

    >>> never_joins(None), never_joins((1, None)), never_joins((1, 2))
    (True, True, False)
    """
    return key is None or (isinstance(key, tuple) and None in key)


def joining(keys: list[Any]) -> list[bool] | None:
    """Which of them may find partners; None where all may."""
    kinds = set(map(type, keys))
    if type(None) not in kinds and not any(issubclass(kind, tuple) for kind in kinds):
        return None
    found = [not never_joins(key) for key in keys]
    return None if all(found) else found


class JoinFunction(Function):
    """One record for each pair of a window join.

    >>> class Sale(JoinFunction):
    ...     def join(self, first, second):
    ...         return first["price"], second["name"]
    >>> Sale().join({"price": 5}, {"name": "Ann"})
    (5, 'Ann')
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The pair as one record; ``first`` is of the stream that ``join`` was called on."""


class FlatJoinFunction(Function):
    """Any number of records for each pair of a window join.

    >>> class Cheaper(FlatJoinFunction):
    ...     def join(self, first, second):
    ...         if second["price"] < first["price"]:
    ...             yield second
    >>> list(Cheaper().join({"price": 5}, {"price": 4}))
    [{'price': 4}]
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """Yields them, or returns an iterable; None counts as empty."""


class CoGroupFunction(Function):
    """What becomes of all records of one key and window. Either list may be empty: that is how outer joins are written.

    >>> class Unmatched(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         if not second:
    ...             yield from first
    >>> list(Unmatched().co_group([1], [])), list(Unmatched().co_group([1], [2]))
    ([1], [])
    """

    @abstractmethod
    def co_group(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        """Yields records, or returns an iterable; None counts as empty."""


class ProcessJoinContext:
    """What a ProcessJoinFunction learns of the pair at hand. One object serves all pairs: do not keep it."""

    __slots__ = ("_left", "_right")

    def __init__(self) -> None:
        self._left = self._right = 0

    def get_left_timestamp(self) -> int:
        """The left record's event time (milliseconds)."""
        return self._left

    def get_right_timestamp(self) -> int:
        """The right record's event time (milliseconds)."""
        return self._right

    def get_timestamp(self) -> int:
        """The event time of what is yielded: the later one of both."""
        return max(self._left, self._right)


class ProcessJoinFunction(Function):
    """Called with each pair of an interval join. Yields results; ``yield output_tag, value`` sends to a side output.

    >>> class Delay(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield ctx.get_right_timestamp() - ctx.get_left_timestamp()
    """

    Context: TypeAlias = ProcessJoinContext

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinContext) -> Iterable[Any] | None: ...
