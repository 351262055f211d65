"""How a JobMaster gets its slots: its pool, its connection to the ResourceManager, and requests repeated until they are served or given up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from flinkpy.actors.gateways import JobMasterHeartbeat, RegistrationResponse, SlotRequest
from flinkpy.actors.job_master.slot_pool import SlotPool
from flinkpy.actors.resource_manager.leader_connection import ResourceManagerConnection
from flinkpy.actors.rpc.delivery.courier import Courier
from flinkpy.actors.rpc.leadership import LeaderRetrievalService
from flinkpy.core.errors import FencingError, NotRegisteredError, RecipientUnreachableError, ResourceUnavailableError
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, ResourceId, SlotRequestId
from flinkpy.core.options.engine import SlotConfig
from flinkpy.graph.deployment import SlotOffer, TaskManagerLocation
from flinkpy.scheduler.protocol import RequestSlot, SlotAssigned, SlotRequestFailed

if TYPE_CHECKING:
    from flinkpy.actors.job_master.job_master import JobMaster


class SlotRequester:
    """All calls come from the JobMaster's main thread."""

    TICK = timedelta(seconds=5)

    def __init__(self, master: JobMaster, resource_manager: LeaderRetrievalService, config: SlotConfig, *, may_wait: bool = False) -> None:
        self._may_wait = may_wait
        self._master, self._config = master, config
        self.pool = SlotPool(config.request_timeout.total_seconds())
        self._due: dict[AllocationId, None] = {}  # requests the ResourceManager is to be told, for the first time or again
        self._closed = False
        self.manager = ResourceManagerConnection(
            master, resource_manager, master.rpc_config, lambda manager: manager.register_job_master(master.registration),
            lambda manager: manager.heartbeat_from_job_master(master.resource_id, JobMasterHeartbeat(self.pool.pending_ids())),
            lambda manager: self._ask_again(), self._refused)
        self._courier: Courier[tuple[SlotRequest, ...], dict[AllocationId, BaseException]] = Courier(
            master, master.retry_s, self._due_requests, self._send, self._answered, self._failed)

    # -- the ResourceManager -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.manager.start()
        self._tick()

    def close(self, reason: str) -> None:
        """The job needs nothing more."""
        if self._closed:
            return
        self._closed = True
        self._courier.close()
        if self.manager.gateway is not None:
            self.manager.gateway.disconnect_job_master(self._master.job_id, reason)
        self.manager.close()

    def _refused(self, response: RegistrationResponse) -> None:
        """It may change its mind; if it does not, the requests expire."""
        self._master.schedule_run_async(self._master.rpc_config.registration_max.total_seconds(), self.manager.register_again)

    # -- requests ----------------------------------------------------------------------------------------------------------

    def request(self, commands: Iterable[RequestSlot]) -> None:
        now = self._master.service.clock.monotonic()
        for command in commands:
            allocation_id = self._master.service.ids.allocation_id()
            self.pool.request(command.request_id, allocation_id, command.profile, command.preferred, now)
            self._due[allocation_id] = None
        if self._due:
            self._courier.kick()

    def cancel(self, request_id: SlotRequestId) -> None:
        allocation_id = self.pool.cancel(request_id)
        if allocation_id is not None and self._due.pop(allocation_id, self) is self and self.manager.gateway is not None:
            self.manager.gateway.cancel_slot_requests((allocation_id,))

    def _due_requests(self) -> tuple[SlotRequest, ...] | None:
        if self.manager.gateway is None:
            return None
        mine = self._master.registration
        waiting = (self.pool.get_pending(allocation_id) for allocation_id in self._due)
        return tuple(
            SlotRequest(mine.job_id, request.allocation_id, request.profile, mine.address, mine.token, request.preferred, self._may_wait)
            for request in waiting if request is not None
        ) or None

    def _send(self, requests: tuple[SlotRequest, ...]) -> Future[dict[AllocationId, BaseException]]:
        assert self.manager.gateway is not None
        return self.manager.gateway.request_slots(requests)

    def _answered(self, requests: tuple[SlotRequest, ...], refused: dict[AllocationId, BaseException]) -> None:
        for request in requests:
            self._due.pop(request.allocation_id, None)
        self.refused(refused)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, (NotRegisteredError, FencingError, RecipientUnreachableError)):
            self.manager.lose(str(error))

    def refused(self, errors: Mapping[AllocationId, BaseException]) -> None:
        """These slots will not come."""
        failed = [(request, error) for allocation_id, error in errors.items() if (request := self.pool.fail_request(allocation_id)) is not None]
        self._master.feed(*(SlotRequestFailed(request.request_id, error) for request, error in failed))

    def _ask_again(self) -> None:
        """Everything still waited for: a request, an allocation or an offer may have been lost on the way."""
        self._due = dict.fromkeys(self.pool.pending_ids())
        self._courier.kick()

    def _tick(self) -> None:
        if self._closed:
            return
        now = self._master.service.clock.monotonic()
        if self._may_wait and self.pool.statistics().allocated:
            self.pool.renew(now)  # the job goes on with the slots it has; the others' turn comes
        expired = self.pool.expire(now)
        waited = self._config.request_timeout.total_seconds()
        error = ResourceUnavailableError(
            f"{len(expired)} slots did not come within {waited:g} s (slot.request.timeout): lower the parallelism, or give the cluster more slots"
        )
        self._master.feed(*(SlotRequestFailed(request.request_id, error) for request in expired))
        if self.pool.pending_ids():
            self._ask_again()
        pause = min(self.TICK.total_seconds(), self._master.rpc_config.ask_timeout.total_seconds(), waited / 4)
        self._master.schedule_run_async(max(pause, 0.01), self._tick)

    # -- slots -------------------------------------------------------------------------------------------------------------

    def offered(
        self, location: TaskManagerLocation, sequence: int, offers: tuple[SlotOffer, ...],
    ) -> tuple[list[AllocationId], list[SlotAssigned]]:
        """The accepted ones, and what the scheduler should hear of those that are new."""
        accepted, assigned = [], []
        for offer in offers:
            taken, slot = self.pool.offer(location.resource_id, offer.allocation_id, sequence)
            if taken:
                accepted.append(offer.allocation_id)
            if slot is not None:
                self._due.pop(offer.allocation_id, None)
                assigned.append(SlotAssigned(slot.request_id, offer.allocation_id, location))
        return accepted, assigned

    def lose_executor(self, resource_id: ResourceId) -> list[AllocationId]:
        return [slot.allocation_id for slot in self.pool.remove_executor(resource_id)]
