"""The watermark valve, purely: one watermark and one status out of those of many channels.

The combined watermark is the least over the active channels; it never goes back. A channel that is
idle or has ended holds nothing back. When all channels that have not ended are idle, so is the
output; then the greatest watermark seen goes out first, as no one can hold it back (unless the last
one to fall silent was still catching up: it had nothing to hold back). A channel that comes back
from idleness counts again once its watermark has caught up with the output's.

MAX_TIMESTAMP is no progress but the end of a channel's event time. It counts from an idle channel
too, and it goes out when it has come from every channel that still has data: not while one of them
is idle, because its next records would all be late. (In Flink it does go out then.) It does not go
out if a producer stopped without a drain, because whoever starts from that savepoint goes on.

The least is at the top of a heap, in which what has been overtaken stays until it comes up: a task
may have thousands of channels."""

from __future__ import annotations

import heapq

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark, WatermarkStatus

Outcome = list[Watermark | WatermarkStatus]


# entries of the heap for each channel, beyond which those that were overtaken are cleared out
_SPARE = 4


class _Channel:
    __slots__ = ("aligned", "ended", "idle", "number", "watermark")

    def __init__(self, number: int) -> None:
        self.number = number
        self.watermark = MIN_TIMESTAMP
        self.idle = self.ended = False
        self.aligned = True  # takes part in the minimum


class WatermarkValve:
    """The event time of one task, over all channels of all its inputs."""

    def __init__(self, channels: int) -> None:
        self._channels = [_Channel(number) for number in range(channels)]
        self._heap = [(MIN_TIMESTAMP, number) for number in range(channels)]
        # those that have not ended; those of them that are not idle
        self._open = self._active = channels
        self._emitted = MIN_TIMESTAMP
        self._idle = False
        self._time_ended = False  # whether a channel has said so
        self._stopped = False  # whether a producer stopped without a drain

    @property
    def watermark(self) -> int:
        """The last one that went out."""
        return self._emitted

    def watermark_from(self, channel: int, watermark: Watermark) -> Outcome:
        """A channel's watermark; gives what goes out."""
        state = self._channels[channel]
        if watermark.timestamp == MAX_TIMESTAMP and not state.ended:
            self._time_ended = True
            return self.ended(channel)
        if state.idle or state.ended or watermark.timestamp <= state.watermark:
            return []
        state.watermark = watermark.timestamp
        if state.aligned or watermark.timestamp >= self._emitted:
            self._align(state)
        return self._advance(self._least())

    def status_from(self, channel: int, status: WatermarkStatus) -> Outcome:
        """A channel went idle, or is active again."""
        state = self._channels[channel]
        if state.ended or state.idle == status.idle:
            return []
        state.idle = status.idle
        if status.idle:
            self._active -= 1
            return self._one_less(state)
        self._active += 1
        if state.watermark >= self._emitted:
            self._align(state)
        if self._idle:
            self._idle = False
            return [WatermarkStatus(idle=False)]
        return []

    def ended(self, channel: int, *, drained: bool = True) -> Outcome:
        """A channel gave its last record. ``drained`` is False if its producer stopped without a
        drain."""
        self._stopped = self._stopped or not drained
        state = self._channels[channel]
        if state.ended:
            return []
        state.ended = True
        self._open -= 1
        self._active -= not state.idle
        return self._one_less(state)

    def _one_less(self, gone: _Channel) -> Outcome:
        """A channel fewer holds the watermark back."""
        gone.aligned = False
        if not self._open:
            return self._end() if self._time_ended and not self._stopped else []
        if self._active:
            return self._advance(self._least())
        outcome = (
            self._advance(max(channel.watermark for channel in self._channels))
            if gone.watermark >= self._emitted
            else []
        )
        if not self._idle:
            self._idle = True
            outcome.append(WatermarkStatus(idle=True))
        return outcome

    def _end(self) -> Outcome:
        """Event time ends."""
        was_idle, self._idle = self._idle, False
        return [*([WatermarkStatus(idle=False)] if was_idle else []), *self._advance(MAX_TIMESTAMP)]

    def _align(self, state: _Channel) -> None:
        """It takes part with its watermark as it is now."""
        state.aligned = True
        heapq.heappush(self._heap, (state.watermark, state.number))
        if len(self._heap) > _SPARE * len(self._channels):
            self._heap = sorted(
                (channel.watermark, channel.number) for channel in self._channels if channel.aligned
            )

    def _least(self) -> int:
        heap = self._heap
        while heap:
            watermark, number = heap[0]
            state = self._channels[number]
            if state.aligned and state.watermark == watermark:
                return watermark
            heapq.heappop(heap)
        return self._emitted

    def _advance(self, timestamp: int) -> Outcome:
        if timestamp <= self._emitted:
            return []
        self._emitted = timestamp
        return [Watermark(timestamp)]

    def __repr__(self) -> str:
        return (
            f"<WatermarkValve at {self._emitted}{', idle' if self._idle else ''}, "
            f"{len(self._channels)} channels>"
        )
