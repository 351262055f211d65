"""What an operator is: the lifecycle every one goes through, and the ports it sees.

An operator is built on the client holding only its configuration and the user's function, travels pickled, and comes to life
in the task, in this order (docs/ARCHITECTURE.md, "A task's life")::

    setup → initialize_state → open → process… → finish → close

``close`` is always called, also after a failure; everything before it only as far as the task got.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, TypeAlias

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.clock import Clock
from flinkpy.core.elements import Batch, CheckpointBarrier, ControlElement, LatencyMarker, Watermark, WatermarkStatus
from flinkpy.core.ids import ExecutionAttemptId, OperatorId
from flinkpy.graph.chain_config import ChainingStrategy
from flinkpy.operators.event_time.latency import record_latency
from flinkpy.state.operator_backend import OperatorStateBackend
from flinkpy.state.snapshot_container import SnapshotContainer

Work: TypeAlias = Generator[None, None, None]  # what is left of a call: each step does a bounded part of it


def run_to_end(work: Work) -> None:
    """All of it at once."""
    for _ in work:
        pass


class Output(ABC):
    """Where an operator's results go: the next operator of the chain, the network, or several of them."""

    @abstractmethod
    def emit(self, batch: Batch) -> None:
        """Passes a batch of the main output on. An empty batch is not passed on."""

    @abstractmethod
    def emit_side(self, tag_id: str, batch: Batch) -> None:
        """Passes a batch on to whoever asked for that side output; dropped when nobody did."""

    @abstractmethod
    def emit_control(self, element: ControlElement) -> None:
        """Passes a control element on to every consumer, behind all that was emitted before."""


@dataclass(frozen=True)
class TaskInfo:
    """Which subtask of which job this is."""

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
        return f"{self.task_name} ({self.subtask_index + 1}/{self.parallelism})#{self.attempt_id.attempt}"


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class ProcessingTimeService(Protocol):
    """Timers on processing time; callbacks run in the task's thread."""

    def now_ms(self) -> int: ...

    def call_later(self, delay_s: float, action: Callable[[], None]) -> TimerHandle: ...


@dataclass
class OperatorContext:
    """What the task gives to one operator in ``setup``."""

    operator_id: OperatorId
    name: str
    uid: str | None
    task: TaskInfo
    clock: Clock
    timers: ProcessingTimeService
    run_in_task: Callable[[Callable[[], None]], None]  # from any thread: runs the action in the task's thread, soon
    send_operator_event: Callable[[Any], None]  # to this operator's coordinator in the JobMaster
    configuration: dict[str, Any] = field(default_factory=dict)
    accumulators: dict[str, Any] = field(default_factory=dict)
    object_reuse: bool = False
    batch_records: int = 4096
    operator_state: OperatorStateBackend = field(default_factory=OperatorStateBackend)  # state of the operator that belongs to no key


