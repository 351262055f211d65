"""Chaining, operator ids, and the plan, on graphs small enough to read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flinkpy.core.ids import JobId, OperatorId
from flinkpy.core.options.engine import RuntimeMode
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.core.program import code
from flinkpy.graph.chain_config import ChainedEdge, NetworkEdge
from flinkpy.graph.hashes import operator_ids
from flinkpy.graph.job_graph import DistributionPattern, JobGraph
from flinkpy.graph.job_graph_generator import LONGEST_CHAIN, build_job_graph
from flinkpy.graph.operator_port import ChainingStrategy
from flinkpy.graph.partitioning import REBALANCE
from flinkpy.graph.plan import draw_plan, plan_json
from flinkpy.graph.transformations import Transformation
from tests.graph.programs import (
    HASH,
    Joins,
    Maps,
    Program,
    chain_of,
    inner_edges,
    job_edges,
    vertices,
)


def test_a_word_count_becomes_two_vertices() -> None:
    program = Program()
    words = program.op("Flat Map", program.source("lines", source=["a source"]), uid="split")
    program.op("Sink: Print", program.op("Sum", program.partition(words, HASH)))
    graph = program.job_graph(parallelism=2)
    assert vertices(graph) == ["Source: lines -> Flat Map x2", "Sum -> Sink: Print x2"]
    assert job_edges(graph) == ["1.0 -HASH-> 2"]
    assert [vertex.inputs[0].pattern for vertex in graph.vertices[1:]] == [
        DistributionPattern.ALL_TO_ALL
    ]
    assert [(operator.name, operator.uid) for operator in graph.vertices[0].operators] == [
        ("Source: lines", None),
        ("Flat Map", "split"),
    ]
    ((operator_id, source),) = graph.vertices[0].sources
    assert operator_id == graph.vertices[0].operators[0].operator_id
    assert str(operator_id) == str(graph.vertices[0].id)
    assert code.loads(source) == ["a source"]


def test_a_chain_is_a_tree_with_the_head_in_front() -> None:
    program = Program()
    mapped = program.op("Map", program.source())
    program.op("Filter", mapped)
    program.op("Late", program.side(mapped, "late"))
    program.op("Sink", program.partition(program.ends[2], REBALANCE))
    graph = program.job_graph()
    assert vertices(graph) == ["Source: in -> Map -> (Filter, Late) x1", "Sink x1"]
    chain = chain_of(graph, 0)
    assert chain.inputs == 0
    assert chain_of(graph, 1).inputs == 1
    assert inner_edges(chain) == [("Source: in", "Map"), ("Map", "Filter"), ("Map", "Late")]
    assert chain.operators[1].edges == (ChainedEdge(2), ChainedEdge(3, "late"))
    (edge,) = chain.operators[2].edges
    assert isinstance(edge, NetworkEdge)
    assert (edge.output_index, edge.partitioning, edge.buffer_timeout_ms) == (0, REBALANCE, 100)


def test_a_join_heads_its_own_chain_and_knows_its_inputs() -> None:
    program = Program()
    program.op(
        "Sink",
        program.join("Join", program.source("a"), program.partition(program.source("b"), HASH)),
    )
    graph = program.job_graph()
    assert vertices(graph) == ["Source: a x1", "Source: b x1", "Join -> Sink x1"]
    assert job_edges(graph) == ["1.0 -FORWARD-> 3", "2.0 -HASH-> 3.1"]
    assert chain_of(graph, 2).inputs == 2


@pytest.mark.parametrize(
    ("options", "chained"),
    [
        ({}, True),
        ({"slot_sharing_group": "other"}, False),
        ({"chaining": ChainingStrategy.HEAD}, False),
        ({"chaining": ChainingStrategy.NEVER}, False),
        ({"parallelism": 3}, False),
        ({"max_parallelism": 64}, False),
        ({"co_location_group": "near"}, False),
    ],
)
def test_two_operators_are_chained_when_all_conditions_hold(
    options: dict[str, object], chained: bool
) -> None:
    program = Program()
    program.op("B", program.op("A", program.source()), **options)
    assert len(program.job_graph(parallelism=2).vertices) == (1 if chained else 2)
    assert len(program.job_graph(parallelism=2, chaining=False).vertices) == 3


def test_behind_an_operator_that_never_chains_a_new_chain_begins() -> None:
    program = Program()
    program.op(
        "C", program.op("B", program.op("A", program.source(), chaining=ChainingStrategy.NEVER))
    )
    assert vertices(program.job_graph()) == ["Source: in x1", "A x1", "B -> C x1"]


def test_a_chain_ends_where_its_operators_would_nest_too_deeply_for_python() -> None:
    program = Program()
    program.source()
    for _ in range(250):
        program.op("Map", program.ends[-1])
    graph = program.job_graph()
    assert [len(vertex.operators) for vertex in graph.vertices] == [
        LONGEST_CHAIN,
        LONGEST_CHAIN,
        51,
    ]
    assert job_edges(graph) == ["1.0 -FORWARD-> 2", "2.0 -FORWARD-> 3"]


def test_a_union_is_not_chained_to_its_reader() -> None:
    program = Program()
    source = program.source()
    program.op("Map", program.union(source, source))
    assert job_edges(program.job_graph()) == ["1.0 -FORWARD-> 2", "1.1 -FORWARD-> 2"]


def test_in_batch_mode_all_that_crosses_the_network_blocks() -> None:
    program = Program()
    program.op("Sum", program.partition(program.op("Map", program.source()), HASH))
    graph = program.job_graph(runtime_mode=RuntimeMode.BATCH)
    assert vertices(graph) == ["Source: in -> Map x1", "Sum x1"]
    assert [
        data_set.partition_type.is_blocking
        for vertex in graph.vertices
        for data_set in vertex.outputs
    ] == [True]


class TakesAsTheyCome(Maps):
    """Stands for an operator that keeps no records in BATCH."""

    chains_by_key = True


@pytest.mark.parametrize(
    ("parallelism", "operator", "mode", "is_chained"),
    [
        (1, TakesAsTheyCome(), RuntimeMode.BATCH, True),
        (2, TakesAsTheyCome(), RuntimeMode.BATCH, False),
        (1, Maps(), RuntimeMode.BATCH, False),
        (1, TakesAsTheyCome(), RuntimeMode.STREAMING, False),
    ],
)
def test_in_batch_mode_a_single_task_does_not_store_records_for_a_single_one_that_takes_them_as_they_come(
    parallelism: int, operator: Maps, mode: RuntimeMode, is_chained: bool
) -> None:
    program = Program()
    program.op("Sum", program.partition(program.source(), HASH), operator=operator)
    graph = program.job_graph(runtime_mode=mode, parallelism=parallelism)
    assert vertices(graph) == (
        [f"Source: in -> Sum x{parallelism}"]
        if is_chained
        else [f"Source: in x{parallelism}", f"Sum x{parallelism}"]
    )


# -- operator ids ----------------------------------------------------------------------------------


def ids(program: Program, **options: object) -> dict[str, str]:
    graph = program.stream_graph(**options)
    return {
        graph.nodes[node].name: operator_id for node, operator_id in operator_ids(graph).items()
    }


def small_program() -> Program:
    program = Program()
    program.op(
        "Sink", program.op("Sum", program.partition(program.op("Map", program.source()), HASH))
    )
    return program


def test_equal_programs_have_equal_ids_and_every_operator_its_own() -> None:
    assert ids(small_program()) == ids(small_program())
    assert len(set(ids(small_program()).values())) == 4


def test_ids_are_pinned_so_that_a_new_version_finds_old_state() -> None:
    assert ids(small_program())["Sum"] == "6ef1eb7f198f09386019279be37f6888"


def test_names_parallelism_and_chaining_do_not_change_ids() -> None:
    renamed = small_program()
    for transformation in renamed.ends[1:]:  # a source is known by its name
        transformation.name += " (renamed)"
    assert list(ids(renamed, parallelism=4, chaining=False).values()) == list(
        ids(small_program()).values()
    )


def test_a_branch_added_elsewhere_does_not_change_ids() -> None:
    program = small_program()
    program.op("Tap", program.ends[1])
    program.op("Tap of the sum", program.ends[2])
    program.op("Beside", program.source("one more"))
    assert ids(small_program()).items() <= ids(program).items()


def test_a_source_of_another_name_in_front_does_not_change_ids() -> None:
    program = Program()
    program.op("Beside", program.source("one more"))
    source = program.source()
    program.op("Sink", program.op("Sum", program.partition(program.op("Map", source), HASH)))
    assert ids(small_program()).items() <= ids(program).items()


class From:
    """Stands for a source that is set up."""

    def __init__(self, start: int) -> None:
        self.start = start


class Elsewhere(From):
    """Another kind of source."""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", From(1)), ("b", From(1))),
        (("a", From(1)), ("a", From(2))),
        (("a", From(1)), ("a", Elsewhere(1))),
    ],
    ids=["by their names", "by their set-ups", "by their classes"],
)
def test_sources_are_told_apart_by_what_they_are_and_a_union_may_be_turned_round(
    one: tuple[str, From], other: tuple[str, From]
) -> None:
    def written(*sources: tuple[str, From]) -> list[OperatorId]:
        """The ids of the two sources, in the order of ``one`` and ``other``, and of what reads
        them."""
        program = Program()
        read = {what: program.source(name, source=what) for name, what in sources}
        for source in read.values():
            operator: Any = source.operator
            operator.source = source.source
        last = program.op("Map", program.union(*read.values()))
        found = operator_ids(program.stream_graph())
        return [found[read[what].id] for _, what in (one, other)] + [found[last.id]]

    assert written(one, other) == written(other, one)
    assert len(set(written(one, other))) == 3


def test_equal_sources_are_told_apart_by_their_order_alone() -> None:
    program = Program()
    program.op(
        "Map",
        program.union(program.source("a", source=From(1)), program.source("a", source=From(1))),
    )
    assert len(set(operator_ids(program.stream_graph()).values())) == 3


def test_an_id_says_which_input_is_read() -> None:
    def joined(turned: bool) -> str:
        program = Program()
        left, right = program.source("left"), program.source("right")
        return ids_of(program, program.join("Join", *((right, left) if turned else (left, right))))

    def ids_of(program: Program, last: Transformation) -> str:
        return operator_ids(program.stream_graph())[last.id]

    assert joined(False) != joined(True)


def test_what_follows_an_operator_with_a_uid_keeps_its_place_whatever_is_written_before() -> None:
    program = Program()
    program.source("an equal source in front")
    named = program.source("in", uid="numbers")
    program.op("Sum", program.partition(program.op("Map", named), HASH))
    alone = small_program()
    alone.ends[0].uid = "numbers"
    after = ids(program)
    assert [ids(alone)[name] for name in ("Source: in", "Map", "Sum")] == [
        after[name] for name in ("Source: in", "Map", "Sum")
    ]


def test_a_uid_hash_is_taken_as_it_is() -> None:
    program = small_program()
    program.ends[1].uid_hash = "0123456789abcdef0123456789abcdef"
    assert ids(program)["Map"] == "0123456789abcdef0123456789abcdef"


def test_a_filter_in_front_of_a_map_is_not_taken_for_it() -> None:
    program, before = Program(), Program()
    source = program.source()
    program.op("Join with itself", source, operator=Joins())
    program.op("Map", source)
    before.op("Map", before.source())
    assert ids(program)["Map"] == ids(before)["Map"]


def test_vertices_and_data_sets_have_the_same_ids_in_every_run() -> None:
    def all_ids(graph: JobGraph) -> list[tuple[str, list[str]]]:
        return [
            (vertex.id, [data_set.id for data_set in vertex.outputs]) for vertex in graph.vertices
        ]

    assert all_ids(small_program().job_graph()) == all_ids(small_program().job_graph())


# -- the plan --------------------------------------------------------------------------------------


def test_the_plan_is_flinks_json() -> None:
    program = Program()
    program.join(
        "Join",
        program.source("a"),
        program.partition(program.source("b"), HASH),
        description="a with b",
    )
    assert json.loads(plan_json(program.stream_graph(parallelism=2)))["nodes"] == [
        {
            "id": 1,
            "type": "Source: a",
            "pact": "Data Source",
            "contents": "Source: a",
            "parallelism": 2,
        },
        {
            "id": 2,
            "type": "Source: b",
            "pact": "Data Source",
            "contents": "Source: b",
            "parallelism": 2,
        },
        {
            "id": 4,
            "type": "Join",
            "pact": "Data Sink",
            "contents": "a with b",
            "parallelism": 2,
            "predecessors": [
                {"id": 1, "ship_strategy": "FORWARD", "side": "first"},
                {"id": 2, "ship_strategy": "HASH", "side": "second"},
            ],
        },
    ]


def test_the_plan_is_drawn_with_chains_in_boxes() -> None:
    program = Program()
    mapped = program.op("Map", program.source("lines"))
    program.op("Sum", program.partition(program.op("Filter", mapped), HASH), parallelism=3)
    program.op("Late", program.side(mapped, "late"))
    program.join("Join", program.ends[3], program.source("names"))
    assert (
        draw_plan(program.stream_graph(parallelism=2))
        == """\
