"""JobMaster: one per job. It connects the parts that do the work. The scheduler decides, the driver
feeds it events, the slot book gets slots, the TaskExecutors run tasks, the source coordinators
assign splits, and the status book keeps what clients ask for.

Whatever happens becomes an event for the scheduler, which answers with commands; each command is
carried out by one of the parts. An unexpected error ends the job FAILED with that error: a bug
never makes a job hang."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from flinkpy.actors.endpoint_services import EndpointServices
from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.gateways import (
    JobDetails,
    JobHeartbeat,
    JobMasterGateway,
    JobMetrics,
    JobResult,
    SavepointRequest,
    SavepointStatus,
    TaskExecutorGateway,
    TaskMessages,
    TaskReport,
)
from flinkpy.actors.job_events import Publish
from flinkpy.actors.job_master.checkpoint_actions import CheckpointActions, event_of
from flinkpy.actors.job_master.job_report import EndOfJob, JobStatusBook
from flinkpy.actors.job_master.savepoint_book import SavepointBook
from flinkpy.actors.job_master.scheduler_driver import SchedulerDriver
from flinkpy.actors.job_master.slot_book import SlotBook
from flinkpy.actors.job_master.source_coordinators import SourceCoordinators
from flinkpy.actors.job_master.state_changes import StateChanges
from flinkpy.actors.job_master.task_executors import TaskExecutors
from flinkpy.actors.job_store import JobStore
from flinkpy.actors.rpc.endpoint import FencedRpcEndpoint
from flinkpy.actors.rpc.leadership import LeaderRetrievalService
from flinkpy.actors.rpc.registration import RegistrationResponse
from flinkpy.core.errors import EngineError, FlinkpyError
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, JobId, ResourceId
from flinkpy.core.lifecycles import JOB, JobState
from flinkpy.core.options.checkpointing import (
    RECOVERY_CLAIM,
    RECOVERY_IGNORE_UNCLAIMED,
    RECOVERY_PATH,
    RecoveryClaimMode,
    takes_checkpoints,
)
from flinkpy.core.options.schema import read
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.deployment import JobMasterRegistration, SlotOffer, TaskManagerLocation
from flinkpy.graph.job_graph import JobGraph
from flinkpy.runtime.task_messages import OperatorEvent
from flinkpy.scheduler.execution_model import TERMINAL
from flinkpy.scheduler.protocol import (
    CancelJob,
    CancelSlotRequest,
    CancelTask,
    Command,
    DeployTasks,
    DiscardCheckpoint,
    DiscardOtherCheckpoints,
    DiscardSharedFiles,
    FailJob,
    JobStateChanged,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    ReleaseResults,
    ReleaseSlot,
    RequestSlot,
    ResetCoordinators,
    SetTimer,
    SnapshotEnded,
    StartScheduling,
    StoreCheckpoint,
    TaskStateChanged,
    TriggerCheckpoint,
)
from flinkpy.scheduler.scheduler import Scheduler, SchedulerConfig
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage

log = engine_logger("flinkpy.jobmaster")


class JobMaster(FencedRpcEndpoint):
    """``on_terminal(result, details)`` is called once, in the main thread, when the job has ended;
    the owner of the JobMaster stops it then. ``store`` records the job's end; a ``generation``
    greater than 0 takes the job over from a JobMaster that has died. ``publish`` is told of all
    that changes."""

    gateway = JobMasterGateway

    COUNTERS_FRESH_S = 1.0  # counters older than this are fetched anew before people see them

    def __init__(
        self,
        services: EndpointServices,
        job_graph: JobGraph,
        resource_manager: LeaderRetrievalService,
        on_terminal: Callable[[JobResult, JobDetails], None],
        *,
        store: JobStore | None = None,
        generation: int = 0,
        publish: Publish = lambda event: None,
    ) -> None:
        service = services.rpc
        token = service.ids.fencing_token()
        super().__init__(service, f"jobmaster-{job_graph.job_id}", token)
        self.job_graph = job_graph
        self._on_terminal = on_terminal
        self.registration = registration = JobMasterRegistration(
            job_graph.job_id, ResourceId(self.name), self.address, token
        )
        self._generation = generation
        scheduler_config = SchedulerConfig.of(job_graph.configuration)
        self.scheduler = Scheduler(
            job_graph, replace(scheduler_config, generation=generation), service.ids
        )
        self.status = JobStatusBook(job_graph, service.clock)
        self._changes = StateChanges(job_graph, self.scheduler, service.clock, publish)
        self._driver = SchedulerDriver(self.scheduler, service.clock, self.main_thread, self)
        feed = self._driver.feed
        self.slots = SlotBook(
            self,
            registration,
            resource_manager,
            services,
            feed,
            lambda resource_id, allocation_ids, reason: self._executors.free_slots(
                resource_id, allocation_ids, reason
            ),
            may_wait=self.scheduler.runs_in_parts,
        )
        self._executors = TaskExecutors(
            self, registration, services.rpc_config, self.slots, feed, self._reconcile
        )
        self._coordinators = SourceCoordinators(
            job_graph, self, self._executors.send_to_task, lambda error: feed(FailJob(error))
        )
        self._checkpoints = checkpoints = CheckpointActions(
            self,
            self.job_id,
            CheckpointStorage.of(job_graph.configuration, self.job_id, services.file_stores),
            self._executors,
            self._coordinators,
            feed,
            store,
        )
        self._savepoints = SavepointBook(
            job_graph, self, checkpoints, self.scheduler.checkpoints, self.status
        )
        self._end = EndOfJob(self.status, self.scheduler, service.clock, checkpoints.record_end)
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            RequestSlot: self.slots.request_slot,
            CancelSlotRequest: self.slots.cancel_request,
            ReleaseSlot: self.slots.release_slot,
            DeployTasks: lambda command: self._coordinators.attempts_deployed(
                self._executors.deploy_tasks(command)
            ),
            CancelTask: self._executors.cancel_task,
            ReleaseResults: self._executors.release_results,
            SetTimer: self._driver.set_timer,
            ResetCoordinators: checkpoints.reset_coordinators,
            JobStateChanged: self._job_state_changed,
            TriggerCheckpoint: checkpoints.trigger_checkpoint,
            StoreCheckpoint: checkpoints.store_checkpoint,
            DiscardCheckpoint: checkpoints.discard_checkpoint,
            DiscardSharedFiles: checkpoints.discard_shared,
            DiscardOtherCheckpoints: checkpoints.discard_others,
            NotifyCheckpointComplete: checkpoints.notify_complete,
            NotifyCheckpointAborted: checkpoints.notify_aborted,
            SnapshotEnded: lambda command: None,
        }

    @property
    def job_id(self) -> JobId:
        return self.job_graph.job_id

    @property
    def resource_id(self) -> ResourceId:
        return self.registration.resource_id

    # -- life --------------------------------------------------------------------------------------

    def on_start(self) -> None:
        self.slots.start()
        self._coordinators.start()
        values, start = self.job_graph.configuration, StartScheduling(self.service.clock.time_ms())
        begin = partial(
            self._checkpoints.begin,
            read(values, RECOVERY_PATH),
            read(values, RECOVERY_IGNORE_UNCLAIMED),
            read(values, RECOVERY_CLAIM) is RecoveryClaimMode.CLAIM,
            start,
            takes_checkpoints=takes_checkpoints(values),
        )
        if self._generation:
            self._checkpoints.take_over(begin, start, self._generation)
        else:
            begin()

    def on_stop(self) -> Future[None] | None:
        reason = (
            f"job {self.job_id} is {self.status.state.name}"
            if self.status.has_ended
            else "the JobMaster stops"
        )
        self._driver.close()
        self._savepoints.close()
        self.slots.close(reason)
        self._executors.close(reason)
        self._coordinators.close()
        return None

    def on_uncaught_error(self, error: Exception) -> bool:
        """Ends the job at once: after a bug the scheduler's decisions cannot be trusted. Its
        TaskExecutors cancel what still runs."""
        if self.status.has_ended:
            log.error("job %s had ended when this happened", self.job_id, exc_info=error)
        else:
            log.critical("job %s fails by an error of the engine", self.job_id, exc_info=error)
            self._end_job(
                JobState.FAILED,
                error
                if isinstance(error, FlinkpyError)
                else EngineError(f"{type(error).__name__}: {error}"),
            )
        return True

    def _end_job(self, state: JobState, error: BaseException | None) -> None:
        """The job reaches its last state."""
        if self.status.has_ended or self._checkpoints.is_deposed:
            return
        self._end.record_end(state, error)
        now_ms = self.service.clock.time_ms()
        self.status.record_state(state, error, now_ms)
        self.status.record_end(now_ms)
        self._changes.job_changed(state, error)
        self.on_stop()
        ended = self.status.archived(self.scheduler.report())
        self._on_terminal(ended.result, ended.details)

    # -- the scheduler's commands ------------------------------------------------------------------

    def event_handled(self) -> None:
        self._changes.event_handled()

    def carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            # before the job's end is recorded, with which clients are told of it later
            if isinstance(command, SnapshotEnded):
                self._savepoints.ended(command)
        last = commands[-1]
        if isinstance(last, JobStateChanged) and JOB.is_terminal(last.state):
            self._end.record_end(last.state, last.error)
        for command in commands:
            self._handlers[type(command)](command)
        self.slots.send_collected()

    def _job_state_changed(self, command: JobStateChanged) -> None:
        if JOB.is_terminal(command.state):
            self._checkpoints.when_idle(lambda: self._end_job(command.state, command.error))
        else:
            self.status.record_state(command.state, command.error, self.service.clock.time_ms())
            self._changes.job_changed(command.state, command.error)

    # -- TaskExecutors -----------------------------------------------------------------------------

    async def register_task_executor(self, location: TaskManagerLocation) -> RegistrationResponse:
        if not self._executors.is_registered(location):
            gateway = await self.connect(location.address, TaskExecutorGateway)
            if self.status.has_ended:
                return RegistrationResponse(
                    False, self.resource_id, reason=f"job {self.job_id} has ended"
                )
            self._executors.add_executor(location, gateway)
        return RegistrationResponse(True, self.resource_id)

    def disconnect_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        self._executors.lose_executor(resource_id, reason)

    def heartbeat_from_task_executor(self, resource_id: ResourceId, payload: JobHeartbeat) -> None:
        self._executors.heartbeat_received(resource_id, payload)

    def _reconcile(self, resource_id: ResourceId, payload: JobHeartbeat) -> None:
        """Compares what a TaskExecutor holds for this job with what it should hold, and mends the
        difference."""
        self.status.record_metrics(payload.metrics, self.service.clock.time_ms())
        self._executors.get_registered(resource_id).reconcile(payload)
        unneeded = [
            attempt_id
            for attempt_id in payload.results
            if not self.scheduler.needs_results(attempt_id)
        ]
        self._executors.release_results_on(resource_id, unneeded)
        self.slots.reconcile_slots(resource_id, payload.sequence, payload.slots)

    def offer_slots(
        self, resource_id: ResourceId, sequence: int, offers: tuple[SlotOffer, ...]
    ) -> tuple[AllocationId, ...]:
        return self.slots.accept_offers(
            self._executors.get_registered(resource_id).location, sequence, offers
        )

    def fail_slot(self, resource_id: ResourceId, allocation_id: AllocationId, reason: str) -> None:
        self.slots.fail_slot(resource_id, allocation_id, f"took the slot back: {reason}")

    def report_tasks(
        self, resource_id: ResourceId, report: TaskReport
    ) -> tuple[ExecutionAttemptId, ...]:
        """A task's messages are heard before its end, behind which it says nothing."""
        executor = self._executors.get_registered(resource_id)
        self._executors.heard_from(resource_id, report.heartbeat)
        known = [state for state in report.states if state.attempt_id in executor.tasks]
        ends = [state for state in known if state.state in TERMINAL]
        for state in known:
            executor.confirm_task(executor.tasks[state.attempt_id], report.sequence)
        self._driver.feed(
            *(
                TaskStateChanged(state.attempt_id, state.state, state.error)
                for state in known
                if state.state not in TERMINAL
            )
        )
        for messages in report.messages:
            self._hear(messages)
        for end in ends:
            self.status.record_task_end(end, self.service.clock.time_ms())
            self._executors.forget_task(end.attempt_id)
            self._coordinators.attempt_ended(end.attempt_id)
            self._driver.feed(TaskStateChanged(end.attempt_id, end.state, end.error))
        heard = {state.attempt_id for state in known}
        return tuple(state.attempt_id for state in report.states if state.attempt_id not in heard)

    def _hear(self, messages: TaskMessages) -> None:
        attempt_id = messages.receiver
        for message in self._executors.fresh_messages(messages):
            if isinstance(message, OperatorEvent):
                self._coordinators.handle_event(attempt_id, message)
            else:
                self._driver.feed(event_of(attempt_id, message))

    # -- the ResourceManager -----------------------------------------------------------------------

    def heartbeat_from_resource_manager(self, resource_id: ResourceId) -> None:
        self.slots.manager.heartbeat_received(resource_id)

    def disconnect_resource_manager(self, reason: str) -> None:
        self.slots.manager.lose_leader(reason)

    def notify_allocation_failed(self, allocation_id: AllocationId, error: BaseException) -> None:
        self.slots.refuse_requests({allocation_id: error})

    # -- clients -----------------------------------------------------------------------------------

    def cancel(self) -> None:
        self._checkpoints.when_begun(lambda: self._driver.feed(CancelJob()))

    def request_status(self) -> JobState:
        return self.status.state

    def request_details(self) -> Future[JobDetails]:
        """If nobody has asked for counters lately, it is answered once the TaskExecutors have had
        time to report."""
        counted = self._executors.request_metrics(self.COUNTERS_FRESH_S)
        return counted.then(
            lambda _: self.status.details(self.scheduler.details(), self._executors.fullest())
        )

    def request_execution_graph(self) -> Future[ExecutionGraphInfo]:
        """The same of the whole graph."""
        counted = self._executors.request_metrics(self.COUNTERS_FRESH_S)
        return counted.then(lambda _: self.status.graph_info(self.scheduler.report()))

    def request_metrics(self) -> Future[JobMetrics]:
        """Answered once the TaskExecutors have had time to report; the counters of a slow one are
        those of its last heartbeat."""
        return self._executors.request_metrics().then(lambda _: self.status.job_metrics())

    def request_savepoint(
        self, request: SavepointRequest, wait_s: float
    ) -> Future[SavepointStatus]:
        return self._savepoints.request(request, wait_s)

    # -- inspection --------------------------------------------------------------------------------

    def check_invariants(self, everything: bool = True) -> None:
        """Raises EngineError when its parts contradict each other; ``everything=False`` looks only
        at what the last event changed."""
        self.scheduler.check_invariants(everything)
        if self.status.has_ended and len(self._executors):
            raise EngineError(
                f"{self!r}: its job has ended, and TaskExecutors are still registered: "
                f"{self._executors!r}"
            )
        if everything and not self.status.has_ended:
            self.slots.pool.check_invariants()
            self._executors.check_invariants()
