"""What EXPLAIN PLAN_ADVICE says: where another form of the statement would cost less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flinkpy.sql.physical.physical_nodes import HashJoin, PhysicalNode, RegularJoin


def advice_text(root: PhysicalNode, warnings: Sequence[str] = ()) -> str:
    """A line for each piece of advice, in Flink's form."""
    found = [f"[WARNING] {each}" for each in warnings]
    found += [f"[ADVICE] operator {node.id}: {each}" for node, each in _advice(root, set())]
    lines = [f"advice[{number}]: {each}" for number, each in enumerate(found, 1)]
    return "\n".join(lines) or "No available advice..."


def _advice(node: PhysicalNode, seen: set[int]) -> Iterator[tuple[PhysicalNode, str]]:
    if node.id in seen:
        return
    seen.add(node.id)
    for each in node.inputs:
        yield from _advice(each, seen)
    if isinstance(node, (HashJoin, RegularJoin)) and not node.left_keys:
        yield (
            node,
            "each row of one side meets each row of the other; a condition such as "
            "a.id = b.id lets rows meet by their key",
        )
    if isinstance(node, RegularJoin) and not (node.left_ttl_ms and node.right_ttl_ms):
        yield (
            node,
            "the rows of both sides are kept for ever; a join of windows, or between times "
            "(a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts), drops those that are too old, and "
            "table.exec.state.ttl those that rest",
        )
