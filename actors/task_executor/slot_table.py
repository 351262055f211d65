"""TaskSlotTable: what the slots of one TaskExecutor hold. It only decides; the TaskExecutor acts.

A slot is free, or held under an allocation id by one job: ALLOCATED (the JobMaster has not accepted
it yet), ACTIVE, or RELEASING (waits for its last task to end). A request that comes twice is
carried out once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flinkpy.core.errors import EngineError, FlinkpyError
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, JobId
from flinkpy.core.lifecycles import TASK_SLOT, StateMachine, TaskSlotState
from flinkpy.graph.deployment import SlotOffer, SlotStatus
from flinkpy.graph.resources import ResourceProfile


class SlotNotAvailableError(FlinkpyError):
    """The slot is held for another job or under another allocation, or does not exist."""


class TaskSlot:
    """A held slot."""

    __slots__ = ("allocation_id", "ended", "index", "job_id", "lifecycle", "profile", "tasks")

    def __init__(
        self, index: int, profile: ResourceProfile, job_id: JobId, allocation_id: AllocationId
    ) -> None:
        self.index = index
        self.profile = profile
        self.job_id = job_id
        self.allocation_id = allocation_id
        self.lifecycle: StateMachine[TaskSlotState] = StateMachine(
            TASK_SLOT, f"slot {index}, allocation {allocation_id:.8}"
        )
        self.tasks: dict[ExecutionAttemptId, None] = {}  # in the order in which they came
        # so that a doubled submission does not run a task again
        self.ended: set[ExecutionAttemptId] = set()

    @property
    def state(self) -> TaskSlotState:
        return self.lifecycle.state

    def __repr__(self) -> str:
        return (
            f"<slot {self.index} {self.state.name} for job {self.job_id:.8}, allocation "
            f"{self.allocation_id:.8}, {len(self.tasks)} tasks>"
        )


@dataclass(frozen=True)
class SlotTableStatistics:
    slots: int
    allocated: int
    active: int
    releasing: int
    tasks: int


class TaskSlotTable:
    """The slots, created with the profile of each.

    >>> from flinkpy.graph.resources import ANY
    >>> table = TaskSlotTable([ANY]); table.allocate(0, JobId("job"), AllocationId("a")).state.name
    'ALLOCATED'
    """

    def __init__(self, profiles: Sequence[ResourceProfile]) -> None:
        self._profiles = tuple(profiles)
        self._held: dict[int, TaskSlot] = {}
        self._by_allocation: dict[AllocationId, TaskSlot] = {}
        self._by_job: dict[JobId, dict[AllocationId, TaskSlot]] = {}
        self._of_task: dict[ExecutionAttemptId, TaskSlot] = {}

    # -- slots -------------------------------------------------------------------------------------

    def allocate(self, index: int, job_id: JobId, allocation_id: AllocationId) -> TaskSlot:
        """Allocates the slot. Raises SlotNotAvailableError when it is held already, or the
        allocation is in another slot."""
        if not 0 <= index < len(self._profiles):
            raise SlotNotAvailableError(f"there is no slot {index}, only {len(self._profiles)}")
        known = self._by_allocation.get(allocation_id)
        occupant = self._held.get(index)
        if known is not None and known is occupant and known.state is not TaskSlotState.RELEASING:
            return known
        if known is not None or occupant is not None:
            raise SlotNotAvailableError(
                f"slot {index} cannot be promised under {allocation_id:.8}: there is "
                f"{known or occupant!r}"
            )
        slot = TaskSlot(index, self._profiles[index], job_id, allocation_id)
        self._held[index] = self._by_allocation[allocation_id] = slot
        self._by_job.setdefault(job_id, {})[allocation_id] = slot
        return slot

    def activate(self, allocation_id: AllocationId) -> bool:
        """The JobMaster has accepted the slot. Returns False when the slot is not held any more."""
        slot = self._by_allocation.get(allocation_id)
        if slot is None or slot.state is TaskSlotState.RELEASING:
            return False
        if slot.state is TaskSlotState.ALLOCATED:
            slot.lifecycle.move(TaskSlotState.ACTIVE)
        return True

    def free_slot(self, allocation_id: AllocationId, why: str) -> tuple[ExecutionAttemptId, ...]:
        """Frees the slot: at once when nothing runs in it, else when its last task ends. Returns
        the tasks that must be ended now."""
        slot = self._by_allocation.get(allocation_id)
        if slot is None or slot.state is TaskSlotState.RELEASING:
            return ()
        slot.lifecycle.move(TaskSlotState.RELEASING, why)
        if not slot.tasks:
            self._vacate(slot)
        return tuple(slot.tasks)

    def _vacate(self, slot: TaskSlot) -> None:
        del self._held[slot.index]
        del self._by_allocation[slot.allocation_id]
        of_job = self._by_job[slot.job_id]
        del of_job[slot.allocation_id]
        if not of_job:
            del self._by_job[slot.job_id]

    # -- tasks -------------------------------------------------------------------------------------

    def add_task(self, attempt_id: ExecutionAttemptId, allocation_id: AllocationId) -> TaskSlot:
        """Adds the task to that slot. Raises SlotNotAvailableError when the slot is not held for
        the task's job (any more).

        A slot still ALLOCATED becomes ACTIVE: a submission proves that the JobMaster accepted it,
        even if its answer is late or lost."""
        slot = self._by_allocation.get(allocation_id)
        if slot is None or slot.job_id != attempt_id.job_id:
            raise SlotNotAvailableError(
                f"allocation {allocation_id:.8} is not held here for job {attempt_id.job_id:.8}"
            )
        if not self.activate(allocation_id):
            raise SlotNotAvailableError(f"allocation {allocation_id:.8} is being released")
        slot.tasks[attempt_id] = None
        self._of_task[attempt_id] = slot
        return slot

    def has_seen(self, attempt_id: ExecutionAttemptId, allocation_id: AllocationId) -> bool:
        """Whether the task runs, or ran, in that slot."""
        slot = self._by_allocation.get(allocation_id)
        return slot is not None and (attempt_id in slot.tasks or attempt_id in slot.ended)

    def remove_task(self, attempt_id: ExecutionAttemptId) -> bool:
        """Removes a task that has ended. Returns True when this freed its slot."""
        slot = self._of_task.pop(attempt_id, None)
        if slot is None:
            return False
        slot.tasks.pop(attempt_id, None)
        slot.ended.add(attempt_id)
        if slot.state is TaskSlotState.RELEASING and not slot.tasks:
            self._vacate(slot)
            return True
        return False

    # -- inspection --------------------------------------------------------------------------------

    def runs(self, attempt_id: ExecutionAttemptId) -> bool:
        return attempt_id in self._of_task

    def may_send_events(self, attempt_id: ExecutionAttemptId) -> bool:
        """Whether the task's slot is active. A task in a slot being released belongs to a
        connection that may be gone."""
        slot = self._of_task.get(attempt_id)
        return slot is not None and slot.state is TaskSlotState.ACTIVE

    def get_slot(self, allocation_id: AllocationId) -> TaskSlot | None:
        return self._by_allocation.get(allocation_id)

    def of_job(self, job_id: JobId) -> tuple[TaskSlot, ...]:
        return tuple(self._by_job.get(job_id, {}).values())

    def jobs(self) -> tuple[JobId, ...]:
        return tuple(self._by_job)

    def tasks_of_job(self, job_id: JobId) -> Iterator[ExecutionAttemptId]:
        return (
            attempt_id
            for slot in self._by_job.get(job_id, {}).values()
            for attempt_id in slot.tasks
        )

    def count_tasks(self, job_id: JobId) -> int:
        return sum(len(slot.tasks) for slot in self._by_job.get(job_id, {}).values())

    def offers(self, job_id: JobId) -> tuple[SlotOffer, ...]:
        """Returns the job's slots that its JobMaster has not accepted yet."""
        return tuple(
            SlotOffer(slot.allocation_id, slot.index, slot.profile)
            for slot in self.of_job(job_id)
            if slot.state is TaskSlotState.ALLOCATED
        )

    def report(self) -> tuple[SlotStatus, ...]:
        """Returns the status of each slot."""
        return tuple(
            SlotStatus(index, profile, held.job_id, held.allocation_id)
            if (held := self._held.get(index)) is not None
            else SlotStatus(index, profile)
            for index, profile in enumerate(self._profiles)
        )

    def statistics(self) -> SlotTableStatistics:
        states = [slot.state for slot in self._held.values()]
        allocated, active, releasing = map(states.count, TaskSlotState)
        return SlotTableStatistics(
            len(self._profiles), allocated, active, releasing, len(self._of_task)
        )

    def check_invariants(self) -> None:
        """Raises EngineError when the tables contradict each other."""
        for index, slot in self._held.items():
            if slot.index != index or self._by_allocation.get(slot.allocation_id) is not slot:
                raise EngineError(f"{slot!r} stands in the wrong place")
            if self._by_job.get(slot.job_id, {}).get(slot.allocation_id) is not slot:
                raise EngineError(f"{slot!r} is not among its job's")
            if any(
                attempt_id.job_id != slot.job_id or self._of_task.get(attempt_id) is not slot
                for attempt_id in slot.tasks
            ):
                raise EngineError(f"{slot!r} runs a task that is not its own")
            if slot.state is TaskSlotState.RELEASING and not slot.tasks:
                raise EngineError(f"{slot!r} should be free")
        if len(self._held) != len(self._by_allocation) or len(self._held) != sum(
            map(len, self._by_job.values())
        ):
            raise EngineError(f"{self!r}: slots are held under more than one allocation")
        if len(self._of_task) != sum(len(slot.tasks) for slot in self._held.values()):
            raise EngineError(f"{self!r}: tasks without a slot")

    def __repr__(self) -> str:
        return f"<TaskSlotTable {self.statistics()}>"
