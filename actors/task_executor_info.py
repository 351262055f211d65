"""What a TaskExecutor looks like to those who watch the cluster. Frozen values that travel; times
are milliseconds since 1970."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flinkpy.core.ids import ResourceId
from flinkpy.core.options.memory_sizes import MANAGED
from flinkpy.core.options.process_memory import WorkerMemory, memory_of_machine
from flinkpy.core.options.schema import read
from flinkpy.graph.deployment import SlotStatus
from flinkpy.runtime.memory.machine_memory import machine_memory

_ON_SMALL_MACHINES = 128 << 20  # bytes that a slot manages, if nothing says how many


@dataclass(frozen=True)
class ProcessDescription:
    """What does not change while a process lives. ``inspector`` is the address of its
    ProcessInspector; empty if it has none."""

    inspector: str = ""
    host: str = ""
    pid: int = 0
    cpu_cores: int = 0  # that the process may use
    physical_memory: int = 0  # bytes, of the machine or its container
    memory: WorkerMemory = field(default_factory=WorkerMemory)

    @staticmethod
    def of_this_process(inspector: str, memory: WorkerMemory | None = None) -> ProcessDescription:
        """``memory`` is that of a TaskExecutor; without, that of one with a slot and no limit."""
        return ProcessDescription(
            inspector,
            socket.gethostname(),
            os.getpid(),
            _cores(),
            machine_memory(),
            memory or memory_here({}, 1),
        )


@dataclass(frozen=True)
class TaskExecutorInfo:
    """A TaskExecutor as the ResourceManager sees it. A slot that it has promised to a job counts as
    that job's."""

    resource_id: ResourceId
    address: str
    host: str
    data_port: int
    process: ProcessDescription
    slots: tuple[SlotStatus, ...]
    registered_ms: int
    heartbeat_ms: int  # when it was last heard

    @property
    def free_slots(self) -> int:
        return sum(slot.job_id is None and slot.allocation_id is None for slot in self.slots)


def memory_here(values: Mapping[str, Any], slots: int) -> WorkerMemory:
    """The parts of a TaskExecutor of this process with so many slots: as options say, or its share
    of the machine."""
    if WorkerMemory.is_given(values):
        return WorkerMemory.of(values)
    return memory_of_machine(machine_memory(), _cores(), slots, values)


def managed_memory(values: Mapping[str, Any], slots: int) -> int:
    """The bytes that a TaskExecutor of this process manages, with so many slots."""
    memory = memory_here(values, slots)
    if memory == WorkerMemory() and read(values, MANAGED) is None:
        return slots * _ON_SMALL_MACHINES
    return memory.managed


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0
