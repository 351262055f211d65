"""An operator that wraps another one and passes the calls of its life on to it."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.core.elements import (
    Batch,
    CheckpointBarrier,
    LatencyMarker,
    Watermark,
    WatermarkStatus,
)
from flinkpy.operators.base import BatchForm, StreamOperator, Work
from flinkpy.state.snapshots.saved_state import FrozenState, SavedState

Process = Callable[[Batch], "Work | None"]  # a method of the wrapped operator that takes its input


class WrappingOperator(StreamOperator):
    """``wrapped`` is the operator. The graph finds its state by its class, so wrapping it changes
    no operator id. Subclasses call its ``setup``, and give it its input.

    What only sources, sinks, asynchronous functions and loops have is not passed on, as nobody
    wraps these: ``available``, ``drained``, ``has_rest``, the final checkpoint,
    ``prepare_snapshot_pre_barrier``, ``emit_before_barrier``, and events of coordinators."""

    batch_form = BatchForm.AS_IN_STREAM  # of an object: that of the operator it wraps

    def __init__(self, wrapped: StreamOperator) -> None:
        self.wrapped = wrapped
        self.chaining, self.batch_form = wrapped.chaining, wrapped.batch_form
        self.takes_changes = wrapped.takes_changes
        self.emits_changes = wrapped.emits_changes
        self.keeps_timestamps = wrapped.keeps_timestamps
        self.replaces_results, self.keeps_nothing = wrapped.replaces_results, wrapped.keeps_nothing
        self.memory_weights = dict(wrapped.memory_weights)

    @property
    def reads_keys(self) -> bool:
        return self.wrapped.reads_keys

    def initialize_state(self, restored: SavedState | None) -> None:
        self.wrapped.initialize_state(restored)

    def open(self) -> None:
        self.wrapped.open()

    def finish(self) -> None:
        self.wrapped.finish()

    def close(self) -> None:
        self.wrapped.close()

    def process_watermark(self, watermark: Watermark) -> Work | None:
        work: Work | None = self.wrapped.process_watermark(watermark)
        return work

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        self.wrapped.process_watermark_status(status)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        self.wrapped.process_latency_marker(marker)

    def measures(self, now_ms: int) -> dict[str, float]:
        told: dict[str, float] = self.wrapped.measures(now_ms)
        return told

    def free_memory(self) -> None:
        self.wrapped.free_memory()

    @property
    def fired_timers(self) -> int:
        fired: int = self.wrapped.fired_timers
        return fired

    def freeze_state(self, barrier: CheckpointBarrier) -> FrozenState:
        frozen: FrozenState = self.wrapped.freeze_state(barrier)
        return frozen

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.wrapped.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.wrapped.notify_checkpoint_aborted(checkpoint_id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.wrapped!r}>"


def bare(operator: StreamOperator) -> StreamOperator:
    """The operator itself, out of whatever wraps it."""
    while isinstance(operator, WrappingOperator):
        operator = operator.wrapped
    return operator
