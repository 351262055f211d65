"""All masters die, and others take over: their jobs, their workers, and what clients ask them
for."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from flinkpy.actors.job_store import Inheritance, JobStore
from flinkpy.actors.rpc.simulated.unreliable_network import FaultPlan
from flinkpy.core.errors import FencingError, ProgramError
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import CheckpointState, JobState
from flinkpy.core.options.engine import SlotConfig
from flinkpy.graph.job_graph import JobGraph
from flinkpy.testing.simulation import SimulatedCluster, TaskBehaviour
from flinkpy.testing.simulation.cluster_files import DIRECTORY
from flinkpy.testing.simulation.cluster_invariants import Invariants
from flinkpy.testing.simulation.simulated_file_store import StorageFault
from flinkpy.testing.simulation.simulated_jobs import JobBuilder, StreamBehaviour

JOB = JobId("job")


def job(run_s: float | None, job_id: JobId = JOB) -> JobGraph:
    builder = JobBuilder(job_id)
    builder.vertex(2, [], TaskBehaviour(run_s=run_s))
    return builder.build()


def make_cluster() -> SimulatedCluster:
    """Its ResourceManager starts workers."""
    return SimulatedCluster(
        3, slot_config=SlotConfig(1, idle_timeout=timedelta(seconds=30)), masters_come_back=True
    )


def submit(cluster: SimulatedCluster, graph: JobGraph) -> None:
    cluster.result(cluster.result(cluster.client()).submit_job(graph))
    cluster.network.run_for(2)


def take_over(cluster: SimulatedCluster) -> None:
    terms = cluster.terms
    cluster.crash_masters(1.0, noticed=True)
    assert cluster.network.run_until(lambda: cluster.terms > terms, 60)
    cluster.network.run_for(1)


@pytest.mark.parametrize("times", [1, 2])
def test_a_job_goes_on_in_the_workers_that_have_stayed(times: int) -> None:
    cluster = make_cluster()
    submit(cluster, job(run_s=20.0))
    workers = dict(cluster.workers)
    for _ in range(times):
        take_over(cluster)
    result = cluster.result(cluster.result(cluster.client()).request_job_result(JOB, 9.0))
    while result is None:
        result = cluster.result(cluster.result(cluster.client()).request_job_result(JOB, 9.0))
    assert (result.state, result.accumulators["tasks"]) == (JobState.FINISHED, 2)
    assert cluster.workers == workers
    assert cluster.driver.started == 2


def test_calls_under_the_token_of_an_earlier_term_are_refused() -> None:
    cluster = make_cluster()
    submit(cluster, job(run_s=None))
    earlier = cluster.result(cluster.client())
    take_over(cluster)
    with pytest.raises(FencingError):
        cluster.result(earlier.list_jobs())
    with pytest.raises(FencingError):
        cluster.result(earlier.cancel_job(JOB))
    with pytest.raises(FencingError):
        cluster.result(earlier.submit_job(job(1.0, JobId("other"))))
    assert [
        each.job_id for each in cluster.result(cluster.result(cluster.client()).list_jobs())
    ] == [JOB]


def test_a_store_that_cannot_be_read_is_read_again_after_a_pause_by_the_same_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = make_cluster()
    submit(cluster, job(run_s=None))
    recover, at = JobStore.recover, list[float]()

    def fails_twice(store: JobStore) -> Inheritance:
        at.append(cluster.network.clock.monotonic())
        if len(at) < 3:
            raise ValueError("what is this?")
        return recover(store)

    monkeypatch.setattr(JobStore, "recover", fails_twice)
    cluster.crash_masters(1.0, noticed=True)
    assert cluster.network.run_until(lambda: cluster.terms == 2, 90)
    assert [round(later - earlier) for earlier, later in pairwise(at)] == [30, 30]
    cluster.network.run_for(1)
    assert JOB in cluster.job_masters


def test_a_job_that_had_ended_is_not_run_again_and_its_result_is_told() -> None:
    cluster = make_cluster()
    submit(cluster, job(run_s=0.5))
    assert cluster.network.run_until(lambda: not cluster.dispatcher.statistics().running, 60)
    take_over(cluster)
    assert cluster.dispatcher.statistics().running == 0
    result = cluster.result(cluster.result(cluster.client()).request_job_result(JOB, 1.0))
    assert result is not None
    assert result.state is JobState.FINISHED
    assert JOB not in cluster.job_masters or cluster.job_masters[JOB].status.has_ended


def test_a_job_that_was_cancelled_ends_as_such_in_the_next_term() -> None:
    cluster = make_cluster()
    submit(cluster, job(run_s=None))
    cluster.network.swallow = lambda source, target, message: (
        source == "dispatcher" and target.startswith("jobmaster")
    )
    cluster.result(cluster.client()).cancel_job(JOB)
    cluster.network.run_for(1)
    cluster.network.swallow = lambda source, target, message: False
    take_over(cluster)
    result = cluster.result(cluster.result(cluster.client()).request_job_result(JOB, 9.0))
    assert result is not None
    assert result.state is JobState.CANCELED


def job_with_checkpoints() -> JobGraph:
    """It reads for half a minute, and keeps its checkpoints when it is cancelled."""
    options = {
        "interval": "300 ms",
        "dir": DIRECTORY,
        "externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    builder = JobBuilder(
        JOB,
        configuration={f"execution.checkpointing.{key}": value for key, value in options.items()},
    )
    vertex = builder.vertex(1, [], TaskBehaviour(), splits=30)
    stream = StreamBehaviour(vertex.operators[0].operator_id, read_s=1.0)
    vertex.chain = replace(pickle.loads(vertex.chain), stream=stream).dumps()
    return builder.build()


def test_the_checkpoints_of_a_job_that_was_cancelled_are_kept_in_the_next_term_too() -> None:
    cluster = make_cluster()
    submit(cluster, job_with_checkpoints())
    assert cluster.network.run_until(lambda: cluster.files.has_checkpoint(JOB), 60)
    cluster.network.swallow = lambda source, target, message: (
        source == "dispatcher" and target.startswith("jobmaster")
    )
    cluster.result(cluster.client()).cancel_job(JOB)
    cluster.network.run_for(1)
    cluster.network.swallow = lambda source, target, message: False
    # so the cancellation comes before the checkpoints were read
    cluster.network.faults = FaultPlan(background_s=2.0)
    take_over(cluster)
    result = cluster.result(cluster.result(cluster.client()).request_job_result(JOB, 9.0))
    assert result is not None
    assert result.state is JobState.CANCELED
    assert cluster.files.has_checkpoint(JOB)


def is_storing(cluster: SimulatedCluster) -> bool:
    """Whether the manifest of a checkpoint is being written."""
    pending = cluster.job_masters[JOB].scheduler.checkpoints.pending.values()
    return any(checkpoint.state is CheckpointState.STORING for checkpoint in pending)


@pytest.mark.parametrize("moment_s", [0.0, 0.2, 0.4])
def test_no_task_goes_back_behind_a_checkpoint_that_the_next_masters_may_find(
    moment_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker dies while a manifest is being written, and for a while the store deletes nothing. A
    task that went back behind that checkpoint might clear away what the next masters, who find it,
    have sinks commit. That none does is checked when tasks come."""
    cluster = make_cluster()
    cluster.network.after_event = Invariants(cluster)
    submit(cluster, job_with_checkpoints())
    assert cluster.network.run_until(lambda: cluster.files.has_checkpoint(JOB), 60)
    cluster.network.faults = FaultPlan(background_s=1.0)
    assert cluster.network.run_until(lambda: is_storing(cluster), 60)
    delete = cluster.files.delete

    def refuse(location: str) -> None:
        raise OSError("the store deletes nothing now")

    monkeypatch.setattr(cluster.files, "delete", refuse)
    [worker] = list(cluster.workers)
    on_failure = cluster.crash_worker(worker).on_failure
    assert on_failure is not None
    on_failure("the simulated process died")
    cluster.network.run_for(3 + moment_s)
    monkeypatch.setattr(cluster.files, "delete", delete)
    cluster.network.run_for(moment_s)
    take_over(cluster)
    client = cluster.result(cluster.client())
    results = (cluster.result(client.request_job_result(JOB, 9.0)) for _ in range(20))
    result = next(each for each in results if each is not None)
    assert result.state is JobState.FINISHED
    cluster.oracle.check_end(job_with_checkpoints(), result.state)


