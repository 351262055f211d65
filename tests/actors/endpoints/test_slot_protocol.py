"""The slot protocol step by step, on the simulated service: each message in turn is lost, and the
job comes to its end all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from flinkpy.actors.gateways import (
    DispatcherGateway,
    JobResult,
    ResourceManagerGateway,
    SlotAllocation,
    SlotRequest,
    TaskExecutorGateway,
)
from flinkpy.actors.rpc.delivery.envelope import Message, RpcInvocation
from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.core.errors import (
    EngineError,
    FencingError,
    ProgramError,
    ResourceUnavailableError,
    RpcError,
    TaskExecutorLostError,
    UserCodeError,
)
from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    FencingToken,
    JobId,
    JobVertexId,
    ResourceId,
)
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.engine import RpcConfig, SlotConfig
from flinkpy.graph.deployment import TaskDeploymentDescriptor
from flinkpy.graph.job_graph import DistributionPattern, JobGraph
from flinkpy.graph.resources import ANY
from flinkpy.testing.simulation import SimulatedCluster, TaskBehaviour
from flinkpy.testing.simulation.cluster import SimulatedWorkerProcess
from flinkpy.testing.simulation.cluster_invariants import Invariants, check_calm, check_end
from flinkpy.testing.simulation.simulated_jobs import JobBuilder, SimulatedSource

RPC = RpcConfig(
    ask_timeout=timedelta(seconds=2),
    heartbeat_interval=timedelta(seconds=2),
    heartbeat_timeout=timedelta(seconds=7),
    registration_initial=timedelta(milliseconds=100),
    registration_max=timedelta(seconds=3),
)
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 3,
    "restart-strategy.fixed-delay.delay": "100 ms",
}
ONE = ResourceId("te-1")


def make_cluster(
    workers: int = 1, slots: int = 2, max_slots: int | None = None, start_s: float = 1.0
) -> SimulatedCluster:
    config = SlotConfig(
        slots, None, timedelta(seconds=5), timedelta(seconds=30), timedelta(seconds=5)
    )
    cluster = SimulatedCluster(
        rpc_config=RPC, slot_config=config, max_slots=max_slots, start_s=start_s
    )
    cluster.network.after_event = Invariants(cluster)
    for number in range(workers):
        cluster.start_worker(ResourceId(f"te-{number + 1}"), slots)
    return cluster


def job(
    run_s: float | None = 1.0,
    parallelism: int = 2,
    splits: int | None = None,
    failures: int = 0,
    configuration: dict[str, Any] | None = None,
    name: str = "job",
) -> JobGraph:
    builder = JobBuilder(JobId(name), configuration=configuration)
    behaviour = TaskBehaviour(run_s, failures=failures)
    source = builder.vertex(parallelism, behaviour=behaviour, splits=splits)
    builder.vertex(parallelism, [(source, DistributionPattern.ALL_TO_ALL)], TaskBehaviour(run_s))
    return builder.build()


def lose(
    cluster: SimulatedCluster, method: str, times: int = 1, answers: bool = False
) -> Callable[[], int]:
    """Loses that many calls of the method (or the answers to them); gives how many were lost."""
    lost: list[Message] = []
    awaited: set[int] = set()

    def swallow(source: str, target: str, message: Message) -> bool:
        wanted = isinstance(message, RpcInvocation) and message.method == method
        if wanted and answers and message.request_id is not None:
            awaited.add(message.request_id)
        hit = message.request_id in awaited and not wanted if answers else wanted
        if hit and len(lost) < times:
            lost.append(message)
            return True
        return False

    cluster.network.swallow = swallow
    return lambda: len(lost)


def dispatcher(cluster: SimulatedCluster) -> DispatcherGateway:
    return cluster.result(cluster.client())


def play(cluster: SimulatedCluster, graph: JobGraph) -> JobResult:
    client = dispatcher(cluster)
    cluster.result(client.submit_job(graph))
    for _ in range(200):
        result = cluster.result(client.request_job_result(graph.job_id, 1.0))
        if result is not None:
            return result
    raise AssertionError("the job does not end")


def rest(cluster: SimulatedCluster) -> None:
    cluster.network.run_for(30)
    check_end(cluster)


def test_slots_are_not_asked_for_before_their_task_executor_knows_by_whom() -> None:
    """It would refuse, and another worker would be started in its place."""
    cluster = make_cluster(workers=0)
    lost = lose(cluster, "register_task_executor", answers=True)
    swallow, asked = cluster.network.swallow, []

    def watched(source: str, target: str, message: Message) -> bool:
        if (
            isinstance(message, RpcInvocation)
            and message.method == "request_slots"
            and source == "resourcemanager"
        ):
            asked.append(target)
        return swallow is not None and swallow(source, target, message)

    cluster.network.swallow = watched
    assert play(cluster, job()).state is JobState.FINISHED
    assert (lost(), len(asked)) == (1, 1)
    rest(cluster)


def test_a_job_gets_its_slots_runs_and_gives_everything_back() -> None:
    cluster = make_cluster()
    result = play(cluster, job())
    assert (result.state, result.accumulators["tasks"]) == (JobState.FINISHED, 4)
    rest(cluster)


@pytest.mark.finding("hunts 18")
def test_jobs_one_after_the_other_share_the_workers_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next one asks before the slots of the last are reported free."""
    cluster = make_cluster(workers=0, slots=1)
    send = cluster.network.send

    def slowly(source: SimulatedRpcService, process: str, message: Message) -> None:
        is_report = isinstance(message, RpcInvocation) and message.method == "report_slots"
        cluster.network.schedule(
            0.04 if is_report else 0.0, lambda: send(source, process, message), "sends"
        )

    monkeypatch.setattr(cluster.network, "send", slowly)
    for number in range(10):
        assert play(cluster, job(run_s=0.1, name=f"job-{number}")).state is JobState.FINISHED
    assert cluster.driver.started == 2
    rest(cluster)


