"""What is kept of a window's records until it is evaluated: their reduction, an accumulator, or all of them.

With an evictor all of them are kept, with their timestamps, and what is left is reduced as the window is evaluated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.mutability import is_safe, private_copy
from flinkpy.operators.functions import method_of
from flinkpy.state.descriptors import Aggregate


class Contents(ABC):
    """One way to keep records.

    The two expressions are the same as ``first`` and ``add`` for generated loops; ``record`` is the record, ``contents`` what was kept before.
    """

    name: str  # for people, in a plan
    function: Any = None  # the user's, opened and closed by the operator
    first_expression: str
    add_expression: str

    def prepare(self, shared: bool) -> dict[str, Any]:
        """In the task, after ``open`` of the function: what the expressions refer to. ``shared``: a record can be in several windows."""
        return {}

    @abstractmethod
    def first(self, record: Any) -> Any:
        """The contents of one record."""

    @abstractmethod
    def add(self, contents: Any, record: Any) -> Any:
        """The contents with one record more; may change what it got."""

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any:
        """Those of two windows that become one."""

    @abstractmethod
    def inputs(self, contents: Any) -> list[Any]:
        """What the window's function gets."""

    @abstractmethod
    def reduced(self, records: list[Any]) -> list[Any]:
        """The same, from all records: behind an evictor."""


class ReduceContents(Contents):
    """The records reduced to one, as they come."""

    name = "Reduce"
    first_expression, add_expression = "enter(record)", "reduce(contents, record)"

    def __init__(self, function: Any) -> None:
        method_of(function, "reduce")
        self.function = function

    def prepare(self, shared: bool) -> dict[str, Any]:
        reduce = method_of(self.function, "reduce")
        if not shared:
            self.add = reduce  # type: ignore[method-assign]  # without a call between
            return {"reduce": reduce, "enter": _same}
        self.first = _own  # type: ignore[method-assign]
        self.add = lambda contents, record: reduce(contents, _own(record))  # type: ignore[method-assign]
        return {"reduce": self.add, "enter": _own}

    def first(self, record: Any) -> Any:
        return record

    def add(self, contents: Any, record: Any) -> Any:
        return method_of(self.function, "reduce")(contents, record)

    def merge(self, one: Any, other: Any) -> Any:
        return self.add(one, other)

    def inputs(self, contents: Any) -> list[Any]:
        return [contents]

    def reduced(self, records: list[Any]) -> list[Any]:
        if not records:
            return []
        result = _own(records[0])
        for record in records[1:]:
            result = self.add(result, record)
        return [result]

    def __getstate__(self) -> dict[str, Any]:
        return {"function": self.function}


class AggregateContents(Contents):
    """An AggregateFunction's accumulator."""

    name = "Aggregate"
    first_expression, add_expression = "add(record, create())", "add(record, contents)"

    def __init__(self, function: Any) -> None:
        if isinstance(function, type) or not isinstance(function, Aggregate):
            raise ProgramError(f"an AggregateFunction object is needed, this is {function!r:.80}")
        self.function = function

    def __getstate__(self) -> dict[str, Any]:
        return {"function": self.function}

    def prepare(self, shared: bool) -> dict[str, Any]:
        add = self.function.add
        self._add = (lambda record, contents: add(_own(record), contents)) if shared else add
        return {"add": self._add, "create": self.function.create_accumulator}

    def first(self, record: Any) -> Any:
        return self._add(record, self.function.create_accumulator())

    def add(self, contents: Any, record: Any) -> Any:
        return self._add(record, contents)

    def merge(self, one: Any, other: Any) -> Any:
        return self.function.merge(one, other)

    def inputs(self, contents: Any) -> list[Any]:
        return [self.function.get_result(contents)]

    def reduced(self, records: list[Any]) -> list[Any]:
        accumulator, add = self.function.create_accumulator(), self.function.add
        for record in records:
            accumulator = add(record, accumulator)
        return [self.function.get_result(accumulator)]


class ListContents(Contents):
    """All records, in the order they came."""

    name = "All records"
    first_expression, add_expression = "[record]", "appended(contents, record)"

    def prepare(self, shared: bool) -> dict[str, Any]:
        return {"appended": _appended}

    def first(self, record: Any) -> Any:
        return [record]

    def add(self, contents: Any, record: Any) -> Any:
        contents.append(record)
        return contents

    def merge(self, one: Any, other: Any) -> Any:
        one.extend(other)
        return one

    def inputs(self, contents: Any) -> list[Any]:
        return list(contents)

    def reduced(self, records: list[Any]) -> list[Any]:
        return records


def _same(record: Any) -> Any:
    return record


def _own(record: Any) -> Any:
    """A record that no other window changes: the function may change what it gets, or keep it."""
    return record if is_safe(record) else private_copy(record)


def _appended(contents: list[Any], record: Any) -> list[Any]:
    contents.append(record)
    return contents


Update = Callable[[Any, Any], Any]
