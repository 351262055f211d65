"""Expressions that stand only in a logical plan, and that binding or the first rules take out
again: columns of the query around, subqueries, aggregates, and aggregates over windows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from flinkpy.sql.rex.relational_terms import Frame
from flinkpy.sql.rex.rex_nodes import Rex

if TYPE_CHECKING:
    from flinkpy.sql.logical.logical_nodes import LogicalNode


@dataclass(frozen=True)
class RexOuter(Rex):
    """What the query around gives to this one: ``slot`` numbers the outer expressions that the
    subquery, or the lateral relation, lists."""

    slot: int = 0

    def __str__(self) -> str:
        return f"$cor{self.slot}"


@dataclass(frozen=True)
class RexSubquery(Rex):
    """A query within an expression. ``kind`` is SCALAR, EXISTS, IN or a comparison with ANY or ALL
    (``> ALL``). ``tested`` are the values before IN or the comparison, ``outer`` the expressions
    of the query around for each slot of the plan; both are over the input of this expression."""

    kind: str = "SCALAR"
    plan: LogicalNode | None = field(default=None, hash=False)  # tables have dicts
    tested: tuple[Rex, ...] = ()
    outer: tuple[Rex, ...] = ()

    @property
    def operands(self) -> tuple[Rex, ...]:
        return self.tested + self.outer

    def with_operands(self, operands: tuple[Rex, ...]) -> Rex:
        at = len(self.tested)
        return replace(self, tested=operands[:at], outer=operands[at:])

    @property
    def query(self) -> LogicalNode:
        """The plan, which is always there."""
        assert self.plan is not None
        return self.plan

    def __str__(self) -> str:
        tested = "".join(f"{each}, " for each in self.tested)
        return f"{self.kind}({tested}query)"


@dataclass(frozen=True)
class RexSort:
    """An expression by which rows are sorted."""

    value: Rex
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class RexAggregate(Rex):
    """An aggregate over expressions of the input, before it has a place in an Aggregate node."""

    function: str = ""
    arguments: tuple[Rex, ...] = ()
    distinct: bool = False
    filter: Rex | None = None
    order_by: tuple[RexSort, ...] = ()
    options: tuple[tuple[str, object], ...] = ()

    @property
    def operands(self) -> tuple[Rex, ...]:
        condition = () if self.filter is None else (self.filter,)
        return (*self.arguments, *(each.value for each in self.order_by), *condition)

    def with_operands(self, operands: tuple[Rex, ...]) -> Rex:
        arguments, rest = _taken(operands, len(self.arguments))
        keys, rest = _taken(rest, len(self.order_by))
        return replace(
            self,
            arguments=arguments,
            order_by=_sorted_by(self.order_by, keys),
            filter=rest[0] if rest else None,
        )

    def __str__(self) -> str:
        distinct = "DISTINCT " if self.distinct else ""
        return f"{self.function}({distinct}{', '.join(map(str, self.arguments)) or '*'})"


WHOLE_PARTITION = Frame("RANGE", None, None)


@dataclass(frozen=True)
class RexOver(Rex):
    """An aggregate over the rows around one."""

    aggregate: RexAggregate | None = None
    partition: tuple[Rex, ...] = ()
    order_by: tuple[RexSort, ...] = ()
    frame: Frame = WHOLE_PARTITION

    @property
    def call(self) -> RexAggregate:
        """The aggregate, which is always there."""
        assert self.aggregate is not None
        return self.aggregate

    @property
    def operands(self) -> tuple[Rex, ...]:
        keys = tuple(each.value for each in self.order_by)
        return (*self.call.operands, *self.partition, *keys)

    def with_operands(self, operands: tuple[Rex, ...]) -> Rex:
        inner, rest = _taken(operands, len(self.call.operands))
        partition, keys = _taken(rest, len(self.partition))
        call = self.call.with_operands(inner)
        assert isinstance(call, RexAggregate)
        return replace(
            self, aggregate=call, partition=partition, order_by=_sorted_by(self.order_by, keys)
        )

    def __str__(self) -> str:
        return f"{self.call} OVER"


def _taken(rexes: tuple[Rex, ...], count: int) -> tuple[tuple[Rex, ...], tuple[Rex, ...]]:
    return rexes[:count], rexes[count:]


def _sorted_by(order: tuple[RexSort, ...], values: tuple[Rex, ...]) -> tuple[RexSort, ...]:
    return tuple(replace(each, value=value) for each, value in zip(order, values))
