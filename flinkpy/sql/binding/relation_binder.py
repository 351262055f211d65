"""FROM: tables, queries, joins and table functions become relations, each with its scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from flinkpy.columns.sql.row_errors import NO_COLUMN
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    IntType,
    LogicalType,
    MapType,
    MultisetType,
    RowField,
    RowType,
    TimeAttribute,
)
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.binding.expression_binder import ExpressionBinder, Subqueries, refuse_aggregates
from flinkpy.sql.binding.over_windows import refuse_over
from flinkpy.sql.binding.proposals import nearest, proposal
from flinkpy.sql.binding.scope import Merged, Scope, Surroundings, whole_number
from flinkpy.sql.binding.state_hints import LOOKUP, with_state_ttl
from flinkpy.sql.binding.table_binder import bind_table
from flinkpy.sql.binding.window_binder import bind_window, is_window_function
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.functions.function_port import Argument, FunctionKind
from flinkpy.sql.logical.logical_nodes import (
    LogicalApply,
    LogicalCorrelate,
    LogicalJoin,
    LogicalNode,
    LogicalTemporalJoin,
    LogicalValues,
    input_of,
    join,
    joined_schema,
    project,
    row_of,
    temporal_schema,
)
from flinkpy.sql.rex.coercion import bare, cast, in_common
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, RexLiteral
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import (
    DerivedTable,
    FromItem,
    FunctionCall,
    Identifier,
    JoinItem,
    Query,
    TableFunctionCall,
    TableReference,
    UnnestItem,
)

# no functions, but they stand where some do
_WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")


class Queries(Subqueries, Protocol):
    """Who binds the queries of FROM."""

    def bind_query(self, query: Query, surroundings: Surroundings | None) -> LogicalNode: ...

    def bind_view(self, text: str) -> LogicalNode: ...


@dataclass(frozen=True)
class Source:
    """A relation, and the names of its columns."""

    plan: LogicalNode
    scope: Scope


def one_row() -> LogicalValues:
    """What a SELECT without FROM reads."""
    zero = whole_number(0)
    return LogicalValues(row_of([RowField(NO_COLUMN, zero.type)]), ((0,),))


@dataclass(frozen=True)
class RelationBinder:
    """Binds FROM items. ``common_tables`` are the names of WITH."""

    context: BindingContext
    queries: Queries
    common_tables: Mapping[str, LogicalNode] = field(default_factory=dict)
    surroundings: Surroundings | None = None

    def bind(self, item: FromItem) -> Source:
        """The relation that an item of FROM stands for."""
        handler = _HANDLERS.get(type(item))
        if handler is None:
            raise ValidationError("This cannot stand in FROM", span=item.span)
        source: Source = handler(self, item)
        return source

    # -- tables ------------------------------------------------------------------------------------

    def _table(self, item: TableReference) -> Source:
        if item.as_of is not None:
            raise ValidationError(
                "FOR SYSTEM_TIME AS OF stands behind JOIN, with a time column of the rows before "
                f"it: FROM orders AS o JOIN {item.name.text} FOR SYSTEM_TIME AS OF o.proctime ON "
                "...; a table as it was at another time cannot be read",
                span=item.as_of.span,
            )
        if item.match is not None:
            raise ValidationError("MATCH_RECOGNIZE is not supported yet", span=item.match.span)
        parts = item.name.parts
        if len(parts) == 1 and parts[0] in self.common_tables:
            plan = self.common_tables[parts[0]]
        else:
            plan = self.table_called(item.name, item)
        return self._named(with_state_ttl(plan, item.hints), item, parts)

    def _meant_table(self, name: Identifier) -> str:
        """A table whose name is like this one, also one of another database."""
        names, parts = self.context.names, name.parts
        if len(parts) > 1:
            full = proposal(".".join(parts), names.full_table_names(len(parts)))
            return full or proposal(parts[-1], names.table_names())
        known = [*self.common_tables, *names.table_names()]
        elsewhere = [full for full in names.full_table_names(2) if full.endswith(f".{parts[0]}")]
        if elsewhere and nearest(parts[0], known) is None:
            return f"; did you mean '{elsewhere[0]}'?"
        return proposal(parts[0], known)

    def table_called(self, name: Identifier, item: TableReference | None = None) -> LogicalNode:
        """A table, a view or a name of WITH."""
        if len(name.parts) == 1 and name.parts[0] in self.common_tables:
            return self.common_tables[name.parts[0]]
        found = self.context.names.find_table(name.parts)
        if found is None:
            raise ValidationError(
                f"Object '{name.text}' not found{self._meant_table(name)}", span=name.span
            )
        path, table = found
        if not isinstance(table, CatalogTable):
            plan = self.queries.bind_view(table.expanded_query)
            return renamed(plan, table.schema.names)
        if item is not None:
            table = _with_hints(table, item)
        try:
            return bind_table(self.context, path, table, self.queries)
        except ValidationError as error:
            raise ValidationError(error.problem, span=name.span) from None

    def _named(self, plan: LogicalNode, item: FromItem, names: tuple[str, ...] = ()) -> Source:
        if item.columns:
            if len(item.columns) != plan.width:
                raise ValidationError(
                    f"'{item.alias}' has the columns {', '.join(plan.schema.names)}, and "
                    f"{len(item.columns)} names are given",
                    span=item.span,
                )
            plan = renamed(plan, item.columns)
        if item.alias is not None:
            names = (item.alias,)
        return Source(plan, Scope.of(plan, names, self.surroundings))

    def _derived(self, item: DerivedTable) -> Source:
        return self._named(self.queries.bind_query(item.query, self.surroundings), item)

    # -- joins -------------------------------------------------------------------------------------

    def _join(self, item: JoinItem) -> Source:
        left = self.bind(item.left)
        if _is_lateral(item.right):
            return self._lateral(left, item)
        if isinstance(item.right, TableReference) and item.right.as_of is not None:
            return self._temporal(left, item, item.right)
        return self._joined(left, self.bind(item.right), item)

    def _joined(self, left: Source, right: Source, item: JoinItem) -> Source:
        kind = JoinKind.INNER if item.kind == "CROSS" else JoinKind(item.kind)
        scope = left.scope.beside(right.scope, left.plan.width)
        if item.using or item.natural:
            return self._using(left, right, scope, kind, item)
        plan = join(left.plan, right.plan, kind, self._on(item, scope))
        return Source(plan, scope.typed_as(plan.schema))

    def _on(self, item: JoinItem, scope: Scope) -> Rex | None:
        if item.condition is None:
            return None
        binder = ExpressionBinder(self.context, scope, self.queries)
        condition = binder.condition(item.condition, "ON")
        refuse_aggregates(condition, "ON", "aggregate in a subquery first")
        refuse_over(condition, "ON")
        return condition

    def _using(
        self, left: Source, right: Source, scope: Scope, kind: JoinKind, item: JoinItem
    ) -> Source:
        names = (
            [each.parts[-1] for each in item.using]
            if item.using
            else [each for each in _names(left.scope) if each in _names(right.scope)]
        )
        binder = ExpressionBinder(self.context, scope, self.queries)
        columns = [Identifier((name,), span=item.span) for name in names]
        sides = (left.scope, Scope().beside(right.scope, left.plan.width))
        condition = binder.conjunction(
            [
                binder.called("=", tuple(side.resolve(at) for side in sides), (), item.span)
                for at in columns
            ]
        )
        plan = join(left.plan, right.plan, kind, condition)
        merged: list[Merged] = []
        for at in columns:
            one, other = (side.typed_as(plan.schema).resolve(at) for side in sides)
            hides = frozenset(each.index for each in (one, other) if isinstance(each, RexInput))
            merged.append(Merged(at.parts[-1], self._merged(one, other, kind, binder), hides))
        scope = scope.typed_as(plan.schema)
        known = tuple(each for each in scope.merged if each.name not in names)
        return Source(plan, replace(scope, merged=(*merged, *known)))

    def _merged(self, one: Rex, other: Rex, kind: JoinKind, binder: ExpressionBinder) -> Rex:
        if kind is JoinKind.RIGHT:
            return other
        if kind is not JoinKind.FULL:
            return one
        type, values = in_common((one, other), "The columns of USING")
        present = RexCall(
            binder.called("IS NOT NULL", values[:1]).type,
            function="IS NOT NULL",
            arguments=values[:1],
        )
        return RexCall(type.with_nullable(True), function="CASE", arguments=(present, *values))

    def _temporal(self, left: Source, item: JoinItem, table: TableReference) -> Source:
        """The rows of a table as they are at a time of the rows before it."""
        if item.kind not in ("INNER", "LEFT"):
            raise ValidationError(
                "Temporal table join currently only support INNER JOIN and LEFT JOIN, but was "
                f"{item.kind} JOIN",
                span=item.span,
            )
        assert table.as_of is not None
        time = ExpressionBinder(self.context, left.scope, self.queries).bind(table.as_of)
        attribute = getattr(time.type, "time_attribute", None)
        if attribute is None or not isinstance(time, RexInput):
            raise ValidationError(
                "Temporal table join currently only supports 'FOR SYSTEM_TIME AS OF' left table's "
                "time attribute field; name its column of PROCTIME(), or the one that has a "
                "WATERMARK",
                span=table.as_of.span,
            )
        joined = self._joined(left, self.bind(replace(table, as_of=None)), item)
        plan = joined.plan
        assert isinstance(plan, LogicalJoin)
        hints = [each for each in table.hints if each.name.upper() == LOOKUP]
        options = tuple(option for each in hints for option in each.options)
        made = LogicalTemporalJoin(
            temporal_schema(plan.left.schema, plan.right.schema, plan.kind),
            plan.left,
            plan.right,
            plan.kind,
            time.index,
            plan.condition,
            options,
            _since(plan.right.schema) if attribute is TimeAttribute.ROWTIME else None,
            table.as_of.span,
        )
        return Source(made, joined.scope.typed_as(made.schema))

    # -- what sees the relations before it ---------------------------------------------------------

    def _lateral(self, left: Source, item: JoinItem) -> Source:
        kind = JoinKind.INNER if item.kind == "CROSS" else JoinKind(item.kind)
        if kind not in (JoinKind.INNER, JoinKind.LEFT):
            raise ValidationError(
                f"A {item.kind} JOIN with LATERAL or UNNEST is not possible; use CROSS or LEFT",
                span=item.right.span,
            )
        right = item.right
        if isinstance(right, DerivedTable):
            return self._apply(left, right, kind, item)
        if isinstance(right, UnnestItem):
            expanded = self._unnest_call(left, right)
        else:
            assert isinstance(right, TableFunctionCall)
            expanded = self._function_call(left, right.call, right)
        function, arguments, result, options = expanded
        if right.columns:
            result = _renamed_row(result, right.columns, right)
        schema = joined_schema(left.plan.schema, result, kind)
        names = () if right.alias is None else (right.alias,)
        fields = schema.fields[left.plan.width :]
        fields = tuple(replace(each, name=old.name) for each, old in zip(fields, result.fields))
        scope = left.scope.beside(
            Scope.of(LogicalValues(RowType(fields, is_nullable=False), ()), names), left.plan.width
        )
        plan = LogicalCorrelate(
            schema,
            left.plan,
            function,
            arguments,
            result,
            kind is JoinKind.LEFT,
            _unless_true(self._on(item, scope)),
            options,
        )
        return Source(plan, scope)

    def _apply(self, left: Source, right: DerivedTable, kind: JoinKind, item: JoinItem) -> Source:
        around = Surroundings(left.scope)
        inner = self._named(self.queries.bind_query(right.query, around), right)
        scope = left.scope.beside(inner.scope, left.plan.width)
        condition = _unless_true(self._on(item, scope))
        if not around.slots:
            plan = join(left.plan, inner.plan, kind, condition)
            return Source(plan, scope.typed_as(plan.schema))
        schema = joined_schema(left.plan.schema, inner.plan.schema, kind)
        applied = LogicalApply(schema, left.plan, inner.plan, tuple(around.slots), kind, condition)
        return Source(applied, scope.typed_as(schema))

    def _unnest_call(self, left: Source, item: UnnestItem) -> _Expanded:
        value = ExpressionBinder(self.context, left.scope, self.queries).bind(item.value)
        fields = list(_elements(value.type, item))
        options: tuple[tuple[str, object], ...] = ()
        if item.with_ordinality:
            fields.append(RowField("ORDINALITY", IntType(is_nullable=False)))
            options = (("WITH ORDINALITY", True),)
        return "UNNEST", (value,), row_of(fields), options

    def _function_call(self, left: Source, call: FunctionCall, item: FromItem) -> _Expanded:
        binder = ExpressionBinder(self.context, left.scope, self.queries)
        call = self.context.named(call)
        function = self.context.function(call.name, call.span, _WINDOWS)
        if function.kind is not FunctionKind.TABLE:
            raise ValidationError(
                f"{call.name} is no table function, so it cannot stand in FROM", span=call.span
            )
        arguments = tuple(map(binder.bind, call.arguments))
        try:
            signature = function.bind(
                [
                    Argument(each.type, each.value)
                    if isinstance(each, RexLiteral)
                    else Argument(each.type)
                    for each in arguments
                ],
                dict(call.options),
            )
        except ValidationError as error:
            raise ValidationError(error.problem, span=call.span) from None
        arguments = tuple(map(cast, arguments, signature.arguments))
        result = signature.result
        if not isinstance(result, RowType):
            result = row_of([RowField(item.alias or "EXPR$0", result)])
        return function.name, arguments, result, call.options

    def _unnest(self, item: UnnestItem) -> Source:
        return self._alone(JoinItem(FromItem(), item, "CROSS", span=item.span))

    def _function(self, item: TableFunctionCall) -> Source:
        if is_window_function(item.call.name):
            return self._named(bind_window(self.context, item.call, self, self.surroundings), item)
        return self._alone(JoinItem(FromItem(), item, "CROSS", span=item.span))

    def _alone(self, item: JoinItem) -> Source:
        """A table function that stands first: it is joined with one row."""
        left = Source(one_row(), Scope((), (), self.surroundings))
        made = self._lateral(left, item)
        columns = [input_of(made.plan, index) for index in range(1, made.plan.width)]
        plan = project(made.plan, columns, made.plan.schema.names[1:])
        relations = tuple(replace(each, first=each.first - 1) for each in made.scope.relations)
        return Source(plan, replace(made.scope, relations=relations))


_Expanded = tuple[str, tuple[Rex, ...], RowType, tuple[tuple[str, object], ...]]


def renamed(plan: LogicalNode, names: tuple[str, ...]) -> LogicalNode:
    """The relation with other names for its columns."""
    if plan.schema.names == names:
        return plan
    return project(plan, [input_of(plan, index) for index in range(plan.width)], names)


def _renamed_row(row: RowType, names: tuple[str, ...], item: FromItem) -> RowType:
    if len(names) != len(row.fields):
        raise ValidationError(
            f"'{item.alias}' has the columns {', '.join(row.names)}, and {len(names)} names are "
            "given",
            span=item.span,
        )
    return RowType(
        tuple(replace(each, name=name) for each, name in zip(row.fields, names)), is_nullable=False
    )


def _since(schema: RowType) -> int | None:
    """The first column of event time."""
    marks = [getattr(each.type, "time_attribute", None) for each in schema.fields]
    return marks.index(TimeAttribute.ROWTIME) if TimeAttribute.ROWTIME in marks else None


def _is_lateral(item: FromItem) -> bool:
    if isinstance(item, DerivedTable):
        return item.lateral
    if isinstance(item, TableFunctionCall):
        return not is_window_function(item.call.name)
    return isinstance(item, UnnestItem)


def _names(scope: Scope) -> list[str]:
    return list(dict.fromkeys(each.name for owner in scope.relations for each in owner.fields))


def _elements(type: LogicalType, item: UnnestItem) -> tuple[RowField, ...]:
    if isinstance(type, MapType):
        return (RowField("KEY", type.key), RowField("VALUE", type.value))
    if not isinstance(type, (ArrayType, MultisetType)):
        raise ValidationError(
            f"UNNEST takes an ARRAY, a MAP or a MULTISET, and this is {bare(type)}",
            span=item.value.span,
        )
    element = type.element
    if isinstance(element, RowType):
        if not element.is_nullable:
            return element.fields
        return tuple(replace(each, type=each.type.with_nullable(True)) for each in element.fields)
    return (RowField(item.alias or "EXPR$0", element),)


def _unless_true(condition: Rex | None) -> Rex | None:
    is_true = isinstance(condition, RexLiteral) and condition.value is True
    return None if is_true else condition


def _with_hints(table: CatalogTable, item: TableReference) -> CatalogTable:
    options = dict(table.options)
    for hint in item.hints:
        if hint.name.upper() == "OPTIONS":
            options.update(hint.options)
    return table if options == dict(table.options) else replace(table, options=options)


_Handler = Callable[[RelationBinder, Any], Source]
_HANDLERS: dict[type[FromItem], _Handler] = {
    TableReference: RelationBinder._table,
    DerivedTable: RelationBinder._derived,
    JoinItem: RelationBinder._join,
    UnnestItem: RelationBinder._unnest,
    TableFunctionCall: RelationBinder._function,
}
