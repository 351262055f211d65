"""How rules are applied: a rule is a function from a node to another one or to None; the rules of a
phase are applied to every node until none of them has anything to say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flinkpy.sql.functions.function_port import FunctionRegistry
from flinkpy.sql.logical.logical_nodes import LogicalNode

_ROUNDS = 100


@dataclass(frozen=True)
class RuleContext:
    """What rules may ask. ``is_batch``: all inputs end, and sizes are worth a thought."""

    registry: FunctionRegistry
    is_batch: bool = True
    zone: str = "UTC"

    def is_deterministic(self, function: str) -> bool:
        found = self.registry.find(function)
        return found is None or found.deterministic


Rule = Callable[[LogicalNode, RuleContext], "LogicalNode | None"]


@dataclass(frozen=True)
class Phase:
    """Rules that are applied together, to a fixed point."""

    name: str
    rules: tuple[Rule, ...]

    def applied(self, node: LogicalNode, context: RuleContext) -> LogicalNode:
        for _ in range(_ROUNDS):
            changed = _pass(node, self.rules, context)
            if changed is node:
                return node
            node = changed
        return node


def _pass(node: LogicalNode, rules: Sequence[Rule], context: RuleContext) -> LogicalNode:
    """One way down and up again."""
    node = _here(node, rules, context)
    inputs = tuple(_pass(each, rules, context) for each in node.inputs)
    if any(new is not old for new, old in zip(inputs, node.inputs)):
        node = _here(node.with_inputs(inputs), rules, context)
    return node


def _here(node: LogicalNode, rules: Sequence[Rule], context: RuleContext) -> LogicalNode:
    for _ in range(_ROUNDS):
        for rule in rules:
            changed = rule(node, context)
            if changed is not None and changed is not node:
                node = changed
                break
        else:
            return node
    return node