┌─ 1 ─────────────── x2 ─┐
│ Source: lines          │
│ └─ Map                 │
│    ├─ Filter           │
│    └─ [late] Late      │
└────────────────────────┘
    │ HASH from 1
    ▼
┌─ 2 ─────────────── x3 ─┐
│ Sum                    │
└────────────────────────┘

┌─ 3 ─────────────── x2 ─┐
│ Source: names          │
└────────────────────────┘
    │ REBALANCE from 2 (input 1)
    │ FORWARD from 3 (input 2)
    ▼
┌─ 4 ─────────────── x2 ─┐
│ Join                   │
└────────────────────────┘"""
    )


def test_wide_characters_do_not_bend_the_box() -> None:
    program = Program()
    program.op("统计每个航班", program.source())
    assert draw_plan(program.stream_graph()).splitlines()[1:3] == [
        "│ Source: in             │",
        "│ └─ 统计每个航班        │",
    ]


# -- managed memory --------------------------------------------------------------------------------

SORTS, KEEPS = {MemoryKind.OPERATOR: 3}, {MemoryKind.STATE_BACKEND: 1}
ROCKSDB = {"state.backend.type": "rocksdb"}


def memory_of(program: Program, configuration: dict[str, str], **options: Any) -> dict[str, Any]:
    graph = build_job_graph(program.stream_graph(**options), JobId("job"), configuration)
    return {vertex.name: dict(vertex.managed_memory.weights) for vertex in graph.vertices}


def test_operators_of_a_slot_sharing_group_share_its_memory() -> None:
    program = Program()
    keeps = program.op("Keep", program.source(), operator=Maps(KEEPS), parallelism=2)
    program.op("Sort", keeps, operator=Maps(SORTS))
    program.op("Other", keeps, operator=Maps(SORTS), slot_sharing_group="other")
    both = {MemoryKind.OPERATOR: 3, MemoryKind.STATE_BACKEND: 1}
    assert memory_of(program, ROCKSDB) == {
        "Source: in": both,
        "Keep": both,
        "Sort": both,
        "Other": SORTS,
    }
    assert memory_of(program, {}) == dict.fromkeys(["Source: in", "Keep", "Sort", "Other"], SORTS)
    assert {each.managed_memory.slots for each in program.job_graph().vertices} == {3}


def test_in_batch_only_those_that_run_at_the_same_time_share_it() -> None:
    """Two branches of two stages each, joined: only stages of different branches may meet."""
    program = Program()
    ends = []
    for branch in "ab":
        source = program.source(branch, parallelism=2)
        first = program.op(f"{branch}1", source, operator=Maps({MemoryKind.OPERATOR: 1}))
        ends.append(
            program.op(
                f"{branch}2",
                program.partition(first, HASH),
                operator=Maps({MemoryKind.OPERATOR: 10}),
                parallelism=2,
            )
        )
    program.join("Join", *(program.partition(end, HASH) for end in ends), parallelism=3)
    found = memory_of(program, {}, runtime_mode=RuntimeMode.BATCH)
    weights = {name: memory.get(MemoryKind.OPERATOR, 0) for name, memory in found.items()}
    assert weights == {
        "Source: a": 11,
        "Source: b": 11,
        "a1": 12,
        "a2": 21,
        "b1": 12,
        "b2": 21,
        "Join": 0,
    }
