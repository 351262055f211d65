"""Join functions whose declared output type is a row: their results become Rows, so that later
operators see names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.operators.functions import Function, RuntimeContext, method_of


def typed_join(
    function: object, method: str, output_type: TypeInformation | None, *, many: bool
) -> Any:
    """The function itself, or one that converts its results. ``many``: whether it returns an
    iterable of them."""
    if output_type is None or output_type.conversion() is None:
        return function
    return TypedJoin(function, method, output_type, many)


class TypedJoin(Function):
    """The user's function, and the conversion of its results, which is built in the task."""

    def __init__(
        self, function: object, method: str, output_type: TypeInformation, many: bool
    ) -> None:
        self._function = function
        self._method = method
        self._output_type = output_type
        self._many = many
        # Built in the task, at the first record
        self._made: tuple[Callable[..., Any], Callable[[Any], Any]] | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._function, Function):
            self._function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self._function, Function):
            self._function.close()

    def _call(self, *arguments: Any) -> Any:
        if self._made is None:
            convert = self._output_type.conversion()
            assert convert is not None, "made only for types that convert"
            self._made = method_of(self._function, self._method), convert
        function, convert = self._made
        given = function(*arguments)
        return self._converted(given, convert) if self._many else convert(given)

    @staticmethod
    def _converted(given: Iterable[Any] | None, convert: Callable[[Any], Any]) -> Iterable[Any]:
        for each in () if given is None else given:
            if type(each) is tuple and len(each) == 2 and isinstance(each[0], OutputTag):
                yield each  # for a side output, which has another type
            else:
                yield convert(each)

    join = co_group = process_element = _call
