"""What a TaskExecutor does for one job: it offers slots to the JobMaster, reports the states of
tasks, and answers heartbeats.

The connection lives while the job has slots or results here, or does not know of the end of a task;
it ends with its JobMaster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from flinkpy.actors.gateways import JobHeartbeat, JobMasterGateway, MessagesToTask, TaskReport
from flinkpy.actors.rpc.delivery.courier import Courier, EventOutbox, EventReceiver
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.registration import RegistrationResponse, RetryingRegistration
from flinkpy.actors.rpc.service import Cancellable
from flinkpy.actors.task_executor.holdings import Holdings
from flinkpy.actors.task_executor.report_pace import ReportPace
from flinkpy.core.errors import FencingError, NotRegisteredError, RecipientUnreachableError
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, FencingToken, JobId, ResourceId
from flinkpy.core.options.engine import RpcConfig
from flinkpy.graph.deployment import SlotOffer, TaskExecutionState, TaskManagerLocation, TaskMetrics
from flinkpy.runtime.memory.memory_report import MemoryReport
from flinkpy.runtime.task_messages import MessageFromTask, MessageToTask
from flinkpy.scheduler.execution_model import TERMINAL


class JobConnectionListener(Protocol):
    """What a connection reports to."""

    def job_registered(self, job: JobConnection) -> None:
        """The JobMaster knows this TaskExecutor now."""
        ...

    def lose_job(self, job_id: JobId, token: FencingToken, reason: str) -> None:
        """The JobMaster with that token is lost."""
        ...

    def free_slots(self, allocation_ids: Iterable[AllocationId], reason: str) -> None:
        """The JobMaster does not need these slots."""
        ...

    def job_answered(self, job: JobConnection) -> None:
        """The JobMaster has answered a report: it lives."""
        ...

    def heartbeat_of(self, job: JobConnection) -> JobHeartbeat:
        """The heartbeat to it, which goes with a report."""
        ...

    def cancel_unknown_tasks(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        """The JobMaster does not know these tasks."""
        ...

    def close_if_done(self, job_id: JobId) -> None:
        """The connection may have become unnecessary."""
        ...


class JobLeader(NamedTuple):
    """The JobMaster of a job: where it is, and its term."""

    job_id: JobId
    address: str
    token: FencingToken


class JobConnection:
    """One job's JobMaster, as one TaskExecutor sees it. All calls come from the TaskExecutor's main
    thread."""

    def __init__(
        self,
        endpoint: RpcEndpoint,
        location: TaskManagerLocation,
        config: RpcConfig,
        holdings: Holdings,
        listener: JobConnectionListener,
        leader: JobLeader,
    ) -> None:
        self._endpoint = endpoint
        self._location = location
        self.holdings = holdings
        self.listener = listener
        self.leader = leader
        self.resource_id: ResourceId | None = None  # the JobMaster's, once registered
        self._gateway: JobMasterGateway | None = None
        self._watch: Cancellable | None = None
        self._receivers: dict[ExecutionAttemptId, EventReceiver[MessageToTask]] = {}
        retry_s = config.registration_initial.total_seconds()
        self._offers = Courier(endpoint.main_thread, retry_s, _SlotOffers(self))
        self._reports = _TaskReports(self, config.heartbeat_interval.total_seconds())
        self._reporting = Courier(endpoint.main_thread, retry_s, self._reports)
        self._tick: Cancellable | None = None  # until the next report
        self._registration = RetryingRegistration(
            endpoint, leader.address, JobMasterGateway, leader.token, self, config
        )
        self._registration.start()

    # -- the connection ----------------------------------------------------------------------------

    @property
    def job_id(self) -> JobId:
        return self.leader.job_id

    @property
    def token(self) -> FencingToken:
        return self.leader.token

    @property
    def executor_id(self) -> ResourceId:
        return self._location.resource_id

    def register(self, gateway: JobMasterGateway) -> Future[RegistrationResponse]:
        return gateway.register_task_executor(self._location)

    def registered(self, gateway: JobMasterGateway, response: RegistrationResponse) -> None:
        self._gateway, self.resource_id = gateway, response.resource_id
        self._watch = self._endpoint.service.watch(
            self._endpoint, self.leader.address, self._lose_job_master
        )
        self.listener.job_registered(self)
        self.send_due()

    def refused(self, response: RegistrationResponse) -> None:
        self._lose_job_master(f"it refuses this TaskExecutor: {response.reason}")

    def call_failed(self, error: BaseException) -> None:
        """Handles a failed call. Some errors mean that the JobMaster is gone; after the others the
        call is repeated."""
        if isinstance(error, (NotRegisteredError, FencingError, RecipientUnreachableError)):
            self._lose_job_master(str(error))

    def _lose_job_master(self, reason: str) -> None:
        self.listener.lose_job(
            self.job_id, self.token, f"the JobMaster of job {self.job_id} is lost: {reason}"
        )

    def close_connection(self) -> None:
        """Closes the connection: the TaskExecutor has nothing to do with this JobMaster any
        more."""
        self._registration.close()
        self._offers.close()
        self._reporting.close()
        for timer in (self._tick, self._watch):
            if timer is not None:
                timer.cancel()

    def send_disconnect(self, reason: str) -> None:
        if self._gateway is not None:
            self._gateway.disconnect_task_executor(self.executor_id, reason)

    @property
    def is_registered(self) -> bool:
        return self._gateway is not None

    @property
    def gateway(self) -> JobMasterGateway:
        """To the JobMaster that has registered this TaskExecutor."""
        assert self._gateway is not None
        return self._gateway

    @property
    def is_needed(self) -> bool:
        return bool(self._reports.latest) or self.holdings.holds_anything_for(self.job_id)

    def send_due(self) -> None:
        """Sends what is due: slots to offer, states to report."""
        self._offers.kick()
        self._reporting.kick()

    @property
    def now(self) -> float:
        return self._endpoint.service.clock.monotonic()

    def report_later(self, delay_s: float) -> None:
        """Looks then whether a report is due."""
        if self._tick is None:
            self._tick = self._endpoint.schedule_run_async(delay_s, self._tick_over)

    def _tick_over(self) -> None:
        self._tick = None
        self._reporting.kick()

    # -- slots -------------------------------------------------------------------------------------

    def fail_slot(self, allocation_id: AllocationId, reason: str) -> None:
        """Tells the JobMaster that the TaskExecutor takes the slot back."""
        if self._gateway is not None:
            self._gateway.fail_slot(self.executor_id, allocation_id, reason)

    # -- tasks -------------------------------------------------------------------------------------

    def report_state(self, state: TaskExecutionState) -> None:
        """Sends the state until it is answered; the latest state of a task replaces an earlier one
        that still waits. A JobMaster that has not registered this TaskExecutor has no task here:
        then it is one of its predecessor's, and nobody waits for its state."""
        if self._gateway is None:
            self.listener.close_if_done(self.job_id)
            return
        self._reports.add_state(state)
        if state.state in TERMINAL:
            self._receivers.pop(state.attempt_id, None)
        self._reporting.kick()

    # -- messages to and from tasks ----------------------------------------------------------------

    def send_from_task(self, attempt_id: ExecutionAttemptId, message: MessageFromTask) -> None:
        """Sends what a task says: it arrives once and in order, or not at all when the connection
        ends."""
        self._reports.add_message(attempt_id, message)
        self._reporting.kick()

    def fresh_messages(self, messages: MessagesToTask) -> tuple[MessageToTask, ...]:
        """Returns those of the messages that the task has not received yet."""
        receiver = self._receivers.setdefault(messages.receiver, EventReceiver())
        return receiver.fresh(messages.first, messages.events)

    # -- heartbeats --------------------------------------------------------------------------------

    def send_heartbeat(self, metrics: Iterable[TaskMetrics], memory: MemoryReport | None) -> None:
        """Answers the JobMaster's heartbeat with what this TaskExecutor holds for it, and what the
        whole process has of memory."""
        if self._gateway is not None:
            self._gateway.heartbeat_from_task_executor(
                self.executor_id, self.heartbeat(metrics, memory)
            )

    def heartbeat(
        self, metrics: Iterable[TaskMetrics], memory: MemoryReport | None
    ) -> JobHeartbeat:
        holdings = self.holdings
        running = dict.fromkeys([*holdings.slots.tasks_of_job(self.job_id), *self._reports.latest])
        slots = tuple(slot.allocation_id for slot in holdings.slots.of_job(self.job_id))
        mine = tuple(metric for metric in metrics if metric.attempt_id.job_id == self.job_id)
        results = tuple(
            attempt_id
            for attempt_id in holdings.results_of(self.job_id)
            if attempt_id not in self._reports.latest
        )
        return JobHeartbeat(holdings.sequence, mine, tuple(running), slots, results, memory)

    def __repr__(self) -> str:
        state = "connected" if self._gateway is not None else "connecting"
        return (
            f"<JobConnection of {self.executor_id} to {self.leader.address}: {state}, "
            f"{len(self._reports.latest)} reports due>"
        )


