"""The graph of a program that has not run yet, for a notebook."""

from __future__ import annotations

from html import escape

from flinkpy.cluster.display.graph_drawing import Card, draw, operators_of
from flinkpy.graph.job_graph_generator import Chains
from flinkpy.graph.stream_graph import StreamGraph


def plan_html(stream_graph: StreamGraph, title: str) -> str:
    """Its vertices, as they would run, in HTML; all text is escaped."""
    chains = Chains(stream_graph)
    numbers = {
        member.id: number
        for number, head in enumerate(chains.heads)
        for member in chains.members(head)
    }

    def card(head: int) -> Card:
        node = stream_graph.nodes[head]
        inputs = tuple(
            (numbers[edge.source], edge.partitioning.kind.value) for edge in node.in_edges
        )
        return Card(
            operators_of(chains.name(head)),
            (f"{node.parallelism} subtask{'s' if node.parallelism > 1 else ''}", "quiet"),
            inputs=inputs,
        )

    return draw(escape(title), [card(head) for head in chains.heads])
