"""What holds of the graphs of every program."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.ids import JobId
from flinkpy.graph.chain_config import ChainedEdge, NetworkEdge
from flinkpy.graph.hashes import operator_ids
from flinkpy.graph.job_graph_generator import build_job_graph
from flinkpy.graph.operator_port import ChainingStrategy
from flinkpy.graph.partitioning import BROADCAST, REBALANCE, RESCALE
from flinkpy.graph.plan import draw_plan, plan_json
from flinkpy.graph.transformations import Transformation
from tests.graph.programs import HASH, Program, chain_of


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Sources, maps, joins, unions, side outputs and partitions in any order; readers read anything
    written before them."""
    program = Program()
    written: list[Transformation] = [program.source("source 0")]
    for number in range(1, draw(st.integers(1, 12))):
        any_input = st.sampled_from(written)
        kind = draw(
            st.sampled_from(["source", "op", "op", "op", "join", "union", "side", "partition"])
        )
        options = dict(
            parallelism=draw(st.sampled_from([None, None, 1, 3])),
            slot_sharing_group=draw(st.sampled_from([None, None, "other"])),
            chaining=draw(st.sampled_from([None, None, *ChainingStrategy])),
        )
        if kind == "source":
            written.append(program.source(f"source {number}", **options))
        elif kind == "op":
            written.append(program.op(f"op {number}", draw(any_input), **options))
        elif kind == "join":
            written.append(
                program.join(f"join {number}", draw(any_input), draw(any_input), **options)
            )
        elif kind == "union":
            written.append(program.union(*draw(st.lists(any_input, min_size=1, max_size=3))))
        elif kind == "side":
            written.append(program.side(draw(any_input), "tag"))
        else:
            written.append(
                program.partition(
                    draw(any_input), draw(st.sampled_from([HASH, REBALANCE, RESCALE, BROADCAST]))
                )
            )
    return program


@settings(max_examples=60)
@given(programs(), st.booleans())
def test_every_edge_is_either_chained_or_crosses_the_network_once(
    program: Program, chaining: bool
) -> None:
    stream_graph = program.stream_graph(parallelism=2, chaining=chaining)
    ids = operator_ids(stream_graph)
    graph = build_job_graph(stream_graph, JobId("job"), {})
    expected = Counter(
        (ids[edge.source], ids[edge.target], edge.side_tag) for edge in stream_graph.edges
    )

    found: Counter[tuple[str, str, str | None]] = Counter()
    consumers = {edge.data_set.id: vertex.id for vertex in graph.vertices for edge in vertex.inputs}
    assert (
        len(consumers)
        == sum(len(vertex.inputs) for vertex in graph.vertices)
        == sum(len(vertex.outputs) for vertex in graph.vertices)
    )
    for position, vertex in enumerate(graph.vertices):
        chain = chain_of(graph, position)
        outputs = []
        for operator in chain.operators:
            for edge in operator.edges:
                if isinstance(edge, ChainedEdge):
                    found[
                        operator.operator_id,
                        chain.operators[edge.target].operator_id,
                        edge.side_tag,
                    ] += 1
                else:
                    outputs.append(edge.output_index)
                    found[
                        operator.operator_id,
                        consumers[vertex.outputs[edge.output_index].id],
                        edge.side_tag,
                    ] += 1
        assert outputs == list(range(len(vertex.outputs)))
    assert found == expected


@settings(max_examples=60)
@given(programs())
def test_chains_are_trees_and_vertices_stand_behind_their_inputs(program: Program) -> None:
    graph = program.job_graph(parallelism=2)
    seen = set()
    for position, vertex in enumerate(graph.vertices):
        assert all(edge.data_set.producer in seen for edge in vertex.inputs)
        seen.add(vertex.id)
        chain = chain_of(graph, position)
        targets = [
            edge.target
            for operator in chain.operators
            for edge in operator.edges
            if isinstance(edge, ChainedEdge)
        ]
        # every operator but the head has exactly one predecessor
        assert sorted(targets) == list(range(1, len(chain.operators)))
        assert all(
            edge.target > at
            for at, operator in enumerate(chain.operators)
            for edge in operator.edges
            if isinstance(edge, ChainedEdge)
        )
        assert [operator.operator_id for operator in chain.operators] == [
            info.operator_id for info in vertex.operators
        ]
        assert (chain.inputs == 0) == vertex.is_source


@settings(max_examples=60)
@given(programs())
def test_ids_are_unique_and_the_same_in_every_run_chained_or_not(program: Program) -> None:
    ids = operator_ids(program.stream_graph(parallelism=2))
    assert len(set(ids.values())) == len(ids)
    assert ids == operator_ids(program.stream_graph(parallelism=3, chaining=False))
    program.ends.reverse()
    assert ids == operator_ids(program.stream_graph(parallelism=2))


@settings(max_examples=60)
@given(programs())
def test_hash_partitions_agree_with_the_vertex_that_reads_them(program: Program) -> None:
    graph = program.job_graph(parallelism=2)
    readers = {edge.data_set.id: vertex for vertex in graph.vertices for edge in vertex.inputs}
    for position, vertex in enumerate(graph.vertices):
        for operator in chain_of(graph, position).operators:
            for edge in operator.edges:
                if isinstance(edge, NetworkEdge) and edge.partitioning.key is not None:
                    assert (
                        edge.partitioning.max_parallelism
                        == readers[vertex.outputs[edge.output_index].id].max_parallelism
                    )


@settings(max_examples=60)
@given(programs())
def test_every_operator_is_in_the_plan_and_in_the_drawing(program: Program) -> None:
    graph = program.stream_graph(parallelism=2)
    drawing = draw_plan(graph)
    assert all(node.name in drawing for node in graph.nodes.values())
    assert plan_json(graph).count('"pact"') == len(graph.nodes)
