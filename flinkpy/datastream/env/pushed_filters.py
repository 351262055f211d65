"""Filters right behind a source, as the source may know of them: then it need not read what they
would drop.

The filters stay where they are. So a source may take from them what it likes, and the result is the
same."""

from __future__ import annotations

from flinkpy.graph.stream_graph import NodeKind, StreamGraph, StreamNode


def push_filters(graph: StreamGraph) -> None:
    """Hands the filter behind each source to it, if nothing else reads the source. An operator has
    ``pushed_filter`` if it only drops records, and a source's operator ``with_filter`` if it can
    make use of that."""
    for node in graph.nodes.values():
        if node.kind is not NodeKind.SOURCE or not hasattr(node.operator, "with_filter"):
            continue
        reader = _only_reader(graph, node)
        while (
            reader is not None
            and (expression := getattr(reader.operator, "pushed_filter", None)) is not None
        ):
            node.operator = node.operator.with_filter(expression)
            reader = _only_reader(graph, reader)


def _only_reader(graph: StreamGraph, node: StreamNode) -> StreamNode | None:
    """The operator that alone reads the node's records, and nothing else."""
    if len(node.out_edges) != 1 or node.out_edges[0].side_tag is not None:
        return None
    reader = graph.nodes[node.out_edges[0].target]
    return reader if len(reader.in_edges) == 1 else None
