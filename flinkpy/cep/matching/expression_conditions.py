"""The conditions of a pattern that are expressions, computed for whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from flinkpy.cep.event_conditions import OfColumns
from flinkpy.columns.compiler import Evaluate, compile_expression
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Marks: TypeAlias = "npt.NDArray[np.bool_]"


class ExpressionConditions:
    """The conditions that are expressions, computed for whole batches."""

    def __init__(self, conditions: Sequence[OfColumns]) -> None:
        self.conditions = tuple(conditions)
        self._schema: pa.Schema | None = None
        self._evaluates: list[Evaluate] = []

    def prepare(self, schema: pa.Schema) -> None:
        """Compiles them for batches of this schema. Raises ProgramError if it lacks a column, or if
        an expression is no truth value."""
        if self._schema is not None and self._schema.equals(schema):
            return
        compiled = [compile_expression(each.expression, schema) for each in self.conditions]
        for condition, made in zip(self.conditions, compiled):
            if not pa.types.is_boolean(made.type):
                raise ProgramError(
                    f"where(...) needs a truth value, {condition!r} gives {made.type}"
                )
        self._evaluates = [each.evaluate for each in compiled]
        self._schema = schema

    def of(self, data: pa.RecordBatch) -> list[Marks | None]:
        """Whether each holds; None of one that fails for some event: then it is computed for single
        events, and fails only if it is asked for that one."""
        self.prepare(data.schema)
        return [_truths(evaluate, data) for evaluate in self._evaluates]


def _truths(evaluate: Evaluate, data: pa.RecordBatch) -> Marks | None:
    try:
        mask = evaluate(data)
    except Exception:
        return None
    holds: Marks = mask.fill_null(False).to_numpy(zero_copy_only=False)
    return holds
