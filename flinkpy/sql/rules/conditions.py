"""Conditions in parts: conjunctions taken apart and put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flinkpy.common.logical_types.logical_type import BooleanType
from flinkpy.sql.logical.logical_rex import RexOver, RexSubquery
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexInput, RexLiteral, inputs_of, rewritten, walk

TRUE = RexLiteral(BooleanType(is_nullable=False), value=True)
FALSE = RexLiteral(BooleanType(is_nullable=False), value=False)
COMPARISONS = frozenset(["=", "<>", "<", "<=", ">", ">="])
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def conjuncts(condition: Rex | None) -> list[Rex]:
    """The parts that all have to be true, each once."""
    found: dict[Rex, None] = {}
    pending = [] if condition is None else [condition]
    while pending:
        each = pending.pop()
        if is_call(each, "AND"):
            pending.extend(reversed(each.operands))
        elif not is_true(each):
            found[each] = None
    return list(found)


def disjuncts(condition: Rex) -> list[Rex]:
    """The parts of which one has to be true."""
    found: list[Rex] = []
    pending = [condition]
    while pending:
        each = pending.pop()
        if is_call(each, "OR"):
            pending.extend(reversed(each.operands))
        else:
            found.append(each)
    return found


def conjunction(conditions: Iterable[Rex]) -> Rex | None:
    """All of them; None if there is none."""
    return _joined("AND", list(conditions))


def disjunction(conditions: Iterable[Rex]) -> Rex | None:
    """One of them; None if there is none."""
    return _joined("OR", list(conditions))


def _joined(name: str, parts: Sequence[Rex]) -> Rex | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    nullable = any(each.type.is_nullable for each in parts)
    return RexCall(BooleanType(is_nullable=nullable), function=name, arguments=tuple(parts))


def is_call(rex: Rex, *names: str) -> bool:
    """Whether it is a call of one of these functions."""
    return isinstance(rex, RexCall) and rex.function in names


def is_true(rex: Rex | None) -> bool:
    return isinstance(rex, RexLiteral) and rex.value is True


def is_never_true(rex: Rex | None) -> bool:
    return isinstance(rex, RexLiteral) and rex.value in (False, None)


def comparison(left: Rex, right: Rex, function: str = "=") -> Rex:
    """A comparison of two values of one type."""
    nullable = left.type.is_nullable or right.type.is_nullable
    if function.startswith("IS "):
        nullable = False
    return RexCall(BooleanType(is_nullable=nullable), function=function, arguments=(left, right))


def negation(value: Rex) -> Rex:
    return RexCall(value.type, function="NOT", arguments=(value,))


def test_of(function: str, value: Rex) -> Rex:
    """IS NULL and the like."""
    return RexCall(BooleanType(is_nullable=False), function=function, arguments=(value,))


def is_plain(rex: Rex) -> bool:
    """Whether no subquery and no window stands in it."""
    return not any(isinstance(each, (RexSubquery, RexOver)) for each in walk(rex))


def replaced_inputs(rex: Rex, columns: Sequence[Rex]) -> Rex:
    """The expression over what the columns are made of: input ``i`` becomes ``columns[i]``."""

    def change(each: Rex) -> Rex:
        return columns[each.index] if isinstance(each, RexInput) else each

    return rewritten(rex, change)


def moved_inputs(rex: Rex, places: dict[int, int]) -> Rex:
    """The expression over columns that stand elsewhere."""

    def change(each: Rex) -> Rex:
        if isinstance(each, RexInput):
            return RexInput(each.type, index=places[each.index], span=each.span)
        return each

    return rewritten(rex, change)


def is_over(rex: Rex, first: int, end: int) -> bool:
    """Whether it reads only columns from ``first`` to before ``end``."""
    return all(first <= index < end for index in inputs_of(rex))
