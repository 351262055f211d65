"""Operator ids: the same program has the same ids on every machine and in every run, so that state
can be restored to its operator.

An id set by the user has precedence: ``uid`` is hashed, ``uid_hash`` is used as it is. Otherwise
the id is computed from the operator's kind and, for each input, from the id of the operator that it
reads, the input's number, and the side output. Operators for which all this is equal are told apart
by their order in the program.

A source has no inputs. It is identified by its class and name and, if several sources of a program
share both, by their configuration. So the sides of a union may change places. Only between equal
sources does the order in the program decide. (Flink's own hash has neither rule.)

Deliberately left out are names and functions (so that renaming or editing a lambda keeps its
state), parallelism and chaining (so that rescaling, or switching chaining off to debug, does too),
and the position among unrelated operators (so that a branch added elsewhere changes nothing here;
Flink's own hash counts the nodes visited before, so it does change)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import IntermediateDataSetId, JobVertexId, OperatorId
from flinkpy.graph.source_identity import described
from flinkpy.graph.stream_graph import NodeKind, StreamEdge, StreamGraph, StreamNode

_HASH = re.compile(r"[0-9a-f]{32}")


def digest(*parts: str) -> str:
    """A 128-bit hash of the parts. Each part is prefixed with its length, so that different lists
    of parts never have the same bytes."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big") + data)
    return hasher.hexdigest()


def operator_ids(graph: StreamGraph) -> dict[int, OperatorId]:
    """The operator id of every node. Raises ProgramError for a malformed ``uid_hash``, and if two
    operators get the same id."""
    ids: dict[int, OperatorId] = {}
    owners: dict[str, StreamNode] = {}
    equals: dict[str, int] = {}
    sources = _sources(graph)
    for node in sorted(graph.nodes.values(), key=_depth_then_program_order(graph)):
        found = _given(node)
        if found is None:
            place = _place(node, graph, ids, sources.get(node.id, ""))
            ordinal = equals.get(place, 0)
            equals[place] = ordinal + 1
            found = digest("place", place, str(ordinal))
        other = owners.setdefault(found, node)
        if other is not node:
            raise ProgramError(
                f"{other.label} and {node.label} have the same operator id {found}; give each "
                "its own uid"
            )
        ids[node.id] = OperatorId(found)
    return ids


def data_set_id(vertex: JobVertexId, output_index: int) -> IntermediateDataSetId:
    """The id of the data set of one of a vertex's network outputs."""
    return IntermediateDataSetId(digest("data set", vertex, str(output_index)))


def _given(node: StreamNode) -> str | None:
    if node.uid_hash is not None:
        if not _HASH.fullmatch(node.uid_hash):
            raise ProgramError(
                f"the uid hash {node.uid_hash!r} of {node.label} is not made of 32 "
                "hexadecimal digits in lower case; "
                "to name the operator freely use uid()"
            )
        return node.uid_hash
    return digest("uid", node.uid) if node.uid is not None else None


def _place(node: StreamNode, graph: StreamGraph, ids: dict[int, OperatorId], source: str) -> str:
    """A hash of the node's kind and inputs. Inputs are sorted, because a union reads its inputs in
    any order."""
    inputs = sorted(
        f"{edge.input_index}:{ids[edge.source]}:{edge.side_tag!r}"
        for edge in _read_through_local_phases(node, graph)
    )
    operator = node.operator
    while hasattr(operator, "wrapped"):  # an error policy changes no id
        operator = operator.wrapped
    return digest(node.kind.value, type(operator).__qualname__, source, *inputs)


def _read_through_local_phases(node: StreamNode, graph: StreamGraph) -> Iterator[StreamEdge]:
    """The node's inputs as the program defines them: local phases are skipped, because they depend
    on the parallelism."""
    for edge in node.in_edges:
        source = graph.nodes[edge.source]
        yield source.in_edges[0] if source.is_local_phase else edge


def _sources(graph: StreamGraph) -> dict[int, str]:
    """The identity of each source without an id set by the user."""
    alike: dict[str, list[StreamNode]] = {}
    for node in graph.nodes.values():
        if node.kind is NodeKind.SOURCE and _given(node) is None:
            alike.setdefault(digest(type(_read_by(node)).__qualname__, node.name), []).append(node)
    return {
        node.id: what if len(nodes) == 1 else digest(what, described(_read_by(node)))
        for what, nodes in alike.items()
        for node in nodes
    }


def _read_by(node: StreamNode) -> Any:
    """The Source or SourceFunction that a source's operator reads."""
    for name in ("source", "function"):
        found = getattr(node.operator, name, None)
        if found is not None:
            return found
    return node.operator


def _depth_then_program_order(graph: StreamGraph) -> Callable[[StreamNode], tuple[float, int]]:
    """A sort key: inputs first; otherwise the order of the program, whichever sink was registered
    first. A local phase changes nobody's position."""
    depth: dict[int, float] = {}
    for node in graph.nodes.values():
        deepest = max((int(depth[edge.source]) for edge in node.in_edges), default=-1)
        depth[node.id] = deepest + (0.5 if node.is_local_phase else 1)
    return lambda node: (depth[node.id], node.id)
