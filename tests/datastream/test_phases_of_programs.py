"""A job that starts from a checkpoint with something in flight aggregates in as many phases as
before: what was in flight is records, or partial results, and only the same operators read it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flinkpy.core.errors import BoundToParallelismError
from flinkpy.core.ids import JobVertexId
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.env.program_phases import found_in_flight
from flinkpy.datastream.env.submission import job_graph
from flinkpy.graph.checkpoints import CompletedCheckpoint, DataSetState
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.checkpointing.state_assignment import check_restorable
from flinkpy.state.checkpoints.manifest import Manifest
from flinkpy.testing.simulation.programs.programs import PROGRAMS

ROWS, COLUMNS = "counted-windows", "columnar-windows"


def graph_of(
    program: str,
    parallelism: int,
    phases: str = "AUTO",
    in_flight: dict[JobVertexId, bool] | None = None,
) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"table.optimizer.agg-phase-strategy": phases}
    )
    env.set_parallelism(parallelism)
    PROGRAMS[program].build(env)
    return job_graph(env.program, program, lambda: in_flight or {})


def edges_of(graph: JobGraph) -> dict[JobVertexId, bool]:
    return {edge.consumer: edge.is_partial for vertex in graph.vertices for edge in vertex.inputs}


def checkpoint_of(graph: JobGraph) -> CompletedCheckpoint:
    """With something in flight on each way."""
    in_flight = {
        edge.data_set.id: DataSetState(
            graph.vertex(edge.data_set.producer).parallelism,
            vertex.parallelism,
            edge.consumer,
            edge.input_index,
            edge.ship_strategy,
            (),
            edge.is_partial,
        )
        for vertex in graph.vertices
        for edge in vertex.inputs
    }
    return CompletedCheckpoint(3, 0, {}, in_flight=in_flight)


@pytest.mark.parametrize("program", [ROWS, COLUMNS])
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (1, 3), (3, 2)])
def test_what_was_in_flight_is_read_by_as_many_phases_at_any_parallelism(
    program: str, before: int, after: int
) -> None:
    taken = graph_of(program, before)
    assert (True in edges_of(taken).values()) == (before > 1), "what the program does by itself"
    started = graph_of(program, after, in_flight=edges_of(taken))
    assert edges_of(started) == edges_of(taken)
    check_restorable(checkpoint_of(taken), started, False)


@pytest.mark.parametrize("program", [ROWS, COLUMNS])
@pytest.mark.parametrize(("before", "after"), [("ONE_PHASE", "TWO_PHASE"), ("AUTO", "ONE_PHASE")])
def test_also_against_the_option_of_the_program(program: str, before: str, after: str) -> None:
    taken = graph_of(program, 2, before)
    started = graph_of(program, 2, after, edges_of(taken))
    assert edges_of(started) == edges_of(taken)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_a_job_that_reads_otherwise_what_was_in_flight_is_refused(before: int, after: int) -> None:
    taken, started = graph_of(ROWS, before), graph_of(ROWS, after)
    option = "TWO_PHASE" if before == 2 else "ONE_PHASE"
    with pytest.raises(BoundToParallelismError, match=f"agg-phase-strategy to {option}, or start"):
        check_restorable(checkpoint_of(taken), started, False)


def test_checkpoints_that_do_not_say_what_they_have_in_flight_are_taken_as_they_were() -> None:
    taken = graph_of(ROWS, 2)
    old = checkpoint_of(taken)
    old = replace(
        old, in_flight={at: replace(each, is_partial=None) for at, each in old.in_flight.items()}
    )
    check_restorable(old, graph_of(ROWS, 1), False)


def test_what_is_in_flight_stands_in_the_manifest(tmp_path: Path) -> None:
    taken = graph_of(ROWS, 2)
    folder = tmp_path / "job" / "chk-3"
    folder.mkdir(parents=True)
    manifest = Manifest(taken.job_id, checkpoint_of(taken)).to_bytes()
    (folder / "_metadata").write_bytes(manifest)
    for place in (folder, folder / "_metadata", folder.parent):
        assert found_in_flight({"execution.state-recovery.path": str(place)}) == edges_of(taken)
    assert found_in_flight({}) == {}
    missing = {"execution.state-recovery.path": str(tmp_path / "nowhere")}
    assert found_in_flight(missing) == {}, "the JobMaster says it"
