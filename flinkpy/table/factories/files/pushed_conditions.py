"""Conditions that a plan hands to a scan, as expressions over columns: what a source of files can
make use of. Others are left out, as the plan applies all of them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

from flinkpy.columns import Expression, col, lit
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, RexLiteral

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


def expression_of(filters: Sequence[Rex], names: Sequence[str]) -> Expression | None:
    """All filters that have a meaning for files, together; None if there is none."""
    found = [made for each in filters if (made := _expression(each, names)) is not None]
    return reduce(and_, found) if found else None


def _expression(rex: Rex, names: Sequence[str]) -> Expression | None:
    if not isinstance(rex, RexCall):
        return None
    if rex.function in ("AND", "OR"):
        parts = [_expression(each, names) for each in rex.arguments]
        present = [part for part in parts if part is not None]
        if rex.function == "AND":
            return reduce(and_, present) if present else None
        return reduce(or_, present) if len(present) == len(parts) else None
    if rex.function == "IN":
        value, *members = (_operand(each, names) for each in rex.arguments)
        if value is None or any(member is None for member in members):
            return None
        either: Expression = reduce(or_, [eq(value, member) for member in members])
        return either
    compare = _COMPARISONS.get(rex.function)
    if compare is None or len(rex.arguments) != 2:
        return None
    left, right = (_operand(each, names) for each in rex.arguments)
    return None if left is None or right is None else compare(left, right)


def _operand(rex: Rex, names: Sequence[str]) -> Expression | None:
    if isinstance(rex, RexInput):
        return col(names[rex.index])
    if isinstance(rex, RexLiteral) and rex.value is not None:
        return lit(rex.value)
    return None
