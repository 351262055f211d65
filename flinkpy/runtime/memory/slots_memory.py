"""The managed memory of a TaskExecutor, divided among its slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from flinkpy.core.options.memory_sizes import PROCESS, MemoryKind, consumer_weights
from flinkpy.graph.resources import ManagedMemoryUse
from flinkpy.runtime.memory.memory_manager import MemoryManager
from flinkpy.runtime.memory.task_memory import SlotMemory, SourcesRest

CONTAINER = "the container's memory limit"


@dataclass(frozen=True)
class ProcessLimit:
    """How large a worker's process may become, and what says so: an option, or its container."""

    size: int
    given_by: str = PROCESS.key

    @staticmethod
    def least(process: int | None, container: int | None) -> ProcessLimit | None:
        """The lesser of what options and the container allow; None where neither says anything.
        Beyond its container the system would kill the process, whatever options say."""
        if container is not None and (process is None or container < process):
            return ProcessLimit(container, CONTAINER)
        return None if process is None else ProcessLimit(process)


@dataclass(frozen=True)
class WorkerSlots:
    """How many slots a TaskExecutor has, and the managed memory that they divide. With
    ``memory_by_job`` there are as many as any job may need, so each job divides it by those that it
    has. ``limit`` is that of the process, if it has one, and ``rest_s`` for how long sources may
    rest when it is nearly used up."""

    count: int = 1
    managed: int = 1 << 60
    of_kinds: Mapping[MemoryKind, int] = field(default_factory=partial(consumer_weights, {}))
    memory_by_job: bool = False
    limit: ProcessLimit | None = None
    rest_s: float = 60.0


class SlotsMemory:
    """The memory managers of the slots, made as tasks come."""

    def __init__(self, slots: WorkerSlots) -> None:
        self._slots = slots
        self.limit = slots.limit
        self.sources_rest = SourcesRest()
        self._managers: dict[int, MemoryManager] = {}

    def of_slot(self, index: int, use: ManagedMemoryUse) -> SlotMemory:
        """The memory of that slot, for a task of such a job."""
        slots = use.slots if self._slots.memory_by_job else self._slots.count
        size = self._slots.managed // max(1, slots)
        manager = self._managers.get(index)
        if manager is None or manager.size != size:
            manager = self._managers[index] = MemoryManager(size)
        return SlotMemory(manager, self._slots.of_kinds, self.sources_rest)

    @property
    def total(self) -> int:
        return self._slots.managed

    @property
    def reserved(self) -> int:
        """By all operators together."""
        return sum(each.statistics().reserved for each in list(self._managers.values()))
