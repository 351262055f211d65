"""OVER: a call gets its window, and calls in expressions become columns of an Over node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flinkpy.common.logical_types.logical_type import IntegerType, RowField
from flinkpy.sql.binding.aggregation import NEVER_NULL, constants_of
from flinkpy.sql.binding.expression_binder import ExpressionBinder
from flinkpy.sql.binding.proposals import proposal
from flinkpy.sql.logical.logical_nodes import LogicalNode, LogicalOver, input_of, project, row_of
from flinkpy.sql.logical.logical_rex import WHOLE_PARTITION, RexAggregate, RexOver, RexSort
from flinkpy.sql.rex.relational_terms import Frame, OverGroup
from flinkpy.sql.rex.rex_nodes import (
    AggregateCall,
    Rex,
    RexInput,
    RexLiteral,
    SortKey,
    rewritten,
    walk,
)
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.query_tree import FrameBound, OverWindow

RANKING = frozenset(["ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "CUME_DIST", "PERCENT_RANK"])
_NEEDS_ORDER = RANKING | {"LAG", "LEAD"}
_SO_FAR = Frame("ROWS", None, 0)


@dataclass(frozen=True)
class OverBinder:
    """Binds windows of OVER; ``named`` are those of the WINDOW clause."""

    named: Mapping[str, OverWindow] = field(default_factory=dict)

    def bind_over(
        self, call: RexAggregate, window: OverWindow | str, binder: ExpressionBinder
    ) -> Rex:
        """The call over its window."""
        if isinstance(window, str):
            if window not in self.named:
                raise ValidationError(
                    f"Window '{window}' not found{proposal(window, self.named)}", span=call.span
                )
            window = self.named[window]
        order_by = tuple(binder.sort(each) for each in window.order_by)
        if call.function in _NEEDS_ORDER and not order_by:
            raise ValidationError(
                f"{call.function} needs an order: write OVER (... ORDER BY ...)", span=call.span
            )
        may_be_empty = call.function not in NEVER_NULL and _may_be_empty(window)
        return RexOver(
            call.type.with_nullable(True) if may_be_empty else call.type,
            aggregate=call,
            partition=tuple(map(binder.bind, window.partition_by)),
            order_by=order_by,
            frame=self._frame(call, window, order_by, binder),
            span=call.span,
        )

    def _frame(
        self,
        call: RexAggregate,
        window: OverWindow,
        order_by: Sequence[RexSort],
        binder: ExpressionBinder,
    ) -> Frame:
        if window.unit is None:
            if call.function in _NEEDS_ORDER:
                return _SO_FAR
            return Frame("RANGE", None, 0) if order_by else WHOLE_PARTITION
        if call.function in _NEEDS_ORDER:
            raise ValidationError(
                f"ROWS or RANGE not allowed with {call.function}: it has no frame", span=call.span
            )
        if not order_by:
            raise ValidationError(
                f"{window.unit} needs an order: write OVER (... ORDER BY ...)", span=window.span
            )
        current = FrameBound("CURRENT ROW")
        lower = _offset(window.lower, binder)
        upper = _offset(window.upper or current, binder)
        return Frame(window.unit, lower, upper)


def _may_be_empty(window: OverWindow) -> bool:
    """Whether the result's type has it that the frame may have no row. As in Flink any frame with
    an offset may, also one that has the current row."""
    bounds = (window.lower, window.upper)
    return any(bound is not None and bound.offset is not None for bound in bounds)


def _offset(bound: FrameBound | None, binder: ExpressionBinder) -> object:
    if bound is None or bound.kind.startswith("UNBOUNDED"):
        return None
    if bound.kind == "CURRENT ROW":
        return 0
    assert bound.offset is not None
    value = binder.bind(bound.offset)
    if not isinstance(value, RexLiteral) or not isinstance(value.value, (int, float)):
        raise ValidationError(
            "The bound of a window is a constant: a number of rows, or an interval",
            span=bound.offset.span,
        )
    if isinstance(value.type, IntegerType) and value.value < 0:
        raise ValidationError(
            "The bound of a window is not negative; write PRECEDING or FOLLOWING for the side",
            span=bound.offset.span,
        )
    return -value.value if bound.kind == "PRECEDING" else value.value


def with_over(plan: LogicalNode, values: Sequence[Rex]) -> tuple[LogicalNode, list[Rex]]:
    """The relation with a column for each call with OVER within ``values``, and the values over
    these columns."""
    calls = list(
        dict.fromkeys(part for each in values for part in walk(each) if isinstance(part, RexOver))
    )
    if not calls:
        return plan, list(values)
    columns = _Columns(plan)
    members: dict[tuple[object, ...], list[RexOver]] = {}
    for call in calls:
        _refuse_nested(call)
        members.setdefault((call.partition, call.order_by, call.frame), []).append(call)
    groups = [columns.group(each) for each in members.values()]
    below = plan if len(columns.values) == plan.width else columns.projected(plan)
    ordered = [call for each in members.values() for call in each]
    fields = [RowField(f"w{place}", call.type) for place, call in enumerate(ordered)]
    over = LogicalOver(row_of((*below.schema.fields, *fields)), below, tuple(groups))
    places = {
        call: RexInput(call.type, index=below.width + place) for place, call in enumerate(ordered)
    }

    def change(each: Rex) -> Rex:
        return places.get(each, each) if isinstance(each, RexOver) else each

    return over, [rewritten(each, change) for each in values]


class _Columns:
    """The columns below an Over node: those of its input, and what windows need beside them."""

    def __init__(self, plan: LogicalNode) -> None:
        self.values: list[Rex] = [input_of(plan, index) for index in range(plan.width)]

    def group(self, calls: Sequence[RexOver]) -> OverGroup:
        """The calls of one window."""
        first = calls[0]
        return OverGroup(
            tuple(map(self._place, first.partition)),
            self._sort_keys(first.order_by),
            first.frame,
            tuple(self._call(each.call, each) for each in calls),
        )

    def _call(self, value: RexAggregate, over: RexOver) -> AggregateCall:
        return AggregateCall(
            value.function,
            tuple(map(self._place, value.arguments)),
            over.type,
            value.distinct,
            None if value.filter is None else self._place(value.filter),
            self._sort_keys(value.order_by),
            value.options,
            constants_of(value),
        )

    def _place(self, value: Rex) -> int:
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)

    def _sort_keys(self, order: Sequence[RexSort]) -> tuple[SortKey, ...]:
        return tuple(
            SortKey(self._place(each.value), each.descending, each.nulls_first) for each in order
        )

    def projected(self, plan: LogicalNode) -> LogicalNode:
        names = [*plan.schema.names, *(f"$o{i}" for i in range(plan.width, len(self.values)))]
        return project(plan, self.values, names)


def _refuse_nested(call: RexOver) -> None:
    for operand in call.operands:
        if any(isinstance(part, RexOver) for part in walk(operand)):
            raise ValidationError(
                "A window within a window is illegal; compute the inner one in a subquery",
                span=call.span,
            )


def refuse_over(value: Rex, clause: str) -> None:
    """Refuses OVER where rows are not there yet."""
    for each in walk(value):
        if isinstance(each, RexOver):
            raise ValidationError(
                f"Windowed aggregate expression is illegal in {clause} clause; use QUALIFY, or "
                "compute it in a subquery",
                span=each.span,
            )
