"""What EXPLAIN PLAN_ADVICE says: where another form of the statement would cost less."""

from __future__ import annotations

from collections.abc import Iterator

from flinkpy.sql.physical.physical_nodes import AppendJoin, HashJoin, PhysicalNode


def advice_text(root: PhysicalNode) -> str:
    """A line for each piece of advice, in Flink's form."""
    found = [
        f"advice[{number}]: [ADVICE] operator {node.id}: {advice}"
        for number, (node, advice) in enumerate(_advice(root, set()), 1)
    ]
    return "\n".join(found) or "No available advice..."


def _advice(node: PhysicalNode, seen: set[int]) -> Iterator[tuple[PhysicalNode, str]]:
    if node.id in seen:
        return
    seen.add(node.id)
    for each in node.inputs:
        yield from _advice(each, seen)
    if isinstance(node, (HashJoin, AppendJoin)) and not node.left_keys:
        yield (
            node,
            "each row of one side meets each row of the other; a condition such as "
            "a.id = b.id lets rows meet by their key",
        )
    if isinstance(node, AppendJoin):
        yield (
            node,
            "the rows of both sides are kept for ever; a join of windows, or between times "
            "(a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts), drops those that are too old",
        )