def test_slots_that_an_ended_job_does_not_give_back_are_replaced_after_a_moment() -> None:
    cluster = make_cluster(workers=0, slots=1)
    first: set[str] = set()  # the workers of the first job: what they report later is lost

    def silenced(source: str, target: str, message: Message) -> bool:
        if not isinstance(message, RpcInvocation) or message.method != "report_slots":
            return False
        has_registered = source in first
        if len(first) < 2:
            first.add(source)
        return has_registered

    cluster.network.swallow = silenced
    assert play(cluster, job(name="first")).state is JobState.FINISHED
    assert play(cluster, job(name="next", run_s=0.1)).state is JobState.FINISHED
    assert (len(first), cluster.driver.started) == (2, 4)
    cluster.network.swallow = lambda source, target, message: False
    rest(cluster)


LOSSES = [
    ("register_job_master", False),
    ("register_task_executor", False),
    ("register_task_executor", True),
    ("request_slots", False),
    ("request_slots", True),
    ("offer_slots", False),
    ("offer_slots", True),
    ("report_tasks", False),
    ("report_tasks", True),
    ("free_slots", False),
    ("disconnect_job_master", False),
    ("deliver_messages", False),
    ("deliver_messages", True),
    ("report_slots", False),
]


@pytest.mark.parametrize(("method", "answers"), LOSSES)
def test_one_lost_message_changes_nothing_in_the_end(method: str, answers: bool) -> None:
    cluster = make_cluster()
    lost = lose(cluster, method, 1, answers)
    result = play(cluster, job(splits=3))
    cluster.network.swallow = lambda source, target, message: False
    rest(cluster)
    assert (result.state, lost()) == (JobState.FINISHED, 1)
    assert sorted(result.accumulators["splits"]) == ["split-0", "split-1", "split-2"]


@pytest.mark.parametrize("answers", [False, True])
def test_a_lost_deployment_fails_the_task_and_a_restart_mends_it(answers: bool) -> None:
    cluster = make_cluster()
    lose(cluster, "submit_tasks", 1, answers)
    assert play(cluster, job(run_s=10.0, configuration=RESTARTS)).state is JobState.FINISHED
    rest(cluster)


