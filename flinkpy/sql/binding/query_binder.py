"""Queries: WITH, SELECT, VALUES, UNION, INTERSECT, EXCEPT, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from flinkpy.common.logical_types.logical_type import (
    LocalZonedTimestampType,
    LogicalType,
    RowField,
    TimestampType,
)
from flinkpy.common.logical_types.type_merging import common_type
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.binding.expression_binder import ExpressionBinder, columns_cast, refuse_aggregates
from flinkpy.sql.binding.relation_binder import RelationBinder, one_row, renamed
from flinkpy.sql.binding.scope import Scope, Surroundings
from flinkpy.sql.binding.select_binder import bind_select, without_hidden
from flinkpy.sql.logical.logical_nodes import (
    LogicalNode,
    LogicalProject,
    LogicalSetOperation,
    LogicalSort,
    LogicalValues,
    inputs_for,
    project,
    row_of,
)
from flinkpy.sql.rex.coercion import bare, in_common
from flinkpy.sql.rex.rex_nodes import Rex, RexLiteral, SortKey
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import (
    CommonTable,
    Query,
    Select,
    SetOperation,
    SqlExpression,
    SqlLiteral,
    ValuesQuery,
)


@dataclass(frozen=True)
class QueryBinder:
    """Binds queries; ``common_tables`` are the names of WITH around."""

    context: BindingContext
    common_tables: Mapping[str, LogicalNode] = field(default_factory=dict)

    def bind_query(self, query: Query, surroundings: Surroundings | None) -> LogicalNode:
        """The relation of a query within the query around it."""
        binder = self
        for each in query.common_tables:
            binder = binder._with_common_table(each, surroundings)
        return binder._limited(binder._ordered(query, surroundings), query)

    def bind_subquery(self, query: Query, scope: Scope) -> tuple[LogicalNode, tuple[Rex, ...]]:
        """A query within an expression, and what it wants of the scope around it."""
        surroundings = Surroundings(scope)
        plan = self.bind_query(query, surroundings)
        return plan, tuple(surroundings.slots)

    def bind_view(self, text: str) -> LogicalNode:
        """The query of a view, which sees nothing of the query around it."""
        try:
            query = self.context.parse_query(text)
            return QueryBinder(self.context).bind_query(query, None)
        except ValidationError as error:
            raise error.within(text) from None

    def _with_common_table(
        self, each: CommonTable, surroundings: Surroundings | None
    ) -> QueryBinder:
        plan = self.bind_query(each.query, surroundings)
        if each.columns:
            if len(each.columns) != plan.width:
                raise ValidationError(
                    f"'{each.name}' has the columns {', '.join(plan.schema.names)}, and "
                    f"{len(each.columns)} names are given",
                    span=each.span,
                )
            plan = renamed(plan, each.columns)
        return replace(self, common_tables={**self.common_tables, each.name: plan})

    def _ordered(self, query: Query, surroundings: Surroundings | None) -> LogicalNode:
        if isinstance(query, Select):
            relations = RelationBinder(self.context, self, self.common_tables, surroundings)
            return bind_select(self.context, self, relations, query)
        if isinstance(query, ValuesQuery):
            plan = self._values(query, surroundings)
        elif isinstance(query, SetOperation):
            plan = self._set_operation(query, surroundings)
        else:
            raise ValidationError("This is no query", span=query.span)
        return self._sorted(plan, query, surroundings) if query.order_by else plan

    def _sorted(
        self, plan: LogicalNode, query: Query, surroundings: Surroundings | None
    ) -> LogicalNode:
        binder = ExpressionBinder(self.context, Scope.of(plan, (), surroundings), self)
        columns: list[Rex] = list(_columns(plan))
        keys = []
        for each in query.order_by:
            sort = binder.sort(each)
            refuse_aggregates(sort.value, "ORDER BY", "aggregate in the SELECT list")
            if isinstance(sort.value, RexLiteral):
                sort = replace(sort, value=_by_place(sort.value, columns[: plan.width]))
            if sort.value not in columns:
                columns.append(sort.value)
            keys.append(SortKey(columns.index(sort.value), sort.descending, sort.nulls_first))
        width = plan.width
        if len(columns) > width:
            hidden = [f"$s{place}" for place in range(width, len(columns))]
            plan = project(plan, columns, [*plan.schema.names, *hidden])
        plan = LogicalSort(plan.schema, plan, tuple(keys))
        return plan if len(columns) == width else without_hidden(plan, width)

    def _limited(self, plan: LogicalNode, query: Query) -> LogicalNode:
        if query.limit is None and query.offset is None:
            return plan
        offset = 0 if query.offset is None else _count(query.offset, "OFFSET")
        limit = None if query.limit is None else _count(query.limit, "LIMIT")
        if isinstance(plan, LogicalSort) and plan.limit is None and not plan.offset:
            return replace(plan, offset=offset, limit=limit)
        if isinstance(plan, LogicalProject) and isinstance(plan.input, LogicalSort):
            inner = plan.input  # columns to sort by were hidden above it
            if inner.limit is None and not inner.offset:
                return replace(plan, input=replace(inner, offset=offset, limit=limit))
        return LogicalSort(plan.schema, plan, (), offset, limit)

    # -- VALUES ------------------------------------------------------------------------------------

    def _values(self, query: ValuesQuery, surroundings: Surroundings | None) -> LogicalNode:
        binder = ExpressionBinder(self.context, Scope((), (), surroundings), self)
        rows = [[binder.bind(each) for each in row] for row in query.rows]
        width = len(rows[0])
        for row, written in zip(rows, query.rows):
            if len(row) != width:
                raise ValidationError(
                    f"Values passed to VALUES operator must have compatible types: a row of "
                    f"{len(row)} values after one of {width}",
                    span=written[0].span,
                )
            for each in row:
                refuse_aggregates(each, "VALUES", "write SELECT")
        columns = [in_common(column, "Values of one column") for column in zip(*rows)]
        names = [f"EXPR${place}" for place in range(width)]
        schema = row_of([RowField(name, type) for name, (type, _) in zip(names, columns)])
        values = list(zip(*(converted for _, converted in columns)))
        if all(isinstance(each, RexLiteral) for row in values for each in row):
            return LogicalValues(
                schema,
                tuple(
                    tuple(each.value for each in row if isinstance(each, RexLiteral))
                    for row in values
                ),
            )
        branches = tuple(project(one_row(), row, names) for row in values)
        if len(branches) == 1:
            return branches[0]
        return LogicalSetOperation(schema, "UNION", True, branches)

    # -- UNION, INTERSECT, EXCEPT ------------------------------------------------------------------

    def _set_operation(self, query: SetOperation, surroundings: Surroundings | None) -> LogicalNode:
        rights: list[SetOperation] = []
        left: Query = query
        while isinstance(left, SetOperation) and (left is query or _is_plain(left)):
            rights.append(left)
            left = left.left
        plan = self.bind_query(left, surroundings)
        for each in reversed(rights):
            right = self.bind_query(each.right, surroundings)
            plan = _combined(plan, right, each)
        return plan


def _is_plain(query: Query) -> bool:
    return not (query.common_tables or query.order_by or query.limit or query.offset)


def _combined(left: LogicalNode, right: LogicalNode, operation: SetOperation) -> LogicalNode:
    if left.width != right.width:
        raise ValidationError(
            f"Column count mismatch in {operation.kind}: {left.width} and {right.width} columns",
            span=operation.right.span,
        )
    types: list[LogicalType] = []
    for place, (one, other) in enumerate(zip(left.schema.fields, right.schema.fields)):
        common = common_type([one.type, other.type])
        if common is None:
            raise ValidationError(
                f"Type mismatch in column {place + 1} of {operation.kind}: '{one.name}' is "
                f"{bare(one.type)} and '{other.name}' is {bare(other.type)}; cast one of them",
                span=operation.right.span,
            )
        is_union = operation.kind == "UNION" and operation.keeps_all
        types.append(_marked(common, one.type, other.type) if is_union else common)
    schema = row_of([replace(each, type=type) for each, type in zip(left.schema.fields, types)])
    keeps_all = operation.keeps_all
    branches = [columns_cast(left, types), columns_cast(right, types)]
    if (
        isinstance(left, LogicalSetOperation)
        and branches[0] is left
        and left.kind == operation.kind == "UNION"
        and left.keeps_all == keeps_all
    ):
        return LogicalSetOperation(schema, "UNION", keeps_all, (*left.branches, branches[1]))
    return LogicalSetOperation(schema, operation.kind, keeps_all, tuple(branches))


def _marked(common: LogicalType, *types: LogicalType) -> LogicalType:
    """UNION ALL of columns that are all the event time is the event time."""
    marks = {getattr(each, "time_attribute", None) for each in types}
    if isinstance(common, (TimestampType, LocalZonedTimestampType)) and len(marks) == 1:
        return replace(common, time_attribute=marks.pop())
    return common


def _columns(plan: LogicalNode) -> Sequence[Rex]:
    return inputs_for(plan.schema.fields)


def _by_place(value: RexLiteral, columns: Sequence[Rex]) -> Rex:
    at = value.value
    if not isinstance(at, int) or not 1 <= at <= len(columns):
        raise ValidationError(
            f"ORDER BY {at}: there are columns 1 to {len(columns)}", span=value.span
        )
    return columns[at - 1]


def _count(node: SqlExpression, clause: str) -> int:
    value = node.value if isinstance(node, SqlLiteral) else None
    if not isinstance(value, int) or value < 0:
        raise ValidationError(f"{clause} takes a number of rows", span=node.span)
    return value
