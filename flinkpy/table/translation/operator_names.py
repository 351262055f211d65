"""How operators are called in the web page, in metrics and in errors: as ``explain`` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flinkpy.sql.physical.physical_nodes import (
    Calc,
    Exchange,
    HashAggregate,
    HashJoin,
    PhysicalNode,
    Rank,
    Sort,
    TableScan,
)
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from flinkpy.sql.rex.rex_programs import rex_text

_LONGEST = 200


def operator_name(node: PhysicalNode) -> str:
    """The kind of the node and what it computes, cut where it is long."""
    parts = "; ".join(f"{name}=[{', '.join(texts)}]" for name, texts in _details(node) if texts)
    text = f"{type(node).__name__}({parts})" if parts else type(node).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _details(node: PhysicalNode) -> Iterable[tuple[str, Sequence[str]]]:
    if isinstance(node, TableScan):
        return [("table", [node.path.name]), ("fields", node.schema.names)]
    if isinstance(node, Calc):
        names = node.input.schema.names
        where = [] if node.condition is None else [rex_text(node.condition, names)]
        return [("select", [rex_text(each, names) for each in node.projections]), ("where", where)]
    if isinstance(node, HashAggregate):
        phase = [] if node.phase.value == "WHOLE" else [node.phase.value]
        names = node.input.schema.names
        if node.phase.value == "GLOBAL":
            return [("phase", phase), ("groupBy", node.schema.names[: len(node.keys)])]
        calls = [_call(call, names) for call in node.calls]
        return [("phase", phase), ("groupBy", [names[at] for at in node.keys]), ("select", calls)]
    if isinstance(node, HashJoin):
        left, right = node.left.schema.names, node.right.schema.names
        pairs = zip(node.left_keys, node.right_keys)
        both = (*left, *right)
        condition = [] if node.condition is None else [rex_text(node.condition, both)]
        on = [f"{left[one]} = {right[other]}" for one, other in pairs]
        return [("joinType", [node.kind.value]), ("on", on), ("where", condition)]
    if isinstance(node, Sort):
        return [("orderBy", _keys(node.keys, node.input.schema.names))]
    if isinstance(node, Rank):
        names = node.input.schema.names
        return [
            ("rankType", [node.function]),
            ("partitionBy", [names[at] for at in node.partition]),
            ("orderBy", _keys(node.keys, names)),
        ]
    if isinstance(node, Exchange):
        return [("hash", [node.input.schema.names[at] for at in node.keys])]
    return []


def _call(call: AggregateCall, names: Sequence[str]) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    arguments = ", ".join(names[at] for at in call.arguments) or "*"
    where = "" if call.filter is None else f" FILTER (WHERE {names[call.filter]})"
    return f"{call.function}({distinct}{arguments}){where}"


def _keys(keys: Sequence[SortKey], names: Sequence[str]) -> list[str]:
    return [f"{names[key.index]} {'DESC' if key.descending else 'ASC'}" for key in keys]
