"""Credit-based flow control between one gate and its senders, both ends, without I/O.

A credit is the right to send one segment. It is backed by a segment that the receiver has already
taken from its gate's pool. Every channel always has ``exclusive`` credits: granted, in transit, or
held by a batch that is not consumed yet. So no channel can starve another, not even one whose
batches are not consumed for a while (barrier alignment). In addition, *floating* segments go to
channels whose sender has announced a backlog.

A batch that costs more than the available credits is cut by the sender. A single record larger than
all of a channel's credits is charged as ``exclusive`` segments, so it passes too. Credits are
granted half a window at a time, not one by one: each grant is a message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from flinkpy.core.errors import NetworkProtocolError


class SenderCredits:
    """The sender's side of one channel."""

    __slots__ = ("announced", "credits", "exclusive")

    def __init__(self, exclusive: int, initial: int = 0) -> None:
        self.exclusive = exclusive
        self.credits = initial
        self.announced = 0  # the backlog as the receiver knows it

    def add_credits(self, count: int) -> None:
        self.credits += count

    def sendable_part(self, segments: int, records: int) -> tuple[int, int]:
        """The part of a batch that may be sent now, as (records, segments): all of it, some, or (0,
        0)."""
        if segments <= self.credits:
            return records, segments
        part = records * self.credits // segments
        if part:
            return part, self.credits
        single = min(-(-segments // records), self.exclusive)
        return (1, single) if single <= self.credits else (0, 0)

    def spend_credits(self, segments: int, backlog: int) -> None:
        """Notes that a frame of that cost was sent, which announced that ``backlog`` segments wait
        behind it."""
        if segments > self.credits:
            raise NetworkProtocolError(
                f"would send {segments} segments with {self.credits} credits"
            )
        self.credits -= segments
        self.announced = backlog

    def must_announce(self, backlog: int) -> bool:
        """Whether to announce the backlog while nothing can be sent: yes if the receiver believes
        that the credits suffice, or expects less than half of the backlog.

        The sender does not announce every batch that joins the queue: each message wakes the
        receiver, and the next frame carries the backlog anyway."""
        if backlog > self.announced and (
            self.announced <= self.credits or backlog >= 2 * self.announced
        ):
            self.announced = backlog
            return True
        return False


class SegmentSource(Protocol):
    """Where a receiver takes the segments behind its credits: a LocalBufferPool."""

    size: int

    def take_segments_up_to(self, count: int, reserved: bool = False) -> int: ...

    def return_segments(self, count: int) -> None: ...

    def wait_for_room(self) -> None: ...


class _Window:
    """The receiver's side of one channel: ``granted`` credits that are not used yet, ``held``
    segments of batches that are not consumed yet."""

    __slots__ = ("backlog", "ended", "granted", "held", "waiting")

    def __init__(self) -> None:
        self.granted = self.held = self.backlog = 0
        self.waiting = self.ended = False


class ReceiverCredits:
    """The receiver's side of all remote channels of one gate. ``grant(channel, count)`` sends
    credits to a channel's sender.

    The pool's minimum must be ``exclusive`` for each of the ``channels``; a channel gets at most
    ``floating`` beyond it."""

    def __init__(
        self,
        channels: int,
        exclusive: int,
        floating: int,
        pool: SegmentSource,
        grant: Callable[[int, int], None],
    ) -> None:
        self.exclusive, self.floating = exclusive, floating
        self._promised = channels * exclusive
        self._pool, self._grant = pool, grant
        self._windows: dict[int, _Window] = {}
        self._waiting: deque[int] = deque()
        self._floating_used = 0

    def open_window(self, channel: int) -> None:
        """Opens a channel: grants its exclusive segments."""
        self._windows[channel] = _Window()
        self._grant_due(channel)

    def close_window(self, channel: int) -> None:
        """Closes a channel: returns all segments granted to it or held by it."""
        window = self._windows.pop(channel, None)
        if window is not None:
            self._return_segments(window.granted + window.held, window.granted + window.held)

    def frame_arrived(self, channel: int, segments: int, backlog: int) -> None:
        """Notes that a frame of that cost arrived. Raises NetworkProtocolError if the sender had no
        credit for it."""
        window = self._windows[channel]
        if segments > window.granted:
            raise NetworkProtocolError(
                f"{segments} segments arrived on a channel with {window.granted} credits left"
            )
        window.granted -= segments
        window.held += segments
        window.backlog = backlog
        if backlog > window.granted:
            self._grant_due(channel)

    def backlog_announced(self, channel: int, backlog: int) -> None:
        """Notes that the sender waits for credit for that many segments."""
        self._windows[channel].backlog = backlog
        self._grant_due(channel)

    def batch_consumed(self, channel: int, segments: int) -> None:
        """Notes that a batch of that cost was consumed."""
        window = self._windows.get(channel)
        if window is not None:
            used = window.granted + window.held
            window.held -= segments
            self._return_segments(segments, used)
            self._grant_due(channel)

    def sender_ended(self, channel: int) -> None:
        """Called after the last frame: returns the unused credits; held segments are returned as
        their batches are consumed."""
        window = self._windows[channel]
        window.ended, unused = True, window.granted
        window.granted = 0
        self._return_segments(unused, unused + window.held)

    def grant_waiting(self) -> None:
        """Called when the pool has segments again: grants credits to the channels that wait, in
        order, as far as the segments go."""
        while self._waiting:
            channel = self._waiting.popleft()
            window = self._windows.get(channel)
            if window is not None:
                window.waiting = False
                if not self._grant_due(channel) and window.waiting:
                    return

    def holds(self, channel: int) -> tuple[int, int]:
        """(granted and unused, held) segments of the channel."""
        window = self._windows[channel]
        return window.granted, window.held

    def _return_segments(self, segments: int, used: int) -> None:
        """Returns segments of a channel that used that many in all; floating ones first."""
        self._floating_used -= min(segments, max(0, used - self.exclusive))
        self._pool.return_segments(segments)
        if self._waiting:
            self.grant_waiting()

    def _grant_due(self, channel: int) -> int:
        """Grants the credits that are due, as far as there are segments; returns how many.

        The decision: a channel is due its exclusive segments, and floating ones for its backlog.
        The grant is postponed while the sender can go on and has more than half of that, so that
        fewer and larger grants are sent."""
        window = self._windows[channel]
        if window.ended:
            return 0
        granted, due = window.granted, min(window.backlog, self.exclusive + self.floating)
        if granted * 2 > max(due, self.exclusive) and (granted >= self.exclusive or due <= granted):
            return 0
        own = max(0, self.exclusive - granted - window.held)
        taken = self._pool.take_segments_up_to(own, reserved=True) if own else 0
        floating = max(0, due - granted - own)
        if floating and taken == own:
            floated = self._pool.take_segments_up_to(
                min(floating, max(0, self._pool.size - self._promised - self._floating_used))
            )
            self._floating_used += floated
            taken += floated
        if taken:
            window.granted += taken
            self._grant(channel, taken)
        if taken < own + floating:
            self._wait_for_segments(channel, window, urgent=taken < own)
        return taken

    def _wait_for_segments(self, channel: int, window: _Window, urgent: bool) -> None:
        if not window.waiting:
            window.waiting = True
            if urgent:
                self._waiting.appendleft(channel)
            else:
                self._waiting.append(channel)
        self._pool.wait_for_room()
