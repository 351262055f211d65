"""TaskExecutor: a worker process. It offers its slots to JobMasters, runs their tasks, and reports
the states of the tasks.

It belongs to the ResourceManager it is registered at, and to each job that holds one of its slots;
each of these connections can be lost and made again. With a lost JobMaster its tasks fail and its
slots are freed; the loss of the ResourceManager changes nothing for running tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from flinkpy.actors.endpoint_services import EndpointServices
from flinkpy.actors.gateways import (
    MessagesToTask,
    ResourceManagerGateway,
    SlotAllocation,
    SlotReport,
    SubmitAnswer,
    TaskExecutorGateway,
    TaskExecutorRegistration,
)
from flinkpy.actors.resource_manager.leader_connection import ResourceManagerConnection
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.leadership import LeaderRetrievalService
from flinkpy.actors.rpc.registration import RegistrationResponse
from flinkpy.actors.task_executor.cancellations import Cancellations
from flinkpy.actors.task_executor.connected_jobs import ConnectedJobs
from flinkpy.actors.task_executor.holdings import Holdings
from flinkpy.actors.task_executor.slot_table import (
    SlotNotAvailableError,
    SlotTableStatistics,
    TaskSlotTable,
)
from flinkpy.actors.task_executor.worker_process import WorkerProcess
from flinkpy.core.errors import FencingError
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, FencingToken, JobId, ResourceId
from flinkpy.core.lifecycles import ExecutionState, TaskSlotState
from flinkpy.graph.deployment import (
    TaskDeploymentDescriptor,
    TaskExecutionState,
    TaskManagerLocation,
)
from flinkpy.graph.resources import ResourceProfile
from flinkpy.runtime.runner_port import RunnerStatistics, TaskRunner
from flinkpy.runtime.task_messages import MessageFromTask
from flinkpy.scheduler.execution_model import TERMINAL


@dataclass(frozen=True)
class TaskExecutorStatistics:
    slots: SlotTableStatistics
    runner: RunnerStatistics
    jobs: int
    registered: bool


class TaskExecutor(RpcEndpoint):
    """``slots`` has the profile of each slot; ``runner`` must be started already."""

    gateway = TaskExecutorGateway

    def __init__(
        self,
        services: EndpointServices,
        resource_id: ResourceId,
        runner: TaskRunner,
        slots: Sequence[ResourceProfile],
        resource_manager: LeaderRetrievalService,
        *,
        name: str = "taskexecutor",
        process: WorkerProcess | None = None,
    ) -> None:
        super().__init__(services.rpc, name)
        self.process = process = process or WorkerProcess()
        self.resource_id, self.runner = resource_id, runner
        self.location = TaskManagerLocation(resource_id, self.address)
        self.holdings = holdings = Holdings(TaskSlotTable(slots))
        rpc_config = services.rpc_config
        self._slot_config = services.slot_config
        self.cancellations = Cancellations(self, runner, process)
        self.manager = ResourceManagerConnection(self, resource_manager, rpc_config, self)
        self.jobs = ConnectedJobs(
            self, rpc_config, holdings, runner, self.cancellations, self._on_slots_freed, process
        )
        self._report_due = False
        self._why_it_stops = "the TaskExecutor stops"
        self._reporter = _MainThreadReporter(self)

    # -- life --------------------------------------------------------------------------------------

    def on_start(self) -> None:
        host, port = self.runner.data_address
        self.location = TaskManagerLocation(self.resource_id, self.address, host, port)
        self.runner.on_memory_pressure(lambda: self.run_async(self.jobs.tell_memory))
        self.manager.start()

    def on_stop(self) -> Future[None] | None:
        if self.manager.gateway is not None:
            self.manager.gateway.disconnect_task_executor(self.resource_id, self._why_it_stops)
        self.jobs.close(self._why_it_stops)
        self.manager.close()
        self.runner.stop()
        return None

    def leave(self, reason: str) -> Future[None]:
        """Ends like ``stop``; the reason is told to the ResourceManager and the JobMasters, which
        lose the tasks here by it. May be called in any thread."""
        self._why_it_stops = reason
        return self.stop()

    # -- the ResourceManager -----------------------------------------------------------------------

    def register_at(self, manager: ResourceManagerGateway) -> Future[RegistrationResponse]:
        return manager.register_task_executor(
            TaskExecutorRegistration(
                self.location, self.holdings.slot_report(), self.process.description
            )
        )

    def registered_at(self, manager: ResourceManagerGateway) -> None:
        manager.report_slots(self.resource_id, self.holdings.slot_report())

    def registration_refused(self, response: RegistrationResponse) -> None:
        self.process.refused(response.reason)

    def beat(self, manager: ResourceManagerGateway) -> None:
        manager.heartbeat_from_task_executor(self.resource_id, self.holdings.slot_report())

    def heartbeat_from_resource_manager(self, resource_id: ResourceId) -> None:
        self.manager.heartbeat_received(resource_id)

    def disconnect_resource_manager(self, reason: str) -> None:
        """Registers again; running tasks continue."""
        self.manager.lose_leader(reason)

    def _on_slots_freed(self) -> None:
        """Reports to the ResourceManager, once for all slots that are freed together."""
        self.holdings.count_change()
        if not self._report_due:
            self._report_due = True
            self.run_async(self._report_slots)

    def _report_slots(self) -> None:
        self._report_due = False
        if self.manager.gateway is not None:
            self.manager.gateway.report_slots(self.resource_id, self.holdings.slot_report())

    # -- slots -------------------------------------------------------------------------------------

    def request_slots(
        self, resource_manager_token: FencingToken, allocations: tuple[SlotAllocation, ...]
    ) -> SlotReport:
        if resource_manager_token != self.manager.token:
            raise FencingError(f"{self.address} belongs to another ResourceManager, or to none yet")
        for allocation in allocations:
            request = allocation.request
            try:
                self.holdings.slots.allocate(
                    allocation.slot_index, request.job_id, request.allocation_id
                )
            except SlotNotAvailableError:
                continue  # the answer shows it
            self.holdings.count_change()
            self.jobs.connect_job(
                self.location, request.job_id, request.job_master_address, request.job_master_token
            )
            self.schedule_run_async(
                self._slot_config.offer_timeout.total_seconds(),
                partial(self._offer_expired, request.allocation_id),
            )
        for job_id in {allocation.request.job_id for allocation in allocations}:
            job = self.jobs.get_job(job_id)
            if job is not None:
                job.send_due()
        return self.holdings.slot_report()

    def _offer_expired(self, allocation_id: AllocationId) -> None:
        slot = self.holdings.slots.get_slot(allocation_id)
        if slot is not None and slot.state is TaskSlotState.ALLOCATED:
            job = self.jobs.get_job(slot.job_id)
            assert job is not None  # a lost job loses its slots
            job.fail_slot(allocation_id, "the offer was not answered in time")
            self.jobs.free_slots((allocation_id,), "the offer was not answered in time")

    def free_slots(self, allocation_ids: tuple[AllocationId, ...], reason: str) -> None:
        self.jobs.free_slots(allocation_ids, reason)

    # -- JobMasters --------------------------------------------------------------------------------

    def heartbeat_from_job_master(self, resource_id: ResourceId) -> None:
        self.jobs.heartbeat_received(resource_id)

    def disconnect_job_master(self, job_id: JobId, reason: str) -> None:
        self.jobs.disconnect_job(job_id, reason)

    def release_results(self, attempt_ids: tuple[ExecutionAttemptId, ...]) -> None:
        self.jobs.release_results(attempt_ids)

    # -- tasks -------------------------------------------------------------------------------------

    def submit_tasks(
        self, job_master_token: FencingToken, descriptors: tuple[TaskDeploymentDescriptor, ...]
    ) -> SubmitAnswer:
        refused: dict[ExecutionAttemptId, str] = {}
        self.holdings.count_change()
        for descriptor in descriptors:
            reason = self._start_task(job_master_token, descriptor)
            if reason is not None:
                refused[descriptor.attempt_id] = reason
        return SubmitAnswer(self.holdings.sequence, refused)

    def _start_task(self, token: FencingToken, descriptor: TaskDeploymentDescriptor) -> str | None:
        """Starts the task. Returns the reason if it is refused."""
        attempt_id = descriptor.attempt_id
        job = self.jobs.get_job(attempt_id.job_id)
        # For a late submission the connection may have ended, or be a new one
        if job is None or job.token != token or not job.is_registered:
            return f"{self.resource_id} does not work for this JobMaster (any more)"
        if self.holdings.slots.has_seen(attempt_id, descriptor.allocation_id):
            return None
        try:
            slot = self.holdings.add_task(descriptor)
        except SlotNotAvailableError as error:
            return f"{self.resource_id}: {error}"
        self.runner.submit(slot.index, descriptor, self._reporter)
        return None

    def cancel_tasks(
        self, attempt_ids: tuple[ExecutionAttemptId, ...]
    ) -> tuple[ExecutionAttemptId, ...]:
        self.cancellations.cancel(attempt_ids)
        return tuple(
            attempt_id for attempt_id in attempt_ids if not self.holdings.slots.runs(attempt_id)
        )

    def task_state_changed(self, state: TaskExecutionState) -> None:
        """Handles the new state of a task that runs here."""
        attempt_id = state.attempt_id
        job = self.jobs.get_job(attempt_id.job_id)
        if state.state in TERMINAL:
            slot_freed, left_results = self.holdings.remove_task(attempt_id)
            if left_results and job is not None and state.state is ExecutionState.FINISHED:
                self.holdings.keep_results(attempt_id)
            elif left_results:
                self.runner.release_partitions((attempt_id,))
            if slot_freed:
                self._on_slots_freed()
        if job is not None:
            job.report_state(state)

    # -- messages to and from tasks ----------------------------------------------------------------

    def deliver_messages(self, batch: tuple[MessagesToTask, ...]) -> tuple[ExecutionAttemptId, ...]:
        unknown = []
        for messages in batch:
            attempt_id = messages.receiver
            job = self.jobs.get_job(attempt_id.job_id)
            if job is None or not self.holdings.slots.runs(attempt_id):
                unknown.append(attempt_id)
                continue
            for message in job.fresh_messages(messages):
                self.runner.deliver_message(attempt_id, message)
        return tuple(unknown)

    def send_from_task(self, attempt_id: ExecutionAttemptId, message: MessageFromTask) -> None:
        """A task here says something."""
        job = self.jobs.get_job(attempt_id.job_id)
        if job is not None and self.holdings.slots.may_send_events(attempt_id):
            job.send_from_task(attempt_id, message)

    # -- inspection --------------------------------------------------------------------------------

    def statistics(self) -> TaskExecutorStatistics:
        return TaskExecutorStatistics(
            self.holdings.slots.statistics(),
            self.runner.statistics(),
            len(self.jobs),
            self.manager.gateway is not None,
        )

    def check_invariants(self) -> None:
        """Raises EngineError when its parts contradict each other."""
        self.holdings.slots.check_invariants()


class _MainThreadReporter:
    """Takes reports of tasks, in any thread, into the TaskExecutor's main thread."""

    def __init__(self, executor: TaskExecutor) -> None:
        self._executor = executor

    def state_changed(self, state: TaskExecutionState) -> None:
        self._executor.run_async(partial(self._executor.task_state_changed, state))

    def send_message(self, attempt_id: ExecutionAttemptId, message: MessageFromTask) -> None:
        self._executor.run_async(partial(self._executor.send_from_task, attempt_id, message))