def test_a_confirmed_task_survives_the_loss_of_the_submission_answer() -> None:
    cluster = make_cluster()
    lose(cluster, "submit_tasks", 1, answers=True)
    # its state reports have proved that it runs
    assert play(cluster, job(run_s=10.0)).state is JobState.FINISHED
    rest(cluster)


def test_an_offer_that_is_never_answered_is_taken_back_in_time() -> None:
    cluster = make_cluster()
    lose(cluster, "offer_slots", 10**6)
    result = play(cluster, job())
    assert result.state is JobState.FAILED
    assert "slot.request.timeout" in str(result.error)
    rest(cluster)


@pytest.mark.finding("faults 9")
def test_a_slot_whose_offer_is_not_answered_in_time_is_free_again_before_the_request_times_out() -> (
    None
):
    cluster = make_cluster()
    lose(cluster, "offer_slots", 10**6)
    cluster.result(dispatcher(cluster).submit_job(job(parallelism=1, run_s=None)))
    cluster.network.run_for(3)
    slots = cluster.workers[ResourceId("te-1")].executor.holdings.slots
    assert [slot.state.name for slot in slots.of_job(JobId("job"))] == ["ALLOCATED"]
    assert cluster.network.run_until(lambda: not slots.of_job(JobId("job")), 5), (
        "the time for an answer is over"
    )


def test_a_lost_cancellation_is_repeated() -> None:
    cluster = make_cluster()
    client = dispatcher(cluster)
    cluster.result(client.submit_job(job(run_s=None)))
    cluster.network.run_for(3)
    lost = lose(cluster, "cancel_tasks", 2)
    cluster.result(client.cancel_job(JobId("job")))
    assert cluster.network.run_until(lambda: not cluster.dispatcher.statistics().running, 60)
    assert lost() == 2
    rest(cluster)


def test_a_slot_the_job_master_does_not_know_is_freed_by_the_heartbeats() -> None:
    cluster = make_cluster()
    cluster.result(dispatcher(cluster).submit_job(job(run_s=None)))
    cluster.network.run_for(3)
    pool = cluster.job_masters[JobId("job")].slots.pool
    forgotten = next(iter(pool.slots())).allocation_id
    pool.remove_slot(forgotten)  # as if a free_slots message had been lost
    cluster.network.run_for(5)
    assert cluster.workers[ONE].executor.holdings.slots.get_slot(forgotten) is None


def test_a_task_the_executor_has_lost_fails_by_the_heartbeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = make_cluster()
    cluster.result(dispatcher(cluster).submit_job(job(run_s=None)))
    cluster.network.run_for(3)
    worker = cluster.workers[ONE]
    connection = worker.executor.jobs.get_job(JobId("job"))
    assert connection is not None
    with monkeypatch.context() as patch:
        patch.setattr(connection, "report_state", lambda state: None)
        worker.runner.fail(next(iter(worker.runner.tasks_in_slots())), ValueError("unheard of"))
        cluster.network.run_for(0.1)
    result = play(cluster, job())
    assert "te-1 lost track of v0 (1/2)#0" in str(result.error)
    rest(cluster)


def test_a_connection_only_the_executor_has_given_up_ends_at_the_job_master_too() -> None:
    cluster = make_cluster()
    cluster.result(dispatcher(cluster).submit_job(job(run_s=None, configuration=RESTARTS)))
    cluster.network.run_for(3)
    worker = cluster.workers[ONE]
    master = cluster.job_masters[JobId("job")]
    lose(cluster, "disconnect_task_executor", 10**6)
    worker.executor.run_async(
        lambda: worker.executor.jobs.lose_job(JobId("job"), master.registration.token, "test")
    )
    cluster.network.run_for(20)
    details = master.scheduler.details()
    assert (details.restarts, details.state) == (1, JobState.RUNNING)