class StreamOperator(ABC):
    """The lifecycle. Subclasses add how they take input: :class:`OneInputOperator`, :class:`TwoInputOperator`, :class:`SourceOperator`."""

    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    declared_type: TypeInformation | None = None  # of the main output, where what the user's function gives is still to be brought into it
    takes_updates: bool = True  # ``flinkpy.graph.changes``; False: each record counts, so a new version of an earlier one would count twice
    emits_updates: bool | None = None  # None: where its input has some
    keeps_timestamps: bool = False  # whether its results have the timestamps of its records, and none where those have none
    gives_running_rows: bool = False  # a row for a key whenever one changes it, of which a batch job keeps the last
    parks: bool = False  # whether calls give back work that is still to be done, for which the chain parks the operator (``process.parking``)
    do: Callable[[Work], None] = staticmethod(run_to_end)  # for work that begins in the operator itself, at a timer; a chain sets it
    context: OperatorContext
    output: Output

    def setup(self, context: OperatorContext, output: Output) -> None:
        """First call: keeps context and output."""
        convert = None if self.declared_type is None else self.declared_type.conversion()
        if convert is not None:
            from flinkpy.operators.chain.typed_output import TypedOutput

            output = TypedOutput(output, convert, context)
        self.context, self.output = context, output

    def initialize_state(self, restored: bytes | None) -> None:
        """Second call: takes state back, or starts empty with None. Here: operator state."""
        if restored is not None:
            self.context.operator_state.restore(SnapshotContainer.from_bytes(restored).operator)

    def open(self) -> None:
        """Third call, the last operator of the chain first: after it, input may come."""

    def finish(self) -> None:
        """All input was processed: emit what is held back. The first operator of the chain first."""

    def close(self) -> None:
        """Gives back what was taken. Called exactly once, whatever happened."""

    @property
    def may_pause(self) -> bool:
        """Whether ``available`` may ever say no: then it is asked before every batch."""
        return type(self).available is not StreamOperator.available

    @property
    def available(self) -> bool:
        """Whether more input is welcome. False (a sink whose peer is slow) holds the task back like a full network output does."""
        return True

    @property
    def drained(self) -> bool:
        """Asked after ``finish``: whether all that was taken has been emitted. While it says False the task waits, without holding anybody
        up, and asks again when the listener is called; only then the operators behind this one finish."""
        return True

    @property
    def has_rest(self) -> bool:
        """Asked after ``finish``: whether ``emit_rest`` is to be called (again). Then only the operators behind this one finish."""
        return False

    def emit_rest(self) -> None:
        """Emits a bounded part of what is left after ``finish``: for operators whose work begins when the input ends."""

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Set by the task before ``open``: called in its thread when ``available`` turns true again, or ``drained`` after ``finish``."""

    def process_watermark(self, watermark: Watermark) -> Work | None:
        self.output.emit_control(watermark)
        return None

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        self.output.emit_control(status)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        """Keeps how long it took to come here, and passes it on."""
        context = self.context
        record_latency(marker, context.timers.now_ms(), context.name, context.task.subtask_index, context.accumulators)
        self.output.emit_control(marker)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """Before the barrier is passed on: emit what must not be part of the state."""

    def snapshot_state(self, barrier: CheckpointBarrier) -> bytes | None:
        """The state at the barrier, or None for an operator without state. Here: operator state, with what functions add to it now."""
        return self.context.operator_state.snapshot(barrier.checkpoint_id, barrier.timestamp_ms)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never be."""

    def handle_operator_event(self, event: Any) -> None:
        """An event from this operator's coordinator in the JobMaster."""
        raise NotImplementedError(f"{type(self).__name__} has no coordinator")


class OneInputOperator(StreamOperator):
    """Takes one stream, a batch at a time."""

    @abstractmethod
    def process_batch(self, batch: Batch) -> Work | None:
        """Processes a batch (never empty) and emits the results through ``self.output``; gives back what is left to do, if it ``parks``."""


class TwoInputOperator(StreamOperator):
    """Takes two streams. Watermarks arrive already combined over both (the valve's minimum)."""

    @abstractmethod
    def process_batch1(self, batch: Batch) -> Work | None: ...

    @abstractmethod
    def process_batch2(self, batch: Batch) -> Work | None: ...

    def end_input(self, input_index: int) -> None:
        """Input 0 or 1 has ended; the other may go on."""


class InputStatus(Enum):
    """What a source says after it was asked for a batch."""

    MORE_AVAILABLE = "MORE_AVAILABLE"
    NOTHING_AVAILABLE = "NOTHING_AVAILABLE"  # it will call ``wake_up`` of its task when that changes
    END_OF_INPUT = "END_OF_INPUT"


class SourceOperator(StreamOperator):
    """The head of a source task: asked for one batch at a time, never blocks."""

    chaining = ChainingStrategy.HEAD
    wake_up: Callable[[], None]  # set by the task; thread-safe: ask again, something is available
    is_columnar: bool = False
    portion: int = 4096  # set by the task: records in one batch at most; less where the chain is slow with rows, or makes many records of one
    rows_emitted: int = 0  # so far; columns do not count

    @abstractmethod
    def emit_next(self) -> InputStatus:
        """Emits at most one batch, and says whether to ask again."""

    def position(self) -> str | None:
        """Where the last batch came from (split and offset), for error messages of the chain; None if unknown."""
        return None
