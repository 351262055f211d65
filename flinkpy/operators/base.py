"""What an operator is: the lifecycle every one goes through.

An operator is built on the client holding only its configuration and the user's function, travels
pickled, and comes to life in the task, in this order (docs/ARCHITECTURE.md, "A task's life")::

    setup → initialize_state → open → process… → finish → close

``close`` is always called, also after a failure; everything before it only as far as the task got.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    Batch,
    CheckpointBarrier,
    LatencyMarker,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.errors import ProgramError
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.graph.operator_port import ChainingStrategy, TwoPhases
from flinkpy.metrics.latency import record_latency
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.output.typed_output import TypedOutput
from flinkpy.state.snapshots.saved_state import FrozenState, SavedState

# what is left of a call: each step does a bounded part of it
Work: TypeAlias = Generator[None, None, None]


def run_to_end(work: Work) -> None:
    """All of it at once."""
    for _ in work:
        pass


class BatchForm(Enum):
    """How an operator runs in a batch job; ``flinkpy.operators.batch.batch_forms`` carries it
    out."""

    AS_IN_STREAM = "as in a stream"
    BY_KEY = (
        "one key after the other, its records sorted by time; the operator has ``key``, or "
        "with two inputs ``keys``"
    )
    LAST_RESULT_OF_KEY = "the same, and only the last result of each key goes out"
    ONE_ROW_OF_KEY = (
        "as in a stream, over columns, but only one row of each key goes out; the operator is a "
        "``KeyedColumnsOperator``"
    )
    BROADCAST_FIRST = (
        "the second input before the first; the first by key, if the operator has ``key``"
    )
    AT_END_OF_TIME = "records as they come, while time stands still until the end of the input"


class Guarding(Enum):
    """How an operator takes an error policy; ``flinkpy.operators.guarding`` carries it out."""

    NONE = "it takes none"
    BY_RECORD = "it is given one record at a time"
    BY_ROW = (
        "it is given the columns of a batch; if they fail, half of them, down to the row at fault"
    )
    BY_ITSELF = "it has a method ``set_error_policy``"


class StreamOperator(ABC):
    """The lifecycle. Subclasses add how they take input: :class:`OneInputOperator`,
    :class:`TwoInputOperator`, :class:`SourceOperator`."""

    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    batch_form: BatchForm  # each kind of operator says it
    # of the main output, where what the user's function gives is still to be brought into it
    declared_type: TypeInformation | None = None
    # which changes it takes (``flinkpy.graph.changes``). INSERT_ONLY: each record counts as one
    # more, so a new version of an earlier one would count twice
    takes_changes: ChangelogMode = ALL_CHANGES
    emits_changes: ChangelogMode | None = None  # None: those of its input
    # whether each result takes the place of its key's earlier one; then it has ``last_results``
    replaces_results: bool = False
    keeps_nothing: bool = False  # whether what it makes of a record depends on that record only
    # whether it holds a table, in which only the last result of each key counts
    takes_last_results: bool = False
    # whether ``flinkpy.windowing.slices.phases`` says what of it can run before an exchange
    has_window_phases: bool = False
    # whether its results have the timestamps of its records, and none where those have none
    keeps_timestamps: bool = False
    # whether in BATCH it runs in the chain of its only sender, because it takes records as they
    # come and keeps none
    chains_by_key: bool = False
    # whether calls give back work that is still to be done, for which the chain parks the operator
    # (``process.parking``)
    parks: bool = False
    guarding: Guarding = Guarding.NONE
    takes_no_policy: str = "calls none"  # why, if ``guarding`` is NONE
    is_sink: bool = False  # whether records leave the job here
    # what of its slot's managed memory it wants, beside other operators that want some of that kind
    # (``OperatorContext.memory``)
    memory_weights: Mapping[MemoryKind, int] = MappingProxyType({})
    # for work that begins in the operator itself, at a timer; a chain sets it
    do: Callable[[Work], None] = staticmethod(run_to_end)
    context: OperatorContext
    output: Output

    @property
    def reads_keys(self) -> bool:
        """On the client: whether it reads the key of each record that it takes. If not, the
        exchange before it does. An operator that has its key elsewhere than in ``key`` or ``keys``
        says so itself."""
        return hasattr(self, "key") or hasattr(self, "keys")

    def in_two_phases(self) -> TwoPhases | None:
        """On the client: what of it can run before an exchange; None if nothing, or if it
        ``has_window_phases``."""
        return None

    def drawing(self) -> str | None:
        """On the client: what ``flinkpy info`` shows of it below the plan."""
        return None

    def setup(self, context: OperatorContext, output: Output) -> None:
        """First call: keeps context and output."""
        convert = None if self.declared_type is None else self.declared_type.conversion()
        if convert is not None:
            output = TypedOutput(output, convert, context)
        self.context, self.output = context, output

    def initialize_state(self, restored: SavedState | None) -> None:
        """Second call: takes state back, or starts empty with None. Here: operator state."""
        if restored is not None:
            self.context.operator_state.restore(restored.operator)

    def open(self) -> None:
        """Third call, the last operator of the chain first: after it, input may come."""

    def finish(self) -> None:
        """All input was processed: emit what is held back. The first operator of the chain
        first."""

    def close(self) -> None:
        """Gives back what was taken. Called exactly once, whatever happened."""

    @property
    def may_pause(self) -> bool:
        """Whether ``available`` may ever say no: then it is asked before every batch."""
        return type(self).available is not StreamOperator.available

    @property
    def available(self) -> bool:
        """Whether more input is welcome. False (a sink whose peer is slow) holds the task back like
        a full network output does."""
        return True

    @property
    def has_enough(self) -> bool:
        """Whether it would drop all further input. If all that a source gives goes to such
        operators of its chain, the source ends."""
        return False

    @property
    def drained(self) -> bool:
        """Asked after ``finish``: whether all that was taken has been emitted. While it says False
        the task waits, without holding anybody up, and asks again when the listener is called; only
        then the operators behind this one finish."""
        return True

    @property
    def flushed(self) -> bool:
        """Asked after ``prepare_snapshot_pre_barrier``: whether that is done. While it says False
        the barrier waits here, without holding anybody up, and asks again when the listener is
        called. An operator that says so is not ``available`` meanwhile."""
        return True

    @property
    def waits_for_final_checkpoint(self) -> bool:
        """Asked after ``finish``: whether ``notify_checkpoint_complete`` of one more checkpoint has
        work to do here, so that the task stays."""
        return False

    @property
    def has_rest(self) -> bool:
        """Asked after ``finish``: whether ``emit_rest`` is to be called (again). Then only the
        operators behind this one finish."""
        return False

    def emit_rest(self) -> None:
        """Emits a bounded part of what is left after ``finish``: for operators whose work begins
        when the input ends."""

    def input_pauses(self) -> None:
        """No input is there at the moment: emit what waits for more of it. May come often, and
        again before the next batch."""

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Set by the task before ``open``: called in its thread when ``available`` turns true
        again, or ``drained`` after ``finish``."""

    def free_memory(self) -> None:
        """The process is short of memory: writes to disk what it can, if it spills at all. In the
        task's thread, between two batches."""

    @property
    def fired_timers(self) -> int:
        """How many timers have fired so far. May be asked from any thread."""
        return 0

    def measures(self, now_ms: int) -> dict[str, float]:
        """What the operator tells of itself, by the names of the table of metrics. Called in the
        task's thread when somebody reads metrics."""
        return {}

    def process_watermark(self, watermark: Watermark) -> Work | None:
        self.output.emit_control(watermark)
        return None

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        self.output.emit_control(status)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        """Keeps how long it took to come here, and passes it on."""
        context = self.context
        record_latency(
            marker,
            context.timers.now_ms(),
            str(context.operator_id),
            context.name,
            context.task.subtask_index,
            context.accumulators,
        )
        self.output.emit_control(marker)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """Before the barrier is passed on: emit what must not be part of the state."""

    def emit_before_barrier(self, checkpoint_id: int) -> None:
        """Directly before the barrier is passed on, when all operators of the chain are
        ``flushed``: emit what belongs to the checkpoint, without waiting. Nothing is processed
        between this call and ``freeze_state``."""

    def freeze_state(self, barrier: CheckpointBarrier) -> FrozenState:
        """The state at the barrier, which does not change any more. Operators have no code of their
        own for this: their state is in the backends, or registered there. Here: operator state,
        with what functions add to it now."""
        return FrozenState(
            operator=self.context.operator_state.snapshot(
                barrier.checkpoint_id, barrier.timestamp_ms
            )
        )

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never be."""

    def handle_operator_event(self, event: Any) -> None:
        """An event from this operator's coordinator in the JobMaster."""
        raise NotImplementedError(f"{type(self).__name__} has no coordinator")


