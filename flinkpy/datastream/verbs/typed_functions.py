"""Functions whose declared output type is a row: the tuples, lists and dicts they return become
Rows, so that later operators see names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.functions import (
    FlatMapFunction,
    Function,
    MapFunction,
    RuntimeContext,
    method_of,
)


def typed(function: object, kind: type[Function], output_type: TypeInformation | None) -> Any:
    """The function itself, or one that converts its results."""
    convert = None if output_type is None else output_type.conversion()
    if convert is None or output_type is None:
        return function
    return (
        _TypedMap(function, output_type)
        if kind is MapFunction
        else _TypedFlatMap(function, output_type)
    )


def declared(operator: StreamOperator, output_type: TypeInformation | None) -> StreamOperator:
    """The operator, set to convert its function's results to that type; for functions with several
    methods."""
    if output_type is not None and output_type.conversion() is not None:
        operator.declared_type = output_type
    return operator


class _Typed(Function):
    """The user's function, and the conversion of its results, which is built in the task."""

    def __init__(self, function: object, output_type: TypeInformation) -> None:
        self._function, self._output_type = function, output_type
        # Built in the task, at the first record
        self._made: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None = None

    @property
    def wrapped_function(self) -> Any:
        """The user's function, which may keep operator state (see ``initialize_function``)."""
        return self._function

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._function, Function):
            self._function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self._function, Function):
            self._function.close()

    def _parts(self, method: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        convert = self._output_type.conversion()
        assert convert is not None, "made only for types that convert"
        return method_of(self._function, method), convert


class _TypedMap(_Typed, MapFunction):
    def map(self, value: object) -> Any:
        if self._made is None:
            self._made = self._parts("map")
        function, convert = self._made
        return convert(function(value))


class _TypedFlatMap(_Typed, FlatMapFunction):
    def flat_map(self, value: object) -> Iterable[Any]:
        if self._made is None:
            self._made = self._parts("flat_map")
        function, convert = self._made
        return map(convert, function(value) or ())