def test_a_job_that_ends_while_its_cancellation_is_kept_was_cancelled_in_vain() -> None:
    cluster = make_cluster()
    submit(cluster, job(run_s=None))
    client = cluster.result(cluster.client())
    answers = []
    for _ in range(40):
        answers.append(client.cancel_job(JOB))
        cluster.network.run_for(0.002)
    cluster.network.run_for(5)
    assert [answer.error for answer in answers] == [None] * 40


def test_a_job_that_was_not_accepted_is_not_there_in_the_next_term() -> None:
    cluster = make_cluster()
    cluster.files.faults = lambda step: StorageFault("nothing")
    submitted = cluster.result(cluster.client()).submit_job(job(run_s=1.0))
    cluster.network.run_for(3)
    assert "cannot be kept" in str(submitted.error)
    cluster.files.faults = lambda step: None
    take_over(cluster)
    with pytest.raises(ProgramError, match="there is no job"):
        cluster.result(cluster.result(cluster.client()).request_job_result(JOB, 1.0))


def shut_down(cluster: SimulatedCluster) -> Future[None]:
    return cluster.result(cluster.client()).shut_down_cluster()


def test_a_job_that_is_submitted_while_the_cluster_shuts_down_is_refused_and_not_kept() -> None:
    cluster = make_cluster()
    client = cluster.result(cluster.client())
    # so the shutdown begins while the job is being kept
    cluster.network.faults = FaultPlan(background_s=2.0)
    submitted = client.submit_job(job(run_s=None))
    cluster.network.run_for(0.5)
    ended = client.shut_down_cluster()
    assert cluster.network.run_until(lambda: ended.done and submitted.done, 60)
    assert "is shutting down" in str(submitted.error)
    cluster.network.run_for(10)
    assert not [path for path in cluster.files.files if "graph-" in path]


def test_a_job_is_cancelled_by_a_shutdown_although_the_store_fails_at_first() -> None:
    cluster = make_cluster()
    submit(cluster, job(run_s=None))
    cluster.files.faults = lambda step: StorageFault("nothing")
    ended = shut_down(cluster)
    cluster.network.run_for(3)
    cluster.files.faults = lambda step: None
    assert cluster.network.run_until(lambda: ended.done, 60)
    assert ended.error is None