def test_a_slot_promised_to_a_job_that_does_not_want_it_is_rejected_and_freed() -> None:
    cluster = make_cluster()
    cluster.result(dispatcher(cluster).submit_job(job(run_s=None, parallelism=1)))
    cluster.network.run_for(3)
    executor, mine = cluster.workers[ONE].executor, cluster.job_masters[JobId("job")].registration
    token = executor.manager.token
    assert token is not None
    unwanted = SlotRequest(mine.job_id, AllocationId("unwanted"), ANY, mine.address, mine.token)
    executor.run_async(
        lambda: [executor.request_slots(token, (SlotAllocation(1, unwanted),)), None][1]
    )
    cluster.network.run_for(1)
    assert executor.holdings.slots.get_slot(unwanted.allocation_id) is None
    assert executor.holdings.slots.statistics().active == 1


def test_a_promise_for_another_resource_manager_is_refused() -> None:
    cluster = make_cluster()
    cluster.network.run_for(1)
    gateway = cluster.result(
        cluster.client_service.connect(None, "te-1/taskexecutor", TaskExecutorGateway)
    )
    with pytest.raises(FencingError, match="belongs to another ResourceManager"):
        cluster.result(gateway.request_slots(FencingToken("old"), ()))


def test_tasks_for_a_slot_that_is_not_held_are_refused_by_name() -> None:
    cluster = make_cluster()
    cluster.network.run_for(1)
    gateway = cluster.result(
        cluster.client_service.connect(None, "te-1/taskexecutor", TaskExecutorGateway)
    )
    attempt = ExecutionAttemptId(JobId("job"), JobVertexId("v"), 0, 0)
    task = TaskDeploymentDescriptor(
        attempt, AllocationId("gone"), "job", "v", 1, 128, TaskBehaviour().dumps()
    )
    answer = cluster.result(gateway.submit_tasks(FencingToken("t"), (task,)))
    assert answer.refused == {attempt: "te-1 does not work for this JobMaster (any more)"}


def test_an_executor_is_idle_when_the_last_of_its_jobs_has_left_it() -> None:
    cluster = make_cluster(slots=4)
    process = cluster.workers[ONE].executor.process
    assert isinstance(process, SimulatedWorkerProcess)
    long = replace(job(run_s=5.0), job_id=JobId("long"))
    client = dispatcher(cluster)
    cluster.result(client.submit_job(long))
    assert play(cluster, job(run_s=1.0)).state is JobState.FINISHED
    cluster.network.run_for(2)
    assert process.times_idle == 0
    rest(cluster)
    assert process.times_idle == 1


def test_what_can_never_be_had_fails_at_once_with_the_numbers() -> None:
    cluster = make_cluster(workers=0, max_slots=3)
    before = cluster.network.now
    result = play(cluster, job(parallelism=8))
    assert isinstance(result.error, ResourceUnavailableError)
    assert "the simulated cluster has 3: lower the parallelism" in str(result.error)
    assert cluster.network.now - before < 2


def test_workers_are_started_on_demand_and_stopped_when_idle() -> None:
    cluster = make_cluster(workers=0)
    assert play(cluster, job(parallelism=4)).state is JobState.FINISHED
    assert cluster.driver.started == 2
    cluster.network.run_for(10)
    assert not cluster.workers


def test_a_crashed_executor_costs_a_restart_on_another_one() -> None:
    cluster = make_cluster(workers=2)
    client = dispatcher(cluster)
    cluster.result(client.submit_job(job(run_s=20.0, configuration=RESTARTS)))
    cluster.network.run_for(5)
    held = next(iter(cluster.job_masters[JobId("job")].slots.pool.slots())).resource_id
    cluster.network.crash(held)
    del cluster.workers[held]
    assert play(cluster, job()).state is JobState.FINISHED
    rest(cluster)


def masters(cluster: SimulatedCluster) -> list[str]:
    """The processes of Dispatcher, ResourceManager and JobMasters."""
    return [
        name
        for name in cluster.network.processes
        if name.startswith(("dispatcher", "resourcemanager", "jobmaster"))
    ]


def test_an_executor_cut_off_from_the_master_ends_what_it_runs_and_comes_back() -> None:
    cluster = make_cluster()
    cluster.result(dispatcher(cluster).submit_job(job(run_s=None)))
    cluster.network.run_for(3)
    cluster.network.partition("te-1", masters(cluster))
    cluster.network.run_for(20)
    executor = cluster.workers[ONE].executor
    assert executor.statistics().runner.tasks == 0
    result = cluster.dispatcher.statistics()
    assert result.archived == 1  # the JobMaster has noticed too
    cluster.network.heal()
    cluster.network.run_for(20)
    check_end(cluster)