class _SlotOffers:
    """The slots of the job that its JobMaster has not accepted yet."""

    def __init__(self, job: JobConnection) -> None:
        self._job = job

    def due(self) -> tuple[SlotOffer, ...] | None:
        job = self._job
        return (job.holdings.slots.offers(job.job_id) or None) if job.is_registered else None

    def send(self, batch: tuple[SlotOffer, ...]) -> Future[tuple[AllocationId, ...]]:
        job = self._job
        return job.gateway.offer_slots(job.executor_id, job.holdings.sequence, batch)

    def answered(self, batch: tuple[SlotOffer, ...], answer: tuple[AllocationId, ...]) -> None:
        taken = set(answer)
        rejected = tuple(offer.allocation_id for offer in batch if offer.allocation_id not in taken)
        for allocation_id in answer:
            self._job.holdings.slots.activate(allocation_id)
        self._job.listener.free_slots(rejected, "its JobMaster does not want it")

    def failed(self, error: BaseException) -> None:
        self._job.call_failed(error)


class _TaskReports:
    """What the JobMaster has not heard yet: of each task the latest state, and all messages."""

    def __init__(self, job: JobConnection, beat_s: float) -> None:
        self._job = job
        self._pace = ReportPace()
        self._beat_s = beat_s
        self._rode_at = job.now  # the last heartbeat that went with a report
        self.latest: dict[ExecutionAttemptId, TaskExecutionState] = {}
        self._messages: EventOutbox[ExecutionAttemptId, MessageFromTask] = EventOutbox()

    def add_state(self, state: TaskExecutionState) -> None:
        self.latest[state.attempt_id] = state
        self._pace.state_changed(state, self._job.now)

    def add_message(self, attempt_id: ExecutionAttemptId, message: MessageFromTask) -> None:
        self._messages.add(attempt_id, message)
        self._pace.message_said(attempt_id, message, self._job.now)

    def due(self) -> TaskReport | None:
        job = self._job
        if not job.is_registered or not (self.latest or self._messages):
            return None
        wait_s = self._pace.wait_s(job.holdings.slots.count_tasks(job.job_id), job.now)
        if wait_s:
            job.report_later(wait_s)
            return None
        return TaskReport(
            job.holdings.sequence,
            tuple(self.latest.values()),
            self._messages.waiting(),
            self._heartbeat(),
        )

    def _heartbeat(self) -> JobHeartbeat | None:
        """One goes with a report, unless one has a moment ago."""
        if self._job.now - self._rode_at < self._beat_s / 2:
            return None
        self._rode_at = self._job.now
        return self._job.listener.heartbeat_of(self._job)

    def send(self, batch: TaskReport) -> Future[tuple[ExecutionAttemptId, ...]]:
        self._pace.sent()
        return self._job.gateway.report_tasks(self._job.executor_id, batch)

    def answered(self, batch: TaskReport, answer: tuple[ExecutionAttemptId, ...]) -> None:
        self._job.listener.job_answered(self._job)
        self._messages.arrived(batch.messages)
        for state in batch.states:
            if self.latest.get(state.attempt_id) is state:
                del self.latest[state.attempt_id]
                if state.state in TERMINAL:
                    self._messages.forget(state.attempt_id)
        self._job.listener.cancel_unknown_tasks(answer)
        self._job.listener.close_if_done(self._job.job_id)

    def failed(self, error: BaseException) -> None:
        self._job.call_failed(error)
