"""SELECT: FROM, WHERE, GROUP BY, HAVING, windows, QUALIFY, the list, DISTINCT, ORDER BY, in the
order in which they have an effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flinkpy.sql.binding.aggregation import Aggregation, Grouping, bind_grouping, distinct
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.binding.expression_binder import ExpressionBinder, refuse_aggregates
from flinkpy.sql.binding.group_windows import windowed_groups
from flinkpy.sql.binding.over_windows import OverBinder, refuse_over, with_over
from flinkpy.sql.binding.relation_binder import Queries, RelationBinder, Source, one_row
from flinkpy.sql.binding.scope import Scope
from flinkpy.sql.binding.state_hints import with_table_hints
from flinkpy.sql.logical.logical_nodes import LogicalNode, LogicalSort, filtered, input_of, project
from flinkpy.sql.logical.logical_rex import RexAggregate, RexSort
from flinkpy.sql.rex.rex_nodes import Rex, RexInput, RexLiteral, SortKey, walk
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import (
    Identifier,
    OrderItem,
    Select,
    SelectItem,
    SqlLiteral,
    StarItem,
)


@dataclass
class _Parts:
    """The expressions of a SELECT, all over the same columns: those of FROM at first."""

    items: list[Rex]
    names: list[str]
    having: Rex | None = None
    qualify: Rex | None = None
    order_by: list[RexSort] = field(default_factory=list)

    def values(self) -> list[Rex]:
        """All expressions that are computed for the rows of the result."""
        qualify = [] if self.qualify is None else [self.qualify]
        return [*self.items, *(each.value for each in self.order_by), *qualify]

    def with_values(self, values: Sequence[Rex]) -> None:
        count = len(self.items)
        keys = values[count : count + len(self.order_by)]
        self.items = list(values[:count])
        self.order_by = [replace(each, value=key) for each, key in zip(self.order_by, keys)]
        if self.qualify is not None:
            self.qualify = values[-1]


def bind_select(
    context: BindingContext, queries: Queries, relations: RelationBinder, select: Select
) -> LogicalNode:
    """The relation of a SELECT with its ORDER BY, but without its LIMIT."""
    item = with_table_hints(select.source, select.hints)
    source = (
        Source(one_row(), Scope((), (), relations.surroundings))
        if item is None
        else relations.bind(item)
    )
    over = OverBinder(dict(select.windows))
    binder = ExpressionBinder(context, source.scope, queries, over)
    plan = source.plan
    if select.where is not None:
        condition = binder.condition(select.where, "WHERE")
        refuse_aggregates(condition, "WHERE clause", "use HAVING")
        refuse_over(condition, "WHERE")
        plan = filtered(plan, condition)
    windowed = windowed_groups(select.group_by or (), plan, source.scope)
    if windowed is not None:
        plan = windowed.plan
        binder = replace(binder, scope=windowed.scope)
        select = replace(select, group_by=windowed.group_by)
    grouping = None if select.group_by is None else bind_grouping(select.group_by, binder)
    parts = _bind_parts(select, binder)
    if grouping is not None or select.having is not None or _has_aggregate(parts):
        plan = _grouped(plan, grouping or Grouping(), parts, context)
    return _result(plan, parts, select)


def _bind_parts(select: Select, binder: ExpressionBinder) -> _Parts:
    items: list[Rex] = []
    names: list[str] = []
    aliases: dict[str, Rex] = {}
    for item in select.items:
        if isinstance(item.value, StarItem):
            for value, name in _star(item.value, binder):
                items.append(value)
                names.append(name)
        else:
            items.append(binder.bind(item.value))
            names.append(_name_of(item, len(names)))
            if item.alias is not None:
                aliases[item.alias] = items[-1]
    parts = _Parts(items, names)
    if select.having is not None:
        parts.having = binder.condition(select.having, "HAVING")
        refuse_over(parts.having, "HAVING")
    with_aliases = replace(binder, aliases=aliases)
    if select.qualify is not None:
        parts.qualify = with_aliases.condition(select.qualify, "QUALIFY")
    for order in select.order_by:
        parts.order_by.append(_order(order, with_aliases, items))
    return parts


def _star(item: StarItem, binder: ExpressionBinder) -> list[tuple[Rex, str]]:
    columns = binder.scope.star(item)
    if not columns:
        raise ValidationError("'*' needs a FROM", span=item.span)
    return [(replace(value, span=item.span), name) for value, name in columns]


def _name_of(item: SelectItem, place: int) -> str:
    if item.alias is not None:
        return item.alias
    if isinstance(item.value, Identifier):
        return item.value.parts[-1]
    return f"EXPR${place}"


def _order(order: OrderItem, binder: ExpressionBinder, items: Sequence[Rex]) -> RexSort:
    if isinstance(order.value, SqlLiteral) and isinstance(order.value.value, int):
        at = order.value.value
        if not 1 <= at <= len(items):
            raise ValidationError(
                f"ORDER BY {at}: there are columns 1 to {len(items)}", span=order.span
            )
        return replace(binder.sort(order), value=items[at - 1])
    return binder.sort(order)


def _has_aggregate(parts: _Parts) -> bool:
    return any(isinstance(part, RexAggregate) for value in parts.values() for part in walk(value))


def _grouped(
    plan: LogicalNode, grouping: Grouping, parts: _Parts, context: BindingContext
) -> LogicalNode:
    aggregation = Aggregation(plan, grouping, context.registry)
    values = list(map(aggregation.over_groups, parts.values()))
    having = None if parts.having is None else aggregation.over_groups(parts.having)
    parts.with_values(list(map(aggregation.placed, values)))
    plan = aggregation.plan()
    return filtered(plan, None if having is None else aggregation.placed(having))


def _result(plan: LogicalNode, parts: _Parts, select: Select) -> LogicalNode:
    plan, values = with_over(plan, parts.values())
    parts.with_values(values)
    plan = filtered(plan, parts.qualify)
    columns = list(parts.items)
    keys = []
    for each in parts.order_by:
        if each.value not in columns:
            if select.distinct:
                raise ValidationError(
                    "With SELECT DISTINCT, ORDER BY takes columns of the SELECT list only",
                    span=each.value.span,
                )
            if isinstance(each.value, RexLiteral):
                continue
            columns.append(each.value)
        keys.append(SortKey(columns.index(each.value), each.descending, each.nulls_first))
    names = [*parts.names, *(f"$s{place}" for place in range(len(parts.names), len(columns)))]
    plan = project(plan, columns, names)
    if select.distinct:
        plan = distinct(plan)
    if not keys:
        return plan
    plan = LogicalSort(plan.schema, plan, tuple(keys))
    if len(columns) == len(parts.items):
        return plan
    return without_hidden(plan, len(parts.items))


def without_hidden(plan: LogicalNode, count: int) -> LogicalNode:
    """Only the first columns: those behind were there to sort by."""
    columns: list[RexInput] = [input_of(plan, index) for index in range(count)]
    return project(plan, columns, plan.schema.names[:count])
