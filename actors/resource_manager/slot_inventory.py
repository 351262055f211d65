"""SlotInventory: the registered TaskExecutors and their slots, with tables of the free slots, of
the taken ones by job, and of idle TaskExecutors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from flinkpy.actors.gateways import SlotReport, SlotRequest
from flinkpy.actors.resource_manager.managed_slots import ManagedExecutor, ManagedSlot, TakenSlots
from flinkpy.core.errors import EngineError
from flinkpy.core.ids import AllocationId, JobId, ResourceId, SlotId
from flinkpy.graph.resources import ResourceProfile


class SlotInventory:
    """Every change of a slot goes through here, so that the tables agree. A change costs O(1),
    whatever the number of slots."""

    def __init__(self) -> None:
        self.executors: dict[ResourceId, ManagedExecutor] = {}
        # a plain dict finds its first key in O(deleted ones)
        self.free: dict[ResourceProfile, OrderedDict[SlotId, ManagedSlot]] = {}
        self.taken = TakenSlots()
        self.size = 0
        self._allocations: dict[AllocationId, ManagedSlot] = {}
        self._idle: dict[ResourceId, float] = {}  # since when each one is idle, in this order

    # -- TaskExecutors -----------------------------------------------------------------------------

    def add_executor(self, resource_id: ResourceId, report: SlotReport) -> ManagedExecutor:
        """Adds a TaskExecutor. What its slots hold is not yet known."""
        executor = self.executors[resource_id] = ManagedExecutor(resource_id, report)
        self.size += len(executor.slots)
        return executor

    def remove_executor(self, resource_id: ResourceId) -> ManagedExecutor | None:
        """Removes a TaskExecutor and its free slots. For the others the caller calls
        ``clear_slot``."""
        executor = self.executors.pop(resource_id, None)
        self._idle.pop(resource_id, None)
        if executor is not None:
            self.size -= len(executor.slots)
            for slot in executor.slots.values():
                self._remove_free(slot)
        return executor

    def update_idle(self, executor: ManagedExecutor, now: float) -> None:
        """Notes when the TaskExecutor became idle, or that it is not."""
        if executor.is_idle:
            self._idle.setdefault(executor.resource_id, now)
        else:
            self._idle.pop(executor.resource_id, None)

    def pop_idle_since(self, time: float) -> list[tuple[ResourceId, float]]:
        """Returns the TaskExecutors that have been idle since ``time`` or longer, the longest
        first. Each is returned once per idle period."""
        found = []
        for resource_id, since in self._idle.items():
            if since > time:
                break
            found.append((resource_id, since))
        for resource_id, _ in found:
            del self._idle[resource_id]
        return found

    def find_idle_misfit(
        self, profile: ResourceProfile, may_stop: Callable[[ResourceId], bool]
    ) -> ResourceId | None:
        """Returns an idle TaskExecutor without any slot for a request of that profile."""
        for resource_id in self._idle:
            if may_stop(resource_id) and not any(
                profile.fits_in(slot.profile) for slot in self.executors[resource_id].slots.values()
            ):
                return resource_id
        return None

    # -- slots -------------------------------------------------------------------------------------

    def is_held(self, allocation_id: AllocationId) -> bool:
        """Whether a slot holds that allocation."""
        return allocation_id in self._allocations

    def find_free(self, request: SlotRequest) -> ManagedSlot | None:
        """Returns a free slot for the request: on a preferred TaskExecutor, else of exactly its
        profile, else any that is large enough."""
        for resource_id in request.preferred:
            executor = self.executors.get(resource_id)
            for slot in executor.free.values() if executor is not None else ():
                if request.profile.fits_in(slot.profile):
                    return slot
        exact = self.free.get(request.profile)
        if exact:
            return next(iter(exact.values()))
        for profile, slots in self.free.items():
            if request.profile.fits_in(profile):
                return next(iter(slots.values()))
        return None

    def count_free(self, profile: ResourceProfile) -> int:
        """How many free slots a request of that profile could have."""
        return sum(len(slots) for supply, slots in self.free.items() if profile.fits_in(supply))

    def reserve_slot(self, slot: ManagedSlot, request: SlotRequest) -> None:
        """Reserves the free slot for the request while its TaskExecutor is asked to allocate it."""
        self._remove_free(slot)
        slot.request = request
        self.taken.count_slot(request.job_id, slot.profile)
        slot.executor.pending += 1
        self._idle.pop(slot.slot_id.resource_id, None)

    def occupy_slot(
        self, slot: ManagedSlot, job_id: JobId | None, allocation_id: AllocationId
    ) -> None:
        """Marks a cleared slot as held under that allocation."""
        slot.job_id, slot.allocation_id = job_id, allocation_id
        if job_id is not None:
            self.taken.count_slot(job_id, slot.profile)
        self._allocations[allocation_id] = slot
        self._idle.pop(slot.slot_id.resource_id, None)

    def free_slot(self, slot: ManagedSlot) -> None:
        """Marks a cleared slot as free."""
        slot.executor.free[slot.slot_id.slot_index] = slot
        self.free.setdefault(slot.profile, OrderedDict())[slot.slot_id] = slot

    def doubt_slot(self, slot: ManagedSlot) -> None:
        """Marks the slot as unknown until its TaskExecutor reports again."""
        self.clear_slot(slot)
        slot.doubted = True
        slot.executor.doubted += 1

    def clear_slot(self, slot: ManagedSlot) -> None:
        """Forgets what the slot holds: it is neither free nor taken."""
        self._remove_free(slot)
        if slot.allocation_id is not None and self._allocations.get(slot.allocation_id) is slot:
            del self._allocations[slot.allocation_id]
        if slot.taken_by is not None:
            self.taken.uncount_slot(slot.taken_by, slot.profile)
        if slot.request is not None:
            slot.executor.pending -= 1
        if slot.doubted:
            slot.executor.doubted -= 1
        slot.job_id = slot.allocation_id = slot.request = None
        slot.doubted = False

    def _remove_free(self, slot: ManagedSlot) -> None:
        if slot.executor.free.pop(slot.slot_id.slot_index, None) is None:
            return
        same = self.free[slot.profile]
        del same[slot.slot_id]
        if not same:
            del self.free[slot.profile]

    # -- inspection --------------------------------------------------------------------------------

    def slots(self) -> Iterable[ManagedSlot]:
        return (slot for executor in self.executors.values() for slot in executor.slots.values())

    def check_invariants(self, may_stop: Callable[[ResourceId], bool]) -> None:
        """Raises EngineError when the tables contradict each other."""
        for executor in self.executors.values():
            executor.check_invariants()
            if executor.is_idle != (executor.resource_id in self._idle) and may_stop(
                executor.resource_id
            ):
                raise EngineError(
                    f"{executor!r} is {'' if executor.is_idle else 'not '}idle, the table of "
                    "idle ones says otherwise"
                )
        for slot in self.slots():
            if (slot.slot_id in self.free.get(slot.profile, ())) != slot.is_free:
                raise EngineError(f"{slot!r} and the table of free slots disagree")
        self.taken.check_invariants(self.slots())

    def __repr__(self) -> str:
        return (
            f"<SlotInventory: {len(self.executors)} executors, {self.size} slots, "
            f"{sum(map(len, self.free.values()))} free>"
        )
