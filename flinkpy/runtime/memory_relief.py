"""What a worker does about its memory: it knows the owners of it, has them give back what they can,
lets sources rest, and fails a task before the system kills all of them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

from flinkpy.core.clock import Clock
from flinkpy.core.errors import MemoryLimitExceededError
from flinkpy.core.ids import ExecutionAttemptId, ResourceId
from flinkpy.core.memory import give_back_freed
from flinkpy.core.options.memory_sizes import MANAGED, NETWORK_MAX, TASK_OFF_HEAP
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import COLUMNS_MEMORY, STATE_BACKEND, StateBackendKind
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.metrics.definitions import STATE_BYTES
from flinkpy.runtime.loop.loop_port import Loop
from flinkpy.runtime.memory.memory_levels import MemoryAction, MemoryLevel, MemoryPressure
from flinkpy.runtime.memory.memory_report import MemoryReport, OwnedMemory, shown
from flinkpy.runtime.memory.memory_watch import MemoryWatch
from flinkpy.runtime.memory.slots_memory import SlotsMemory, WorkerSlots
from flinkpy.runtime.task import Task

LOG = engine_logger(__name__)

_MEMTABLES = "rocksdb.cur-size-all-mem-tables"
ASKED_EACH_S = 10.0  # owners, while there is room
ASKED_EACH_S_WHEN_SHORT = 1.0


class MemoryOwners:
    """Who has the memory of a worker. ``tasks`` are those that run now, ``network_bytes`` what is
    on its way. Any thread may ask; tasks tell of their state in their own threads, so that is as
    they last told."""

    def __init__(
        self,
        tasks: Callable[[], list[Task]],
        memory: SlotsMemory,
        network_bytes: Callable[[], int],
        clock: Clock,
    ) -> None:
        self.tasks = tasks
        self.memory = memory
        self._network_bytes = network_bytes
        self._clock = clock

    def ask(self) -> None:
        """Has all operators tell of their state, when their tasks come to it."""
        for task in self.tasks():
            if task.measures is not None:
                task.home.run(task.measures.read_operators)

    def report(self, used: int) -> MemoryReport:
        """Where the process has so many bytes."""
        owners = [*self._of_process()]
        for task in self.tasks():
            owners += owners_of(task)
        limit = self.memory.limit
        return MemoryReport(
            self._clock.time_ms(),
            used,
            None if limit is None else limit.size,
            self.memory.reserved,
            self.memory.total,
            tuple(sorted((each for each in owners if each.size), key=_size, reverse=True)),
            self.memory.sources_rest.is_on,
            "" if limit is None else limit.given_by,
        )

    def values(self) -> dict[str, float]:
        """The same as metrics of the process."""
        return {
            "Status.Flink.Memory.Managed.Used": self.memory.reserved,
            "Status.Flink.Memory.Managed.Total": self.memory.total,
            "Status.Python.Memory.Limit": self.memory.limit.size if self.memory.limit else 0,
            "Status.Python.Memory.Arrow": arrow_bytes(),
            "Status.Python.Memory.RocksDB": rocksdb_bytes(),
            "Status.Python.Memory.State": sum(
                values.get(STATE_BYTES, 0)
                for task in self.tasks()
                if task.measures is not None
                for _, values in task.measures.last_told()
            ),
        }

    def _of_process(self) -> list[OwnedMemory]:
        return [
            OwnedMemory("network", "batches on their way", self._network_bytes(), NETWORK_MAX.key),
            OwnedMemory(
                "Arrow",
                "columns, also those of the state of operators",
                arrow_bytes(),
                TASK_OFF_HEAP.key,
            ),
            OwnedMemory("RocksDB", "cache and buffers", rocksdb_bytes(), MANAGED.key),
        ]


def owners_of(task: Task) -> list[OwnedMemory]:
    """What the operators of a task have."""
    found: list[OwnedMemory] = []
    values, subtask = task.descriptor.configuration, _place(task)
    is_on_disk = read(values, STATE_BACKEND) is StateBackendKind.ROCKSDB
    for name, told in [] if task.measures is None else task.measures.last_told():
        option = COLUMNS_MEMORY.key if is_on_disk else f"{STATE_BACKEND.key}: rocksdb"
        found += [
            OwnedMemory(f"{name} {subtask}", "state in memory", _int(told, STATE_BYTES), option),
            OwnedMemory(
                f"{name} {subtask}", "written for RocksDB", _int(told, _MEMTABLES), MANAGED.key
            ),
        ]
    for name, kind, size in task.memory.reserved():
        # what is lent to RocksDB counts there
        if kind.name != "STATE_BACKEND":
            found.append(OwnedMemory(f"{name} {subtask}", "reserved", size, MANAGED.key))
    return found


class MemoryRelief:
    """Implements ``flinkpy.runtime.memory.memory_watch.RelievesMemory`` for the worker of that
    name. ``on_change`` is called, in the thread of the watch, when sources begin or end to rest."""

    def __init__(self, resource_id: ResourceId, owners: MemoryOwners) -> None:
        self._resource_id = resource_id
        self._owners = owners
        self._asked_s = float("-inf")
        self._before: dict[ExecutionAttemptId, int] = {}  # bytes, while there was room
        self.on_change: Callable[[], None] = _nothing

    def looked(self, now_s: float, level: MemoryLevel) -> None:
        is_free = level is MemoryLevel.FREE
        if now_s - self._asked_s < (ASKED_EACH_S if is_free else ASKED_EACH_S_WHEN_SHORT):
            return
        self._asked_s = now_s
        held = {task.attempt_id: _held_by(task) for task in self._owners.tasks()}
        self._before = {
            attempt_id: size if is_free else self._before.get(attempt_id, 0)
            for attempt_id, size in held.items()
        }
        self._owners.ask()

    def relieve(self, action: MemoryAction, used: int) -> None:
        if action is MemoryAction.SHRINK:
            self._shrink()
        elif action is MemoryAction.COLLECT_GARBAGE:
            gc.collect()
            self._shrink()
        elif action is MemoryAction.GROW:
            _be_short(False)
        elif action is MemoryAction.REST_SOURCES:
            self._owners.memory.sources_rest.is_on = True
            LOG.warning("%s: sources rest; %s", self._name, self._owners.report(used).summary())
            self.on_change()
        elif action is MemoryAction.WAKE_SOURCES:
            self._wake(used)
        else:
            self._fail_largest(used)

    @property
    def _name(self) -> str:
        return f"the memory of {self._resource_id} is nearly used up"

    def _shrink(self) -> None:
        _be_short(True)
        for task in self._owners.tasks():
            task.home.run(task.free_memory)
        give_back_freed()

    def _wake(self, used: int) -> None:
        self._owners.memory.sources_rest.is_on = False
        for task in self._owners.tasks():
            task.home.run(task.end_rest)
        LOG.warning(
            "%s has memory again, and sources read on: %s",
            self._resource_id,
            self._owners.report(used).summary(),
        )
        self.on_change()

    def _fail_largest(self, used: int) -> None:
        tasks = self._owners.tasks()
        if not tasks:
            return
        grown = {task: _held_by(task) - self._before.get(task.attempt_id, 0) for task in tasks}
        task = max(tasks, key=lambda each: (grown[each], _held_by(each)))
        error = MemoryLimitExceededError(
            limit_exceeded(
                str(self._resource_id),
                task.descriptor.subtask_name,
                grown[task],
                self._owners.report(used),
            )
        )
        LOG.error("%s", error)
        task.home.run(lambda: task.fail(error))


class WatchedMemory:
    """The memory of a worker of that name, which is watched in the thread of ``loop`` if it is
    limited. ``measure`` gives the bytes that the process has."""

    def __init__(
        self,
        resource_id: ResourceId,
        owners: MemoryOwners,
        slots: WorkerSlots,
        loop: Loop,
        measure: Callable[[], int],
    ) -> None:
        self.owners = owners
        self.relief = MemoryRelief(resource_id, owners)
        self._measure = measure
        self._watch: MemoryWatch | None = None
        if slots.limit is not None:
            pressure = MemoryPressure(slots.limit.size, slots.rest_s)
            self._watch = MemoryWatch(loop, measure, pressure, self.relief)

    def start(self) -> None:
        if self._watch is not None:
            self._watch.start()

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.stop()

    def report(self) -> MemoryReport | None:
        """Who has the memory now; None where the system does not tell how much there is."""
        used = self._measure()
        return self.owners.report(used) if used else None


def limit_exceeded(worker: str, task: str, grown: int, report: MemoryReport) -> str:
    """The message of a task that fails so that its worker is not killed."""
    by = f", which grew by {shown(grown)}," if grown > 0 else ""
    lines = [
        f"{worker} has {report.share:.0%} of the {shown(report.limit or 0)} that "
        f"{report.limited_by} gives it, so {task}{by} ends before the system kills the whole "
        f"process. Raise {report.limited_by}, use more workers, or see what has the memory:"
    ]
    lines += [f"  {each}" for each in report.largest()]
    if len(lines) == 1:
        lines.append("  objects of the program's functions; nothing of the engine has told of any")
    return "\n".join(lines)


def arrow_bytes() -> int:
    """What Arrow's pool has given out; 0 where Arrow is not loaded."""
    arrow = sys.modules.get("pyarrow")
    return 0 if arrow is None else int(arrow.total_allocated_bytes())


def rocksdb_bytes() -> int:
    """What the databases of the process share, as far as it is used."""
    module = sys.modules.get("flinkpy.state.rocksdb.shared_memory")
    shared = None if module is None else module.memory_of_databases()
    return 0 if shared is None else int(shared.cache.get_usage())


def _be_short(is_short: bool) -> None:
    module = sys.modules.get("flinkpy.state.rocksdb.shared_memory")
    shared = None if module is None else module.memory_of_databases()
    if shared is not None:
        shared.be_short(is_short)


def _held_by(task: Task) -> int:
    return sum(each.size for each in owners_of(task))


def _place(task: Task) -> str:
    descriptor = task.descriptor
    return f"({task.attempt_id.subtask_index + 1}/{descriptor.parallelism})"


def _int(values: Any, name: str) -> int:
    return int(values.get(name, 0))


def _size(owned: OwnedMemory) -> int:
    return owned.size


def _nothing() -> None: ...
