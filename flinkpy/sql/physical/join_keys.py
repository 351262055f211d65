"""The condition of a join in two parts: pairs of columns that must be equal, and the rest."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.sql.logical.logical_nodes import LogicalJoin
from flinkpy.sql.rex.rex_nodes import Rex, RexInput
from flinkpy.sql.rules.conditions import conjunction, conjuncts, is_call


@dataclass(frozen=True)
class JoinKeys:
    """Columns of the left and of the right that are equal; ``null_safe`` where two nulls are equal
    too. ``rest`` is the condition over both that remains."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    null_safe: tuple[bool, ...]
    rest: Rex | None


def keys_of(node: LogicalJoin) -> JoinKeys:
    """The keys of a join whose condition compares columns; expressions have been made columns by
    then."""
    width = node.left.width
    left: list[int] = []
    right: list[int] = []
    null_safe: list[bool] = []
    rest: list[Rex] = []
    for each in conjuncts(node.condition):
        pair = equal_columns(each, width)
        if pair is None:
            rest.append(each)
            continue
        left.append(pair[0])
        right.append(pair[1] - width)
        null_safe.append(is_call(each, "IS NOT DISTINCT FROM"))
    return JoinKeys(tuple(left), tuple(right), tuple(null_safe), conjunction(rest))


def equal_columns(condition: Rex, width: int) -> tuple[int, int] | None:
    """The two columns, one of each side, that a condition makes equal."""
    if not is_call(condition, "=", "IS NOT DISTINCT FROM"):
        return None
    one, other = condition.operands
    if not (isinstance(one, RexInput) and isinstance(other, RexInput)):
        return None
    first, second = sorted((one.index, other.index))
    return (first, second) if first < width <= second else None
