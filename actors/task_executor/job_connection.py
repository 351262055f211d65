"""What a TaskExecutor has to do with one job: offering it slots, telling it how its tasks fare, answering its heartbeats.

The connection lives while the job has slots here or has not heard the end of a task, and ends with its JobMaster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flinkpy.actors.gateways import JobHeartbeat, JobMasterGateway, RegistrationResponse
from flinkpy.actors.rpc.delivery.courier import Courier, EventReceiver, EventSender
from flinkpy.actors.rpc.registration import RetryingRegistration
from flinkpy.core.errors import FencingError, NotRegisteredError, RecipientUnreachableError
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, FencingToken, JobId, OperatorId, ResourceId
from flinkpy.graph.deployment import SlotOffer, TaskExecutionState, TaskMetrics
from flinkpy.scheduler.execution_model import TERMINAL

if TYPE_CHECKING:
    from flinkpy.actors.rpc.service import Cancellable
    from flinkpy.actors.task_executor.task_executor import TaskExecutor

OperatorEvent = tuple[OperatorId, Any]


class JobConnection:
    """One job's JobMaster, as one TaskExecutor sees it. All calls come from the TaskExecutor's main thread."""

    def __init__(self, executor: TaskExecutor, job_id: JobId, address: str, token: FencingToken) -> None:
        self._executor = executor
        self.job_id, self.address, self.token = job_id, address, token
        self.resource_id: ResourceId | None = None  # the JobMaster's, once registered
        self._gateway: JobMasterGateway | None = None
        self._watch: Cancellable | None = None
        self._reports: dict[ExecutionAttemptId, TaskExecutionState] = {}
        self._senders: dict[ExecutionAttemptId, EventSender[OperatorEvent]] = {}
        self._receivers: dict[ExecutionAttemptId, EventReceiver[OperatorEvent]] = {}
        retry_s = executor.retry_s
        self._offers: Courier[tuple[SlotOffer, ...], tuple[AllocationId, ...]] = Courier(
            executor, retry_s, self._due_offers, self._send_offers, self._offers_answered, self._failed)
        self._states: Courier[tuple[TaskExecutionState, ...], tuple[ExecutionAttemptId, ...]] = Courier(
            executor, retry_s, self._due_reports, self._send_reports, self._reports_answered, self._failed)
        self._registration = RetryingRegistration(
            executor, address, JobMasterGateway, token, lambda master: master.register_task_executor(executor.location),
            on_success=self._registered, on_refused=self._refused, config=executor.rpc_config)
        self._registration.start()

    # -- the connection ----------------------------------------------------------------------------------------------------

    def _registered(self, gateway: JobMasterGateway, response: RegistrationResponse) -> None:
        self._gateway, self.resource_id = gateway, response.resource_id
        self._watch = self._executor.service.watch(self._executor, self.address, lambda reason: self._lost(reason))
        self._executor.job_registered(self)
        self.kick()

    def _refused(self, response: RegistrationResponse) -> None:
        self._lost(f"it refuses this TaskExecutor: {response.reason}")

    def _failed(self, error: BaseException) -> None:
        """A call failed: some errors say that the JobMaster is gone, the others are tried again."""
        if isinstance(error, (NotRegisteredError, FencingError, RecipientUnreachableError)):
            self._lost(str(error))

    def _lost(self, reason: str) -> None:
        self._executor.lose_job(self.job_id, self.token, f"the JobMaster of job {self.job_id} is lost: {reason}")

    def close(self) -> None:
        """The TaskExecutor has nothing to do with this JobMaster any more."""
        self._registration.close()
        self._offers.close()
        self._states.close()
        for sender in self._senders.values():
            sender.close()
        if self._watch is not None:
            self._watch.cancel()

    def tell_gone(self, reason: str) -> None:
        if self._gateway is not None:
            self._gateway.disconnect_task_executor(self._executor.resource_id, reason)

    @property
    def is_registered(self) -> bool:
        return self._gateway is not None

    @property
    def is_needed(self) -> bool:
        return bool(self._reports or self._executor.slots.of_job(self.job_id) or self.job_id in self._executor.results)

    def kick(self) -> None:
        """Something may be due: slots to offer, states to report."""
        self._offers.kick()
        self._states.kick()

    # -- slots -------------------------------------------------------------------------------------------------------------

    def _due_offers(self) -> tuple[SlotOffer, ...] | None:
        return (self._executor.slots.offers(self.job_id) or None) if self._gateway is not None else None

    def _send_offers(self, offers: tuple[SlotOffer, ...]) -> Any:
        assert self._gateway is not None
        return self._gateway.offer_slots(self._executor.resource_id, self._executor.sequence, offers)

    def _offers_answered(self, offers: tuple[SlotOffer, ...], accepted: tuple[AllocationId, ...]) -> None:
        taken = set(accepted)
        rejected = tuple(offer.allocation_id for offer in offers if offer.allocation_id not in taken)
        for allocation_id in accepted:
            self._executor.slots.activate(allocation_id)
        self._executor.take_back(rejected, "its JobMaster does not want it")

    def slot_failed(self, allocation_id: AllocationId, reason: str) -> None:
        if self._gateway is not None:
            self._gateway.fail_slot(self._executor.resource_id, allocation_id, reason)

    # -- tasks -------------------------------------------------------------------------------------------------------------

    def report(self, state: TaskExecutionState) -> None:
        """Gets the state across; the latest one of a task replaces those still waiting."""
        self._reports[state.attempt_id] = state
        if state.state in TERMINAL:
            self._receivers.pop(state.attempt_id, None)
            sender = self._senders.pop(state.attempt_id, None)
            if sender is not None:
                sender.close()
        self._states.kick()

    def _due_reports(self) -> tuple[TaskExecutionState, ...] | None:
        return (tuple(self._reports.values()) or None) if self._gateway is not None else None

    def _send_reports(self, states: tuple[TaskExecutionState, ...]) -> Any:
        assert self._gateway is not None
        return self._gateway.update_task_execution_states(self._executor.resource_id, self._executor.sequence, states)

    def _reports_answered(self, states: tuple[TaskExecutionState, ...], unknown: tuple[ExecutionAttemptId, ...]) -> None:
        for state in states:
            if self._reports.get(state.attempt_id) is state:
                del self._reports[state.attempt_id]
        for attempt_id in unknown:
            self._executor.runner.cancel(attempt_id)
        if not self.is_needed:
            self._executor.release_job(self.job_id)

    # -- operator events -----------------------------------------------------------------------------------------------------

    def send_event(self, attempt_id: ExecutionAttemptId, event: OperatorEvent) -> None:
        """A task's event for its coordinator: there once and in order, or not at all when the connection ends."""
        sender = self._senders.get(attempt_id)
        if sender is None:
            sender = self._senders[attempt_id] = EventSender(self._executor, self._executor.retry_s, self._event_line(attempt_id))
        sender.send(event)

    def _event_line(self, attempt_id: ExecutionAttemptId) -> Callable[[int, tuple[OperatorEvent, ...]], Any]:
        def send(first: int, events: tuple[OperatorEvent, ...]) -> Any:
            assert self._gateway is not None  # tasks are taken from a JobMaster that knows us only
            return self._gateway.send_operator_events(attempt_id, first, events)
        return send

    def fresh_events(self, attempt_id: ExecutionAttemptId, first: int, events: tuple[OperatorEvent, ...]) -> Iterable[OperatorEvent]:
        """Those of a coordinator's events the task has not had yet."""
        return self._receivers.setdefault(attempt_id, EventReceiver()).fresh(first, events)

    # -- heartbeats --------------------------------------------------------------------------------------------------------

    def beat(self, metrics: Iterable[TaskMetrics]) -> None:
        """Answers the JobMaster's heartbeat with what is held for it."""
        if self._gateway is None:
            return
        running = dict.fromkeys([*self._executor.slots.tasks_of_job(self.job_id), *self._reports])
        slots = tuple(slot.allocation_id for slot in self._executor.slots.of_job(self.job_id))
        mine = tuple(metric for metric in metrics if metric.attempt_id.job_id == self.job_id)
        results = tuple(attempt_id for attempt_id in self._executor.results.get(self.job_id, ()) if attempt_id not in self._reports)
        beat = JobHeartbeat(self._executor.sequence, mine, tuple(running), slots, results)
        self._gateway.heartbeat_from_task_executor(self._executor.resource_id, beat)

    def __repr__(self) -> str:
        state = "connected" if self._gateway is not None else "connecting"
        return f"<JobConnection of {self._executor.resource_id} to {self.address}: {state}, {len(self._reports)} reports due>"
