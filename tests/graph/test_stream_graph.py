"""From transformations to nodes and edges: defaults, virtual nodes, and what is refused."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from flinkpy.core.errors import ProgramError
from flinkpy.core.options.engine import AggregatePhases, RuntimeMode
from flinkpy.graph.hashes import operator_ids
from flinkpy.graph.job_graph import DistributionPattern, ResultPartitionType
from flinkpy.graph.operator_port import PhaseRule, TwoPhases
from flinkpy.graph.partitioning import (
    BROADCAST,
    FORWARD,
    REBALANCE,
    RESCALE,
    KeySpec,
    Partitioning,
    PartitioningKind,
)
from flinkpy.graph.resources import ResourceProfile
from flinkpy.graph.stream_graph import StreamGraph, build_stream_graph
from tests.graph.programs import HASH, Maps, Program, first


def edges(graph: StreamGraph) -> list[str]:
    """``in -HASH-> Sum.0``, side outputs in brackets."""
    names = {node.id: node.name.removeprefix("Source: ") for node in graph.nodes.values()}
    tags = {edge: f"[{edge.side_tag}]" if edge.side_tag else "" for edge in graph.edges}
    return [
        (
            f"{names[edge.source]} -{edge.partitioning.kind.value}{tags[edge]}-> "
            f"{names[edge.target]}.{edge.input_index}"
        )
        for edge in graph.edges
    ]


def test_an_unset_partitioning_is_forward_between_equals_and_rebalance_otherwise() -> None:
    program = Program()
    mapped = program.op("Map", program.source())
    program.op("Sink", mapped, parallelism=1)
    assert edges(program.stream_graph(parallelism=2)) == [
        "in -FORWARD-> Map.0",
        "Map -REBALANCE-> Sink.0",
    ]


def test_virtual_nodes_are_written_onto_the_edges() -> None:
    program = Program()
    left, right = program.source("left"), program.source("right")
    both = program.union(program.side(left, "late"), program.partition(right, RESCALE))
    program.op("Sum", program.partition(both, HASH))
    program.op("Plain", both)
    assert edges(program.stream_graph(parallelism=2)) == [
        "left -HASH[late]-> Sum.0",
        "right -HASH-> Sum.0",
        "left -FORWARD[late]-> Plain.0",
        "right -RESCALE-> Plain.0",
    ]


def test_the_partitioning_nearest_to_the_consumer_counts() -> None:
    program = Program()
    program.op("Map", program.partition(program.partition(program.source(), BROADCAST), REBALANCE))
    assert edges(program.stream_graph()) == ["in -REBALANCE-> Map.0"]


def test_a_stream_may_be_united_and_joined_with_itself() -> None:
    program = Program()
    source = program.source()
    program.op("Twice", program.union(source, source))
    program.join("Join", source, source)
    assert edges(program.stream_graph()) == [
        "in -FORWARD-> Twice.0",
        "in -FORWARD-> Twice.0",
        "in -FORWARD-> Join.0",
        "in -FORWARD-> Join.1",
    ]


def test_hash_edges_and_their_operator_agree_on_the_max_parallelism() -> None:
    program = Program()
    program.op("Sum", program.partition(program.source(), HASH), max_parallelism=64)
    program.op("Other", program.partition(program.ends[0], HASH))
    graph = program.stream_graph(parallelism=4)
    assert [
        (edge.partitioning.max_parallelism, graph.nodes[edge.target].max_parallelism)
        for edge in graph.edges
    ] == [(64, 64), (128, 128)]
    assert {
        node.max_parallelism
        for node in program.stream_graph(parallelism=4, max_parallelism=32).nodes.values()
    } == {32, 64}
    assert HASH.max_parallelism is None


def test_inputs_come_before_their_readers_and_the_ends_alone_are_enough() -> None:
    program = Program()
    last = program.op("C", program.op("B", program.op("A", program.source())))
    assert [node.name for node in build_stream_graph([last]).nodes.values()] == [
        "Source: in",
        "A",
        "B",
        "C",
    ]
    assert [node.name for node in build_stream_graph(reversed(program.ends)).nodes.values()] == [
        "Source: in",
        "A",
        "B",
        "C",
    ]


def test_a_program_of_thousands_of_steps_does_not_overflow_the_stack() -> None:
    program = Program()
    program.source()
    for _ in range(3_000):
        program.op("Map", program.ends[-1])
    assert sum(len(vertex.operators) for vertex in program.job_graph().vertices) == 3_001


def test_slot_sharing_groups_are_inherited_from_inputs_that_agree() -> None:
    program = Program()
    heavy = program.op("Heavy", program.source("a", slot_sharing_group="h"))
    light = program.source("b")
    program.op("Both", program.union(heavy, light))
    program.op("Own", heavy, slot_sharing_group="mine")
    groups = {node.name: node.slot_sharing_group for node in program.stream_graph().nodes.values()}
    assert groups == {
        "Source: a": "h",
        "Heavy": "h",
        "Source: b": "default",
        "Both": "default",
        "Own": "mine",
    }


def test_the_buffer_timeout_is_the_producers() -> None:
    program = Program()
    program.op("Map", program.source(buffer_timeout_ms=0), buffer_timeout_ms=5)
    program.op("Sink", program.ends[1])
    program.op("Sink", program.source("b"))
    assert [
        edge.buffer_timeout_ms for edge in program.stream_graph(buffer_timeout_ms=100).edges
    ] == [0, 5, 100]


@pytest.mark.parametrize(
    ("mode", "bounded", "decided", "kind"),
    [
        (RuntimeMode.STREAMING, True, RuntimeMode.STREAMING, ResultPartitionType.PIPELINED),
        (RuntimeMode.BATCH, True, RuntimeMode.BATCH, ResultPartitionType.BLOCKING),
        (RuntimeMode.AUTOMATIC, True, RuntimeMode.BATCH, ResultPartitionType.BLOCKING),
        (RuntimeMode.AUTOMATIC, False, RuntimeMode.STREAMING, ResultPartitionType.PIPELINED),
    ],
)
def test_the_runtime_mode_decides_the_results_types(
    mode: RuntimeMode, bounded: bool, decided: RuntimeMode, kind: ResultPartitionType
) -> None:
    program = Program()
    program.op("Sum", program.partition(program.source(is_bounded=bounded), HASH))
    graph = program.stream_graph(runtime_mode=mode)
    assert (
        graph.runtime_mode,
        graph.is_bounded,
        {edge.partition_type for edge in graph.edges},
    ) == (decided, bounded, {kind})


def test_resources_belong_to_the_slot_sharing_group() -> None:
    program = Program()
    program.op(
        "Train", program.source(), slot_sharing_group="gpu", resources=ResourceProfile(gpus=1)
    )
    program.op("Score", program.ends[1])
    assert [
        (vertex.slot_sharing_group, vertex.resources.gpus)
        for vertex in program.job_graph().vertices
    ] == [("default", 0), ("gpu", 1)]


def refused(program: Program, **options: object) -> str:
    with pytest.raises(ProgramError) as caught:
        program.job_graph(**options)
    return str(caught.value)


def test_forward_between_unequal_parallelisms_is_refused() -> None:
    program = Program()
    program.op(
        "Sink", program.partition(program.source(), FORWARD), parallelism=3, where="job.py:7"
    )
    message = refused(program, parallelism=2)
    assert (
        "forward() joins 'Source: in' with parallelism 2 to 'Sink' (job.py:7) with parallelism 3"
    ) in message
    assert "rebalance()" in message


def test_duplicate_uids_are_refused_naming_both() -> None:
    program = Program()
    program.op("A", program.source(), uid="same")
    program.op("B", program.ends[1], uid="same")
    assert refused(program) == "'A' and 'B' both have the uid 'same'; give each operator its own"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parallelism": 200}, "parallelism 200, more than its max parallelism 128"),
        ({"parallelism": -1}, "parallelism -1; it must be at least 1"),
        ({"max_parallelism": 99_999}, "max parallelism 99999; it must be between 1 and 32768"),
        ({"uid_hash": "XYZ"}, "the uid hash 'XYZ' of 'Map' is not made of 32 hexadecimal digits"),
    ],
)
def test_impossible_settings_are_refused_by_name(options: dict[str, object], message: str) -> None:
    program = Program()
    program.op("Map", program.source(), **options)
    assert message in refused(program, max_parallelism=128)


def test_an_empty_program_is_refused() -> None:
    assert "no operators" in refused(Program())


def test_batch_mode_with_an_endless_source_is_refused() -> None:
    program = Program()
    program.source("clicks", is_bounded=False)
    assert (
        "BATCH needs bounded sources, but 'clicks' never ends; give the source an end"
        in refused(program, runtime_mode=RuntimeMode.BATCH)
    )


def test_contradicting_resources_of_a_group_are_refused() -> None:
    program = Program()
    program.op("A", program.source(), resources=ResourceProfile(cpus=1))
    program.op("B", program.ends[0], resources=ResourceProfile(cpus=2))
    assert "'A' and 'B' demand different resources for the slot sharing group 'default'" in refused(
        program
    )


def test_co_location_across_slot_sharing_groups_is_refused() -> None:
    program = Program()
    program.op("A", program.source(), co_location_group="near")
    program.op("B", program.ends[1], co_location_group="near", slot_sharing_group="other")
    assert "put them into the same slot sharing group" in refused(program)


def test_what_cannot_travel_is_refused_by_the_operators_name() -> None:
    program = Program()
    program.op("Fine", program.source())
    holds: Any = Maps()
    holds.held = threading.Lock()
    program.op("Opens a file", program.ends[1], operator=holds)
    message = refused(program)
    assert "the operator 'Opens a file' cannot be sent to the workers" in message


def test_two_transformations_of_one_id_are_refused() -> None:
    program = Program()
    program.op("A", program.source())
    program.op("B", program.ends[0], id=2)
    assert "two transformations have the id 2: 'A' and 'B'" in refused(program)


@pytest.mark.parametrize(
    ("partitioning", "pattern"),
    [
        (RESCALE, DistributionPattern.POINTWISE),
        (FORWARD, DistributionPattern.POINTWISE),
        (REBALANCE, DistributionPattern.ALL_TO_ALL),
        (HASH, DistributionPattern.ALL_TO_ALL),
        (BROADCAST, DistributionPattern.ALL_TO_ALL),
    ],
)
def test_rescaled_and_forwarded_streams_stay_within_their_group_and_others_go_to_everybody(
    partitioning: Partitioning, pattern: DistributionPattern
) -> None:
    program = Program()
    program.op("Map", program.partition(program.source(), partitioning))
    [edge] = [
        edge
        for vertex in program.job_graph(parallelism=2, chaining=False).vertices
        for edge in vertex.inputs
    ]
    assert edge.pattern is pattern


def test_custom_partitioning_reaches_the_edge() -> None:
    program = Program()
    program.op("Map", program.partition(program.source(), HASH))
    (edge,) = program.stream_graph().edges
    assert edge.partitioning.kind is PartitioningKind.HASH
    assert edge.partitioning.key is HASH.key


class Windows(Maps):
    """Stands for an operator that can be run in two phases."""


def two_phases(operator: object, strategy: AggregatePhases) -> TwoPhases | None:
    return (
        TwoPhases(Maps(), operator, KeySpec(first), True) if isinstance(operator, Windows) else None
    )


def windows_over_a_union(
    phases: AggregatePhases = AggregatePhases.AUTO,
    kept: dict[int, AggregatePhases] | None = None,
    **options: object,
) -> StreamGraph:
    program = Program()
    both = program.union(program.side(program.source("left"), "late"), program.source("right"))
    program.op("Windows", program.partition(both, HASH), operator=Windows())
    program.op("Sink", program.ends[-1])
    return program.stream_graph(phases=PhaseRule(two_phases, phases, kept or {}), **options)


def test_what_can_be_done_before_the_exchange_is_in_the_chain_of_each_sender() -> None:
    assert edges(windows_over_a_union(parallelism=2)) == [
        "left -FORWARD[late]-> LocalWindows.0",
        "right -FORWARD-> LocalWindows.0",
        "LocalWindows -HASH-> Windows.0",
        "LocalWindows -HASH-> Windows.0",
        "Windows -FORWARD-> Sink.0",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"parallelism": 1},
        {"parallelism": 2, "phases": AggregatePhases.ONE_PHASE},
        {"parallelism": 2, "runtime_mode": RuntimeMode.BATCH},
    ],
)
def test_one_phase_is_enough_between_two_tasks_in_a_batch_job_and_where_the_program_says_so(
    options: dict[str, Any],
) -> None:
    assert edges(windows_over_a_union(**options)) == [
        "left -HASH[late]-> Windows.0",
        "right -HASH-> Windows.0",
        "Windows -FORWARD-> Sink.0",
    ]


@pytest.mark.parametrize("mode", [RuntimeMode.STREAMING, RuntimeMode.BATCH])
def test_what_one_subtask_does_for_all_may_begin_before_any_exchange(mode: RuntimeMode) -> None:
    def phases(operator: object, strategy: AggregatePhases) -> TwoPhases | None:
        return (
            TwoPhases(Maps(), operator, None, True, in_batch=True)
            if isinstance(operator, Windows)
            else None
        )

    program = Program()
    program.op("Limit", program.source(), operator=Windows()).parallelism = 1
    assert edges(
        program.stream_graph(phases=PhaseRule(phases), parallelism=2, runtime_mode=mode)
    ) == ["in -FORWARD-> LocalLimit.0", "LocalLimit -REBALANCE-> Limit.0"]


def test_operator_ids_are_the_same_in_one_phase_and_in_two() -> None:
    """So a savepoint fits after a change of parallelism."""
    one = windows_over_a_union(parallelism=1)
    two = windows_over_a_union(parallelism=1, phases=AggregatePhases.TWO_PHASE)
    assert len(two.nodes) == len(one.nodes) + 2
    ids = operator_ids(two)
    assert {node: ids[node] for node in one.nodes} == operator_ids(one)


def test_inputs_come_first_also_where_there_are_two_phases() -> None:
    graph = windows_over_a_union(parallelism=2)
    order = list(graph.nodes)
    assert all(order.index(edge.source) < order.index(edge.target) for edge in graph.edges)
