"""Barrier alignment, purely: which channels wait, and when the barrier goes on.

A channel that had its barrier gives out nothing more until all others had theirs; then the barrier goes on and all are released. A newer
barrier, from any channel, gives the older checkpoint up. A channel that has ended counts as having had every barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.core.elements import CheckpointBarrier


@dataclass(frozen=True)
class AlignmentStep:
    """What to do after a barrier came or a channel ended: in this order."""

    unblock: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    forward: CheckpointBarrier | None = None


NOTHING = AlignmentStep()


class BarrierAligner:
    """Of one task, over all channels of all its inputs."""

    def __init__(self, channels: int) -> None:
        self._open = set(range(channels))
        self._barrier: CheckpointBarrier | None = None  # the one being aligned
        self._arrived: set[int] = set()
        self._last_id = -1  # of the newest barrier forwarded or given up
        self._at_end: CheckpointBarrier | None = None

    @property
    def blocked(self) -> frozenset[int]:
        """Channels that wait now."""
        return frozenset(self._arrived)

    def barrier(self, channel: int, barrier: CheckpointBarrier) -> AlignmentStep:
        """A barrier came out of a channel."""
        if barrier.checkpoint_id <= self._last_id or (self._barrier is not None and barrier.checkpoint_id < self._barrier.checkpoint_id):
            return NOTHING  # of a checkpoint that was given up or is through
        released: tuple[int, ...] = ()
        if self._barrier is None or barrier.checkpoint_id > self._barrier.checkpoint_id:
            released = tuple(sorted(self._arrived))
            if self._barrier is not None:
                self._last_id = self._barrier.checkpoint_id
            self._barrier, self._arrived = barrier, set()
        self._arrived.add(channel)
        return self._completed(released) or AlignmentStep(unblock=released, block=(channel,))

    def barrier_at_end(self, barrier: CheckpointBarrier) -> AlignmentStep:
        """All producers have finished, so no channel brings this barrier: it goes on behind the last element of all."""
        self._at_end = barrier
        return self._ended() or NOTHING

    def channel_ended(self, channel: int) -> AlignmentStep:
        """A channel gave its last element."""
        self._open.discard(channel)
        self._arrived.discard(channel)
        return self._completed(()) or self._ended() or NOTHING

    def _ended(self) -> AlignmentStep | None:
        barrier = self._at_end
        if barrier is None or self._open:
            return None
        self._at_end = None
        if barrier.checkpoint_id <= self._last_id:
            return None
        self._last_id = barrier.checkpoint_id
        return AlignmentStep(forward=barrier)

    def _completed(self, released: tuple[int, ...]) -> AlignmentStep | None:
        if self._barrier is None or self._open - self._arrived:
            return None
        barrier, self._barrier = self._barrier, None
        unblock, self._arrived = tuple(sorted(self._arrived | set(released))), set()
        self._last_id = barrier.checkpoint_id
        return AlignmentStep(unblock=unblock, forward=barrier)

    def __repr__(self) -> str:
        return f"<BarrierAligner: {self._barrier}, {len(self._arrived)} of {len(self._open)} open channels arrived>"
