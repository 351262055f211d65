"""The plan of a program: Flink's execution plan as JSON for tools, and a drawing for the
terminal."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from flinkpy.graph.job_graph_generator import Chains
from flinkpy.graph.stream_graph import NodeKind, StreamEdge, StreamGraph, StreamNode

_MIN_WIDTH = 24


def plan_json(stream_graph: StreamGraph) -> str:
    """The result of PyFlink's ``get_execution_plan()``: operators (not yet chained) and the streams
    between them."""
    return json.dumps(
        {
            "nodes": [
                _node_json(node)
                for node in sorted(stream_graph.nodes.values(), key=lambda node: node.id)
            ]
        },
        indent=2,
    )


def draw_plan(stream_graph: StreamGraph) -> str:
    """The job graph in the terminal: a box per task with its chained operators inside, and the
    streams that lead into it.

    ::

        ┌─ 1 ──────────────── x2 ─┐
        │ Source: words           │
        │ └─ Flat Map             │
        └─────────────────────────┘
            │ HASH from 1
            ▼
        ┌─ 2 ──────────────── x2 ─┐
        │ Sum                     │
        └─────────────────────────┘
    """
    chains = Chains(stream_graph)
    numbers = {
        member.id: number
        for number, head in enumerate(chains.heads, 1)
        for member in chains.members(head)
    }
    contents = {head: _tree(chains, stream_graph.nodes[head]) for head in chains.heads}
    width = max([_MIN_WIDTH, *(_width(line) + 2 for lines in contents.values() for line in lines)])
    lines: list[str] = []
    for number, head in enumerate(chains.heads, 1):
        lines += _arrows(stream_graph.nodes[head], numbers) or ([""] if lines else [])
        lines += _box(stream_graph.nodes[head], number, contents[head], width)
    return "\n".join(lines)


def draw_operators(stream_graph: StreamGraph) -> str:
    """What operators show of themselves, such as the automata of patterns."""
    parts = []
    for node in sorted(stream_graph.nodes.values(), key=lambda node: node.id):
        draw = getattr(node.operator, "drawing", None)
        drawn = None if draw is None else draw()
        if drawn is not None:
            lines = [node.label, *(f"    {line}" for line in drawn.splitlines())]
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _node_json(node: StreamNode) -> dict[str, Any]:
    pact = (
        "Data Source"
        if node.kind is NodeKind.SOURCE
        else "Data Sink"
        if node.is_sink
        else "Operator"
    )
    found: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": pact,
        "contents": node.description or node.name,
        "parallelism": node.parallelism,
    }
    if node.in_edges:
        found["predecessors"] = [
            {
                "id": edge.source,
                "ship_strategy": edge.partitioning.kind.value,
                "side": _side(node, edge),
            }
            for edge in node.in_edges
        ]
    return found


def _side(node: StreamNode, edge: StreamEdge) -> str:
    """Flink calls every input "second"; here the first input of an operator with two is called
    "first"."""
    return "first" if node.kind is NodeKind.TWO_INPUT and edge.input_index == 0 else "second"


def _tree(chains: Chains, head: StreamNode) -> list[str]:
    lines: list[str] = []
    # Node, indent, elbow, indent of its successors
    stack: list[tuple[StreamNode, str, str, str]] = [(head, "", "", "")]
    while stack:
        node, indent, elbow, below = stack.pop()
        lines.append(indent + elbow + node.name)
        chained = [edge for edge in node.out_edges if chains.is_chained(edge)]
        for position, edge in reversed(list(enumerate(chained))):
            is_last = position == len(chained) - 1
            tag = f"[{edge.side_tag}] " if edge.side_tag is not None else ""
            stack.append(
                (
                    chains.graph.nodes[edge.target],
                    below,
                    ("└─ " if is_last else "├─ ") + tag,
                    below + ("   " if is_last else "│  "),
                )
            )
    return lines


def _arrows(head: StreamNode, numbers: dict[int, int]) -> list[str]:
    if not head.in_edges:
        return []
    lines = []
    for edge in head.in_edges:
        side = f", side output {edge.side_tag!r}" if edge.side_tag is not None else ""
        which = f" (input {edge.input_index + 1})" if head.kind is NodeKind.TWO_INPUT else ""
        blocking = ", blocking" if edge.partition_type.is_blocking else ""
        lines.append(
            f"    │ {edge.partitioning.kind.value} from "
            f"{numbers[edge.source]}{side}{which}{blocking}"
        )
    return [*lines, "    ▼"]


def _box(head: StreamNode, number: int, contents: list[str], width: int) -> list[str]:
    left, right = f"─ {number} ", f" x{head.parallelism} ─"
    top = left + "─" * (width - len(left) - len(right)) + right
    return [
        f"┌{top}┐",
        *(f"│ {line}{' ' * (width - 1 - _width(line))}│" for line in contents),
        f"└{'─' * width}┘",
    ]


def _width(text: str) -> int:
    """The width of a text in terminal columns: East Asian characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
