"""For operators whose declared output type is a row: their results become Rows on the way out, so
that the next operator can use field names.

Only the main output is converted here. A side output has the type of its tag and is converted where
results are sorted by tag (``flinkpy.operators.yielding``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.core.elements import Batch, ControlElement, RowBatch
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.user_errors import user_code_error


class TypedOutput(Output):
    """Converts rows on their way to ``target``; a value that does not fit the type is an error of
    the user's, told with the operator's name."""

    def __init__(
        self, target: Output, convert: Callable[[Any], Any], context: OperatorContext
    ) -> None:
        self._target = target
        self._convert = convert
        self._context = context

    def emit(self, batch: Batch) -> None:
        if isinstance(batch, RowBatch):
            batch = RowBatch(self._converted(batch.values), batch.timestamps)
        self._target.emit(batch)

    def _converted(self, values: list[Any]) -> list[Any]:
        value: Any = None
        converted: list[Any] = []
        convert = self._convert
        try:
            for value in values:
                # in a loop, because the error message needs ``value``
                converted.append(convert(value))
        except BaseException as error:
            raise user_code_error(error, self._context, value) from error
        return converted

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self._target.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        self._target.emit_control(element)
