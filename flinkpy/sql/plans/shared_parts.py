"""Parts of a plan that are equal become one node, whose rows are computed once for all that read
them. A view or a WITH that is named twice gives such parts, and so does a sub-query over what the
query around it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from flinkpy.sql.physical.physical_nodes import PhysicalNode, with_inputs
from flinkpy.sql.rex.rex_nodes import Rex, RexCall, walk
from flinkpy.sql.rules.rule_phases import RuleContext


def with_shared_parts(root: PhysicalNode, rules: RuleContext) -> PhysicalNode:
    """The plan, for BATCH: there a part is read only when all of it is there. What gives other
    values each time is computed for each reader."""
    known: dict[tuple[object, ...], list[PhysicalNode]] = {}

    def shared(node: PhysicalNode) -> tuple[PhysicalNode, bool]:
        inputs = [shared(each) for each in node.inputs]
        if any(new is not old for (new, _), old in zip(inputs, node.inputs)):
            node = with_inputs(node, tuple(new for new, _ in inputs))
        if not all(is_same for _, is_same in inputs) or not _is_deterministic(node, rules):
            return node, False
        alike = known.setdefault((type(node), *(id(each) for each in node.inputs)), [])
        for each in alike:
            if each == node:  # their inputs are identical, so this compares one node
                return each, True
        alike.append(node)
        return node, True

    return shared(root)[0]


def _is_deterministic(node: PhysicalNode, rules: RuleContext) -> bool:
    return all(
        rules.is_deterministic(each.function)
        for field in fields(node)
        for rex in _expressions(getattr(node, field.name))
        for each in walk(rex)
        if isinstance(each, RexCall)
    )


def _expressions(value: object) -> Iterator[Rex]:
    if isinstance(value, Rex):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _expressions(each)