def test_a_lost_task_executor_is_named_in_the_jobs_error() -> None:
    cluster = make_cluster()
    client = dispatcher(cluster)
    cluster.result(client.submit_job(job(run_s=None)))
    cluster.network.run_for(3)
    cluster.crash_worker(ONE)
    result = play(cluster, job())
    assert isinstance(result.error, TaskExecutorLostError)
    assert "te-1" in str(result.error)


def test_a_failing_task_fails_the_job_with_its_own_error() -> None:
    result = play(make_cluster(), job(failures=1))
    assert (result.state, type(result.error)) == (JobState.FAILED, UserCodeError)


def test_an_enumerator_that_raises_fails_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise ValueError("no such folder")

    monkeypatch.setattr(SimulatedSource, "create_enumerator", broken)
    cluster = make_cluster()
    result = play(cluster, job(splits=2))
    assert result.state is JobState.FAILED
    assert "no such folder" in str(result.error)
    rest(cluster)


def test_a_bug_in_the_job_master_ends_the_job_instead_of_hanging_it() -> None:
    cluster = make_cluster()
    cluster.result(dispatcher(cluster).submit_job(job(run_s=None)))
    cluster.network.run_for(3)

    def escape() -> None:
        raise KeyError("a bug")

    cluster.job_masters[JobId("job")].run_async(escape)
    result = play(cluster, job())
    assert result.state is JobState.FAILED
    assert isinstance(result.error, EngineError)
    assert "a bug" in str(result.error)
    rest(cluster)


# -- the Dispatcher --------------------------------------------------------------------------------


def test_a_job_submitted_twice_is_started_once() -> None:
    cluster = make_cluster()
    client = dispatcher(cluster)
    graph = job()
    both = client.submit_job(graph), client.submit_job(graph)
    assert [cluster.result(future) for future in both] == [graph.job_id, graph.job_id]
    assert cluster.dispatcher.statistics().running == 1


def test_a_running_job_is_listed_and_an_ended_one_is_archived() -> None:
    cluster = make_cluster()
    client = dispatcher(cluster)
    cluster.result(client.submit_job(job()))
    cluster.network.run_for(0.5)
    [overview] = cluster.result(client.list_jobs())
    assert (overview.state, overview.tasks) == (JobState.RUNNING, {ExecutionState.RUNNING: 4})
    assert cluster.result(client.request_job_status(JobId("job"))) is JobState.RUNNING
    assert cluster.result(client.request_cluster_overview()).jobs_running == 1
    play(cluster, job())
    [overview] = cluster.result(client.list_jobs())
    assert overview.state is JobState.FINISHED
    details = cluster.result(client.request_job_details(JobId("job")))
    assert [(vertex.parallelism, vertex.states) for vertex in details.vertices] == [
        (2, {ExecutionState.FINISHED: 2})
    ] * 2


def test_waiting_for_a_result_gives_none_when_the_time_is_over() -> None:
    cluster = make_cluster()
    client = dispatcher(cluster)
    cluster.result(client.submit_job(job(run_s=None)))
    assert cluster.result(client.request_job_result(JobId("job"), 0.5)) is None
    assert cluster.dispatcher.statistics().waiting_clients == 0


def test_an_unknown_job_and_an_empty_one_are_refused_with_advice() -> None:
    cluster = make_cluster()
    client = dispatcher(cluster)
    with pytest.raises(ProgramError, match="flinkpy list"):
        cluster.result(client.request_job_status(JobId("nobody")))
    with pytest.raises(ProgramError, match="no operators"):
        cluster.result(client.submit_job(JobGraph(JobId("empty"), "empty", [])))


