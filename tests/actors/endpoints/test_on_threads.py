"""The same endpoints on real threads: a small job from submission to result, and everything given
back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import timedelta

from flinkpy.actors.dispatcher import Dispatcher, DispatcherHost, OnTerminal
from flinkpy.actors.endpoint_services import EndpointServices
from flinkpy.actors.gateways import DispatcherGateway
from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.actors.resource_manager.resource_manager import ResourceManager
from flinkpy.actors.rpc.leadership import StandaloneLeadership, connect_to_leader
from flinkpy.actors.rpc.local_service import LocalRpcService
from flinkpy.actors.task_executor.task_executor import TaskExecutor
from flinkpy.core.ids import ExecutionAttemptId, JobId, ResourceId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.engine import SlotConfig
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskExecutionState, TaskMetrics
from flinkpy.graph.job_graph import DistributionPattern, JobGraph
from flinkpy.graph.resources import ResourceProfile
from flinkpy.metrics.readings import ProcessReading
from flinkpy.runtime.runner_port import RunnerStatistics, TaskReporter
from flinkpy.runtime.task_messages import MessageToTask
from flinkpy.testing.simulation.simulated_jobs import JobBuilder, TaskBehaviour

TIMEOUT_S = 20.0


class InstantRunner:
    """Its tasks end as soon as they begin, or when they are cancelled."""

    def __init__(self, endless: bool) -> None:
        self._endless = endless
        self._running: dict[ExecutionAttemptId, TaskReporter] = {}

    @property
    def data_address(self) -> tuple[str, int]:
        return "localhost", 0

    def start(self) -> None: ...

    def submit(
        self, slot_index: int, descriptor: TaskDeploymentDescriptor, reporter: TaskReporter
    ) -> None:
        self._running[descriptor.attempt_id] = reporter
        self._report(descriptor.attempt_id, ExecutionState.INITIALIZING)
        self._report(descriptor.attempt_id, ExecutionState.RUNNING)
        if not self._endless:
            self._end(descriptor.attempt_id, ExecutionState.FINISHED)

    def _report(self, attempt_id: ExecutionAttemptId, state: ExecutionState) -> None:
        metrics = (
            TaskMetrics(attempt_id, records_in=1, records_out=2)
            if state is ExecutionState.FINISHED
            else None
        )
        self._running[attempt_id].state_changed(
            TaskExecutionState(
                attempt_id, state, None, {"ended": [attempt_id.subtask_index]}, metrics
            )
        )

    def _end(self, attempt_id: ExecutionAttemptId, state: ExecutionState) -> None:
        if attempt_id in self._running:
            self._report(attempt_id, state)
            del self._running[attempt_id]

    def cancel(self, attempt_id: ExecutionAttemptId) -> float:
        self._end(attempt_id, ExecutionState.CANCELED)
        return 0.0

    def overdue(self) -> str | None:
        return None

    def fail(self, attempt_id: ExecutionAttemptId, error: BaseException) -> None:
        self._end(attempt_id, ExecutionState.FAILED)

    def deliver_message(self, attempt_id: ExecutionAttemptId, message: MessageToTask) -> None: ...

    def release_partitions(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None: ...

    def leave_job(self, job_id: JobId) -> None: ...

    def metrics(self) -> list[TaskMetrics]:
        return []

    def read_accumulators(self, then: Callable[[], object]) -> None: ...

    def glance(self) -> list[tuple[int, ExecutionAttemptId | None]]:
        return []

    def reading(self) -> ProcessReading:
        return ProcessReading()

    def read_functions(self, then: Callable[[], object]) -> None: ...

    def memory(self) -> None: ...

    def on_memory_pressure(self, listener: Callable[[], None]) -> None: ...

    def statistics(self) -> RunnerStatistics:
        return RunnerStatistics(len(self._running), 0, 0, 0)

    def stop(self) -> None: ...


class ThreadDriver:
    """Starts TaskExecutors as endpoints of the same process."""

    def __init__(
        self, service: LocalRpcService, managing: StandaloneLeadership, endless: bool
    ) -> None:
        self._service = service
        self._managing = managing
        self._endless = endless
        self.executors: dict[ResourceId, TaskExecutor] = {}
        self.all_gone = threading.Event()

    def max_slots(self, profile: ResourceProfile) -> int | None:
        return 8

    def explain_limit(self, profile: ResourceProfile, wanted: int) -> str:
        return f"{wanted} slots of 8"

    def start_worker(
        self,
        resource_id: ResourceId,
        slots: int,
        profile: ResourceProfile,
        on_failure: Callable[[str], None],
    ) -> None:
        executor = TaskExecutor(
            EndpointServices(self._service),
            resource_id,
            InstantRunner(self._endless),
            [profile] * slots,
            self._managing.retrieval(),
            name=resource_id,
        )
        self.executors[resource_id] = executor
        executor.start()

    def stop_worker(self, resource_id: ResourceId) -> None:
        executor = self.executors.pop(resource_id, None)
        if executor is not None:
            executor.stop()
        if not self.executors:
            self.all_gone.set()


class Cluster(DispatcherHost):
    def __init__(self, endless: bool = False) -> None:
        self.service = LocalRpcService()
        managing = StandaloneLeadership(self.service.ids)
        dispatching = StandaloneLeadership(self.service.ids)
        self.driver = ThreadDriver(self.service, managing, endless)
        slots = SlotConfig(2, idle_timeout=timedelta(milliseconds=100))
        self.services = EndpointServices(self.service, slot_config=slots)
        self.managing = managing
        self.manager = ResourceManager(self.services, self.driver, election=managing)
        self.ended = threading.Event()
        self.dispatcher = Dispatcher(
            self.services, self, managing.retrieval(), election=dispatching
        )
        self.manager.start()
        self.dispatcher.start()
        self.client: DispatcherGateway = connect_to_leader(
            self.service, dispatching.retrieval(), DispatcherGateway
        ).result(TIMEOUT_S)

    def make_job_master(
        self, job_graph: JobGraph, on_terminal: OnTerminal, generation: int
    ) -> JobMaster:
        return JobMaster(self.services, job_graph, self.managing.retrieval(), on_terminal)

    def shut_down(self) -> None:
        self.ended.set()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.service.stop().result(TIMEOUT_S)


def small_job() -> JobGraph:
    builder = JobBuilder(JobId("job"))
    source = builder.vertex(3, behaviour=TaskBehaviour())
    builder.vertex(3, [(source, DistributionPattern.ALL_TO_ALL)])
    return builder.build()


def test_a_job_runs_on_threads_and_its_workers_go_when_idle() -> None:
    with Cluster() as cluster:
        cluster.client.submit_job(small_job()).result(TIMEOUT_S)
        result = cluster.client.request_job_result(JobId("job"), 8.0).result(TIMEOUT_S)
        assert result is not None
        assert (result.state, sorted(result.accumulators["ended"])) == (
            JobState.FINISHED,
            [0, 0, 1, 1, 2, 2],
        )
        details = cluster.client.request_job_details(JobId("job")).result(TIMEOUT_S)
        assert [(vertex.records_in, vertex.records_out) for vertex in details.vertices] == [
            (3, 6)
        ] * 2
        assert cluster.driver.all_gone.wait(TIMEOUT_S)
        assert cluster.client.request_cluster_overview().result(TIMEOUT_S).jobs_running == 0


def test_an_endless_job_is_cancelled_by_shutting_down() -> None:
    with Cluster(endless=True) as cluster:
        cluster.client.submit_job(small_job()).result(TIMEOUT_S)
        cluster.client.shut_down_cluster().result(TIMEOUT_S)
        assert cluster.ended.wait(TIMEOUT_S)
        assert (
            cluster.client.request_job_status(JobId("job")).result(TIMEOUT_S) is JobState.CANCELED
        )
