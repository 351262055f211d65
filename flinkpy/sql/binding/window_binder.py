"""TUMBLE, HOP, CUMULATE and SESSION in FROM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from flinkpy.common.logical_types.logical_type import (
    DayTimeIntervalType,
    LocalZonedTimestampType,
    TimestampType,
)
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.binding.expression_binder import ExpressionBinder
from flinkpy.sql.binding.proposals import proposal
from flinkpy.sql.binding.scope import Scope, Surroundings
from flinkpy.sql.logical.logical_nodes import (
    LogicalNode,
    LogicalWindow,
    row_of,
    timed,
    window_fields,
)
from flinkpy.sql.rex.coercion import bare
from flinkpy.sql.rex.relational_terms import WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import Rex, RexInput, RexLiteral
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import (
    DescriptorArgument,
    FunctionCall,
    Identifier,
    Query,
    SqlExpression,
    TableArgument,
)

_PARAMETERS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}


def is_window_function(name: str) -> bool:
    """Whether it is one of the table functions of windows."""
    return name.upper() in _PARAMETERS


class Tables(Protocol):
    """Who knows the tables that windows are made of."""

    @property
    def queries(self) -> BindsQueries: ...

    def table_called(self, name: Identifier) -> LogicalNode: ...


class BindsQueries(Protocol):
    """Who binds the queries that windows are made of."""

    def bind_query(self, query: Query, surroundings: Surroundings | None) -> LogicalNode: ...


def bind_window(
    context: BindingContext, call: FunctionCall, tables: Tables, around: Surroundings | None
) -> LogicalNode:
    """The rows of the table, once for each of their windows."""
    name = call.name.upper()
    given = _by_name(name, call)
    data = given.get("DATA")
    if not isinstance(data, TableArgument):
        raise ValidationError(
            f"{name} takes a table first: {name}(TABLE t, DESCRIPTOR(time), ...)", span=call.span
        )
    if isinstance(data.table, Identifier):
        plan = tables.table_called(data.table)
    else:
        plan = tables.queries.bind_query(data.table, around)
    time = _time_column(name, call, given.get("TIMECOL"), plan)
    binder = ExpressionBinder(context, Scope.of(plan, ()), _NO_SUBQUERIES)
    lengths: dict[str, int] = {
        each: _length(name, each, given[each], binder)
        for each in ("SIZE", "SLIDE", "STEP", "GAP", "OFFSET")
        if each in given
    }
    spec = timed(_spec(name, call, time, lengths), plan)
    if data.partition_by:
        if name != "SESSION":
            raise ValidationError(
                f"PARTITION BY is for SESSION; group by the column, {name} does not need it",
                span=data.span,
            )
        partition = [binder.bind(each) for each in data.partition_by]
        for each, value in zip(data.partition_by, partition):
            if not isinstance(value, RexInput):
                raise ValidationError(
                    "PARTITION BY of SESSION takes columns; compute the key in a subquery",
                    span=each.span,
                )
        keys = tuple(each.index for each in partition if isinstance(each, RexInput))
        spec = replace(spec, partition=keys)
    schema = row_of((*plan.schema.fields, *window_fields(plan, time)))
    return LogicalWindow(schema, plan, spec)


def _by_name(name: str, call: FunctionCall) -> dict[str, SqlExpression]:
    parameters = _PARAMETERS[name]
    given: dict[str, SqlExpression] = {}
    names: Sequence[str | None] = call.names or [None] * len(call.arguments)
    for place, (argument, said) in enumerate(zip(call.arguments, names)):
        if said is None:
            if place >= len(parameters):
                raise ValidationError(
                    f"{name} takes at most {len(parameters)} arguments: {', '.join(parameters)}",
                    span=argument.span,
                )
            given[parameters[place]] = argument
        elif said.upper() in parameters:
            given[said.upper()] = argument
        else:
            raise ValidationError(
                f"{name} has no argument '{said}'{proposal(said.upper(), parameters)}",
                span=argument.span,
            )
    return given


def _time_column(
    name: str, call: FunctionCall, argument: SqlExpression | None, plan: LogicalNode
) -> int:
    if not isinstance(argument, DescriptorArgument) or len(argument.columns) != 1:
        raise ValidationError(
            f"{name} takes the time column second: DESCRIPTOR(column)",
            span=call.span if argument is None else argument.span,
        )
    column = argument.columns[0].parts[-1]
    if column not in plan.schema.names:
        raise ValidationError(
            f"Column '{column}' not found in any table{proposal(column, plan.schema.names)}",
            span=argument.columns[0].span,
        )
    time = plan.schema.names.index(column)
    type = plan.schema.fields[time].type
    if not isinstance(type, (TimestampType, LocalZonedTimestampType)):
        raise ValidationError(
            f"The window function requires the timecol is a time attribute type, but is "
            f"{bare(type)}",
            span=argument.columns[0].span,
        )
    return time


class _NoSubqueries:
    def bind_subquery(self, query: Query, scope: Scope) -> tuple[LogicalNode, tuple[Rex, ...]]:
        raise ValidationError("A window takes constants, not a subquery", span=query.span)


_NO_SUBQUERIES = _NoSubqueries()


def _length(name: str, parameter: str, node: SqlExpression, binder: ExpressionBinder) -> int:
    value = binder.bind(node)
    if (
        not isinstance(value, RexLiteral)
        or not isinstance(value.type, DayTimeIntervalType)
        or not isinstance(value.value, int)
    ):
        raise ValidationError(
            f"{parameter} of {name} is an interval such as INTERVAL '10' MINUTES", span=node.span
        )
    return value.value


def _spec(name: str, call: FunctionCall, time: int, lengths: dict[str, int]) -> WindowSpec:
    size = lengths.get("GAP" if name == "SESSION" else "SIZE")
    step = lengths.get({"HOP": "SLIDE", "CUMULATE": "STEP"}.get(name, ""))
    if size is None or (step is None and name in ("HOP", "CUMULATE")):
        missing = [each for each in _PARAMETERS[name][2:] if each not in lengths]
        raise ValidationError(f"{name} needs {missing[0]}, an interval", span=call.span)
    if size <= 0 or (step is not None and step <= 0):
        raise ValidationError(f"The lengths of {name} must be larger than 0", span=call.span)
    if name == "CUMULATE" and step is not None and size % step:
        raise ValidationError(
            "CUMULATE requires maxSize must be an integral multiple of step, but they are "
            f"{size} ms and {step} ms",
            span=call.span,
        )
    return WindowSpec(WindowKind(name), time, size, step, lengths.get("OFFSET", 0))
