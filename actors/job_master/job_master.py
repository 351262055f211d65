"""JobMaster: one per job. Owns the scheduler, the slot pool and the source coordinators, and carries out what the scheduler decides.

What happens becomes an event for the scheduler (``_feed``), what the scheduler answers becomes calls. Events that come up while commands are
carried out wait for their turn. An error nobody expected ends the job FAILED with that error; a job never hangs on a bug.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from flinkpy.actors.gateways import (
    JobDetails,
    JobHeartbeat,
    JobMasterGateway,
    JobMetrics,
    JobResult,
    RegistrationResponse,
    TaskExecutorGateway,
)
from flinkpy.actors.job_master.executor_connection import DeployedTask, ExecutorConnection
from flinkpy.actors.job_master.job_report import JobStatusBook
from flinkpy.actors.job_master.slot_book import SlotRequester
from flinkpy.actors.job_master.source_coordinators import SourceCoordinators
from flinkpy.actors.rpc.endpoint import FencedRpcEndpoint
from flinkpy.actors.rpc.heartbeat import heartbeat_requester
from flinkpy.actors.rpc.leadership import LeaderRetrievalService
from flinkpy.actors.rpc.service import Cancellable, RpcService
from flinkpy.core.errors import EngineError, FlinkpyError, NotRegisteredError, TaskExecutorLostError
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, JobId, OperatorId, ResourceId
from flinkpy.core.lifecycles import JOB, ExecutionState, JobState
from flinkpy.core.options.engine import RpcConfig, SlotConfig
from flinkpy.graph.deployment import JobMasterRegistration, SlotOffer, TaskExecutionState, TaskManagerLocation
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.execution_model import TERMINAL
from flinkpy.scheduler.protocol import (
    CancelJob,
    CancelSlotRequest,
    CancelTask,
    Command,
    DeploymentRejected,
    DeployTasks,
    Event,
    FailJob,
    JobStateChanged,
    ReleaseResults,
    ReleaseSlot,
    RequestSlot,
    ResetCoordinators,
    ResultsLost,
    SetTimer,
    SlotLost,
    StartScheduling,
    TaskStateChanged,
    TimerFired,
)
from flinkpy.scheduler.scheduler import Scheduler, SchedulerConfig

log = logging.getLogger("flinkpy.jobmaster")


class JobMaster(FencedRpcEndpoint):
    """``on_terminal(result, details)`` is told, once and in the main thread, how the job ended; whoever made the JobMaster stops it then."""

    gateway = JobMasterGateway

    METRICS_AGE_S = 0.25  # details asked for more often than this give the same counters

    def __init__(
        self, service: RpcService, job_graph: JobGraph, resource_manager: LeaderRetrievalService,
        on_terminal: Callable[[JobResult, JobDetails], None], *, scheduler_config: SchedulerConfig | None = None,
        slot_config: SlotConfig | None = None, rpc_config: RpcConfig | None = None,
    ) -> None:
        super().__init__(service, f"jobmaster-{job_graph.job_id}", service.ids.fencing_token())
        self.job_graph, self.resource_id = job_graph, ResourceId(self.name)
        self.rpc_config = rpc_config or RpcConfig()
        self.retry_s = self.rpc_config.registration_initial.total_seconds()
        self._on_terminal = on_terminal
        self.scheduler = Scheduler(job_graph, scheduler_config or SchedulerConfig.of(job_graph.configuration), service.ids)
        self.status = JobStatusBook(job_graph, service.clock.time_ms())
        self.slots = SlotRequester(self, resource_manager, slot_config or SlotConfig(), may_wait=self.scheduler.runs_in_parts)
        self._coordinators: SourceCoordinators | None = None
        self._executors: dict[ResourceId, ExecutorConnection] = {}
        self._tasks: dict[ExecutionAttemptId, DeployedTask] = {}
        self._timers: dict[str, Cancellable] = {}
        self._events: deque[Event] = deque()
        self._feeding = False
        self._state = JobState.INITIALIZING
        self._error: BaseException | None = None
        self._ended = False
        self._metrics_asked_at = float("-inf")
        self._heartbeats = heartbeat_requester(
            self, self.rpc_config, lambda peer: self.lose_executor(peer, "it sent no heartbeat in time"), self._reconcile)

    # -- life --------------------------------------------------------------------------------------------------------------

    @property
    def job_id(self) -> JobId:
        return self.job_graph.job_id

    @property
    def has_ended(self) -> bool:
        """Whether the job has reached its last state."""
        return self._ended

    @property
    def registration(self) -> JobMasterRegistration:
        assert self.token is not None
        return JobMasterRegistration(self.job_id, self.resource_id, self.address, self.token)

    def on_start(self) -> None:
        self._coordinators = SourceCoordinators(
            self.job_graph, self._send_event, partial(self.service.run_in_background, self), lambda error: self.feed(FailJob(error)),
            self.schedule_run_async)
        self.slots.start()
        self._coordinators.start()
        self.feed(StartScheduling())

    def on_stop(self) -> Future[None] | None:
        self._leave("the JobMaster stops")
        return None

    def on_uncaught_error(self, error: Exception) -> bool:
        """Whatever escapes from the main thread ends the job."""
        self._fail_hard(error)
        return True

    def _leave(self, reason: str) -> None:
        """Says good-bye to everybody."""
        self._heartbeats.stop()
        self.slots.close(reason)
        for executor in self._executors.values():
            executor.close()
            executor.gateway.disconnect_job_master(self.job_id, reason)
        self._executors.clear()
        self._tasks.clear()
        for timer in self._timers.values():
            timer.cancel()
        if self._coordinators is not None:
            self._coordinators.close()

    def _end(self) -> None:
        """The job has reached its last state."""
        self._ended = True
        self.status.ended(self.service.clock.time_ms())
        self._leave(f"job {self.job_id} is {self._state.name}")
        details = self.status.details(self.scheduler.details(), self._state, self._error)
        self._on_terminal(self.status.result(self._state, self._error), details)

    def _fail_hard(self, error: Exception) -> None:
        """A bug: the scheduler's word is good no more, so the job ends here and now. Its TaskExecutors are told, and cancel what runs."""
        if self._ended:
            log.error("job %s had ended when this happened", self.job_id, exc_info=error)
            return
        log.critical("job %s fails by an error of the engine", self.job_id, exc_info=error)
        self._events.clear()
        self._state = JobState.FAILED
        self._error = error if isinstance(error, FlinkpyError) else EngineError(f"{type(error).__name__}: {error}")
        self._end()

    # -- the scheduler -----------------------------------------------------------------------------------------------------

    def feed(self, *events: Event) -> None:
        """Tells the scheduler what happened, and does what it wants."""
        self._events.extend(events)
        if self._feeding:
            return
        self._feeding = True
        try:
            while self._events and not self._ended:
                commands = self.scheduler.handle(self._events.popleft(), self.service.clock.monotonic())
                if commands:
                    self._carry_out(commands)
        except Exception as error:
            self._fail_hard(error)
        finally:
            self._feeding = False

    def _carry_out(self, commands: list[Command]) -> None:
        requests: list[RequestSlot] = []
        releases: list[AllocationId] = []
        for command in commands:
            if isinstance(command, RequestSlot):
                requests.append(command)
            elif isinstance(command, ReleaseSlot):
                releases.append(command.allocation_id)
            elif isinstance(command, DeployTasks):
                self._deploy(command)
            elif isinstance(command, CancelTask):
                self._cancel_task(command)
            elif isinstance(command, CancelSlotRequest):
                self.slots.cancel(command.request_id)
            elif isinstance(command, ReleaseResults):
                self._release_results(command.location.resource_id, command.attempt_ids)
            elif isinstance(command, SetTimer):
                self._set_timer(command)
            elif isinstance(command, ResetCoordinators):
                self._reset_coordinators(command)
            else:
                self._job_state_changed(command)
        self._release(releases)
        self.slots.request(requests)

    def _set_timer(self, command: SetTimer) -> None:
        earlier = self._timers.pop(command.timer_id, None)
        if earlier is not None:
            earlier.cancel()

        def fire() -> None:
            self._timers.pop(command.timer_id, None)
            self.feed(TimerFired(command.timer_id))
        self._timers[command.timer_id] = self.schedule_run_async(command.delay_s, fire)

    def _reset_coordinators(self, command: ResetCoordinators) -> None:
        assert self._coordinators is not None
        self._coordinators.reset(command.attempts)

    def _job_state_changed(self, command: JobStateChanged) -> None:
        log.info("job %s (%s): %s → %s", self.job_graph.name, self.job_id, self._state.name, command.state.name)
        self._state = command.state
        self._error = command.error or self._error
        if JOB.is_terminal(command.state):
            self._error = command.error
            self._end()

    # -- tasks -------------------------------------------------------------------------------------------------------------

    def _deploy(self, command: DeployTasks) -> None:
        executor = self._executors.get(command.location.resource_id)
        if executor is None:
            lost = TaskExecutorLostError(f"{command.location.resource_id} was lost before the tasks were sent")
            self.feed(*(DeploymentRejected(descriptor.attempt_id, lost) for descriptor in command.descriptors))
            return
        assert self._coordinators is not None
        for task in executor.submit(command.descriptors):
            self._tasks[task.attempt_id] = task
            self._coordinators.deployed(task.attempt_id)

    def _rejected(self, task: DeployedTask, reason: str) -> None:
        self._forget(task.attempt_id)
        error = TaskExecutorLostError(f"{task.name} could not be started on {task.executor.resource_id}: {reason}")
        self.feed(DeploymentRejected(task.attempt_id, error))

    def _cancel_task(self, command: CancelTask) -> None:
        task = self._tasks.get(command.attempt_id)
        if task is None:  # it ended with its TaskExecutor, and the scheduler is about to hear it
            self.feed(TaskStateChanged(command.attempt_id, ExecutionState.CANCELED))
        else:
            task.executor.cancel(task)

    def _release_results(self, resource_id: ResourceId, attempt_ids: tuple[ExecutionAttemptId, ...]) -> None:
        executor = self._executors.get(resource_id)
        if executor is not None and attempt_ids:
            executor.gateway.release_results(attempt_ids)

    def _lost_track(self, task: DeployedTask) -> None:
        """The TaskExecutor confirmed the task and knows nothing of it any more."""
        self._forget(task.attempt_id)
        state = ExecutionState.CANCELED if task.cancelling else ExecutionState.FAILED
        error = None if task.cancelling else TaskExecutorLostError(f"{task.executor.resource_id} lost track of {task.name}")
        self.feed(TaskStateChanged(task.attempt_id, state, error))

    def _forget(self, attempt_id: ExecutionAttemptId) -> None:
        task = self._tasks.pop(attempt_id, None)
        if task is not None:
            task.executor.forget(attempt_id)

    def update_task_execution_states(
        self, resource_id: ResourceId, sequence: int, states: tuple[TaskExecutionState, ...],
    ) -> tuple[ExecutionAttemptId, ...]:
        executor = self._known(resource_id)
        unknown = []
        for report in states:
            attempt_id = report.attempt_id
            task = executor.tasks.get(attempt_id)
            if task is None:
                unknown.append(attempt_id)
                continue
            executor.confirm(task, sequence)
            if report.state in TERMINAL:
                self.status.task_reported(report, self.service.clock.time_ms())
                self._forget(attempt_id)
                if self._coordinators is not None:
                    self._coordinators.ended(attempt_id)
            self.feed(TaskStateChanged(attempt_id, report.state, report.error))
        return tuple(unknown)

    # -- TaskExecutors -----------------------------------------------------------------------------------------------------

    def _known(self, resource_id: ResourceId) -> ExecutorConnection:
        executor = self._executors.get(resource_id)
        if executor is None:
            raise NotRegisteredError(f"{resource_id} is not registered at {self.address}")
        return executor

    async def register_task_executor(self, location: TaskManagerLocation) -> RegistrationResponse:
        known = self._executors.get(location.resource_id)
        if known is None or known.location != location:
            gateway = await self.connect(location.address, TaskExecutorGateway)
            if self._ended:
                return RegistrationResponse(False, self.resource_id, reason=f"job {self.job_id} has ended")
            known = self._executors.get(location.resource_id)
            if known is not None and known.location != location:
                self.lose_executor(location.resource_id, "it was started anew")
                known = None
            if known is None:
                self._add_executor(location, gateway)
        return RegistrationResponse(True, self.resource_id)

    def _add_executor(self, location: TaskManagerLocation, gateway: TaskExecutorGateway) -> None:
        assert self.token is not None
        resource_id = location.resource_id
        executor = ExecutorConnection(self, self.token, location, gateway, self.retry_s, self._rejected, self._lost_track)
        executor.watch = self.service.watch(self, location.address, lambda reason: self.lose_executor(resource_id, reason))
        self._executors[resource_id] = executor
        self._heartbeats.monitor(resource_id, partial(gateway.heartbeat_from_job_master, self.resource_id))

    def lose_executor(self, resource_id: ResourceId, reason: str) -> None:
        """It is gone, with all that ran there."""
        executor = self._executors.pop(resource_id, None)
        if executor is None:
            return
        self._heartbeats.unmonitor(resource_id)
        executor.close()
        executor.gateway.disconnect_job_master(self.job_id, reason)
        for attempt_id in executor.tasks:
            self._tasks.pop(attempt_id, None)
        error = TaskExecutorLostError(f"{resource_id} is lost: {reason}")
        lost = self.slots.lose_executor(resource_id)
        self.feed(ResultsLost(resource_id), *(SlotLost(allocation_id, error) for allocation_id in lost),
                  *(DeploymentRejected(attempt_id, error) for attempt_id in executor.tasks))  # for tasks whose slot had been given back

    def disconnect_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        self.lose_executor(resource_id, reason)

    def heartbeat_from_task_executor(self, resource_id: ResourceId, payload: JobHeartbeat) -> None:
        self._heartbeats.answer_received(resource_id, payload)

    def _reconcile(self, resource_id: ResourceId, payload: JobHeartbeat) -> None:
        executor = self._executors[resource_id]
        self.status.metrics(payload.metrics, self.service.clock.time_ms())
        executor.reconcile(payload)
        self._release_results(resource_id, tuple(attempt for attempt in payload.results if not self.scheduler.needs_results(attempt)))
        lost, unwanted = self.slots.pool.reconcile(resource_id, payload.sequence, payload.slots)
        if unwanted:
            executor.free(unwanted, "the job does not know these slots")
        for allocation_id in lost:
            self._lose_slot(allocation_id, TaskExecutorLostError(f"{resource_id} does not hold the slot any more"))

    # -- slots -------------------------------------------------------------------------------------------------------------

    def offer_slots(self, resource_id: ResourceId, sequence: int, offers: tuple[SlotOffer, ...]) -> tuple[AllocationId, ...]:
        executor = self._known(resource_id)
        accepted, assigned = self.slots.offered(executor.location, sequence, offers)
        self.feed(*assigned)
        # the scheduler may have given some back already
        return tuple(allocation_id for allocation_id in accepted if self.slots.pool.get(allocation_id) is not None)

    def fail_slot(self, resource_id: ResourceId, allocation_id: AllocationId, reason: str) -> None:
        slot = self.slots.pool.get(allocation_id)
        if slot is not None and slot.resource_id == resource_id:
            self._lose_slot(allocation_id, TaskExecutorLostError(f"{resource_id} took the slot back: {reason}"))

    def _lose_slot(self, allocation_id: AllocationId, error: BaseException) -> None:
        if self.slots.pool.remove(allocation_id) is not None:
            self.feed(SlotLost(allocation_id, error))

    def notify_allocation_failed(self, allocation_id: AllocationId, error: BaseException) -> None:
        self.slots.refused({allocation_id: error})

    def _release(self, allocation_ids: Iterable[AllocationId]) -> None:
        of_executor: dict[ResourceId, list[AllocationId]] = {}
        for allocation_id in allocation_ids:
            slot = self.slots.pool.remove(allocation_id)
            if slot is not None:
                of_executor.setdefault(slot.resource_id, []).append(allocation_id)
        for resource_id, freed in of_executor.items():
            executor = self._executors.get(resource_id)
            if executor is not None:
                executor.free(freed, "the job does not need it")

    # -- operator events -----------------------------------------------------------------------------------------------------

    def send_operator_events(self, attempt_id: ExecutionAttemptId, first: int, events: tuple[tuple[OperatorId, Any], ...]) -> None:
        task = self._tasks.get(attempt_id)
        if task is None:
            return  # it has ended for us: nobody listens to it any more
        assert self._coordinators is not None
        for operator_id, event in task.executor.fresh_events(task, first, events):
            self._coordinators.handle_event(attempt_id, operator_id, event)

    def _send_event(self, attempt_id: ExecutionAttemptId, operator_id: OperatorId, event: Any) -> None:
        task = self._tasks.get(attempt_id)
        if task is not None:
            task.executor.send_event(task, (operator_id, event))

    # -- the ResourceManager -----------------------------------------------------------------------------------------------

    def heartbeat_from_resource_manager(self, resource_id: ResourceId) -> None:
        self.slots.manager.heartbeat_received(resource_id)

    def disconnect_resource_manager(self, reason: str) -> None:
        self.slots.manager.lose(reason)

    # -- clients -----------------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        self.feed(CancelJob())

    def request_status(self) -> JobState:
        return self._state

    def _ask_for_metrics(self) -> None:
        now = self.service.clock.monotonic()
        if now - self._metrics_asked_at >= self.METRICS_AGE_S:
            self._metrics_asked_at = now
            for executor in self._executors.values():
                executor.gateway.heartbeat_from_job_master(self.resource_id)

    def request_details(self) -> JobDetails:
        """The counters are as fresh as the TaskExecutors' last beats; asking makes them send the next ones."""
        self._ask_for_metrics()
        return self.status.details(self.scheduler.details(), self._state, self._error)

    def request_metrics(self) -> Future[JobMetrics]:
        """Who asks once wants what is true now, so the beats that this asks for are waited for; a TaskExecutor that is slow tells later."""
        self._ask_for_metrics()
        answer: Future[JobMetrics] = Future()
        self.schedule_run_async(self.METRICS_AGE_S, lambda: answer.complete(self.status.job_metrics()))
        return answer

    # -- looking in --------------------------------------------------------------------------------------------------------

    def check_invariants(self, everything: bool = True) -> None:
        """Raises EngineError when its parts contradict each other; ``everything=False`` looks only at what the last event changed."""
        self.scheduler.check_invariants(everything)
        if self._ended and self._executors:
            raise EngineError(f"{self!r}: its job has ended, and {list(self._executors)} are registered all the same")
        if everything and not self._ended:
            self.slots.pool.check_invariants()
            for attempt_id, task in self._tasks.items():
                if self._executors.get(task.executor.resource_id) is not task.executor or task.executor.tasks.get(attempt_id) is not task:
                    raise EngineError(f"{self!r}: {attempt_id} runs on a TaskExecutor that does not count")
