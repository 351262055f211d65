"""Rules of the control plane, one a test: who is believed, who is told, and what is forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from flinkpy.actors.dispatcher import Dispatcher, DispatcherHost, JobMasterLike, OnTerminal
from flinkpy.actors.gateways import JobMasterGateway, ResourceManagerGateway, TaskExecutorGateway
from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.actors.job_store import ArchivedJob, Inheritance, JobStore
from flinkpy.actors.resource_manager.slot_actions import Action
from flinkpy.actors.rpc.base_service import BaseRpcService
from flinkpy.actors.rpc.delivery.envelope import Message, RpcInvocation
from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    FencingToken,
    JobId,
    ResourceId,
    SlotRequestId,
)
from flinkpy.core.lifecycles import JobState
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskManagerLocation
from flinkpy.graph.job_graph import JobGraph
from flinkpy.graph.resources import ANY
from flinkpy.scheduler.protocol import CancelSlotRequest, Command, Event
from flinkpy.state.checkpoints.fenced_store import FencedStore
from flinkpy.testing.simulation import SimulatedCluster, TaskBehaviour
from flinkpy.testing.simulation.cluster import DISPATCHER
from flinkpy.testing.simulation.cluster_files import DIRECTORY
from flinkpy.testing.simulation.cluster_invariants import check_calm
from tests.actors.endpoints.test_slot_protocol import (
    ONE,
    dispatcher,
    job,
    lose,
    make_cluster,
    play,
    rest,
)

JOB, OTHER = JobId("job"), JobId("other")
UNWANTED = SlotRequestId("unwanted")


def running(cluster: SimulatedCluster, graph: JobGraph | None = None) -> None:
    cluster.result(dispatcher(cluster).submit_job(graph or job(run_s=None)))
    cluster.network.run_for(3)


def asking(cluster: SimulatedCluster) -> JobMaster:
    """The JobMaster of a job that runs: it waits for a slot that it does not need."""
    running(cluster)
    master = cluster.job_masters[JOB]

    def ask() -> None:
        master.slots.pool.add_request(
            UNWANTED, AllocationId("unwanted"), ANY, (), cluster.network.now
        )
        master.slots.request_all_again()

    master.run_async(ask)
    cluster.network.run_for(1)
    assert cluster.resource_manager.slots.waiting_of(JOB) == {AllocationId("unwanted")}
    return master


def manager_of(cluster: SimulatedCluster) -> ResourceManagerGateway:
    return cluster.result(
        cluster.client_service.connect(
            None, cluster.resource_manager.address, ResourceManagerGateway, cluster.managing.token
        )
    )


def heard(cluster: SimulatedCluster, method: str) -> list[tuple[str, str]]:
    """Who says this to whom from now on."""
    said: list[tuple[str, str]] = []

    def listen(source: str, target: str, message: Message) -> bool:
        if isinstance(message, RpcInvocation) and message.method == method:
            said.append((source, target))
        return False

    cluster.network.swallow = listen
    return said


# -- events and commands ---------------------------------------------------------------------------


def test_the_job_master_carries_out_every_command_and_the_scheduler_takes_every_event() -> None:
    cluster = make_cluster()
    running(cluster)
    master = cluster.job_masters[JOB]
    assert master._handlers.keys() == set(get_args(Command))
    assert master.scheduler._handlers.keys() == set(get_args(Event))


# -- tokens ----------------------------------------------------------------------------------------


def test_a_task_executor_takes_no_tasks_under_another_token_than_its_job_masters() -> None:
    cluster = make_cluster()
    running(cluster, job(run_s=None, parallelism=1))
    master = cluster.job_masters[JOB]
    [slot] = master.slots.pool.slots()
    gateway = cluster.result(
        cluster.client_service.connect(None, "te-1/taskexecutor", TaskExecutorGateway)
    )
    attempt = ExecutionAttemptId(JOB, master.job_graph.vertices[0].id, 0, 7)
    task = TaskDeploymentDescriptor(
        attempt, slot.allocation_id, "job", "v", 1, 128, TaskBehaviour(run_s=None).dumps()
    )
    answer = cluster.result(gateway.submit_tasks(FencingToken("an earlier JobMaster's"), (task,)))
    assert answer.refused == {attempt: "te-1 does not work for this JobMaster (any more)"}
    assert attempt not in cluster.workers[ONE].runner.tasks_in_slots()
    assert cluster.result(gateway.submit_tasks(master.registration.token, (task,))).refused == {}


def test_every_job_master_leads_under_a_token_of_its_own_and_answers_to_no_other() -> None:
    cluster = make_cluster(slots=4)
    running(cluster)
    running(cluster, replace(job(run_s=None), job_id=OTHER))
    one, other = cluster.job_masters[JOB].registration, cluster.job_masters[OTHER].registration
    assert one.token != other.token
    mistaken = cluster.result(
        cluster.client_service.connect(None, one.address, JobMasterGateway, other.token)
    )
    mistaken.disconnect_task_executor(ONE, "meant for the other job")
    cluster.network.run_for(1)
    assert cluster.job_masters[JOB].scheduler.details().failures == ()


# -- the ResourceManager ---------------------------------------------------------------------------


def test_a_worker_that_was_told_to_stop_is_not_registered_again() -> None:
    """Its process is slow to end, or its registration was under way and comes behind the
    decision."""
    cluster = make_cluster(workers=0)
    assert play(cluster, job()).state is JobState.FINISHED
    [worker] = cluster.workers
    assert cluster.network.run_until(lambda: not cluster.workers, 60)  # idle, and stopped
    cluster.network.run_for(1)
    cluster.start_worker(worker, 2)
    cluster.network.run_for(2)
    assert not cluster.resource_manager.slots.knows(worker)
    assert not cluster.workers  # refused, it has ended itself


@pytest.mark.finding("gaps G12")
def test_a_tick_that_fails_is_an_error_of_its_process_and_the_ticks_go_on() -> None:
    cluster = make_cluster(workers=0)
    manager, fatal = cluster.resource_manager, []
    assert isinstance(manager.service, BaseRpcService)
    manager.service.on_fatal = lambda address, error: fatal.append((address, str(error)))
    assert play(cluster, job()).state is JobState.FINISHED
    tick = manager.slots.tick

    def fail_once(now: float) -> list[Action]:
        manager.slots.tick = tick  # type: ignore[method-assign]
        raise RuntimeError("Ray did not answer")

    manager.slots.tick = fail_once  # type: ignore[method-assign]
    assert cluster.network.run_until(lambda: not cluster.workers, 60)  # idle, and stopped
    assert fatal == [("resourcemanager/resourcemanager", "Ray did not answer")]


def test_the_limits_of_the_cluster_are_asked_again_as_it_may_grow() -> None:
    cluster = make_cluster(workers=0, max_slots=1)
    refused = play(cluster, job(parallelism=4))
    assert "has 1: lower the parallelism" in str(refused.error)
    cluster.driver._max_slots = 4
    cluster.network.run_for(5)
    grown = replace(job(parallelism=4), job_id=OTHER)
    assert play(cluster, grown).state is JobState.FINISHED


def test_a_request_whose_cancellation_was_lost_is_dropped_when_the_job_master_says_what_it_waits_for() -> (
    None
):
    cluster = make_cluster(start_s=1000.0)
    master = asking(cluster)
    lost = lose(cluster, "cancel_slot_requests", 10**6)
    master.run_async(lambda: master.slots.cancel_request(CancelSlotRequest(UNWANTED)))
    cluster.network.run_for(15)
    assert cluster.resource_manager.slots.waiting_of(JOB) == set()
    assert lost() == 1
    check_calm(cluster)


def test_a_request_that_is_cancelled_while_it_is_about_to_be_sent_again_is_dropped_at_once() -> (
    None
):
    cluster = make_cluster(start_s=1000.0)
    master = asking(cluster)

    def ask_again_and_cancel() -> None:
        master.slots.request_all_again()
        master.slots.cancel_request(CancelSlotRequest(UNWANTED))

    master.run_async(ask_again_and_cancel)
    cluster.network.run_for(0.1)
    assert cluster.resource_manager.slots.waiting_of(JOB) == set()


# -- farewells -------------------------------------------------------------------------------------


def test_a_task_executor_that_stops_tells_its_job_masters_at_once() -> None:
    cluster = make_cluster()
    running(cluster)
    said = heard(cluster, "disconnect_task_executor")
    cluster.workers[ONE].executor.stop()
    cluster.network.run_for(0.1)
    assert {target for _, target in said} == {"resourcemanager", f"jobmaster-{JOB}"}
    # without restarts, and long before a heartbeat is missed
    assert cluster.job_masters[JOB].status.has_ended


def is_registered(master: JobMaster) -> bool:
    return master.slots.manager.gateway is not None


def test_a_job_master_registers_again_at_a_resource_manager_it_has_lost() -> None:
    cluster = make_cluster()
    running(cluster)
    master = cluster.job_masters[JOB]
    for lost in range(2):
        cluster.network.partition(f"jobmaster-{JOB}", "resourcemanager")
        cluster.network.run_for(20)
        assert not is_registered(master), lost
        cluster.network.heal()
        cluster.network.run_for(10)
        assert is_registered(master), lost
        check_calm(cluster)


def test_a_job_master_takes_no_task_executors_after_its_end() -> None:
    """The registration begins before the end, and comes to it behind it."""
    cluster = make_cluster(workers=2)
    cluster._told_late_s = 100.0  # the Dispatcher lets it live on for a while
    running(cluster, job(run_s=1.0, parallelism=1))
    master = cluster.job_masters[JOB]
    assert cluster.network.run_until(lambda: master.status.has_ended, 60)
    gateway = cluster.result(
        cluster.client_service.connect(None, master.address, JobMasterGateway, master.token)
    )
    answer = cluster.result(
        gateway.register_task_executor(TaskManagerLocation(ResourceId("te-2"), "te-2/taskexecutor"))
    )
    assert (answer.accepted, answer.reason) == (False, f"job {JOB} has ended")
    master.check_invariants()


# -- the Dispatcher --------------------------------------------------------------------------------


def test_the_archive_forgets_the_oldest_jobs() -> None:
    cluster = make_cluster()
    cluster.network.crash(DISPATCHER)
    cluster.dispatcher = Dispatcher(
        cluster.services(cluster.network.service(DISPATCHER)),
        cluster,
        cluster.managing.retrieval(),
        archive_size=2,
        election=cluster.dispatching,
    )
    cluster.dispatcher.start()
    cluster.network.run_for(1)
    for number in range(4):
        assert (
            play(cluster, replace(job(run_s=0.1), job_id=JobId(f"job-{number}"))).state
            is JobState.FINISHED
        )
    assert [one.job_id for one in cluster.result(dispatcher(cluster).list_jobs())] == [
        "job-3",
        "job-2",
    ]
    assert cluster.dispatcher.statistics().archived == 2
    rest(cluster)


def test_a_job_is_archived_before_its_client_hears_of_its_end_and_by_the_next_dispatcher_too() -> (
    None
):
    cluster = make_cluster()
    archived: list[ArchivedJob] = []
    heard_before: list[bool] = []

    def archive(ended: ArchivedJob) -> None:
        heard_before.append(cluster.dispatcher.statistics().archived > 0)
        archived.append(ended)

    class Archiving(DispatcherHost):
        def make_job_master(
            self, job_graph: JobGraph, on_terminal: OnTerminal, generation: int
        ) -> JobMasterLike:
            return cluster.make_job_master(job_graph, on_terminal, generation)

    host = Archiving()
    host.archive = archive

    def next_dispatcher(inheritance: Inheritance | None) -> None:
        cluster.network.crash(DISPATCHER)
        cluster.dispatcher = Dispatcher(
            cluster.services(cluster.network.service(DISPATCHER)),
            host,
            cluster.managing.retrieval(),
            election=cluster.dispatching,
            inheritance=inheritance,
        )
        cluster.dispatcher.start()
        cluster.network.run_for(1)

    next_dispatcher(None)
    assert play(cluster, job(run_s=0.1)).state is JobState.FINISHED
    assert [(ended.result.job_id, ended.graph.state) for ended in archived] == [
        (JOB, JobState.FINISHED)
    ]
    assert heard_before == [False]
    store = FencedStore(cluster.files.store_of(DIRECTORY), DIRECTORY)
    term = store.take_term(FencingToken("next"))
    next_dispatcher(Inheritance(JobStore(store, term), term, ended=(archived[0],)))
    assert [ended.result.job_id for ended in archived] == [JOB, JOB]


def test_metrics_of_an_ended_job_are_its_results() -> None:
    cluster = make_cluster()
    assert play(cluster, job()).state is JobState.FINISHED
    told = cluster.result(dispatcher(cluster).request_job_metrics(JOB))
    assert told.accumulators["tasks"] == 4
    assert told.engine["v0.1.numRecordsOut"] == 1031
    assert not [name for name in told.engine if name.endswith("PerSecond")]  # of what runs only


@pytest.mark.finding("mechanisms F2")
def test_metrics_of_a_running_job_are_those_of_now() -> None:
    cluster = make_cluster()
    running(cluster)
    told = cluster.result(dispatcher(cluster).request_job_metrics(JOB))
    counted = [value for name, value in told.engine.items() if name == "v0.1.numRecordsOut"]
    assert counted
    assert 3000 <= counted[0] <= cluster.network.now * 1000
