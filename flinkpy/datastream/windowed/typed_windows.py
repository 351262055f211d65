"""Window functions whose declared output type is a row: their results become Rows. Side outputs
stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream.windowed.window_choice import WindowCall
from flinkpy.operators.functions import Function, RuntimeContext, close_function, method_of
from flinkpy.windowing.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)


def typed_call(call: WindowCall, output_type: TypeInformation | None) -> WindowCall:
    """The call itself, or one whose window function converts its results."""
    if (
        output_type is None
        or output_type.conversion() is None
        or (call.window_function is None and call.kind != "aggregate")
    ):
        return call
    function = call.window_function
    if isinstance(function, ProcessWindowFunction):
        return replace(call, window_function=_TypedProcess(function, output_type))
    if isinstance(function, ProcessAllWindowFunction):
        return replace(call, window_function=_TypedProcessAll(function, output_type))
    if call.key is None:
        return replace(call, window_function=_TypedAll(function or _all_inputs, output_type))
    return replace(call, window_function=_TypedApply(function or _inputs, output_type))


def _inputs(key: object, window: object, inputs: Iterable[Any]) -> Iterable[Any]:
    return inputs


def _all_inputs(window: object, inputs: Iterable[Any]) -> Iterable[Any]:
    return inputs


class _Typed(Function):
    def __init__(self, function: Any, output_type: TypeInformation) -> None:
        self.wrapped_function, self._output_type = function, output_type

    def open(self, runtime_context: RuntimeContext) -> None:
        convert = self._output_type.conversion()
        assert convert is not None, "made only for types that convert"
        self._convert: Callable[[Any], Any] = convert
        if isinstance(self.wrapped_function, Function):
            self.wrapped_function.open(runtime_context)

    def close(self) -> None:
        close_function(self.wrapped_function)

    def _converted(self, given: Iterable[Any] | None) -> Iterator[Any]:
        for result in given or ():
            is_tagged = (
                type(result) is tuple and len(result) == 2 and isinstance(result[0], OutputTag)
            )
            yield result if is_tagged else self._convert(result)


class _TypedApply(_Typed, WindowFunction):
    def apply(self, key: object, window: object, inputs: Iterable[Any]) -> Iterable[Any]:
        return self._converted(method_of(self.wrapped_function, "apply")(key, window, inputs))


class _TypedAll(_Typed, AllWindowFunction):
    def apply(self, window: object, inputs: Iterable[Any]) -> Iterable[Any]:
        return self._converted(method_of(self.wrapped_function, "apply")(window, inputs))


class _TypedProcess(_Typed, ProcessWindowFunction):
    def process(
        self, key: object, context: ProcessWindowFunction.Context, elements: Iterable[Any]
    ) -> Iterable[Any]:
        return self._converted(self.wrapped_function.process(key, context, elements))

    def clear(self, context: ProcessWindowFunction.Context) -> None:
        self.wrapped_function.clear(context)


class _TypedProcessAll(_Typed, ProcessAllWindowFunction):
    def process(
        self, context: ProcessAllWindowFunction.Context, elements: Iterable[Any]
    ) -> Iterable[Any]:
        return self._converted(self.wrapped_function.process(context, elements))

    def clear(self, context: ProcessAllWindowFunction.Context) -> None:
        self.wrapped_function.clear(context)
