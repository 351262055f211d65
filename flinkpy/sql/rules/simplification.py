"""Conditions in their simplest form: constants taken out, common parts of alternatives in front."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.sql.logical.logical_nodes import LogicalFilter, LogicalJoin, LogicalNode
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, RexLiteral, rewritten
from flinkpy.sql.rules.conditions import (
    FALSE,
    TRUE,
    conjunction,
    conjuncts,
    disjunction,
    disjuncts,
    is_call,
    is_true,
)
from flinkpy.sql.rules.constant_folding import folded
from flinkpy.sql.rules.rule_phases import RuleContext

_OPPOSITE = {"IS NULL": "IS NOT NULL", "IS NOT NULL": "IS NULL"}


def expressions_simplified(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """All expressions of a node."""

    def change(each: Rex) -> Rex:
        return simplified(each, context)

    simpler = tuple(rewritten(each, change) for each in node.expressions)
    if all(new is old for new, old in zip(simpler, node.expressions)):
        return None
    if isinstance(node, LogicalJoin) and simpler and is_true(simpler[0]):
        return replace(node, condition=None)
    return node.with_expressions(simpler)


def simplified(rex: Rex, context: RuleContext) -> Rex:
    """One step, with simple operands."""
    if not isinstance(rex, RexCall):
        return rex
    constant = folded(rex, context)
    if constant is not None:
        return constant
    if rex.function in ("AND", "OR"):
        return _junction(rex)
    if rex.function == "NOT":
        return _negation(rex)
    if rex.function in _OPPOSITE:
        operand = rex.operands[0]
        if isinstance(operand, RexLiteral):
            return _truth((operand.value is None) == (rex.function == "IS NULL"))
        if not operand.type.is_nullable:
            return _truth(rex.function == "IS NOT NULL")
        return rex
    if rex.function == "CASE":
        return _case(rex)
    if rex.function == "IN" and len(rex.operands) == 2:
        return replace(rex, function="=")
    return rex


def _truth(value: bool) -> Rex:
    return TRUE if value else FALSE


def _junction(rex: RexCall) -> Rex:
    """AND without true, OR without false; one part that decides is the whole."""
    is_and = rex.function == "AND"
    parts: dict[Rex, None] = {}
    for each in rex.arguments:
        inner = each.operands if is_call(each, rex.function) else (each,)
        for part in inner:
            if isinstance(part, RexLiteral) and part.value is not None:
                if part.value is is_and:
                    continue
                return _truth(not is_and)
            parts[part] = None
    if not parts:
        return _truth(is_and)
    if len(parts) == 1:
        return next(iter(parts))
    if tuple(parts) == rex.arguments:
        return rex
    return replace(rex, arguments=tuple(parts))


def _negation(rex: RexCall) -> Rex:
    operand = rex.operands[0]
    if isinstance(operand, RexLiteral):
        return operand if operand.value is None else _truth(not operand.value)
    if is_call(operand, "NOT"):
        return operand.operands[0]
    if isinstance(operand, RexCall) and operand.function in _OPPOSITE:
        return replace(operand, function=_OPPOSITE[operand.function])
    return rex


def _case(rex: RexCall) -> Rex:
    branches: list[Rex] = []
    *pairs, otherwise = rex.arguments
    changed = False
    for condition, value in zip(pairs[::2], pairs[1::2]):
        if isinstance(condition, RexLiteral) and condition.value is not True:
            changed = True
            continue
        if is_true(condition):
            changed = True
            otherwise = value
            break
        branches += [condition, value]
    if not changed:
        return rex
    return replace(rex, arguments=(*branches, otherwise)) if branches else otherwise


def common_parts_in_front(node: LogicalNode, context: RuleContext) -> LogicalNode | None:
    """``(a AND b) OR (a AND c)`` is ``a AND (b OR c)``, so that ``a`` can be a key or be pushed."""
    if not isinstance(node, (LogicalFilter, LogicalJoin)) or node.condition is None:
        return None
    parts: list[Rex] = []
    changed = False
    for each in conjuncts(node.condition):
        found = _factored(each)
        parts += found or [each]
        changed = changed or found is not None
    if not changed:
        return None
    condition = conjunction(parts) or TRUE
    return replace(node, condition=condition)


def _factored(condition: Rex) -> list[Rex] | None:
    if not is_call(condition, "OR"):
        return None
    alternatives = [conjuncts(each) for each in disjuncts(condition)]
    common = [each for each in alternatives[0] if all(each in other for other in alternatives)]
    if not common:
        return None
    rest = [conjunction([each for each in parts if each not in common]) for parts in alternatives]
    if any(each is None for each in rest):
        return common  # one alternative asks no more than what they share
    left = disjunction([each for each in rest if each is not None])
    assert left is not None
    return [*common, left]


SIMPLER = (expressions_simplified, common_parts_in_front)