def test_shutting_down_cancels_what_runs_and_takes_no_more() -> None:
    cluster = make_cluster()
    client = dispatcher(cluster)
    cluster.result(client.submit_job(job(run_s=None)))
    cluster.network.run_for(2)
    done = client.shut_down_cluster()
    with pytest.raises(ProgramError, match="shutting down"):
        cluster.result(client.submit_job(JobBuilder(JobId("late")).build()))
    cluster.result(done)
    assert cluster.dispatcher.statistics().running == 0


# -- leadership ------------------------------------------------------------------------------------


@pytest.mark.finding("mechanisms F10")
def test_a_dispatcher_whose_connection_with_a_job_master_was_lost_makes_another() -> None:
    cluster = make_cluster()
    client = dispatcher(cluster)
    graph = job(run_s=None)
    cluster.result(client.submit_job(graph))
    cluster.network.partition("dispatcher", masters(cluster))
    with pytest.raises(RpcError):
        cluster.result(client.request_job_status(graph.job_id))
    cluster.network.heal()
    cluster.network.run_for(1)
    assert cluster.result(client.request_job_status(graph.job_id)) is JobState.RUNNING
    cluster.result(client.cancel_job(graph.job_id))
    rest(cluster)


def test_a_resource_manager_that_died_is_followed_by_one_that_knows_nothing_and_everybody_finds_it() -> (
    None
):
    cluster = make_cluster()
    cluster.result(dispatcher(cluster).submit_job(job(run_s=None)))
    cluster.network.run_for(3)
    first_term = cluster.managing.token
    cluster.crash_resource_manager(back_after_s=2.0, noticed=False)
    cluster.network.run_for(30)
    assert cluster.managing.token not in (None, first_term)
    check_calm(cluster)  # the JobMaster has registered again
    # what its slots hold, the TaskExecutor has told
    assert cluster.resource_manager.slots.statistics().free == 0
    overview = cluster.result(dispatcher(cluster).request_cluster_overview())
    assert (overview.task_executors, overview.slots_total) == (1, 2)
    cluster.result(dispatcher(cluster).cancel_job(JobId("job")))
    rest(cluster)


def test_a_job_that_waits_for_slots_asks_the_next_resource_manager() -> None:
    cluster = make_cluster(workers=0, start_s=1000.0)
    cluster.result(dispatcher(cluster).submit_job(job()))
    cluster.network.run_for(1)
    cluster.crash_resource_manager(back_after_s=1.0)
    cluster.start_worker(ONE, 2)
    result = cluster.result(dispatcher(cluster).request_job_result(JobId("job"), 1.9), 60)
    while result is None:
        result = cluster.result(dispatcher(cluster).request_job_result(JobId("job"), 1.9), 60)
    assert result.state is JobState.FINISHED
    rest(cluster)


@pytest.mark.finding("mechanisms F4")
def test_dispatcher_and_resource_manager_refuse_whoever_names_a_past_term() -> None:
    cluster = make_cluster()
    cluster.network.run_for(1)
    stale = FencingToken("an earlier term")
    for token in (stale, None):
        client = cluster.result(
            cluster.client_service.connect(
                None, cluster.dispatcher.address, DispatcherGateway, token
            )
        )
        with pytest.raises(FencingError):
            cluster.result(client.submit_job(job()))
        manager = cluster.result(
            cluster.client_service.connect(
                None, cluster.resource_manager.address, ResourceManagerGateway, token
            )
        )
        with pytest.raises(FencingError):
            cluster.result(manager.request_overview())
        manager.disconnect_task_executor(ONE, "a stale message")
    cluster.network.run_for(1)
    assert cluster.resource_manager.slots.knows(ONE)
    assert cluster.dispatcher.statistics().running == 0
    assert cluster.managing.token != cluster.dispatching.token


@pytest.mark.finding("mechanisms F5")
def test_who_leads_no_more_answers_nobody() -> None:
    cluster = make_cluster()
    cluster.network.run_for(1)
    manager = cluster.result(
        cluster.client_service.connect(
            None, cluster.resource_manager.address, ResourceManagerGateway, cluster.managing.token
        )
    )
    assert cluster.result(manager.request_overview()).task_executors <= 1
    cluster.managing.stop()
    with pytest.raises(FencingError, match="no leadership"):
        cluster.result(manager.request_overview())
