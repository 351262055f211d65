"""User functions of joins: they turn two matching records, or two matching groups of records, into
results."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeAlias

from flinkpy.operators.functions import Function


def never_joins(key: object) -> bool:
    """Whether a join finds no partner for the key, as in SQL: it is None, or a tuple that contains
    None.

    >>> never_joins(None), never_joins((1, None)), never_joins((1, 2))
    (True, True, False)
    """
    return key is None or (isinstance(key, tuple) and None in key)


def joining(keys: list[Any]) -> list[bool] | None:
    """For each key whether it may find partners; None if all may."""
    kinds = set(map(type, keys))
    if type(None) not in kinds and not any(issubclass(kind, tuple) for kind in kinds):
        return None
    found = [not never_joins(key) for key in keys]
    return None if all(found) else found


class JoinFunction(Function):
    """Makes one record from each pair of a window join.

    >>> class Sale(JoinFunction):
    ...     def join(self, first, second):
    ...         return first["price"], second["name"]
    >>> Sale().join({"price": 5}, {"name": "Ann"})
    (5, 'Ann')
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The result for one pair; ``first`` is from the stream on which the program called
        ``join``."""


class FlatJoinFunction(Function):
    """Makes any number of records from each pair of a window join.

    >>> class Cheaper(FlatJoinFunction):
    ...     def join(self, first, second):
    ...         if second["price"] < first["price"]:
    ...             yield second
    >>> list(Cheaper().join({"price": 5}, {"price": 4}))
    [{'price': 4}]
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """The results for one pair: yield them, or return an iterable; None counts as empty."""


class CoGroupFunction(Function):
    """Makes any number of records from all records of one key and window. Either list may be empty,
    so outer joins can be written with it.

    >>> class Unmatched(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         if not second:
    ...             yield from first
    >>> list(Unmatched().co_group([1], [])), list(Unmatched().co_group([1], [2]))
    ([1], [])
    """

    @abstractmethod
    def co_group(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        """The results: yield them, or return an iterable; None counts as empty."""


class ProcessJoinContext:
    """What a ProcessJoinFunction can ask about the current pair. One object serves all pairs: do
    not keep it."""

    __slots__ = ("_left", "_right")

    def __init__(self) -> None:
        self._left = self._right = 0

    def get_left_timestamp(self) -> int:
        """The left record's event time, in milliseconds."""
        return self._left

    def get_right_timestamp(self) -> int:
        """The right record's event time, in milliseconds."""
        return self._right

    def get_timestamp(self) -> int:
        """The event time of the results, in milliseconds: the later of both records' times."""
        return max(self._left, self._right)


class ProcessJoinFunction(Function):
    """Called with each pair of an interval join. It yields results; ``yield output_tag, value``
    sends to a side output.

    >>> class Delay(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield ctx.get_right_timestamp() - ctx.get_left_timestamp()
    """

    Context: TypeAlias = ProcessJoinContext

    @abstractmethod
    def process_element(
        self, left: Any, right: Any, ctx: ProcessJoinContext
    ) -> Iterable[Any] | None: ...
