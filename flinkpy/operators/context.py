"""What a task gives an operator in ``setup``: where it runs, its task's services, and the output
for its results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from flinkpy.core.clock import Clock
from flinkpy.core.elements import Batch, ControlElement
from flinkpy.core.ids import ExecutionAttemptId, OperatorId
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.state.operator_backend import OperatorStateBackend


class Output(ABC):
    """Where an operator's results go: the next operator of the chain, the network, or several of
    them."""

    @abstractmethod
    def emit(self, batch: Batch) -> None:
        """Passes a batch of the main output on. An empty batch is not passed on."""

    @abstractmethod
    def emit_side(self, tag_id: str, batch: Batch) -> None:
        """Passes a batch on to the consumers of that side output; drops it if there are none."""

    @abstractmethod
    def emit_control(self, element: ControlElement) -> None:
        """Passes a control element on to every consumer, after everything emitted before."""


@dataclass(frozen=True)
class TaskInfo:
    """Identifies the subtask and its job."""

    job_name: str
    task_name: str
    attempt_id: ExecutionAttemptId
    parallelism: int
    max_parallelism: int

    @property
    def subtask_index(self) -> int:
        return self.attempt_id.subtask_index

    @property
    def subtask_name(self) -> str:
        return (
            f"{self.task_name} "
            f"({self.subtask_index + 1}/{self.parallelism})#{self.attempt_id.attempt}"
        )


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class ProcessingTimeService(Protocol):
    """Processing time and its timers; callbacks run in the task's thread."""

    def now_ms(self) -> int: ...

    def call_later(self, delay_s: float, action: Callable[[], None]) -> TimerHandle: ...


class ManagedMemory(Protocol):
    """An operator's part of the managed memory of its slot. A reservation is a right to so many
    bytes: an operator reserves before it fills them, and does with less, or writes to disk, where
    it gets none. It has given back everything when it is closed."""

    def share_of(self, kind: MemoryKind) -> int:
        """The bytes that it can count on; 0 if its ``memory_weights`` have no such kind."""
        ...

    def reserve(self, size: int, kind: MemoryKind = MemoryKind.OPERATOR) -> bool:
        """Whether it may hold so many bytes more, as its share of that kind has room for them."""
        ...

    def release(self, size: int, kind: MemoryKind = MemoryKind.OPERATOR) -> None:
        """It holds so many bytes less."""
        ...

    @property
    def reserved(self) -> int:
        """The bytes that it has reserved, of all kinds. From any thread."""
        ...


class OwnMemory:
    """Implements ``ManagedMemory`` where there is no slot, as in harnesses: so many bytes of each
    kind."""

    def __init__(self, size: int = 128 << 20) -> None:
        self.size = size
        self._reserved: Counter[MemoryKind] = Counter()

    def share_of(self, kind: MemoryKind) -> int:
        return self.size

    def reserve(self, size: int, kind: MemoryKind = MemoryKind.OPERATOR) -> bool:
        if self._reserved[kind] + size > self.size:
            return False
        self._reserved[kind] += size
        return True

    def release(self, size: int, kind: MemoryKind = MemoryKind.OPERATOR) -> None:
        self._reserved[kind] -= size

    @property
    def reserved(self) -> int:
        return sum(self._reserved.values())


@dataclass
class OperatorContext:
    """What one operator knows about its task, and the services the task offers it."""

    operator_id: OperatorId
    name: str
    uid: str | None
    task: TaskInfo
    clock: Clock
    timers: ProcessingTimeService
    # Runs the action soon in the task's thread; may be called from any thread
    run_in_task: Callable[[Callable[[], None]], None]
    send_operator_event: Callable[[Any], None]  # to this operator's coordinator in the JobMaster
    configuration: dict[str, Any] = field(default_factory=dict)
    accumulators: dict[str, Any] = field(default_factory=dict)
    object_reuse: bool = False
    # whether errors of functions carry the exception itself and the whole traceback, which takes a
    # millisecond
    explains_errors: bool = True
    batch_records: int = 4096
    # state of the operator that belongs to no key
    operator_state: OperatorStateBackend = field(default_factory=OperatorStateBackend)
    # the path of a registered file; None where the program's own is meant
    cached_file: Callable[[str], str] | None = None
    memory: ManagedMemory = field(default_factory=OwnMemory)
    # the program's own that are open, key selectors first: errors about results name their lines
    functions: list[Any] = field(default_factory=list)
