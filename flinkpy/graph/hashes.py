"""Operator ids: the same program gives the same ids, on every machine and every run, so that state finds its operator again.

An id set by the user wins: ``uid`` is hashed, ``uid_hash`` taken as it is. Otherwise the id follows from where the operator stands: its
kind, and for each input who is read (by that operator's id), on which input and which side output. Operators that stand at equal places
are told apart by their order in the program.

A source stands nowhere: it is known by what it is, its class and name, and where several of a program have both in common, by how each is set up. So
the sides of a union may change places. Only of equal sources the order in the program decides. (Flink's own hash knows neither.)

What is deliberately left out: names of others and functions (so that renaming or editing a lambda keeps its state), parallelism and chaining (so
that rescaling, or switching chaining off to debug, does too), and the position among unrelated operators (so that a branch added elsewhere
changes nothing here; Flink's own hash counts the nodes visited before, and does change).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import IntermediateDataSetId, JobVertexId, OperatorId
from flinkpy.graph.source_identity import described
from flinkpy.graph.stream_graph import NodeKind, StreamGraph, StreamNode

_HASH = re.compile(r"[0-9a-f]{32}")


def digest(*parts: str) -> str:
    """128 bits over the parts; each is length-prefixed, so that no two lists of parts look alike."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big") + data)
    return hasher.hexdigest()


def operator_ids(graph: StreamGraph) -> dict[int, OperatorId]:
    """The operator id of every node. Raises ProgramError for a malformed ``uid_hash`` and when two operators come out alike."""
    ids: dict[int, OperatorId] = {}
    owners: dict[str, StreamNode] = {}
    equals: dict[str, int] = {}
    sources = _sources(graph)
    for node in sorted(graph.nodes.values(), key=_depth_then_program_order(graph)):
        found = _given(node)
        if found is None:
            place = _place(node, ids, sources.get(node.id, ""))
            ordinal = equals.get(place, 0)
            equals[place] = ordinal + 1
            found = digest("place", place, str(ordinal))
        other = owners.setdefault(found, node)
        if other is not node:
            raise ProgramError(f"{other.label} and {node.label} have the same operator id {found}; give each its own uid")
        ids[node.id] = OperatorId(found)
    return ids


def data_set_id(vertex: JobVertexId, output_index: int) -> IntermediateDataSetId:
    """The id of a vertex's result on one of its network outputs."""
    return IntermediateDataSetId(digest("data set", vertex, str(output_index)))


def _given(node: StreamNode) -> str | None:
    if node.uid_hash is not None:
        if not _HASH.fullmatch(node.uid_hash):
            raise ProgramError(f"the uid hash {node.uid_hash!r} of {node.label} is not made of 32 hexadecimal digits in lower case; "
                               "to name the operator freely use uid()")
        return node.uid_hash
    return digest("uid", node.uid) if node.uid is not None else None


def _place(node: StreamNode, ids: dict[int, OperatorId], source: str) -> str:
    """Where the node stands. A union reads its inputs in any order, so they are sorted."""
    inputs = sorted(f"{edge.input_index}:{ids[edge.source]}:{edge.side_tag!r}" for edge in node.in_edges)
    return digest(node.kind.value, type(node.operator).__qualname__, source, *inputs)


def _sources(graph: StreamGraph) -> dict[int, str]:
    """What each source without an id of its own is."""
    alike: dict[str, list[StreamNode]] = {}
    for node in graph.nodes.values():
        if node.kind is NodeKind.SOURCE and _given(node) is None:
            alike.setdefault(digest(type(_read_by(node)).__qualname__, node.name), []).append(node)
    return {node.id: what if len(nodes) == 1 else digest(what, described(_read_by(node))) for what, nodes in alike.items() for node in nodes}


def _read_by(node: StreamNode) -> Any:
    """The Source or SourceFunction that a source's operator reads."""
    for name in ("source", "function"):
        found = getattr(node.operator, name, None)
        if found is not None:
            return found
    return node.operator


def _depth_then_program_order(graph: StreamGraph) -> Callable[[StreamNode], tuple[int, int]]:
    """Inputs first, and among equals in the order the program made them, whichever sink was registered first."""
    depth: dict[int, int] = {}
    for node in graph.nodes.values():
        depth[node.id] = 1 + max((depth[edge.source] for edge in node.in_edges), default=-1)
    return lambda node: (depth[node.id], node.id)