class WorksAtItsEnd(StreamOperator):
    """Does its work in steps when the input has ended: ``finish`` says which in ``_rest``."""

    _rest: Iterator[None] | None = None

    @property
    def has_rest(self) -> bool:
        return self._rest is not None

    def emit_rest(self) -> None:
        if self._rest is not None and next(self._rest, self) is self:
            self._rest = None


class OneInputOperator(StreamOperator):
    """Takes one stream, a batch at a time."""

    @abstractmethod
    def process_batch(self, batch: Batch) -> Work | None:
        """Processes a batch (never empty) and emits the results through ``self.output``; gives back
        what is left to do, if it ``parks``."""


class TwoInputOperator(StreamOperator):
    """Takes two streams. Watermarks arrive already combined over both (the valve's minimum)."""

    # Of a batch job: the input that the task reads to its end before it reads the other. None: both
    # as they come
    reads_first: int | None = None

    @abstractmethod
    def process_batch1(self, batch: Batch) -> Work | None: ...

    @abstractmethod
    def process_batch2(self, batch: Batch) -> Work | None: ...

    def end_input(self, input_index: int) -> None:
        """Input 0 or 1 has ended; the other may go on."""


class InputStatus(Enum):
    """What a source says after it was asked for a batch."""

    MORE_AVAILABLE = "MORE_AVAILABLE"
    # it will call ``wake_up`` of its task when that changes
    NOTHING_AVAILABLE = "NOTHING_AVAILABLE"
    END_OF_INPUT = "END_OF_INPUT"


