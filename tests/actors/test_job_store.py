"""What the next JobManager finds: jobs as they were submitted, and the results of those that have
ended."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace

import pytest

from flinkpy.actors.gateways import JobDetails, JobOverview, JobResult, SavepointRequest
from flinkpy.actors.job_store import ArchivedJob, JobStore, RecoveredJob
from flinkpy.core.elements import CheckpointOptions, SnapshotType
from flinkpy.core.errors import FencingError, SavepointError, UserCodeError
from flinkpy.core.ids import FencingToken, JobId
from flinkpy.core.lifecycles import JobState
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.protocol import SnapshotRequested
from flinkpy.state.checkpoints.fenced_store import FencedStore
from flinkpy.testing.simulation.simulated_file_store import (
    HAPPENS,
    Happens,
    SimulatedFileStore,
    StorageCrash,
    StorageFault,
    fault_at,
)
from flinkpy.testing.simulation.simulated_jobs import JobBuilder, TaskBehaviour

JOB = JobId("ab12")


def graph(job_id: JobId = JOB) -> JobGraph:
    builder = JobBuilder(job_id)
    builder.vertex(2, [], TaskBehaviour())
    return builder.build()


def ended(state: JobState = JobState.FINISHED, error: BaseException | None = None) -> ArchivedJob:
    result = JobResult(JOB, "job", state, 5, error, {"n": 1})
    return ArchivedJob(result, JobDetails(JobOverview(JOB, "job", state, 0, 5), (), error))


def recovered(store: JobStore) -> tuple[list[RecoveredJob], list[ArchivedJob]]:
    found = store.recover()
    return list(found.running), list(found.ended)


def next_leader(files: SimulatedFileStore, deposed: list[FencingError] | None = None) -> JobStore:
    store = FencedStore(files, "ha")
    noted: list[FencingError] = [] if deposed is None else deposed
    return JobStore(store, store.take_term(FencingToken("x")), noted.append)


def test_a_job_that_runs_is_found_again_in_each_later_term_and_its_generation_grows() -> None:
    files = SimulatedFileStore()
    next_leader(files).add(graph())
    for generation in (1, 2, 3):
        running, archived = recovered(next_leader(files))
        assert running == [RecoveredJob(graph(), generation)]
        assert archived == []


def test_a_job_that_was_cancelled_and_has_not_ended_is_found_as_cancelled() -> None:
    store = next_leader(files := SimulatedFileStore())
    store.add(graph())
    store.cancel(JOB)
    assert recovered(next_leader(files)) == ([RecoveredJob(graph(), 1, is_cancelled=True)], [])


def test_with_which_savepoint_a_job_stops_is_found_until_it_is_known_that_there_is_none() -> None:
    request = SnapshotRequested(
        "mine", CheckpointOptions(SnapshotType.TERMINATE, "savepoints/mine")
    )
    store = next_leader(files := SimulatedFileStore())
    store.add(graph())
    assert store.stopping(JOB) is None
    store.stop(JOB, request)
    later = next_leader(files)
    assert later.stopping(JOB) == request
    with pytest.raises(FencingError):
        store.stop(JOB, request)
    later.go_on(JOB)
    assert next_leader(files).stopping(JOB) is None


def test_an_ended_job_is_found_with_its_result_and_does_not_run_again() -> None:
    files = SimulatedFileStore()
    store = next_leader(files)
    store.add(graph())
    store.end(ended())
    assert recovered(next_leader(files)) == ([], [ended()])
    assert next_leader(files).recover().unclean == ((graph(), JobState.FINISHED),)
    store = next_leader(files)
    store.cleaned(JOB)
    assert next_leader(files).recover().unclean == ()


def test_a_failed_job_is_found_with_its_error() -> None:
    store = next_leader(files := SimulatedFileStore())
    store.add(graph())
    store.end(ended(JobState.FAILED, UserCodeError("ValueError: no", operator="Map")))
    [found] = recovered(next_leader(files))[1]
    assert str(found.result.error) == "ValueError: no\n  in operator 'Map'"


def test_an_accumulator_that_does_not_pickle_is_left_out() -> None:
    store = next_leader(files := SimulatedFileStore())
    job = ended()
    store.end(replace(job, result=replace(job.result, accumulators={"lock": threading.Lock()})))
    [found] = recovered(next_leader(files))[1]
    assert (found.result.state, found.result.accumulators) == (JobState.FINISHED, {})


GARBAGE = [b'{"name": "job"}\ncnowhere\nNothing\n.', b"\x80\x00", b"[1]\n", b""]


@pytest.mark.parametrize("data", GARBAGE)
def test_a_job_that_cannot_be_read_is_told_to_have_failed_and_others_are_found(data: bytes) -> None:
    store = next_leader(files := SimulatedFileStore())
    store.add(graph())
    store.add(graph(JobId("cd34")))
    file = next(file for file in files.files if "ab12/graph" in file)
    fenced = FencedStore(files, "ha")
    fenced.take_term(FencingToken("y"))
    files.files.pop(file)
    fenced.write(file.removeprefix("ha/"), data)
    running, [failed] = recovered(next_leader(files))
    assert [job.graph.job_id for job in running] == ["cd34"]
    assert failed.result.state is JobState.FAILED
    assert "submit it once more" in str(failed.result.error)


@pytest.mark.parametrize("data", GARBAGE)
def test_an_end_that_cannot_be_read_does_not_let_the_job_run_again(data: bytes) -> None:
    files = SimulatedFileStore()
    next_leader(files).add(graph())
    fenced = FencedStore(files, "ha")
    fenced.take_term(FencingToken("y"))
    fenced.write("jobs/ab12/ended-0000000001-00", data)
    [], [job] = recovered(next_leader(files))
    assert job.result.state is JobState.FAILED
    assert "cannot be read again" in str(job.result.error)


def test_a_deposed_leader_learns_it_with_its_next_write_and_is_told_once_for_each() -> None:
    files, deposed = SimulatedFileStore(), list[FencingError]()
    old = next_leader(files, deposed)
    old.confirm()
    next_leader(files)
    with pytest.raises(FencingError):
        old.add(graph())
    assert len(deposed) == 1


@pytest.mark.parametrize("happens", HAPPENS)
@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("step", range(24))
def test_a_fault_in_any_step_neither_loses_a_job_nor_runs_an_ended_one(
    happens: Happens, crashes: bool, step: int
) -> None:
    files = SimulatedFileStore()
    done = "nothing"
    files.faults = fault_at(step, StorageFault(happens, crashes))
    with suppress(OSError, StorageCrash):
        store = next_leader(files)
        store.add(graph())
        done = "added"
        store.end(ended())
        done = "ended"
    files.restart()
    running, archived = recovered(next_leader(files))
    if done == "added":
        assert len(running) + len(archived) == 1
    elif done == "ended":
        assert (running, archived) == ([], [ended()])


def test_a_job_that_was_forgotten_and_a_cluster_that_ended_leave_nothing() -> None:
    store = next_leader(files := SimulatedFileStore())
    store.add(graph())
    store.add(graph(JobId("cd34")))
    store.forget(JOB)
    assert not [file for file in files.files if "ab12" in file]
    store.close_for_good()
    assert files.files == {}


def test_a_savepoint_of_a_job_that_has_failed_tells_why_it_failed() -> None:
    with pytest.raises(SavepointError, match="job 'job' has ended: it is FAILED: no memory"):
        ended(JobState.FAILED, ValueError("no memory")).savepoint(SavepointRequest("asked later"))
