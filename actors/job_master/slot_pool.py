"""SlotPool: the slots that one job waits for and those it has. It only decides; the JobMaster acts.

A request has two names: the scheduler's request id, and the allocation id under which the
ResourceManager and the TaskExecutors know the slot. A TaskExecutor's offer is matched by allocation
id, in O(1); an offer that was not asked for is rejected."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from flinkpy.core.errors import EngineError
from flinkpy.core.ids import AllocationId, ResourceId, SlotRequestId
from flinkpy.graph.resources import ResourceProfile


@dataclass(frozen=True)
class PendingRequest:
    """A slot waited for."""

    request_id: SlotRequestId
    allocation_id: AllocationId
    profile: ResourceProfile
    preferred: tuple[ResourceId, ...]
    since: float


@dataclass(frozen=True)
class PooledSlot:
    """A slot the job has. ``sequence`` is the TaskExecutor's counter when it offered the slot: an
    older report cannot say that it is lost."""

    allocation_id: AllocationId
    request_id: SlotRequestId
    resource_id: ResourceId
    sequence: int


@dataclass(frozen=True)
class SlotPoolStatistics:
    pending: int
    allocated: int
    executors: int


class SlotPool:
    """The slots of one job."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        # oldest first, and all with the same timeout
        self._pending: OrderedDict[AllocationId, PendingRequest] = OrderedDict()
        self._by_request: dict[SlotRequestId, AllocationId] = {}
        self._slots: dict[AllocationId, PooledSlot] = {}
        self._of_executor: dict[ResourceId, dict[AllocationId, PooledSlot]] = {}

    # -- requests ----------------------------------------------------------------------------------

    def add_request(
        self,
        request_id: SlotRequestId,
        allocation_id: AllocationId,
        profile: ResourceProfile,
        preferred: tuple[ResourceId, ...],
        now: float,
    ) -> PendingRequest:
        """Adds a request for a slot; its timeout begins."""
        request = PendingRequest(request_id, allocation_id, profile, preferred, now)
        self._pending[allocation_id] = request
        self._by_request[request_id] = allocation_id
        return request

    def cancel_request(self, request_id: SlotRequestId) -> AllocationId | None:
        """Removes a request that the job does not need any more. Returns its allocation id, or None
        when it was not open."""
        allocation_id = self._by_request.get(request_id)
        if allocation_id is None or self._pending.pop(allocation_id, None) is None:
            return None
        del self._by_request[request_id]
        return allocation_id

    def fail_request(self, allocation_id: AllocationId) -> PendingRequest | None:
        """Removes a request whose slot will not come. Returns the request, or None when it was not
        open."""
        request = self._pending.pop(allocation_id, None)
        if request is not None:
            del self._by_request[request.request_id]
        return request

    def expire_requests(self, now: float) -> list[PendingRequest]:
        """Removes the requests that have timed out and returns them."""
        expired = []
        while (
            self._pending
            and (request := next(iter(self._pending.values()))).since + self._timeout_s <= now
        ):
            self.fail_request(request.allocation_id)
            expired.append(request)
        return expired

    def renew_requests(self, now: float) -> None:
        """Restarts the timeout of every open request."""
        for allocation_id, request in self._pending.items():
            self._pending[allocation_id] = replace(request, since=now)

    def get_pending(self, allocation_id: AllocationId) -> PendingRequest | None:
        return self._pending.get(allocation_id)

    def pending_ids(self) -> tuple[AllocationId, ...]:
        return tuple(self._pending)

    # -- slots -------------------------------------------------------------------------------------

    def accept_offer(
        self, resource_id: ResourceId, allocation_id: AllocationId, sequence: int
    ) -> tuple[bool, PooledSlot | None]:
        """Returns whether the offer is accepted, and the slot if it is new (a repeated offer is
        accepted again)."""
        known = self._slots.get(allocation_id)
        if known is not None:
            return known.resource_id == resource_id, None
        request = self._pending.pop(allocation_id, None)
        if request is None:
            return False, None
        slot = PooledSlot(allocation_id, request.request_id, resource_id, sequence)
        self._slots[allocation_id] = slot
        self._of_executor.setdefault(resource_id, {})[allocation_id] = slot
        return True, slot

    def remove_slot(self, allocation_id: AllocationId) -> PooledSlot | None:
        """Removes a slot that is given back or lost. Returns None when the job does not have it."""
        slot = self._slots.pop(allocation_id, None)
        if slot is None:
            return None
        del self._by_request[slot.request_id]
        of_executor = self._of_executor[slot.resource_id]
        del of_executor[allocation_id]
        if not of_executor:
            del self._of_executor[slot.resource_id]
        return slot

    def remove_executor(self, resource_id: ResourceId) -> list[PooledSlot]:
        """Removes all slots of a lost TaskExecutor and returns them."""
        return [
            slot
            for allocation_id in list(self._of_executor.get(resource_id, ()))
            if (slot := self.remove_slot(allocation_id)) is not None
        ]

    def get_slot(self, allocation_id: AllocationId) -> PooledSlot | None:
        return self._slots.get(allocation_id)

    def reconcile(
        self, resource_id: ResourceId, sequence: int, held: Collection[AllocationId]
    ) -> tuple[list[AllocationId], list[AllocationId]]:
        """Compares with the slots that a TaskExecutor holds for the job. Returns those it has lost,
        and those it should take back."""
        mine = self._of_executor.get(resource_id, {})
        lost = [
            slot.allocation_id
            for slot in mine.values()
            if slot.sequence <= sequence and slot.allocation_id not in held
        ]
        unwanted = [
            allocation_id
            for allocation_id in held
            if allocation_id not in mine and allocation_id not in self._pending
        ]
        return lost, unwanted

    # -- inspection --------------------------------------------------------------------------------

    def slots(self) -> Iterable[PooledSlot]:
        return self._slots.values()

    def statistics(self) -> SlotPoolStatistics:
        return SlotPoolStatistics(len(self._pending), len(self._slots), len(self._of_executor))

    def check_invariants(self) -> None:
        """Raises EngineError when the tables contradict each other."""
        if self._pending.keys() & self._slots.keys():
            raise EngineError(
                f"{self!r}: slots both waited for and there: "
                f"{self._pending.keys() & self._slots.keys()}"
            )
        known = self._pending.keys() | self._slots.keys()
        if set(self._by_request.values()) != known or len(self._by_request) != len(known):
            raise EngineError(f"{self!r}: request ids and allocations disagree")
        if sum(map(len, self._of_executor.values())) != len(self._slots):
            raise EngineError(f"{self!r}: slots that belong to no TaskExecutor, or to two")

    def __repr__(self) -> str:
        return f"<SlotPool {self.statistics()}>"
