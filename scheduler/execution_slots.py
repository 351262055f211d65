"""Slots of the job: one per execution slot sharing group, which holds subtask i of every vertex of
a slot sharing group.

So a job needs as many slots as its widest vertex per sharing group, a record crosses subtasks of
equal index within one process, and co-located vertices (which must be in one sharing group) share a
slot by construction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from flinkpy.core.ids import AllocationId, IdFactory, ResourceId, SlotRequestId
from flinkpy.graph.resources import ResourceProfile
from flinkpy.scheduler.execution_model import Bulk, Execution, ExecutionVertex, SharedSlot, SlotKey
from flinkpy.scheduler.protocol import (
    CancelSlotRequest,
    Command,
    ReleaseSlot,
    RequestSlot,
    SlotAssigned,
)


class SlotTable:
    """The job's slots. Writes what it wants done to ``commands``; ``release_idle_slots`` gives back
    what is not used."""

    def __init__(self, ids: IdFactory, commands: list[Command]) -> None:
        self._ids, self._commands = ids, commands
        self.by_key: dict[SlotKey, SharedSlot] = {}
        self.by_request: dict[SlotRequestId, SharedSlot] = {}  # not answered yet
        self.by_allocation: dict[AllocationId, SharedSlot] = {}
        self.by_resource: dict[ResourceId, dict[AllocationId, SharedSlot]] = {}
        self.retained: Counter[SlotKey] = Counter()  # how many restarting subtasks keep the slot
        # keys that may have become idle, and what invariants look at
        self.changed: dict[SlotKey, None] = {}
        self._last_place: dict[SlotKey, ResourceId] = {}
        self._complete: list[Bulk] = []

    def place_bulk(self, vertices: Iterable[ExecutionVertex]) -> None:
        """Puts the attempts into their slots, as one bulk; a slot that is not there is requested,
        once."""
        bulk = Bulk()
        for vertex in vertices:
            self._place(vertex.execution, bulk)
        if not bulk.missing:
            self._complete.append(bulk)

    def take_complete_bulks(self) -> list[Execution]:
        """The attempts whose bulks have all slots since this was last asked; some may have ended
        meanwhile."""
        executions = [execution for bulk in self._complete for execution in bulk.executions]
        self._complete.clear()
        return executions

    def leave_slot(self, execution: Execution) -> None:
        """The attempt ended and does not need its slot any more."""
        slot = execution.slot
        if slot is not None:
            execution.slot = None
            slot.users.pop(execution, None)
            self.changed[slot.key] = None

    def slot_assigned(self, event: SlotAssigned) -> None:
        """A slot came. It is given back when its request is not open any more."""
        allocation_id, location = event.allocation_id, event.location
        slot = self.by_request.pop(event.request_id, None)
        if slot is None:
            if allocation_id not in self.by_allocation:  # else the same answer came twice
                self._commands.append(ReleaseSlot(allocation_id))
            return
        slot.allocation_id, slot.location = allocation_id, location
        self.by_allocation[allocation_id] = slot
        self.by_resource.setdefault(location.resource_id, {})[allocation_id] = slot
        self._last_place[slot.key] = location.resource_id
        self.changed[slot.key] = None
        self._stop_waiting(slot)

    def drop_request(self, request_id: SlotRequestId) -> SharedSlot | None:
        """The request failed: forgets the slot, whose users must be failed by the caller."""
        slot = self.by_request.get(request_id)
        if slot is not None:
            self._drop_slot(slot)
        return slot

    def drop_allocation(self, allocation_id: AllocationId) -> SharedSlot | None:
        """The slot is lost: forgets it, as above. It is not asked for at the same place again."""
        slot = self.by_allocation.get(allocation_id)
        if slot is not None:
            self._drop_slot(slot)
            self._last_place.pop(slot.key, None)
        return slot

    def replace_slot(self, lost: SharedSlot) -> None:
        """Asks at once for a lost slot that a restart is going to need: a worker may have to start,
        and does so during the restart's pause."""
        if self.retained[lost.key] and lost.key not in self.by_key:
            self._request_slot(lost.key, lost.profile)

    def release_idle_slots(self) -> None:
        """Gives back the slots that became idle and that no restart retains."""
        for key in self.changed:
            slot = self.by_key.get(key)
            if slot is None or slot.users or self.retained[key]:
                continue
            self._drop_slot(slot)
            if slot.allocation_id is None:
                self._commands.append(CancelSlotRequest(slot.request_id))
            else:
                self._commands.append(ReleaseSlot(slot.allocation_id))

    def retain_slot(self, vertex: ExecutionVertex) -> None:
        """Keeps the slot of a subtask that is going to restart, although it becomes idle."""
        self.retained[key_of(vertex)] += 1

    def stop_retaining_slot(self, vertex: ExecutionVertex) -> None:
        key = key_of(vertex)
        self.retained[key] -= 1
        if not self.retained[key]:
            del self.retained[key]
        self.changed[key] = None

    def _place(self, execution: Execution, bulk: Bulk) -> None:
        key = key_of(execution.vertex)
        slot = self.by_key.get(key) or self._request_slot(
            key, execution.vertex.job_vertex.vertex.resources
        )
        slot.users[execution] = None
        execution.slot = slot
        bulk.executions.append(execution)
        if slot.location is None and slot not in bulk.missing:
            bulk.missing.add(slot)
            slot.waiting.append(bulk)
        self.changed[key] = None

    def _request_slot(self, key: SlotKey, profile: ResourceProfile) -> SharedSlot:
        slot = SharedSlot(key, self._ids.slot_request_id(), profile)
        self.by_key[key] = self.by_request[slot.request_id] = slot
        last = self._last_place.get(key)
        self._commands.append(
            RequestSlot(slot.request_id, profile, () if last is None else (last,))
        )
        return slot

    def _drop_slot(self, slot: SharedSlot) -> None:
        del self.by_key[slot.key]
        self.by_request.pop(slot.request_id, None)
        self._stop_waiting(slot)
        if slot.allocation_id is not None and slot.location is not None:
            del self.by_allocation[slot.allocation_id]
            there = self.by_resource[slot.location.resource_id]
            del there[slot.allocation_id]
            if not there:
                del self.by_resource[slot.location.resource_id]

    def _stop_waiting(self, slot: SharedSlot) -> None:
        for bulk in slot.waiting:
            bulk.missing.discard(slot)
            if not bulk.missing:
                self._complete.append(bulk)
        slot.waiting = []


def key_of(vertex: ExecutionVertex) -> SlotKey:
    """The execution slot sharing group of a subtask."""
    return SlotKey(vertex.job_vertex.vertex.slot_sharing_group, vertex.index)
