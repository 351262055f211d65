"""How long the barriers of the last checkpoint took to come to a task."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.core.elements import CheckpointBarrier


class BarrierTimes:
    """``start_delay_ms``: from the checkpoint's beginning, on the JobManager's clock, to its first
    barrier here; ``alignment_ms``: from that one to when the barrier went on. None before the
    first. May be read from any thread."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._checkpoint_id, self._first_ms = -1, 0
        self.start_delay_ms: int | None = None
        self.alignment_ms: int | None = None

    def barrier_came(self, barrier: CheckpointBarrier) -> None:
        """From one of the channels."""
        if barrier.checkpoint_id > self._checkpoint_id:
            self._checkpoint_id, self._first_ms = barrier.checkpoint_id, self._now_ms()
            self.start_delay_ms = max(0, self._first_ms - barrier.timestamp_ms)

    def came_ms(self, barrier: CheckpointBarrier) -> int:
        """When the first one of that checkpoint came; now, if it did not come through a channel."""
        return self._first_ms if barrier.checkpoint_id == self._checkpoint_id else self._now_ms()

    def barrier_passed(self, barrier: CheckpointBarrier) -> None:
        """It goes on."""
        if barrier.checkpoint_id == self._checkpoint_id:
            self.alignment_ms = max(0, self._now_ms() - self._first_ms)
