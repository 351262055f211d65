"""Wiring and regions, and how long a wide job takes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.ids import AllocationId, IdFactory, ResourceId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.graph.job_graph import DistributionPattern, JobGraph
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import wiring
from flinkpy.scheduler.planning.regions import compute_regions
from flinkpy.scheduler.protocol import (
    DeployTasks,
    RequestSlot,
    SlotAssigned,
    StartScheduling,
    TaskStateChanged,
)
from flinkpy.scheduler.scheduler import Scheduler
from tests.scheduler.jobs import (
    ALL_TO_ALL,
    BLOCKING,
    PIPELINED,
    POINTWISE,
    batch,
    job,
    pipeline,
    strands,
)


@given(st.sampled_from(DistributionPattern), st.integers(1, 40), st.integers(1, 40))
def test_every_producer_and_every_consumer_is_in_exactly_one_group(
    pattern: DistributionPattern, producers: int, consumers: int
) -> None:
    groups = list(wiring(pattern, producers, consumers))
    assert [index for group, _ in groups for index in group] == list(range(producers))
    assert [index for _, group in groups for index in group] == list(range(consumers))
    assert all(group and readers for group, readers in groups)


@given(st.sampled_from(DistributionPattern), st.integers(1, 40), st.integers(1, 40))
def test_groups_are_found_by_producer_and_by_consumer(
    pattern: DistributionPattern, producers: int, consumers: int
) -> None:
    graph = ExecutionGraph(job({"A": producers, "B": consumers}, ("A", "B", pattern, PIPELINED)))
    (result,) = graph.results
    assert all(index in result.group_of_producer(index).producers for index in range(producers))
    assert all(index in result.group_of_consumer(index).consumers for index in range(consumers))


@given(st.integers(1, 40), st.integers(1, 40))
def test_pointwise_groups_are_of_even_size(producers: int, consumers: int) -> None:
    groups = list(wiring(POINTWISE, producers, consumers))
    assert max(len(group) for group, _ in groups) - min(len(group) for group, _ in groups) <= 1
    assert max(len(group) for _, group in groups) - min(len(group) for _, group in groups) <= 1


def regions(job_graph: JobGraph) -> list[str]:
    """The regions as lists of subtasks: ``A0 B0``."""
    return [
        " ".join(f"{vertex.job_vertex.vertex.name}{vertex.index}" for vertex in region.vertices)
        for region in compute_regions(ExecutionGraph(job_graph))
    ]


@pytest.mark.parametrize(
    ("job_graph", "expected"),
    [
        (pipeline(2), ["A0 A1 B0 B1"]),
        (strands(2), ["A0 B0", "A1 B1"]),
        (batch(2), ["A0", "A1", "B0", "B1"]),
        (job({"A": 1, "B": 2}, ("A", "B", POINTWISE, PIPELINED)), ["A0 B0 B1"]),
        (
            job(
                {"A": 2, "B": 2, "C": 1},
                ("A", "B", POINTWISE, PIPELINED),
                ("B", "C", ALL_TO_ALL, BLOCKING),
            ),
            ["A0 B0", "A1 B1", "C0"],
        ),
        (
            job(
                {"A": 1, "B": 1, "C": 1},
                ("A", "C", POINTWISE, PIPELINED),
                ("A", "B", POINTWISE, BLOCKING),
                ("B", "C", POINTWISE, BLOCKING),
            ),
            ["A0 B0 C0"],
        ),
        (job({"A": 2, "B": 1}), ["A0", "A1", "B0"]),
    ],
)
def test_regions_are_joined_by_pipelined_results(job_graph: JobGraph, expected: list[str]) -> None:
    assert regions(job_graph) == expected


@pytest.mark.wide
def test_ten_thousand_subtasks_all_to_all_are_built_and_scheduled_without_their_product(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job_graph = pipeline(5_000)
    locations = [
        TaskManagerLocation(ResourceId(f"tm{index}"), f"tm{index}") for index in range(1_000)
    ]
    clock = time.perf_counter()
    scheduler = Scheduler(job_graph, ids=IdFactory(1))
    built = time.perf_counter()
    requests = [
        command
        for command in scheduler.handle(StartScheduling(), 0.0)
        if isinstance(command, RequestSlot)
    ]
    deployed: list[DeployTasks] = []
    for number, request in enumerate(requests):
        commands = scheduler.handle(
            SlotAssigned(request.request_id, AllocationId(f"{number}"), locations[number % 1_000]),
            0.0,
        )
        deployed += [command for command in commands if isinstance(command, DeployTasks)]
        scheduler.check_invariants(everything=False)
    scheduled = time.perf_counter()
    attempts = [descriptor.attempt_id for command in deployed for descriptor in command.descriptors]
    for state in (ExecutionState.INITIALIZING, ExecutionState.RUNNING, ExecutionState.FINISHED):
        for attempt_id in attempts:
            scheduler.handle(TaskStateChanged(attempt_id, state), 0.0)
    ended = time.perf_counter()
    with capsys.disabled():
        print(
            (
                f"\n10,000 subtasks: built in {built - clock:.2f} s, scheduled in "
                f"{scheduled - built:.2f} s,"
            ),
            f"30,000 reports in {ended - scheduled:.2f} s",
        )

    assert (len(requests), len(deployed), len(attempts)) == (5_000, 1_000, 10_000)
    assert (
        len(
            {
                id(gate.producers)
                for command in deployed
                for descriptor in command.descriptors
                for gate in descriptor.gates
            }
        )
        == 1
    )
    assert scheduler.state is JobState.FINISHED
    assert ended - clock < 30  # a product of 5,000 by 5,000 would take minutes
