"""Calls of aggregates, with the functions of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.sql.functions.function_port import FunctionRegistry
from flinkpy.sql.functions.user_function import UserFunction
from flinkpy.sql.rex.rex_nodes import AggregateCall

if TYPE_CHECKING:
    from flinkpy.relational.aggregates.aggregate_code import AggregateCode


def with_functions(
    calls: Sequence[AggregateCall], inputs: RowType, registry: FunctionRegistry
) -> tuple[AggregateCall, ...]:
    """The calls; those of a user's function have its code."""
    return tuple(_with_function(call, inputs, registry) for call in calls)


def _with_function(
    call: AggregateCall, inputs: RowType, registry: FunctionRegistry
) -> AggregateCall:
    function = registry.find(call.function)
    if not isinstance(function, UserFunction):
        return call
    from flinkpy.relational.aggregates.aggregate_code import with_code

    arguments = [inputs.fields[at].type for at in call.arguments]
    return with_code(call, cast("AggregateCode", function.body).of_call(arguments, call.type))
