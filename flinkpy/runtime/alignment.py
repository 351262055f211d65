"""What a task does with barriers, purely: which channels wait, when a barrier goes on, and what
belongs to its checkpoint.

Aligned: a channel that had its barrier gives out nothing more until all others had theirs; then the
barrier goes on and all are released.

Tracked (AT_LEAST_ONCE): no channel waits, and the barrier goes on when all had theirs. What a
channel gives behind its barrier before that is in the checkpoint, and comes again after a failure.
As no channel waits, the barriers of several checkpoints may be awaited at a time.

Overtaking: the first barrier goes on at once, no channel waits, and what the other channels give
until their own barrier belongs to the checkpoint, too. An alignment under way changes to this when
its time is up, or when a barrier comes for whose sender it was.

A newer barrier, from any channel, gives the older checkpoint up. A channel that has ended counts as
having had every barrier."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.core.elements import CheckpointBarrier


@dataclass(frozen=True)
class AlignmentStep:
    """What to do after a barrier came or a channel ended: in this order. A barrier to ``forward``
    that ``overtakes`` makes a part of its checkpoint what the channels in ``record`` give until
    their barrier comes. ``complete``: that was the last barrier of a checkpoint that overtook."""

    unblock: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    forward: CheckpointBarrier | None = None
    overtakes: bool = False
    record: tuple[int, ...] = ()
    complete: bool = False


NOTHING = AlignmentStep()


def overtakes_in_s(barrier: CheckpointBarrier, now_ms: int) -> float | None:
    """In how many seconds the barrier is to overtake what is in its way; None: never. Clocks that
    differ do not make it longer than was asked for."""
    timeout_ms = barrier.options.alignment_timeout_ms
    if timeout_ms is None:
        return None
    return min(timeout_ms, max(0, barrier.timestamp_ms + timeout_ms - now_ms)) / 1000


class BarrierAligner:
    """Aligns the barriers of one task, over all channels of all its inputs."""

    def __init__(self, channels: int) -> None:
        self._open = set(range(channels))
        self._barrier: CheckpointBarrier | None = None  # whose arrivals are awaited
        self._arrived: set[int] = set()
        self._has_overtaken = False  # the barrier has gone on, ahead of those that are awaited
        # of the newest checkpoint all of whose barriers came, or that was given up
        self._last_id = -1
        self._at_end: CheckpointBarrier | None = None
        # the channels that had it, by checkpoint
        self._tracked: dict[int, tuple[CheckpointBarrier, set[int]]] = {}

    @property
    def blocked(self) -> frozenset[int]:
        """Channels that wait now."""
        return frozenset() if self._has_overtaken else frozenset(self._arrived)

    def barrier(self, channel: int, barrier: CheckpointBarrier) -> AlignmentStep:
        """A barrier came out of a channel: in its turn, or ahead of its turn if it overtakes."""
        if barrier.checkpoint_id <= self._last_id or (
            self._barrier is not None and barrier.checkpoint_id < self._barrier.checkpoint_id
        ):
            return NOTHING  # of a checkpoint that was given up or is through
        if barrier.options.is_tracked:
            return self._track(channel, barrier)
        released = self._begin(barrier)
        self._arrived.add(channel)
        if self._has_overtaken:
            return self._completed(()) or NOTHING
        if barrier.options.is_unaligned:
            return self._overtake(released)
        return self._completed(released) or AlignmentStep(unblock=released, block=(channel,))

    def barrier_at_end(self, barrier: CheckpointBarrier) -> AlignmentStep:
        """All producers have finished, so no channel brings this barrier: it goes on behind the
        last element of all, or overtakes them."""
        self._at_end = barrier
        return self._ended() or (
            self.time_is_up(barrier.checkpoint_id) if barrier.options.is_unaligned else NOTHING
        )

    def time_is_up(self, checkpoint_id: int) -> AlignmentStep:
        """The checkpoint has been aligned for as long as it may: from now on it overtakes."""
        released: tuple[int, ...] = ()
        if self._at_end is not None and self._at_end.checkpoint_id == checkpoint_id > self._last_id:
            barrier, self._at_end = self._at_end, None
            released = self._begin(barrier)
        if (
            self._barrier is None
            or self._barrier.checkpoint_id != checkpoint_id
            or self._has_overtaken
        ):
            return NOTHING
        return self._overtake(released)

    def end_is_near(self, channel: int) -> AlignmentStep:
        """The channel's last element has come, but not its turn: no barrier follows that could tell
        what belongs to a checkpoint that overtook."""
        if not self._has_overtaken:
            return NOTHING
        self._arrived.add(channel)
        return self._completed(()) or NOTHING

    def channel_ended(self, channel: int) -> AlignmentStep:
        """A channel gave its last element."""
        self._open.discard(channel)
        self._arrived.discard(channel)
        return self._completed(()) or self._tracked_through(()) or self._ended() or NOTHING

    def _track(self, channel: int, barrier: CheckpointBarrier) -> AlignmentStep:
        released = tuple(sorted(self.blocked))
        if self._barrier is not None:  # of an older savepoint, which is given up
            self._finish()
        self._tracked.setdefault(barrier.checkpoint_id, (barrier, set()))[1].add(channel)
        return self._tracked_through(released) or AlignmentStep(unblock=released)

    def _tracked_through(self, released: tuple[int, ...]) -> AlignmentStep | None:
        """The newest checkpoint all of whose barriers came. Older ones are given up: they would be
        of no use any more."""
        through = [
            number for number, (_, arrived) in self._tracked.items() if not self._open - arrived
        ]
        if not through:
            return None
        barrier, _ = self._tracked[max(through)]
        self._forget_tracked(barrier.checkpoint_id)
        return AlignmentStep(unblock=released, forward=barrier)

    def _forget_tracked(self, checkpoint_id: int) -> None:
        """This checkpoint and those before it."""
        self._last_id = max(self._last_id, checkpoint_id)
        self._tracked = {
            number: each for number, each in self._tracked.items() if number > checkpoint_id
        }

    def _begin(self, barrier: CheckpointBarrier) -> tuple[int, ...]:
        """Gives an older checkpoint up; returns the channels that waited for it."""
        if self._barrier is not None and self._barrier.checkpoint_id == barrier.checkpoint_id:
            return ()
        released = tuple(sorted(self.blocked))
        if self._barrier is not None:
            self._last_id = self._barrier.checkpoint_id
        if self._tracked:
            self._forget_tracked(barrier.checkpoint_id - 1)
        self._barrier = barrier
        self._arrived = set()
        self._has_overtaken = False
        return released

    def _overtake(self, released: tuple[int, ...]) -> AlignmentStep:
        assert self._barrier is not None
        barrier, unblock = self._barrier.overtaking(), tuple(sorted(self._arrived | set(released)))
        self._barrier, self._has_overtaken = barrier, True
        record = tuple(sorted(self._open - self._arrived))
        if not record:
            self._finish()
        return AlignmentStep(
            unblock=unblock, forward=barrier, overtakes=True, record=record, complete=not record
        )

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
        barrier = self._barrier
        unblock = tuple(sorted(self.blocked | set(released)))
        had_overtaken = self._has_overtaken
        self._finish()
        return (
            AlignmentStep(complete=True)
            if had_overtaken
            else AlignmentStep(unblock=unblock, forward=barrier)
        )

    def _finish(self) -> None:
        assert self._barrier is not None
        self._last_id = self._barrier.checkpoint_id
        self._barrier = None
        self._arrived = set()
        self._has_overtaken = False

    def __repr__(self) -> str:
        return (
            f"<BarrierAligner: {self._barrier}, {len(self._arrived)} of {len(self._open)} "
            "open channels arrived>"
        )
