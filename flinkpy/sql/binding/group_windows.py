"""Windows in GROUP BY, as Flink wrote them before there were window functions in FROM:
``GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)`` with ``TUMBLE_START(...)``. They become the same plan:
rows with their windows, grouped by start, end and time of the window."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from flinkpy.common.logical_types.logical_type import (
    DayTimeIntervalType,
    LocalZonedTimestampType,
    TimeAttribute,
    TimestampType,
)
from flinkpy.sql.binding.scope import Relation, Scope
from flinkpy.sql.logical.logical_nodes import (
    LogicalNode,
    LogicalWindow,
    row_of,
    timed,
    window_fields,
)
from flinkpy.sql.rex.coercion import bare
from flinkpy.sql.rex.relational_terms import WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import RexInput
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import FunctionCall, GroupingElement, Identifier, SqlLiteral

RELATION = "$window"  # nobody can write it without quotes, and it hides behind no other name
_COLUMNS = ("$start", "$end", "$time")
_AUXILIARY = re.compile(r"(TUMBLE|HOP|SESSION)_(START|END|ROWTIME|PROCTIME)")


@dataclass(frozen=True)
class WindowedGroups:
    """The rows with their windows, the names of all columns, and GROUP BY over them."""

    plan: LogicalNode
    scope: Scope
    group_by: tuple[GroupingElement, ...]


def windowed_groups(
    elements: Sequence[GroupingElement], plan: LogicalNode, scope: Scope
) -> WindowedGroups | None:
    """The window of GROUP BY as columns; None if there is none."""
    calls = [each for each in elements if _call_of(each) is not None]
    if not calls:
        return None
    if len(calls) > 1:
        raise ValidationError("Only one window is possible in GROUP BY", span=calls[1].span)
    call = _call_of(calls[0])
    assert call is not None
    others = [each for each in elements if each is not calls[0]]
    spec = timed(_spec(call, others, plan, scope), plan)
    columns = window_fields(plan, spec.time)
    named = tuple(replace(each, name=name) for each, name in zip(columns, _COLUMNS))
    windowed = LogicalWindow(row_of((*plan.schema.fields, *named)), plan, spec)
    called = f"{RELATION} {call.name}"
    relation = Relation((called,), named, plan.width)
    keys = tuple(
        GroupingElement("EXPRESSION", ((Identifier((called, name), span=call.span),),))
        for name in _COLUMNS
    )
    widened = replace(scope, relations=(*scope.relations, relation))
    return WindowedGroups(windowed, widened, (*others, *keys))


def _call_of(element: GroupingElement) -> FunctionCall | None:
    if element.kind != "EXPRESSION":
        return None
    value = element.sets[0][0]
    is_window = isinstance(value, FunctionCall) and value.name in ("TUMBLE", "HOP", "SESSION")
    return value if is_window and isinstance(value, FunctionCall) else None


def _spec(
    call: FunctionCall, others: Sequence[GroupingElement], plan: LogicalNode, scope: Scope
) -> WindowSpec:
    time, *lengths = call.arguments
    column = scope.resolve(time) if isinstance(time, Identifier) else None
    if not isinstance(column, RexInput):
        raise ValidationError(f"{call.name} takes a time column first", span=call.span)
    if not isinstance(column.type, (TimestampType, LocalZonedTimestampType)):
        raise ValidationError(
            f"Window aggregate can only be defined over a time attribute column, but "
            f"{bare(column.type)} encountered",
            span=time.span,
        )
    values = []
    for each in lengths:
        is_length = isinstance(each, SqlLiteral) and isinstance(each.type, DayTimeIntervalType)
        if not is_length or not isinstance(each, SqlLiteral) or not isinstance(each.value, int):
            raise ValidationError(
                f"{call.name} takes intervals such as INTERVAL '10' MINUTES", span=each.span
            )
        values.append(each.value)
    count = 2 if call.name == "HOP" else 1
    if len(values) != count:
        raise ValidationError(
            f"{call.name} takes the time column and {count} interval{'s' * (count - 1)}",
            span=call.span,
        )
    if call.name == "HOP":
        return WindowSpec(WindowKind.HOP, column.index, values[1], values[0])
    if call.name == "TUMBLE":
        return WindowSpec(WindowKind.TUMBLE, column.index, values[0])
    partition = tuple(_plain_key(each, scope) for each in others)
    return WindowSpec(WindowKind.SESSION, column.index, values[0], partition=partition)


def _plain_key(element: GroupingElement, scope: Scope) -> int:
    value = element.sets[0][0] if element.kind == "EXPRESSION" else None
    column = scope.resolve(value) if isinstance(value, Identifier) else None
    if not isinstance(column, RexInput):
        raise ValidationError(
            "Beside SESSION, GROUP BY takes columns; compute the key in a subquery",
            span=element.sets[0][0].span if element.sets and element.sets[0] else element.span,
        )
    return column.index


def auxiliary_column(call: FunctionCall, scope: Scope) -> Identifier | None:
    """The column that ``TUMBLE_START(...)`` and the like stand for; None for other calls."""
    found = _AUXILIARY.fullmatch(call.name)
    if found is None:
        return None
    called = f"{RELATION} {found.group(1)}"
    if not any(each.names == (called,) for each in scope.relations):
        raise ValidationError(
            f"{call.name} belongs to GROUP BY {found.group(1)}(...) of the same query",
            span=call.span,
        )
    name = {"START": "$start", "END": "$end"}.get(found.group(2), "$time")
    column = Identifier((called, name), span=call.span)
    if name == "$time":
        _check_time_of(call, found.group(2), scope.resolve(column))
    return column


def _check_time_of(call: FunctionCall, wanted: str, column: object) -> None:
    assert isinstance(column, RexInput)
    assert isinstance(column.type, (TimestampType, LocalZonedTimestampType))
    is_processing = column.type.time_attribute is TimeAttribute.PROCTIME
    if wanted == "ROWTIME" and is_processing:
        raise ValidationError(
            "A proctime window cannot provide a rowtime attribute; write "
            f"{call.name.replace('ROWTIME', 'PROCTIME')}",
            span=call.span,
        )
    if wanted == "PROCTIME" and not is_processing:
        raise ValidationError(
            f"{call.name} is for windows of processing time; use PROCTIME()", span=call.span
        )
