"""Variances and deviations of OVER in terms of sums, computed in the type of the result, as Flink
does: ``(SUM(x * x) - SUM(x) * SUM(x) / COUNT(x)) / COUNT(x)``. So whole numbers are divided as
whole numbers. (Variances of groups are computed as DOUBLE, and cast.)"""

from __future__ import annotations

from dataclasses import replace

from flinkpy.common.logical_types.logical_type import BigIntType, DoubleType, LogicalType, RowField
from flinkpy.sql.logical.logical_nodes import LogicalNode, LogicalOver, input_of, project, row_of
from flinkpy.sql.rex.coercion import cast
from flinkpy.sql.rex.relational_terms import OverGroup
from flinkpy.sql.rex.rex_nodes import AggregateCall, Rex, RexCall, RexInput, RexLiteral
from flinkpy.sql.rules.conditions import comparison
from flinkpy.sql.rules.rule_phases import RuleContext

_DEVIATIONS = frozenset(["STDDEV_POP", "STDDEV_SAMP", "STDDEV"])
_OF_ALL = frozenset(["VAR_POP", "STDDEV_POP"])
_VARIANCES = _DEVIATIONS | {"VAR_POP", "VAR_SAMP", "VARIANCE"}
_BIG = BigIntType()


def variances_of_over(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """Rewrites them all at once."""
    if not isinstance(node, LogicalOver) or not any(
        call.function in _VARIANCES for group in node.groups for call in group.calls
    ):
        return None
    return _Rewritten(node).plan()


class _Rewritten:
    """The node over one that also has squares, and what is computed from its results."""

    def __init__(self, node: LogicalOver) -> None:
        self._node = node
        below = node.input
        self._columns: list[Rex] = [input_of(below, at) for at in range(below.width)]
        self._calls: list[list[AggregateCall]] = []

    def plan(self) -> LogicalNode:
        node = self._node
        wanted = [[self._parts(call) for call in group.calls] for group in node.groups]
        names = [*node.input.schema.names]
        names += [f"$square{at}" for at in range(len(self._columns) - len(names))]
        input = project(node.input, self._columns, names)
        fields = [*input.schema.fields]
        results: list[Rex] = [input_of(input, at) for at in range(node.input.width)]
        groups: list[OverGroup] = []
        for group, parts in zip(node.groups, wanted):
            calls: list[AggregateCall] = []
            for call, made in zip(group.calls, parts):
                first = len(fields)
                calls += made
                fields += [RowField(f"$over{first + at}", one.type) for at, one in enumerate(made)]
                given = [RexInput(one.type, index=first + at) for at, one in enumerate(made)]
                results.append(given[0] if len(made) == 1 else _computed(call, given))
            groups.append(replace(group, calls=tuple(calls)))
        over = LogicalOver(row_of(fields), input, tuple(groups))
        return project(over, results, node.schema.names)

    def _parts(self, call: AggregateCall) -> list[AggregateCall]:
        """The calls that the result of this one is computed from: of squares, of values, and how
        many there are."""
        if call.function not in _VARIANCES:
            return [call]
        [at] = call.arguments
        kind = call.type.with_nullable(True)
        value = cast(input_of(self._node.input, at), kind)
        square = RexCall(kind, function="*", arguments=(value, value))
        sums = [
            replace(call, function="SUM", arguments=(self._place(each),), type=kind)
            for each in (square, value)
        ]
        count = replace(call, function="COUNT", arguments=(at,), type=_BIG)
        return [*sums, count]

    def _place(self, column: Rex) -> int:
        if column not in self._columns:
            self._columns.append(column)
        return self._columns.index(column)


def _divided(value: Rex, by: Rex, kind: LogicalType) -> Rex:
    return RexCall(kind, function="/", arguments=(value, cast(by, kind)))


def _computed(call: AggregateCall, given: list[RexInput]) -> Rex:
    squares, total, count = given
    kind = squares.type
    product = RexCall(kind, function="*", arguments=(total, total))
    share = _divided(product, count, kind)
    moment = RexCall(kind, function="-", arguments=(squares, share))
    divisor: Rex = count
    if call.function not in _OF_ALL:
        one = RexLiteral(_BIG.with_nullable(False), value=1)
        nothing = RexLiteral(_BIG, value=None)
        is_one = comparison(count, one)
        less = RexCall(_BIG, function="-", arguments=(count, one))
        divisor = RexCall(_BIG, function="CASE", arguments=(is_one, nothing, less))
    variance = _divided(moment, divisor, kind)
    if call.function not in _DEVIATIONS:
        return cast(variance, call.type)
    half = RexLiteral(DoubleType(is_nullable=False), value=0.5)
    number = cast(variance, DoubleType())
    root = RexCall(DoubleType(), function="POWER", arguments=(number, half))
    return cast(root, call.type)
