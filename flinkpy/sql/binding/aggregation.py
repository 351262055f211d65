"""GROUP BY: expressions over the input become expressions over the groups. What is grouped becomes
a key, an aggregate becomes a column, and any other column is an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from flinkpy.common.logical_types.logical_type import BigIntType, BooleanType
from flinkpy.sql.binding.expression_binder import GROUPING, ExpressionBinder, refuse_aggregates
from flinkpy.sql.functions.function_port import FunctionRegistry
from flinkpy.sql.logical.logical_nodes import LogicalNode, aggregate, input_of, project
from flinkpy.sql.logical.logical_rex import RexAggregate, RexOver
from flinkpy.sql.logical.retyped_calls import retyped
from flinkpy.sql.rex.rex_nodes import (
    AggregateCall,
    Rex,
    RexCall,
    RexInput,
    RexLiteral,
    SortKey,
    rewritten,
    walk,
)
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import GroupingElement

_BIG = BigIntType(is_nullable=False)
NEVER_NULL = frozenset(  # of no rows they are 0, or empty
    ["COUNT", "APPROX_COUNT_DISTINCT", "SUM0", "COLLECT", "JSON_ARRAYAGG", "JSON_OBJECTAGG"]
)


@dataclass(frozen=True)
class Grouping:
    """The keys, and the sets of their places if there are several."""

    keys: tuple[Rex, ...] = ()
    sets: tuple[tuple[int, ...], ...] | None = None


def bind_grouping(elements: Sequence[GroupingElement], binder: ExpressionBinder) -> Grouping:
    """The keys of GROUP BY; several elements with sets are multiplied."""
    keys: list[Rex] = []
    choices: list[list[tuple[int, ...]]] = []
    for element in elements:
        sets = []
        for each in element.sets:
            places = []
            for expression in each:
                key = binder.bind(expression)
                refuse_aggregates(key, "GROUP BY", "name the columns that make a group")
                if any(isinstance(part, RexOver) for part in walk(key)):
                    raise ValidationError("OVER is illegal in GROUP BY", span=expression.span)
                if key not in keys:
                    keys.append(key)
                places.append(keys.index(key))
            sets.append(tuple(places))
        choices.append(_sets_of(element.kind, sets))
    combined = [
        tuple(dict.fromkeys(place for part in parts for place in part))
        for parts in product(*choices)
    ]
    if len(combined) == 1:
        only = combined[0]
        return Grouping(tuple(keys[place] for place in only))
    return Grouping(tuple(keys), tuple(combined))


def _sets_of(kind: str, sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    if kind == "ROLLUP":
        return [sum(sets[:count], ()) for count in range(len(sets), -1, -1)]
    if kind == "CUBE":
        return [
            sum((each for each, taken in zip(sets, chosen) if taken), ())
            for chosen in product((True, False), repeat=len(sets))
        ]
    return sets


class Aggregation:
    """An Aggregate node in the making: it grows with each aggregate that an expression holds."""

    def __init__(self, input: LogicalNode, grouping: Grouping, functions: FunctionRegistry) -> None:
        self._functions = functions
        self._input = input
        self._grouping = grouping
        self._columns = list(grouping.keys)  # of the projection below
        self._calls: list[AggregateCall] = []

    def over_groups(self, value: Rex) -> Rex:
        """The expression over the columns of the aggregate."""
        keys = self._grouping.keys
        if value in keys:
            return replace(self._key(keys.index(value)), span=value.span)
        if isinstance(value, RexAggregate):
            return (
                self._grouping_function(value) if value.function in GROUPING else self._call(value)
            )
        if isinstance(value, RexInput):
            way_out = (
                "add it to GROUP BY, or say which of its values you want, for example with MAX"
            )
            if any(isinstance(key, RexLiteral) for key in keys):
                way_out = "GROUP BY takes expressions, not numbers of columns: name it there"
            raise ValidationError(
                f"Expression '{self._input.schema.names[value.index]}' is not being grouped; "
                f"{way_out}",
                span=value.span,
            )
        if not value.operands:
            return value
        made = value.with_operands(tuple(map(self.over_groups, value.operands)))
        return retyped(made, value.operands, self._functions)

    def plan(self) -> LogicalNode:
        """The aggregate over a projection of its keys and arguments."""
        columns = self._columns or [RexLiteral(_BIG, value=0)]
        names = [self._name_of(each, place) for place, each in enumerate(columns)]
        return aggregate(
            project(self._input, columns, names),
            range(len(self._grouping.keys)),
            self._calls,
            [f"EXPR${place}" for place in range(len(self._calls))],
            self._grouping.sets,
        )

    def _name_of(self, column: Rex, place: int) -> str:
        if isinstance(column, RexInput):
            return self._input.schema.names[column.index]
        return f"$f{place}"

    def _key(self, place: int) -> Rex:
        key = self._grouping.keys[place]
        sets = self._grouping.sets
        may_miss = sets is not None and any(place not in each for each in sets)
        return RexInput(key.type.with_nullable(True) if may_miss else key.type, index=place)

    def _call(self, value: RexAggregate) -> Rex:
        type = value.type
        sets = self._grouping.sets
        may_be_empty = not self._grouping.keys or (sets is not None and () in sets)
        if value.function not in NEVER_NULL and (may_be_empty or value.filter is not None):
            type = type.with_nullable(True)
        call = AggregateCall(
            value.function,
            tuple(map(self._column, value.arguments)),
            type,
            value.distinct,
            None if value.filter is None else self._column(value.filter),
            tuple(
                SortKey(self._column(each.value), each.descending, each.nulls_first)
                for each in value.order_by
            ),
            value.options,
            constants_of(value),
        )
        if call not in self._calls:
            self._calls.append(call)
        place = len(self._grouping.keys) + self._calls.index(call)
        return RexInput(type, index=place, span=value.span)

    def _column(self, value: Rex) -> int:
        if value not in self._columns:
            self._columns.append(value)
        return self._columns.index(value)

    def _grouping_function(self, value: RexAggregate) -> Rex:
        """GROUPING(a, b): for each set a constant, so it is a CASE over the number of the set."""
        places = []
        keys = self._grouping.keys
        arguments = keys if value.function == "GROUP_ID" else value.arguments
        for each in arguments:
            if each not in keys:
                raise ValidationError(
                    f"Argument of {value.function} must be an expression of GROUP BY",
                    span=each.span,
                )
            places.append(keys.index(each))
        sets = self._grouping.sets
        if sets is None or value.function == "GROUP_ID":
            return RexLiteral(_BIG, value=0, span=value.span)
        number = RexInput(_BIG, index=-1)  # the last column; plan() knows how many there are
        branches: list[Rex] = []
        for grouped in sets:
            answer = sum(
                1 << (len(places) - 1 - i) for i, place in enumerate(places) if place not in grouped
            )
            is_this_set = RexCall(
                BooleanType(is_nullable=False),
                function="=",
                arguments=(number, RexLiteral(_BIG, value=set_number(grouped, len(keys)))),
            )
            branches += [is_this_set, RexLiteral(_BIG, value=answer)]
        return RexCall(_BIG, function="CASE", arguments=(*branches[:-2], branches[-1]))

    def placed(self, value: Rex) -> Rex:
        """The expression, when all calls are known: the number of the set has its place."""
        last = len(self._grouping.keys) + len(self._calls)

        def change(each: Rex) -> Rex:
            if isinstance(each, RexInput) and each.index == -1:
                return replace(each, index=last)
            return each

        return value if self._grouping.sets is None else rewritten(value, change)


def set_number(places: Sequence[int], count: int) -> int:
    """The number of a grouping set: a bit for each key that is not in it."""
    return sum(1 << (count - 1 - place) for place in range(count) if place not in places)


def constants_of(value: RexAggregate) -> tuple[tuple[int, object], ...]:
    """The arguments of an aggregate that are constants, by position."""
    return tuple(
        (place, each.value)
        for place, each in enumerate(value.arguments)
        if isinstance(each, RexLiteral)
    )


def distinct(plan: LogicalNode) -> LogicalNode:
    """Each row once."""
    return aggregate(plan, range(plan.width), (), ())


def columns_of(plan: LogicalNode) -> list[RexInput]:
    """All columns of a relation."""
    return [input_of(plan, index) for index in range(plan.width)]