class SourceOperator(StreamOperator):
    """The head of a source task: asked for one batch at a time, never blocks."""

    chaining = ChainingStrategy.HEAD
    batch_form = BatchForm.AS_IN_STREAM
    wake_up: Callable[[], None]  # set by the task; thread-safe: ask again, something is available
    is_columnar: bool = False
    # set by the task: the most records of one batch; less if the chain is slow with rows, or makes
    # many records of each
    batch_size: int = 4096
    rows_emitted: int = 0  # so far; columns do not count

    @abstractmethod
    def emit_next(self) -> InputStatus:
        """Emits at most one batch, and says whether to ask again."""

    def end_event_time(self) -> None:
        """The source gives no more records: it has ended, or is drained. Emits the last watermark,
        as an active source: a source that was idle at its end ends event time too. Nothing that
        tells of time may follow."""
        self.output.emit_control(WatermarkStatus(idle=False))
        self.output.emit_control(Watermark(MAX_TIMESTAMP))

    def set_error_policy(self, policy: Any, name: str) -> None:
        """Says what happens to records that the source cannot read; ``name`` is how the program
        calls it. Raises ProgramError for a source that takes no such policy."""
        raise ProgramError(
            f"on_error() is not for a source, and {name!r} is one: the operator behind it can "
            "have a policy. Let the source give its "
            "records as they are, and parse them in a map(); for a "
            "timestamp assigner use assign_timestamps_and_watermarks(...)"
        )

    def position(self) -> str | None:
        """Where the last batch came from (split and offset), for error messages of the chain; None
        if unknown."""
        return None
