"""SlotBook: how a JobMaster gets its slots. It owns the slot pool, the connection to the
ResourceManager, and the requests, which it repeats until they are served, refused or timed out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta

from flinkpy.actors.endpoint_services import EndpointServices
from flinkpy.actors.gateways import JobMasterHeartbeat, ResourceManagerGateway, SlotRequest
from flinkpy.actors.job_master.scheduler_driver import Feed
from flinkpy.actors.job_master.slot_pool import SlotPool
from flinkpy.actors.resource_manager.leader_connection import ResourceManagerConnection
from flinkpy.actors.rpc.delivery.courier import Courier
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.leadership import LeaderRetrievalService
from flinkpy.actors.rpc.registration import RegistrationResponse
from flinkpy.core.errors import (
    FencingError,
    NotRegisteredError,
    RecipientUnreachableError,
    ResourceUnavailableError,
    TaskExecutorLostError,
)
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, ResourceId
from flinkpy.graph.deployment import JobMasterRegistration, SlotOffer, TaskManagerLocation
from flinkpy.scheduler.protocol import (
    CancelSlotRequest,
    ReleaseSlot,
    RequestSlot,
    SlotAssigned,
    SlotLost,
    SlotRequestFailed,
)


class SlotBook:
    """All calls come from the JobMaster's main thread.

    ``feed(*events)`` hands events to the scheduler; ``free_slots(resource_id, allocation_ids,
    reason)`` asks a TaskExecutor to free slots. With ``may_wait`` the job makes progress with any
    number of slots, so its requests are not refused for being too many."""

    TICK = timedelta(seconds=5)

    def __init__(
        self,
        endpoint: RpcEndpoint,
        job_master: JobMasterRegistration,
        resource_manager: LeaderRetrievalService,
        services: EndpointServices,
        feed: Feed,
        free_slots: Callable[[ResourceId, list[AllocationId], str], None],
        *,
        may_wait: bool,
    ) -> None:
        self._endpoint = endpoint
        self._job_master = job_master
        self._feed = feed
        self._free_slots = free_slots
        self._slot_config = services.slot_config
        self._rpc_config = rpc_config = services.rpc_config
        self._may_wait = may_wait
        self.pool = SlotPool(self._slot_config.request_timeout.total_seconds())
        # requests to send to the ResourceManager, for the first time or again
        self._due: dict[AllocationId, None] = {}
        # Slots given back, of which their TaskExecutors do not know yet
        self._released: dict[ResourceId, list[AllocationId]] = {}
        self._closed = False
        self.manager = ResourceManagerConnection(endpoint, resource_manager, rpc_config, self)
        self._courier: Courier[tuple[SlotRequest, ...], dict[AllocationId, BaseException]] = (
            Courier(endpoint.main_thread, rpc_config.registration_initial.total_seconds(), self)
        )

    # -- the ResourceManager -----------------------------------------------------------------------

    def start(self) -> None:
        self.manager.start()
        self._tick()

    def close(self, reason: str) -> None:
        """Ends all requests: the job needs no more slots. Closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        self._courier.close()
        if self.manager.gateway is not None:
            self.manager.gateway.disconnect_job_master(self._job_master.job_id, reason)
        self.manager.close()

    def register_at(self, manager: ResourceManagerGateway) -> Future[RegistrationResponse]:
        return manager.register_job_master(self._job_master)

    def registered_at(self, manager: ResourceManagerGateway) -> None:
        self.request_all_again()

    def beat(self, manager: ResourceManagerGateway) -> None:
        manager.heartbeat_from_job_master(
            self._job_master.resource_id, JobMasterHeartbeat(self.pool.pending_ids())
        )

    def registration_refused(self, response: RegistrationResponse) -> None:
        """Registers again later. If the refusal is final, the requests time out."""
        self._endpoint.schedule_run_async(
            self._rpc_config.registration_max.total_seconds(), self.manager.register_again
        )

    # -- requests ----------------------------------------------------------------------------------

    def request_slot(self, command: RequestSlot) -> None:
        """Queues the request; the next ``send_collected`` sends it."""
        allocation_id = self._endpoint.service.ids.allocation_id()
        self.pool.add_request(
            command.request_id,
            allocation_id,
            command.profile,
            command.preferred,
            self._endpoint.service.clock.monotonic(),
        )
        self._due[allocation_id] = None

    def cancel_request(self, command: CancelSlotRequest) -> None:
        """Tells the ResourceManager in any case: a request that is due may have been sent
        before."""
        allocation_id = self.pool.cancel_request(command.request_id)
        if allocation_id is None:
            return
        self._due.pop(allocation_id, None)
        if self.manager.gateway is not None:
            self.manager.gateway.cancel_slot_requests((allocation_id,))

    def refuse_requests(self, errors: Mapping[AllocationId, BaseException]) -> None:
        """Fails the requests of slots that will not come."""
        failed = [
            (request, error)
            for allocation_id, error in errors.items()
            if (request := self.pool.fail_request(allocation_id)) is not None
        ]
        self._feed(*(SlotRequestFailed(request.request_id, error) for request, error in failed))

    def request_all_again(self) -> None:
        """Sends every open request again: the request, the allocation or the offer may have been
        lost on the way."""
        self._due = dict.fromkeys(self.pool.pending_ids())
        self._courier.kick()

    def send_collected(self) -> None:
        """Sends the releases and requests that the scheduler's last commands contained: one message
        to each receiver."""
        released, self._released = self._released, {}
        for resource_id, allocation_ids in released.items():
            self._free_slots(resource_id, allocation_ids, "the job does not need it")
        if self._due:
            self._courier.kick()

    # the delivery of the requests that are due

    def due(self) -> tuple[SlotRequest, ...] | None:
        if self.manager.gateway is None:
            return None
        job = self._job_master
        waiting = (self.pool.get_pending(allocation_id) for allocation_id in self._due)
        return (
            tuple(
                SlotRequest(
                    job.job_id,
                    request.allocation_id,
                    request.profile,
                    job.address,
                    job.token,
                    request.preferred,
                    self._may_wait,
                )
                for request in waiting
                if request is not None
            )
            or None
        )

    def send(self, batch: tuple[SlotRequest, ...]) -> Future[dict[AllocationId, BaseException]]:
        assert self.manager.gateway is not None
        return self.manager.gateway.request_slots(batch)

    def answered(
        self, batch: tuple[SlotRequest, ...], answer: dict[AllocationId, BaseException]
    ) -> None:
        for request in batch:
            self._due.pop(request.allocation_id, None)
        self.refuse_requests(answer)

    def failed(self, error: BaseException) -> None:
        if isinstance(error, (NotRegisteredError, FencingError, RecipientUnreachableError)):
            self.manager.lose_leader(str(error))

    def _tick(self) -> None:
        if self._closed:
            return
        now = self._endpoint.service.clock.monotonic()
        if self._may_wait and self.pool.statistics().allocated:
            # The job makes progress with the slots it has, and these may serve the open requests
            # later
            self.pool.renew_requests(now)
        expired = self.pool.expire_requests(now)
        waited = self._slot_config.request_timeout.total_seconds()
        error = ResourceUnavailableError(
            f"{len(expired)} slots did not come within {waited:g} s "
            "(slot.request.timeout): lower the parallelism, or give the cluster more "
            "slots"
        )
        self._feed(*(SlotRequestFailed(request.request_id, error) for request in expired))
        if self.pool.pending_ids():
            self.request_all_again()
        pause = min(
            self.TICK.total_seconds(), self._rpc_config.ask_timeout.total_seconds(), waited / 4
        )
        self._endpoint.schedule_run_async(max(pause, 0.01), self._tick)

    # -- slots -------------------------------------------------------------------------------------

    def accept_offers(
        self, location: TaskManagerLocation, sequence: int, offers: tuple[SlotOffer, ...]
    ) -> tuple[AllocationId, ...]:
        """Takes the offered slots that the job waits for. Returns those of the offers that the job
        has."""
        accepted, assigned = [], []
        for offer in offers:
            taken, slot = self.pool.accept_offer(
                location.resource_id, offer.allocation_id, sequence
            )
            if taken:
                accepted.append(offer.allocation_id)
            if slot is not None:
                self._due.pop(offer.allocation_id, None)
                assigned.append(SlotAssigned(slot.request_id, offer.allocation_id, location))
        self._feed(*assigned)
        # the scheduler may have given some back already
        return tuple(
            allocation_id
            for allocation_id in accepted
            if self.pool.get_slot(allocation_id) is not None
        )

    def release_slot(self, command: ReleaseSlot) -> None:
        """Gives the slot back; the next ``send_collected`` tells its TaskExecutor."""
        slot = self.pool.remove_slot(command.allocation_id)
        if slot is not None:
            self._released.setdefault(slot.resource_id, []).append(command.allocation_id)

    def fail_slot(self, resource_id: ResourceId, allocation_id: AllocationId, reason: str) -> None:
        """The TaskExecutor does not hold the slot any more."""
        slot = self.pool.get_slot(allocation_id)
        if slot is not None and slot.resource_id == resource_id:
            self.pool.remove_slot(allocation_id)
            self._feed(SlotLost(allocation_id, TaskExecutorLostError(f"{resource_id} {reason}")))

    def remove_slots_of(self, resource_id: ResourceId) -> list[AllocationId]:
        """Removes the slots of a lost TaskExecutor and returns their ids."""
        return [slot.allocation_id for slot in self.pool.remove_executor(resource_id)]

    def reconcile_slots(
        self, resource_id: ResourceId, sequence: int, held: Collection[AllocationId]
    ) -> None:
        """Compares with the slots that a TaskExecutor holds for the job: frees those the job does
        not know, and fails those that are lost."""
        lost, unwanted = self.pool.reconcile(resource_id, sequence, held)
        if unwanted:
            self._free_slots(resource_id, unwanted, "the job does not know these slots")
        for allocation_id in lost:
            self.fail_slot(resource_id, allocation_id, "does not hold the slot any more")

    def __repr__(self) -> str:
        return f"<SlotBook {self.pool!r}, {self.manager!r}>"
