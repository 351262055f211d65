"""Joins whose condition keeps the event times of both rows near each other."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.common.logical_types.logical_type import (
    DayTimeIntervalType,
    LocalZonedTimestampType,
    LogicalType,
    TimeAttribute,
    TimestampType,
)
from flinkpy.sql.logical.logical_nodes import LogicalJoin
from flinkpy.sql.physical.join_keys import keys_of
from flinkpy.sql.rex.relational_terms import Interval, JoinKind
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, RexLiteral
from flinkpy.sql.rules.conditions import MIRRORED, conjunction, conjuncts, is_call

_OF_PAIRS = (JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)


def time_mark(type: LogicalType) -> TimeAttribute | None:
    """Which time a column is, if it is one."""
    if isinstance(type, (TimestampType, LocalZonedTimestampType)):
        return type.time_attribute
    return None


@dataclass(frozen=True)
class IntervalCondition:
    """The condition of an interval join: the interval, and what else must be true."""

    interval: Interval
    rest: Rex | None


@dataclass(frozen=True)
class _Bound:
    """``right - left`` is at least (``is_upper``: at most) this many milliseconds."""

    left: int
    right: int
    distance: int
    is_upper: bool


def interval_condition(node: LogicalJoin) -> IntervalCondition | None:
    """How near the times are; None if the condition does not bound them on both sides."""
    if node.kind not in _OF_PAIRS:
        return None
    parts = conjuncts(node.condition)
    bounds = [_bounds_of(each, node) for each in parts]
    pairs = dict.fromkeys((each.left, each.right) for found in bounds for each in found)
    for left, right in pairs:
        mine = [
            each for found in bounds for each in found if (each.left, each.right) == (left, right)
        ]
        lower = [each.distance for each in mine if not each.is_upper]
        upper = [each.distance for each in mine if each.is_upper]
        if lower and upper:
            used = {part for part, found in zip(parts, bounds) if {*found} & {*mine}}
            rest = [part for part in conjuncts(keys_of(node).rest) if part not in used]
            interval = Interval(left, right - node.left.width, max(lower), min(upper))
            return IntervalCondition(interval, conjunction(rest))
    return None


def _bounds_of(condition: Rex, node: LogicalJoin) -> list[_Bound]:
    """What a comparison of a left with a right event time says about their distance."""
    if not is_call(condition, "=", "<", "<=", ">", ">="):
        return []
    assert isinstance(condition, RexCall)
    one, other = (_shifted_time(each) for each in condition.operands)
    if one is None or other is None:
        return []
    function = condition.function
    if one[0] > other[0]:
        one, other, function = other, one, MIRRORED[function]
    (left, left_shift), (right, right_shift) = one, other
    if not left < node.left.width <= right:
        return []
    # left + its shift FUNCTION right + its shift; times are whole milliseconds
    distance = left_shift - right_shift
    lower = _Bound(left, right, distance + (function == "<"), is_upper=False)
    upper = _Bound(left, right, distance - (function == ">"), is_upper=True)
    if function == "=":
        return [lower, upper]
    return [lower] if function in ("<", "<=") else [upper]


def _shifted_time(value: Rex) -> tuple[int, int] | None:
    """A column of event time and the milliseconds that are added to it."""
    shift = 0
    while is_call(value, "+", "-"):
        assert isinstance(value, RexCall)
        value, by = _with_time_first(value)
        if not (isinstance(by, RexLiteral) and isinstance(by.type, DayTimeIntervalType)):
            return None
        if not isinstance(by.value, int):
            return None
        shift += by.value
    if isinstance(value, RexInput) and time_mark(value.type) is TimeAttribute.ROWTIME:
        return value.index, shift
    return None


def _with_time_first(call: RexCall) -> tuple[Rex, Rex]:
    one, other = call.operands
    if call.function == "-" and isinstance(other, RexLiteral) and isinstance(other.value, int):
        return one, RexLiteral(other.type, -other.value)
    if call.function == "+" and isinstance(one, RexLiteral):
        return other, one
    return one, other
