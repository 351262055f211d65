"""The types of calls whose operands have become nullable since they were bound: an aggregate of no
rows is null, and so is a key that a grouping set leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flinkpy.sql.functions.function_port import Argument, FunctionRegistry
from flinkpy.sql.logical.logical_rex import RexOver
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexLiteral
from flinkpy.sql.sql_errors import ValidationError


def retyped(value: Rex, before: Sequence[Rex], functions: FunctionRegistry) -> Rex:
    """The call, nullable if it may be null now. ``before`` are the operands that it was bound
    with."""
    if value.type.is_nullable or not any(
        new.type.is_nullable and not old.type.is_nullable
        for new, old in zip(value.operands, before)
    ):
        return value
    return replace(value, type=value.type.with_nullable(_may_be_null(value, functions)))


def _may_be_null(value: Rex, functions: FunctionRegistry) -> bool:
    if isinstance(value, RexOver):
        return value.call.function not in ("COUNT", "ROW_NUMBER", "RANK", "DENSE_RANK")
    assert isinstance(value, RexCall)
    if value.function in ("CAST", "REINTERPRET"):
        return True
    if value.function == "CASE":
        values = (*value.arguments[1::2], value.arguments[-1])
        return any(each.type.is_nullable for each in values)
    function = functions.find(value.function)
    if function is None:
        return True
    arguments = [
        Argument(each.type, each.value) if isinstance(each, RexLiteral) else Argument(each.type)
        for each in value.arguments
    ]
    try:
        return function.bind(arguments, dict(value.options)).result.is_nullable
    except ValidationError:
        return True  # a type that is nullable is never wrong
