"""TaskExecutor: a worker process. Offers its slots to JobMasters, runs their tasks, and tells how they fare.

It belongs to the ResourceManager it is registered at, and to each job that holds one of its slots; either can be lost and found again. Losing a
JobMaster fails its tasks and takes its slots back; losing the ResourceManager changes nothing for what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flinkpy.actors.gateways import (
    SlotAllocation,
    SlotReport,
    SubmitAnswer,
    TaskExecutorGateway,
    TaskExecutorRegistration,
)
from flinkpy.actors.resource_manager.leader_connection import ResourceManagerConnection
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.heartbeat import heartbeat_responder
from flinkpy.actors.rpc.leadership import LeaderRetrievalService
from flinkpy.actors.rpc.service import RpcService
from flinkpy.actors.task_executor.job_connection import JobConnection
from flinkpy.actors.task_executor.slot_table import SlotNotAvailableError, SlotTableStatistics, TaskSlotTable
from flinkpy.core.errors import FencingError, NotRegisteredError, TaskExecutorLostError
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, FencingToken, JobId, OperatorId, ResourceId
from flinkpy.core.lifecycles import ExecutionState, TaskSlotState
from flinkpy.core.options.engine import RpcConfig, SlotConfig
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskExecutionState, TaskManagerLocation
from flinkpy.graph.resources import ResourceProfile
from flinkpy.runtime.runner_port import RunnerStatistics, TaskRunner
from flinkpy.scheduler.execution_model import TERMINAL


@dataclass(frozen=True)
class TaskExecutorStatistics:
    slots: SlotTableStatistics
    runner: RunnerStatistics
    jobs: int
    registered: bool


class TaskExecutor(RpcEndpoint):
    """``slots`` gives the profile of each slot; ``runner`` has been started. The process should end when ``on_refused(reason)`` is told that the
    ResourceManager does not want this worker, and when ``on_stuck(reason)`` is told that a cancelled task cannot be ended (Flink's watchdog: else its
    slots were lost). ``on_idle()`` is called when nothing of any job is left here."""

    gateway = TaskExecutorGateway

    def __init__(
        self, service: RpcService, resource_id: ResourceId, runner: TaskRunner, slots: Sequence[ResourceProfile],
        resource_manager: LeaderRetrievalService, *, slot_config: SlotConfig | None = None, rpc_config: RpcConfig | None = None,
        name: str = "taskexecutor",
        on_refused: Callable[[str], None] = lambda reason: None, on_stuck: Callable[[str], None] = lambda reason: None,
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(service, name)
        self.resource_id, self.runner = resource_id, runner
        self.slots = TaskSlotTable(slots)
        self.rpc_config, self._slot_config = rpc_config or RpcConfig(), slot_config or SlotConfig()
        self.retry_s = self.rpc_config.registration_initial.total_seconds()
        self.sequence = 0  # raised with every change of slots and tasks
        self.location = TaskManagerLocation(resource_id, self.address)
        self._on_stuck, self._on_idle = on_stuck, on_idle
        self.manager = ResourceManagerConnection(
            self, resource_manager, self.rpc_config,
            lambda manager: manager.register_task_executor(TaskExecutorRegistration(self.location, self._slot_report())),
            lambda manager: manager.heartbeat_from_task_executor(resource_id, self._slot_report()),
            lambda manager: manager.report_slots(resource_id, self._slot_report()), lambda response: on_refused(response.reason))
        self._jobs: dict[JobId, JobConnection] = {}
        self._job_of: dict[ResourceId, JobId] = {}
        self._blocking: set[ExecutionAttemptId] = set()  # running tasks that will leave blocking results behind
        self.results: dict[JobId, dict[ExecutionAttemptId, None]] = {}  # kept for whoever reads them
        self._report_due = False
        self._reporter = _MainThreadReporter(self)
        self._job_heartbeats = heartbeat_responder(self, self.rpc_config, self._job_silent)

    # -- life --------------------------------------------------------------------------------------------------------------

    def on_start(self) -> None:
        host, port = self.runner.data_address
        self.location = TaskManagerLocation(self.resource_id, self.address, host, port)
        self.manager.start()

    def on_stop(self) -> Future[None] | None:
        if self.manager.gateway is not None:
            self.manager.gateway.disconnect_task_executor(self.resource_id, "the TaskExecutor stops")
        for job in self._jobs.values():
            job.tell_gone("the TaskExecutor stops")
            job.close()
        self.manager.close()
        self._job_heartbeats.stop()
        self.runner.stop()
        return None

    # -- the ResourceManager -----------------------------------------------------------------------------------------------

    def heartbeat_from_resource_manager(self, resource_id: ResourceId) -> None:
        self.manager.heartbeat_received(resource_id)
        overdue = self.runner.overdue()
        if overdue is not None:
            self._on_stuck(overdue)

    def disconnect_resource_manager(self, reason: str) -> None:
        """It registers again; what runs goes on."""
        self.manager.lose_leader(reason)

    def _slot_report(self) -> SlotReport:
        return SlotReport(self.sequence, self.slots.report(), bool(self.results))

    def _slots_freed(self) -> None:
        """Tells the ResourceManager, once for all that are freed at a time."""
        self.sequence += 1
        if not self._report_due:
            self._report_due = True
            self.run_async(self._report_slots)

    def _report_slots(self) -> None:
        self._report_due = False
        if self.manager.gateway is not None:
            self.manager.gateway.report_slots(self.resource_id, self._slot_report())

    # -- slots -------------------------------------------------------------------------------------------------------------

    def request_slots(self, resource_manager_token: FencingToken, allocations: tuple[SlotAllocation, ...]) -> SlotReport:
        if resource_manager_token != self.manager.token:
            raise FencingError(f"{self.address} belongs to another ResourceManager, or to none yet")
        for allocation in allocations:
            request = allocation.request
            try:
                self.slots.allocate(allocation.slot_index, request.job_id, request.allocation_id)
            except SlotNotAvailableError:
                continue  # the answer shows it
            self.sequence += 1
            self._connect_job(request.job_id, request.job_master_address, request.job_master_token)
            self.schedule_run_async(self._slot_config.offer_timeout.total_seconds(), partial(self._offer_expired, request.allocation_id))
        for job_id in {allocation.request.job_id for allocation in allocations} & self._jobs.keys():
            self._jobs[job_id].kick()
        return self._slot_report()

    def _offer_expired(self, allocation_id: AllocationId) -> None:
        slot = self.slots.slot(allocation_id)
        if slot is not None and slot.state is TaskSlotState.ALLOCATED:
            self._jobs[slot.job_id].slot_failed(allocation_id, "the offer was not answered in time")
            self.take_back((allocation_id,), "the offer was not answered in time")

    def free_slots(self, allocation_ids: tuple[AllocationId, ...], reason: str) -> None:
        self.take_back(allocation_ids, reason)

    def take_back(self, allocation_ids: Sequence[AllocationId], reason: str) -> None:
        """Frees these slots, now or when their last task has ended; what runs there is cancelled."""
        jobs = {slot.job_id for allocation_id in allocation_ids if (slot := self.slots.slot(allocation_id)) is not None}
        for allocation_id in allocation_ids:
            for attempt_id in self.slots.free(allocation_id, reason):
                self.runner.cancel(attempt_id)
        if jobs:
            self._slots_freed()
        for job_id in jobs:
            self._release_if_done(job_id)

    # -- jobs --------------------------------------------------------------------------------------------------------------

    def _connect_job(self, job_id: JobId, address: str, token: FencingToken) -> None:
        known = self._jobs.get(job_id)
        if known is not None and known.token != token:
            self.lose_job(job_id, known.token, f"job {job_id} has a new JobMaster")
            known = None
        if known is None:
            self._jobs[job_id] = JobConnection(self, job_id, address, token)

    def job_registered(self, job: JobConnection) -> None:
        """Called by the connection: its JobMaster knows us."""
        assert job.resource_id is not None
        self._job_of[job.resource_id] = job.job_id
        self._job_heartbeats.monitor(job.resource_id, lambda: job.beat(self.runner.metrics()))

    def heartbeat_from_job_master(self, resource_id: ResourceId) -> None:
        """Answered at once, whatever the tasks are doing; and again when they have told what their accumulators are."""
        self._job_heartbeats.request_received(resource_id)
        job_id = self._job_of.get(resource_id)
        if job_id is not None:
            self.runner.read_accumulators(lambda: self.run_async(partial(self._tell_metrics, job_id)))

    def _tell_metrics(self, job_id: JobId) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            job.beat(self.runner.metrics())

    def disconnect_job_master(self, job_id: JobId, reason: str) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            self.lose_job(job_id, job.token, reason)

    def _job_silent(self, resource_id: ResourceId) -> None:
        job = self._jobs[self._job_of[resource_id]]
        job.tell_gone("no heartbeat came in time")
        self.lose_job(job.job_id, job.token, f"the JobMaster of job {job.job_id} is lost: it sent no heartbeat in time")

    def lose_job(self, job_id: JobId, token: FencingToken, reason: str) -> None:
        """The JobMaster is gone: its tasks fail, its slots come back, and nobody is told of it any more."""
        job = self._jobs.get(job_id)
        if job is None or job.token != token:
            return
        self._drop_job(job)
        self._drop_results(self.results.get(job_id, ()))
        error = TaskExecutorLostError(reason)
        for slot in self.slots.of_job(job_id):
            for attempt_id in self.slots.free(slot.allocation_id, reason):
                self.runner.fail(attempt_id, error)
        self._slots_freed()

    def release_job(self, job_id: JobId) -> None:
        """Nothing of the job is left here, and its JobMaster has heard of every end."""
        self._drop_job(self._jobs[job_id])

    def _release_if_done(self, job_id: JobId) -> None:
        job = self._jobs.get(job_id)
        if job is not None and not job.is_needed:
            self._drop_job(job)

    def _drop_job(self, job: JobConnection) -> None:
        del self._jobs[job.job_id]
        job.close()
        if job.resource_id is not None:
            self._job_of.pop(job.resource_id, None)
            self._job_heartbeats.unmonitor(job.resource_id)
        if not self._jobs:
            self._on_idle()

    # -- tasks -------------------------------------------------------------------------------------------------------------

    def submit_tasks(self, job_master_token: FencingToken, descriptors: tuple[TaskDeploymentDescriptor, ...]) -> SubmitAnswer:
        refused: dict[ExecutionAttemptId, str] = {}
        self.sequence += 1
        for descriptor in descriptors:
            reason = self._start_task(job_master_token, descriptor)
            if reason is not None:
                refused[descriptor.attempt_id] = reason
        return SubmitAnswer(self.sequence, refused)

    def _start_task(self, token: FencingToken, descriptor: TaskDeploymentDescriptor) -> str | None:
        """Says why not, if not."""
        attempt_id = descriptor.attempt_id
        job = self._jobs.get(attempt_id.job_id)
        if job is None or job.token != token or not job.is_registered:  # a late submission may find the connection ended, or made anew
            return f"{self.resource_id} does not work for this JobMaster (any more)"
        if self.slots.has_seen(attempt_id, descriptor.allocation_id):
            return None
        try:
            slot = self.slots.add_task(attempt_id, descriptor.allocation_id)
        except SlotNotAvailableError as error:
            return f"{self.resource_id}: {error}"
        if any(partition.partition_type.is_blocking for partition in descriptor.partitions):
            self._blocking.add(attempt_id)
        self.runner.submit(slot.index, descriptor, self._reporter)
        return None

    def cancel_tasks(self, attempt_ids: tuple[ExecutionAttemptId, ...]) -> tuple[ExecutionAttemptId, ...]:
        for attempt_id in attempt_ids:
            self.runner.cancel(attempt_id)
        return tuple(attempt_id for attempt_id in attempt_ids if not self.slots.runs(attempt_id))

    def task_state_changed(self, state: TaskExecutionState) -> None:
        """In the main thread: a task of ours is in a new state."""
        attempt_id = state.attempt_id
        job = self._jobs.get(attempt_id.job_id)
        if state.state in TERMINAL:
            freed = self.slots.remove_task(attempt_id)
            self.sequence += 1
            if attempt_id in self._blocking:
                self._blocking.discard(attempt_id)
                self._keep_results(attempt_id, job is not None and state.state is ExecutionState.FINISHED)
            if freed:
                self._slots_freed()
        if job is not None:
            job.report(state)

    # -- blocking results ----------------------------------------------------------------------------------------------------

    def _keep_results(self, attempt_id: ExecutionAttemptId, wanted: bool) -> None:
        if wanted:
            self.results.setdefault(attempt_id.job_id, {})[attempt_id] = None
        else:
            self.runner.release_partitions((attempt_id,))

    def release_results(self, attempt_ids: tuple[ExecutionAttemptId, ...]) -> None:
        self._drop_results(attempt_ids)
        for job_id in {attempt_id.job_id for attempt_id in attempt_ids}:
            self._release_if_done(job_id)

    def _drop_results(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        dropped = [attempt_id for attempt_id in attempt_ids if attempt_id in self.results.get(attempt_id.job_id, ())]
        if not dropped:
            return
        self.runner.release_partitions(dropped)
        for attempt_id in dropped:
            of_job = self.results[attempt_id.job_id]
            del of_job[attempt_id]
            if not of_job:
                del self.results[attempt_id.job_id]
        if not self.results:
            self._slots_freed()  # the ResourceManager may stop this worker when it is idle

    # -- operator events -----------------------------------------------------------------------------------------------------

    def send_operator_events(self, attempt_id: ExecutionAttemptId, first: int, events: tuple[tuple[OperatorId, Any], ...]) -> None:
        job = self._jobs.get(attempt_id.job_id)
        if job is None or not self.slots.runs(attempt_id):
            raise NotRegisteredError(f"{self.resource_id} does not run {attempt_id} (yet, or any more)")
        for operator_id, event in job.fresh_events(attempt_id, first, events):
            self.runner.deliver_operator_event(attempt_id, operator_id, event)

    def operator_event(self, attempt_id: ExecutionAttemptId, operator_id: OperatorId, event: Any) -> None:
        """In the main thread: a task of ours speaks to its coordinator."""
        job = self._jobs.get(attempt_id.job_id)
        if job is not None and self.slots.may_speak(attempt_id):
            job.send_event(attempt_id, (operator_id, event))

    # -- looking in --------------------------------------------------------------------------------------------------------

    def statistics(self) -> TaskExecutorStatistics:
        return TaskExecutorStatistics(self.slots.statistics(), self.runner.statistics(), len(self._jobs), self.manager.gateway is not None)

    def check_invariants(self) -> None:
        """Raises EngineError when its parts contradict each other."""
        self.slots.check_invariants()


class _MainThreadReporter:
    """Carries what tasks say, from whatever thread, into the TaskExecutor's main thread."""

    def __init__(self, executor: TaskExecutor) -> None:
        self._executor = executor

    def state_changed(self, state: TaskExecutionState) -> None:
        self._executor.run_async(partial(self._executor.task_state_changed, state))

    def operator_event(self, attempt_id: ExecutionAttemptId, operator_id: OperatorId, event: Any) -> None:
        self._executor.run_async(partial(self._executor.operator_event, attempt_id, operator_id, event))
