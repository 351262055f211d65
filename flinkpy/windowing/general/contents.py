"""What the operator keeps of a window's records until it evaluates the window: their reduction, an
accumulator, or all records.

With an evictor it keeps all records with their timestamps, and reduces what the evictor leaves when
it evaluates the window."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.mutability import is_safe, private_copy
from flinkpy.operators.functions import method_of
from flinkpy.state.descriptors import Aggregate
from flinkpy.windowing.general.per_window.namespaces import (
    MISSING,
    NamespacedState,
    namespaces_of,
    remove_namespace,
)

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window


@dataclass(frozen=True)
class ContentsFunctions:
    """One way to keep records, ready for use in the task. ``names`` are the names that the
    expressions of generated loops refer to."""

    first: Callable[[Any], Any]  # record -> the contents of one record
    # (contents, record) -> the contents with the record added; may change ``contents`` in place
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]  # the contents of two windows -> those of the merged window
    inputs: Callable[[Any], list[Any]]  # contents -> what the window's function gets
    # all records -> what the window's function gets, after an evictor
    reduced: Callable[[list[Any]], list[Any]]
    names: dict[str, Any]


class Contents(ABC):
    """One way to keep records, chosen by the program.

    ``first_expression`` and ``add_expression`` are for generated loops; in them ``record`` is the
    record, and ``contents`` what was kept so far."""

    name: str  # shown in a plan
    function: Any = None  # the program's function, which the operator opens and closes
    first_expression: str
    add_expression: str

    @abstractmethod
    def bind(self, shared: bool) -> ContentsFunctions:
        """Called in the task, after ``open`` of the function. ``shared``: a record may be in
        several windows, so each gets its own copy."""


class ReduceContents(Contents):
    """The records reduced to one as they come."""

    name = "Reduce"
    first_expression, add_expression = "enter(record)", "reduce(contents, record)"

    def __init__(self, function: object) -> None:
        method_of(function, "reduce")
        self.function = function

    def bind(self, shared: bool) -> ContentsFunctions:
        reduce = method_of(self.function, "reduce")
        add = (lambda contents, record: reduce(contents, _own(record))) if shared else reduce

        def reduced(records: list[Any]) -> list[Any]:
            return [functools.reduce(add, records[1:], _own(records[0]))] if records else []

        enter = _own if shared else _same
        return ContentsFunctions(
            enter, add, add, lambda contents: [contents], reduced, {"reduce": add, "enter": enter}
        )


class AggregateContents(Contents):
    """The accumulator of an AggregateFunction."""

    name = "Aggregate"
    first_expression, add_expression = "add(record, create())", "add(record, contents)"

    def __init__(self, function: object) -> None:
        if isinstance(function, type) or not isinstance(function, Aggregate):
            raise ProgramError(f"an AggregateFunction object is needed, this is {function!r:.80}")
        self.function = function

    def bind(self, shared: bool) -> ContentsFunctions:
        function = self.function
        create = self.function.create_accumulator
        get_result = self.function.get_result
        add = (
            (lambda record, accumulator: function.add(_own(record), accumulator))
            if shared
            else function.add
        )

        def reduced(records: list[Any]) -> list[Any]:
            accumulator = create()
            for record in records:
                accumulator = function.add(record, accumulator)
            return [get_result(accumulator)]

        return ContentsFunctions(
            lambda record: add(record, create()),
            lambda accumulator, record: add(record, accumulator),
            function.merge,
            lambda accumulator: [get_result(accumulator)],
            reduced,
            {"add": add, "create": create},
        )


class ListContents(Contents):
    """All records, in order of arrival."""

    name = "All records"
    first_expression, add_expression = "[record]", "append(contents, record)"

    def bind(self, shared: bool) -> ContentsFunctions:
        return ContentsFunctions(
            lambda record: [record],
            _append,
            _extend,
            list,
            lambda records: records,
            {"append": _append},
        )


class StoredContents:
    """The contents of all keys and windows, each kept under the window that ``WindowSet`` says."""

    def __init__(self, state: NamespacedState, functions: ContentsFunctions) -> None:
        self.state = state
        self._first = functions.first
        self._add = functions.add
        self._merge = functions.merge

    def get(self, key: object, window: Window) -> Any:
        """The contents; MISSING if there are none."""
        by_window = self.state.get(key)
        return MISSING if by_window is None else by_window.get(window, MISSING)

    def add(self, key: object, window: Window, record: object) -> None:
        by_window = namespaces_of(self.state, key)
        contents = by_window.get(window, MISSING)
        by_window[window] = (
            self._first(record) if contents is MISSING else self._add(contents, record)
        )

    def replace(self, key: object, window: Window, contents: object) -> None:
        """Replaces the contents; MISSING removes them."""
        if contents is MISSING:
            self.remove(key, window)
        else:
            self.state[key][window] = contents

    def remove(self, key: object, window: Window) -> None:
        remove_namespace(self.state, key, window)

    def merge(self, key: object, window: Window, absorbed: Iterable[Any]) -> None:
        """Merges the contents kept under the ``absorbed`` windows into those under ``window``."""
        contents = remove_namespace(self.state, key, window)
        for each in absorbed:
            other = remove_namespace(self.state, key, each)
            contents = (
                other
                if contents is MISSING
                else contents
                if other is MISSING
                else self._merge(contents, other)
            )
        if contents is not MISSING:
            namespaces_of(self.state, key)[window] = contents


def _same(record: object) -> Any:
    return record


def _own(record: object) -> Any:
    """The record so that no other window can change it: a copy if it could be changed, because the
    function may change or keep it."""
    return record if is_safe(record) else private_copy(record)


def _append(contents: list[Any], record: object) -> list[Any]:
    contents.append(record)
    return contents


def _extend(one: list[Any], other: list[Any]) -> list[Any]:
    one.extend(other)
    return one
