"""From written expressions to typed ones: names become columns, calls become functions with their
types, and arguments are cast to what functions take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

from flinkpy.columns.sql.call_site import VARYING
from flinkpy.common.logical_types.allowed_casts import explicit_cast_allowed
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    BigIntType,
    BooleanType,
    LogicalType,
    MultisetType,
    NullType,
    RowField,
    RowType,
)
from flinkpy.common.logical_types.type_merging import computed
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.binding.group_windows import auxiliary_column
from flinkpy.sql.binding.scope import Scope, field_of
from flinkpy.sql.functions.function_port import Argument, Function, FunctionKind, Signature
from flinkpy.sql.logical.logical_nodes import LogicalNode, inputs_for, project
from flinkpy.sql.logical.logical_rex import RexAggregate, RexSort, RexSubquery
from flinkpy.sql.rex.coercion import bare, cast, in_common
from flinkpy.sql.rex.json_options import aggregated_as_json, with_defaults, with_json_arguments
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexLiteral, walk
from flinkpy.sql.rex.time_differences import time_between
from flinkpy.sql.sql_errors import NOWHERE, Span, ValidationError
from flinkpy.sql.syntax.query_tree import (
    ArrayConstructor,
    ArraySubquery,
    CaseCall,
    CastCall,
    DynamicParameter,
    ElementAccess,
    ExistsSubquery,
    FieldAccess,
    FunctionCall,
    Identifier,
    InSubquery,
    MapConstructor,
    OrderItem,
    OverWindow,
    QuantifiedComparison,
    Query,
    RowConstructor,
    ScalarSubquery,
    SqlExpression,
    SqlLiteral,
    StarItem,
)

# Chains of these stand on their left argument, often hundreds of them: they are walked in a loop.
CHAINED = frozenset(["+", "-", "*", "/", "%", "||", "AND", "OR"])
NEGATED = {
    "NOT IN": "IN",
    "NOT BETWEEN": "BETWEEN",
    "NOT LIKE": "LIKE",
    "NOT SIMILAR TO": "SIMILAR TO",
}
COMPARISONS = frozenset(["=", "<>", "<", "<=", ">", ">="])
GROUPING = frozenset(["GROUPING", "GROUPING_ID", "GROUP_ID"])


class Subqueries(Protocol):
    """Who binds the queries within an expression."""

    def bind_subquery(self, query: Query, scope: Scope) -> tuple[LogicalNode, tuple[Rex, ...]]:
        """The plan, and what it wants of the query around, slot by slot."""


class OverCalls(Protocol):
    """Who binds a call with OVER."""

    def bind_over(
        self, call: RexAggregate, window: OverWindow | str, binder: ExpressionBinder
    ) -> Rex: ...


@dataclass(frozen=True)
class ExpressionBinder:
    """Binds expressions over the columns of a scope. ``aliases`` are names of the SELECT list,
    which come before columns (in ORDER BY)."""

    context: BindingContext
    scope: Scope
    subqueries: Subqueries
    over: OverCalls | None = None
    aliases: Mapping[str, Rex] = field(default_factory=dict)

    def bind(self, node: SqlExpression) -> Rex:
        """The typed expression."""
        spine: list[FunctionCall] = []
        while (
            isinstance(node, FunctionCall)
            and node.name in CHAINED
            and len(node.arguments) > 1
            and node.over is None
        ):
            spine.append(node)
            node = node.arguments[0]
        value = self._bind_one(node)
        for call in reversed(spine):
            arguments = (value, *(self.bind(each) for each in call.arguments[1:]))
            value = self._operator(call, arguments)
        return value

    def condition(self, node: SqlExpression, clause: str) -> Rex:
        """A BOOLEAN for WHERE, ON, ..."""
        value = self.bind(node)
        if isinstance(value.type, NullType):
            return cast(value, BooleanType())
        if not isinstance(value.type, BooleanType):
            raise ValidationError(
                f"{clause} takes a condition (BOOLEAN), and this is {bare(value.type)}; compare it "
                "with something",
                span=value.span,
            )
        return value

    def _bind_one(self, node: SqlExpression) -> Rex:
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise ValidationError(
                f"A {_words(type(node).__name__)} cannot stand here", span=node.span
            )
        value: Rex = handler(self, node)
        return value if value.span != NOWHERE else replace(value, span=node.span)

    # -- names and constants -----------------------------------------------------------------------

    def _identifier(self, node: Identifier) -> Rex:
        if len(node.parts) == 1 and node.parts[0] in self.aliases:
            return self.aliases[node.parts[0]]
        return self.scope.resolve(node)

    def _literal(self, node: SqlLiteral) -> Rex:
        type = computed(node.type)
        if node.value is not None:
            type = type.not_null()
        return RexLiteral(type, value=node.value, span=node.span)

    def _star(self, node: StarItem) -> Rex:
        raise ValidationError("'*' stands in the SELECT list or in COUNT(*) only", span=node.span)

    def _parameter(self, node: DynamicParameter) -> Rex:
        raise ValidationError(
            "'?' is a parameter of a prepared statement, and there are none; write the value",
            span=node.span,
        )

    # -- calls -------------------------------------------------------------------------------------

    def _call(self, node: FunctionCall) -> Rex:
        node = self.context.named(node)
        name = node.name
        if name in NEGATED and node.over is None:
            return self.negated(self._call(replace(node, name=NEGATED[name])), node.span)
        if name == "BETWEEN":
            return self._between(node)
        if name in GROUPING:
            values = tuple(self.bind(each) for each in node.arguments)
            return RexAggregate(_BIG, function=name, arguments=values, span=node.span)
        column = auxiliary_column(node, self.scope)
        if column is not None:
            return self.scope.resolve(column)
        function = self.context.function(name, node.span)
        if function.kind is FunctionKind.TABLE:
            raise ValidationError(
                f"{name} is a table function: it stands in FROM, as in LATERAL TABLE({name}(...))",
                span=node.span,
            )
        if function.kind is not FunctionKind.SCALAR or node.over is not None:
            return self._aggregate(node, function)
        if node.distinct or node.filter is not None:
            word = "DISTINCT" if node.distinct else "FILTER"
            raise ValidationError(f"{word} is for aggregates, and {name} is none", span=node.span)
        arguments = tuple(self.bind(each) for each in self._ordered(node, function))
        if name == "IN":
            return self._in_list(node, arguments)
        return self._operator(node, arguments)

    def _ordered(self, node: FunctionCall, function: Function) -> Sequence[SqlExpression]:
        if any(node.names):
            raise ValidationError(
                f"{function.name} takes its arguments by position, not by name", span=node.span
            )
        return node.arguments

    def _operator(self, node: FunctionCall, arguments: tuple[Rex, ...]) -> Rex:
        if node.name in ("AND", "OR"):
            return self._junction(node, arguments)
        if node.name in ("=", "<>") and all(_is_row(each) for each in arguments):
            return self._rows_equal(node, arguments)
        if node.name == "-" and node.options:
            return time_between(arguments, node.options, self.called, node.span)
        return self.called(node.name, arguments, node.options, node.span)

    def called(
        self,
        name: str,
        arguments: Sequence[Rex],
        options: tuple[tuple[str, object], ...] = (),
        span: Span = NOWHERE,
    ) -> Rex:
        """A call of a scalar function, with its arguments cast to what it takes."""
        function = self.context.function(name, span)
        signature = self._signature(function, arguments, dict(options), span)
        if function.name == "CURRENT_DATABASE":
            # the database of a name without a dot
            database = self.context.names.path_of((function.name,)).database
            return RexLiteral(signature.result, value=database, span=span)
        options = with_json_arguments(function.name, arguments, options)
        options = with_defaults(options, signature.result, self.bind)
        return RexCall(
            signature.result,
            function=function.name,
            arguments=_cast_all(arguments, signature),
            options=options,
            span=span,
        )

    def _signature(
        self,
        function: Function,
        arguments: Sequence[Rex],
        options: Mapping[str, object],
        span: Span,
    ) -> Signature:
        try:
            return function.bind(
                [Argument(each.type, _constant(each)) for each in arguments], options
            )
        except ValidationError as error:
            if error.span != NOWHERE:
                raise
            raise ValidationError(error.problem, span=span) from None

    def _junction(self, node: FunctionCall, arguments: tuple[Rex, ...]) -> Rex:
        parts: list[Rex] = []
        for each in arguments:
            if isinstance(each.type, NullType):
                each = cast(each, BooleanType())
            is_alike = isinstance(each, RexCall) and each.function == node.name
            parts += each.operands if is_alike else (each,)
        for each in parts:
            if not isinstance(each.type, BooleanType):
                raise ValidationError(
                    f"{node.name} takes conditions (BOOLEAN), and this is {bare(each.type)}; "
                    "compare it with something",
                    span=each.span,
                )
        nullable = any(each.type.is_nullable for each in parts)
        return RexCall(
            BooleanType(is_nullable=nullable),
            function=node.name,
            arguments=tuple(parts),
            span=node.span,
        )

    def conjunction(self, conditions: Sequence[Rex]) -> Rex | None:
        """All of them; None if there is none."""
        if len(conditions) < 2:
            return conditions[0] if conditions else None
        return self._junction(FunctionCall("AND"), tuple(conditions))

    def negated(self, value: Rex, span: Span) -> Rex:
        return self.called("NOT", (value,), (), span)

    def _between(self, node: FunctionCall) -> Rex:
        value, low, high = (self.bind(each) for each in node.arguments)
        inside = self._within(value, low, high, node.span)
        if not dict(node.options).get("symmetric"):
            return inside
        other = self._within(value, high, low, node.span)
        return self._junction(FunctionCall("OR", span=node.span), (inside, other))

    def _within(self, value: Rex, low: Rex, high: Rex, span: Span) -> Rex:
        above = self.called(">=", (value, low), (), span)
        below = self.called("<=", (value, high), (), span)
        return self._junction(FunctionCall("AND", span=span), (above, below))

    def _in_list(self, node: FunctionCall, arguments: tuple[Rex, ...]) -> Rex:
        value, *items = arguments
        if not _is_row(value):
            return self.called("IN", arguments, node.options, node.span)
        equal = tuple(
            self._rows_equal(FunctionCall("=", span=node.span), (value, each)) for each in items
        )
        if len(equal) == 1:
            return equal[0]
        return self._junction(FunctionCall("OR", span=node.span), equal)

    def _rows_equal(self, node: FunctionCall, arguments: tuple[Rex, ...]) -> Rex:
        left, right = (each.operands for each in arguments)
        if len(left) != len(right):
            raise ValidationError(
                f"Rows of {len(left)} and of {len(right)} values cannot be compared", span=node.span
            )
        equal = tuple(
            self.called("=", pair, (), node.span) for pair in zip(left, right, strict=True)
        )
        all_equal = (
            equal[0]
            if len(equal) == 1
            else self._junction(FunctionCall("AND", span=node.span), equal)
        )
        return all_equal if node.name == "=" else self.negated(all_equal, node.span)

    # -- aggregates --------------------------------------------------------------------------------

    def _aggregate(self, node: FunctionCall, function: Function) -> Rex:
        if function.kind is FunctionKind.SCALAR:
            raise ValidationError(
                f"OVER is for aggregates, and {node.name} is none", span=node.span
            )
        if function.kind is FunctionKind.WINDOW and node.over is None:
            raise ValidationError(
                f"{node.name} needs a window: write {node.name}(...) OVER (ORDER BY ...)",
                span=node.span,
            )
        is_star = len(node.arguments) == 1 and isinstance(node.arguments[0], StarItem)
        if is_star and function.name != "COUNT":
            raise ValidationError(f"'*' is for COUNT only, not for {node.name}", span=node.span)
        arguments = () if is_star else tuple(self.bind(each) for each in node.arguments)
        if node.over is None:
            for each in arguments:
                refuse_aggregates(
                    each, f"an argument of {node.name}", "aggregate in a subquery first"
                )
        signature = self._signature(function, arguments, dict(node.options), node.span)
        options = node.options + ((("NULLS", node.nulls),) if node.nulls else ())
        call = RexAggregate(
            signature.result,
            function=function.name,
            arguments=aggregated_as_json(function.name, _cast_all(arguments, signature)),
            distinct=node.distinct,
            filter=None if node.filter is None else self.condition(node.filter, "FILTER"),
            order_by=tuple(self.sort(each) for each in node.order_by),
            options=options,
            span=node.span,
        )
        if node.over is None:
            return call
        if self.over is None:
            raise ValidationError("OVER cannot stand here", span=node.span)
        return self.over.bind_over(call, node.over, self)

    def sort(self, item: OrderItem) -> RexSort:
        """An element of ORDER BY. Nulls are least, unless the text says where they go."""
        first = item.nulls_first
        return RexSort(
            self.bind(item.value),
            item.descending,
            (not item.descending) if first is None else first,
        )

    # -- forms with a syntax of their own ----------------------------------------------------------

    def _cast(self, node: CastCall) -> Rex:
        value = self.bind(node.value)
        target = node.type
        if isinstance(value.type, NullType):
            return RexLiteral(target.with_nullable(True), value=None, span=node.span)
        if not explicit_cast_allowed(value.type, target):
            raise ValidationError(
                f"{bare(value.type)} cannot be cast to {bare(target)}", span=node.span
            )
        return RexCall(
            target.with_nullable(value.type.is_nullable or node.is_try),
            function="TRY_CAST" if node.is_try else "CAST",
            arguments=(value,),
            span=node.span,
        )

    def _case(self, node: CaseCall) -> Rex:
        operand = None if node.operand is None else self.bind(node.operand)
        conditions: list[Rex] = []
        values: list[Rex] = []
        for when, then in node.branches:
            if operand is None:
                conditions.append(self.condition(when, "WHEN"))
            else:
                conditions.append(self.called("=", (operand, self.bind(when)), (), when.span))
            values.append(self.bind(then))
        if node.otherwise is None:
            values.append(RexLiteral(NullType(), value=None))
        else:
            values.append(self.bind(node.otherwise))
        common, values_in_common = in_common(values, "The branches of CASE")
        arguments: list[Rex] = []
        for condition, value in zip(conditions, values_in_common):
            arguments += [condition, value]
        arguments.append(values_in_common[-1])
        return RexCall(common, function="CASE", arguments=tuple(arguments), span=node.span)

    def _field(self, node: FieldAccess) -> Rex:
        value = self.bind(node.value)
        if not isinstance(value.type, RowType):
            raise ValidationError(
                f"'.{node.name}' is for rows, and this is {bare(value.type)}", span=node.span
            )
        return field_of(value, node.name, Identifier((node.name,), span=node.span))

    def _element(self, node: ElementAccess) -> Rex:
        arguments = (self.bind(node.value), self.bind(node.index))
        value, index = arguments
        number = index.value if isinstance(index, RexLiteral) else None
        if isinstance(value.type, ArrayType) and isinstance(number, int) and number < 1:
            raise ValidationError(
                f"Array element access needs an index starting at 1 but was {number}",
                span=node.index.span,
            )
        return self.called("ITEM", arguments, (), node.span)

    def _array(self, node: ArrayConstructor) -> Rex:
        return self.called("ARRAY", tuple(map(self.bind, node.elements)), (), node.span)

    def _map(self, node: MapConstructor) -> Rex:
        parts = [self.bind(each) for entry in node.entries for each in entry]
        return self.called("MAP", parts, (), node.span)

    def _row(self, node: RowConstructor) -> Rex:
        values = tuple(map(self.bind, node.values))
        fields = tuple(RowField(f"EXPR${i}", each.type) for i, each in enumerate(values))
        return RexCall(
            RowType(fields, is_nullable=False), function="ROW", arguments=values, span=node.span
        )

    # -- queries within ----------------------------------------------------------------------------

    def _subquery(
        self, kind: str, type: LogicalType, query: Query, tested: tuple[Rex, ...], span: Span
    ) -> RexSubquery:
        plan, outer = self.subqueries.bind_subquery(query, self.scope)
        return RexSubquery(type, kind=kind, plan=plan, tested=tested, outer=outer, span=span)

    def _scalar(self, node: ScalarSubquery) -> Rex:
        found = self._subquery("SCALAR", NullType(), node.query, (), node.span)
        fields = found.query.schema.fields
        if len(fields) != 1:
            raise ValidationError(
                f"A query that stands for a value gives one column, and this one gives "
                f"{len(fields)}",
                span=node.span,
            )
        return replace(found, type=fields[0].type.with_nullable(True))

    def _exists(self, node: ExistsSubquery) -> Rex:
        return self._subquery("EXISTS", BooleanType(is_nullable=False), node.query, (), node.span)

    def _in(self, node: InSubquery) -> Rex:
        found = self._tested("IN", node.value, node.query, node.span)
        return self.negated(found, node.span) if node.negated else found

    def _quantified(self, node: QuantifiedComparison) -> Rex:
        if (node.operator, node.quantifier) == ("=", "ANY"):
            return self._tested("IN", node.value, node.query, node.span)
        if (node.operator, node.quantifier) == ("<>", "ALL"):
            found = self._tested("IN", node.value, node.query, node.span)
            return self.negated(found, node.span)
        kind = f"{node.operator} {node.quantifier}"
        return self._tested(kind, node.value, node.query, node.span)

    def _tested(self, kind: str, value: SqlExpression, query: Query, span: Span) -> Rex:
        bound = self.bind(value)
        tested = bound.operands if _is_row(bound) else (bound,)
        found = self._subquery(kind, BooleanType(), query, tested, span)
        fields = found.query.schema.fields
        if len(fields) != len(tested):
            raise ValidationError(
                f"{kind} compares {len(tested)} value{'s' * (len(tested) > 1)} with a query of "
                f"{len(fields)} columns",
                span=span,
            )
        compared = []
        columns = []
        for each, column in zip(tested, fields, strict=True):
            common, _ = in_common(
                (each, RexLiteral(column.type, value=None, span=span)),
                f"The value and the query of {kind}",
            )
            compared.append(cast(each, common))
            columns.append(common)
        types = [each.type for each in tested] + [each.type for each in fields]
        nullable = any(each.is_nullable for each in types)
        return replace(
            found,
            type=BooleanType(is_nullable=nullable),
            tested=tuple(compared),
            plan=columns_cast(found.query, columns),
        )

    def _array_subquery(self, node: ArraySubquery) -> Rex:
        raise ValidationError(
            f"{node.kind}(SELECT ...) is not supported; join the query and use ARRAY_AGG",
            span=node.span,
        )


def columns_cast(plan: LogicalNode, types: Sequence[LogicalType]) -> LogicalNode:
    """The relation with its columns in these types."""
    columns = [cast(each, type) for each, type in zip(inputs_for(plan.schema.fields), types)]
    if all(each.operands == () for each in columns):
        return plan
    return project(plan, columns, plan.schema.names)


def refuse_aggregates(value: Rex, where: str, way_out: str) -> None:
    """Refuses aggregates within ``value``, which is ``where``."""
    for each in walk(value):
        if isinstance(each, RexAggregate):
            raise ValidationError(
                f"Aggregate expression {each.function} is illegal in {where}; {way_out}",
                span=each.span,
            )


def is_collection(type: LogicalType) -> bool:
    return isinstance(type, (ArrayType, MultisetType))


def _is_row(value: Rex) -> bool:
    return isinstance(value, RexCall) and value.function == "ROW"


def _constant(value: Rex) -> object:
    """The value of a constant, also of a number with a sign."""
    if isinstance(value, RexCall) and value.function == "- (unary)":
        number = _constant(value.arguments[0])
        return -number if isinstance(number, (int, Decimal)) else VARYING
    return value.value if isinstance(value, RexLiteral) else VARYING


def _cast_all(arguments: Sequence[Rex], signature: Signature) -> tuple[Rex, ...]:
    return tuple(cast(each, target) for each, target in zip(arguments, signature.arguments))


def _words(name: str) -> str:
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


_BIG = BigIntType(is_nullable=False)

_Handler = Callable[[ExpressionBinder, Any], Rex]
_HANDLERS: dict[type[SqlExpression], _Handler] = {
    Identifier: ExpressionBinder._identifier,
    SqlLiteral: ExpressionBinder._literal,
    StarItem: ExpressionBinder._star,
    DynamicParameter: ExpressionBinder._parameter,
    FunctionCall: ExpressionBinder._call,
    CastCall: ExpressionBinder._cast,
    CaseCall: ExpressionBinder._case,
    FieldAccess: ExpressionBinder._field,
    ElementAccess: ExpressionBinder._element,
    ArrayConstructor: ExpressionBinder._array,
    MapConstructor: ExpressionBinder._map,
    RowConstructor: ExpressionBinder._row,
    ScalarSubquery: ExpressionBinder._scalar,
    ExistsSubquery: ExpressionBinder._exists,
    InSubquery: ExpressionBinder._in,
    QuantifiedComparison: ExpressionBinder._quantified,
    ArraySubquery: ExpressionBinder._array_subquery,
}
