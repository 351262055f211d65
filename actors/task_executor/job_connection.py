"""What a TaskExecutor does for one job: it offers slots to the JobMaster, reports the states of
tasks, and answers heartbeats.

The connection lives while the job has slots or results here, or does not know of the end of a task;
it ends with its JobMaster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from flinkpy.actors.gateways import JobHeartbeat, JobMasterGateway
from flinkpy.actors.rpc.delivery.courier import Courier, EventReceiver, EventSender
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.registration import RegistrationResponse, RetryingRegistration
from flinkpy.actors.rpc.service import Cancellable
from flinkpy.actors.task_executor.holdings import Holdings
from flinkpy.core.errors import FencingError, NotRegisteredError, RecipientUnreachableError
from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    FencingToken,
    JobId,
    OperatorId,
    ResourceId,
)
from flinkpy.core.options.engine import RpcConfig
from flinkpy.graph.deployment import SlotOffer, TaskExecutionState, TaskManagerLocation, TaskMetrics
from flinkpy.scheduler.execution_model import TERMINAL

OperatorEvent = tuple[OperatorId | None, Any]


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

    def cancel_unknown_tasks(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        """The JobMaster does not know these tasks."""
        ...

    def close_if_done(self, job_id: JobId) -> None:
        """The connection may have become unnecessary."""
        ...


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
        job_id: JobId,
        address: str,
        token: FencingToken,
    ) -> None:
        self._endpoint = endpoint
        self._executor_id = location.resource_id
        self._holdings = holdings
        self._listener = listener
        self.job_id = job_id
        self.address = address
        self.token = token
        self.resource_id: ResourceId | None = None  # the JobMaster's, once registered
        self._gateway: JobMasterGateway | None = None
        self._watch: Cancellable | None = None
        self._reports: dict[ExecutionAttemptId, TaskExecutionState] = {}
        self._senders: dict[ExecutionAttemptId, EventSender[OperatorEvent]] = {}
        self._receivers: dict[ExecutionAttemptId, EventReceiver[OperatorEvent]] = {}
        self._retry_s = config.registration_initial.total_seconds()
        self._offers: Courier[tuple[SlotOffer, ...], tuple[AllocationId, ...]] = Courier(
            endpoint.schedule_run_async,
            self._retry_s,
            self._due_offers,
            self._send_offers,
            self._offers_answered,
            self._on_failure,
        )
        self._states: Courier[tuple[TaskExecutionState, ...], tuple[ExecutionAttemptId, ...]] = (
            Courier(
                endpoint.schedule_run_async,
                self._retry_s,
                self._due_reports,
                self._send_reports,
                self._reports_answered,
                self._on_failure,
            )
        )
        self._registration = RetryingRegistration(
            endpoint,
            address,
            JobMasterGateway,
            token,
            lambda master: master.register_task_executor(location),
            on_success=self._registered,
            on_refused=self._on_refused,
            config=config,
        )
        self._registration.start()

    # -- the connection ----------------------------------------------------------------------------

    def _registered(self, gateway: JobMasterGateway, response: RegistrationResponse) -> None:
        self._gateway, self.resource_id = gateway, response.resource_id
        self._watch = self._endpoint.service.watch(
            self._endpoint, self.address, self._lose_job_master
        )
        self._listener.job_registered(self)
        self.send_due()

    def _on_refused(self, response: RegistrationResponse) -> None:
        self._lose_job_master(f"it refuses this TaskExecutor: {response.reason}")

    def _on_failure(self, error: BaseException) -> None:
        """Handles a failed call. Some errors mean that the JobMaster is gone; after the others the
        call is repeated."""
        if isinstance(error, (NotRegisteredError, FencingError, RecipientUnreachableError)):
            self._lose_job_master(str(error))

    def _lose_job_master(self, reason: str) -> None:
        self._listener.lose_job(
            self.job_id, self.token, f"the JobMaster of job {self.job_id} is lost: {reason}"
        )

    def close_connection(self) -> None:
        """Closes the connection: the TaskExecutor has nothing to do with this JobMaster any
        more."""
        self._registration.close()
        self._offers.close()
        self._states.close()
        for sender in self._senders.values():
            sender.close()
        if self._watch is not None:
            self._watch.cancel()

    def send_disconnect(self, reason: str) -> None:
        if self._gateway is not None:
            self._gateway.disconnect_task_executor(self._executor_id, reason)

    @property
    def is_registered(self) -> bool:
        return self._gateway is not None

    @property
    def is_needed(self) -> bool:
        return bool(self._reports) or self._holdings.holds_anything_for(self.job_id)

    def send_due(self) -> None:
        """Sends what is due: slots to offer, states to report."""
        self._offers.kick()
        self._states.kick()

    # -- slots -------------------------------------------------------------------------------------

    def _due_offers(self) -> tuple[SlotOffer, ...] | None:
        return (
            (self._holdings.slots.offers(self.job_id) or None)
            if self._gateway is not None
            else None
        )

    def _send_offers(self, offers: tuple[SlotOffer, ...]) -> Any:
        assert self._gateway is not None
        return self._gateway.offer_slots(self._executor_id, self._holdings.sequence, offers)

    def _offers_answered(
        self, offers: tuple[SlotOffer, ...], accepted: tuple[AllocationId, ...]
    ) -> None:
        taken = set(accepted)
        rejected = tuple(
            offer.allocation_id for offer in offers if offer.allocation_id not in taken
        )
        for allocation_id in accepted:
            self._holdings.slots.activate(allocation_id)
        self._listener.free_slots(rejected, "its JobMaster does not want it")

    def fail_slot(self, allocation_id: AllocationId, reason: str) -> None:
        """Tells the JobMaster that the TaskExecutor takes the slot back."""
        if self._gateway is not None:
            self._gateway.fail_slot(self._executor_id, allocation_id, reason)

    # -- tasks -------------------------------------------------------------------------------------

    def report_state(self, state: TaskExecutionState) -> None:
        """Sends the state until it is answered; the latest state of a task replaces an earlier one
        that still waits. A JobMaster that has not registered this TaskExecutor has no task here:
        then it is one of its predecessor's, and nobody waits for its state."""
        if self._gateway is None:
            self._listener.close_if_done(self.job_id)
            return
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
        return self._gateway.update_task_execution_states(
            self._executor_id, self._holdings.sequence, states
        )

    def _reports_answered(
        self, states: tuple[TaskExecutionState, ...], unknown: tuple[ExecutionAttemptId, ...]
    ) -> None:
        for state in states:
            if self._reports.get(state.attempt_id) is state:
                del self._reports[state.attempt_id]
        self._listener.cancel_unknown_tasks(unknown)
        self._listener.close_if_done(self.job_id)

    # -- operator events ---------------------------------------------------------------------------

    def send_event(self, attempt_id: ExecutionAttemptId, event: OperatorEvent) -> None:
        """Sends a task's event to its coordinator: it arrives once and in order, or not at all when
        the connection ends."""
        sender = self._senders.get(attempt_id)
        if sender is None:
            sender = self._senders[attempt_id] = EventSender(
                self._endpoint.schedule_run_async, self._retry_s, self._make_send(attempt_id)
            )
        sender.send(event)

    def _make_send(
        self, attempt_id: ExecutionAttemptId
    ) -> Callable[[int, tuple[OperatorEvent, ...]], Any]:
        def send(first: int, events: tuple[OperatorEvent, ...]) -> Any:
            # tasks are accepted only from a JobMaster that has registered this TaskExecutor
            assert self._gateway is not None
            return self._gateway.send_operator_events(attempt_id, first, events)

        return send

    def fresh_events(
        self, attempt_id: ExecutionAttemptId, first: int, events: tuple[OperatorEvent, ...]
    ) -> Iterable[OperatorEvent]:
        """Returns those of a coordinator's events that the task has not received yet."""
        return self._receivers.setdefault(attempt_id, EventReceiver()).fresh(first, events)

    # -- heartbeats --------------------------------------------------------------------------------

    def send_heartbeat(self, metrics: Iterable[TaskMetrics]) -> None:
        """Answers the JobMaster's heartbeat with what this TaskExecutor holds for it."""
        if self._gateway is None:
            return
        holdings = self._holdings
        running = dict.fromkeys([*holdings.slots.tasks_of_job(self.job_id), *self._reports])
        slots = tuple(slot.allocation_id for slot in holdings.slots.of_job(self.job_id))
        mine = tuple(metric for metric in metrics if metric.attempt_id.job_id == self.job_id)
        results = tuple(
            attempt_id
            for attempt_id in holdings.results_of(self.job_id)
            if attempt_id not in self._reports
        )
        self._gateway.heartbeat_from_task_executor(
            self._executor_id, JobHeartbeat(holdings.sequence, mine, tuple(running), slots, results)
        )

    def __repr__(self) -> str:
        state = "connected" if self._gateway is not None else "connecting"
        return (
            f"<JobConnection of {self._executor_id} to {self.address}: {state}, "
            f"{len(self._reports)} reports due>"
        )
