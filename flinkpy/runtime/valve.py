"""The watermark valve, purely: one watermark and one status out of those of many channels.

The combined watermark is the least over the active channels; it never goes back. A channel that is idle or has ended holds nothing back. When
all channels that have not ended are idle, so is the output; then the greatest watermark seen goes out first, as no one can hold it back
(unless the last one to fall silent was still catching up: it had nothing to hold back).
A channel that comes back from idleness counts again once its watermark has caught up with the output's.
"""

from __future__ import annotations

from collections.abc import Iterable

from flinkpy.core.elements import MIN_TIMESTAMP, Watermark, WatermarkStatus

Outcome = list[Watermark | WatermarkStatus]


class _Channel:
    __slots__ = ("aligned", "ended", "idle", "watermark")

    def __init__(self) -> None:
        self.watermark = MIN_TIMESTAMP
        self.idle = self.ended = False
        self.aligned = True  # takes part in the minimum


class WatermarkValve:
    """Of one task, over all channels of all its inputs."""

    def __init__(self, channels: int) -> None:
        self._channels = [_Channel() for _ in range(channels)]
        self._emitted = MIN_TIMESTAMP
        self._idle = False

    @property
    def watermark(self) -> int:
        """The last one that went out."""
        return self._emitted

    def watermark_from(self, channel: int, watermark: Watermark) -> Outcome:
        """A channel's watermark; gives what goes out."""
        state = self._channels[channel]
        if state.idle or state.ended or watermark.timestamp <= state.watermark:
            return []
        state.watermark = watermark.timestamp
        state.aligned = state.aligned or watermark.timestamp >= self._emitted
        return self._advance(self._least())

    def status_from(self, channel: int, status: WatermarkStatus) -> Outcome:
        """A channel went idle, or is active again."""
        state = self._channels[channel]
        if state.ended or state.idle == status.idle:
            return []
        state.idle = status.idle
        if status.idle:
            state.aligned = False
            return self._one_less(state)
        state.aligned = state.watermark >= self._emitted
        if self._idle:
            self._idle = False
            return [WatermarkStatus(idle=False)]
        return []

    def ended(self, channel: int) -> Outcome:
        """A channel gave its last record."""
        state = self._channels[channel]
        if state.ended:
            return []
        state.ended, state.aligned = True, False
        return self._one_less(state) if any(not other.ended for other in self._channels) else []

    def _one_less(self, gone: _Channel) -> Outcome:
        """A channel fewer holds the watermark back."""
        if any(not channel.idle and not channel.ended for channel in self._channels):
            return self._advance(self._least())
        outcome = self._advance(max(channel.watermark for channel in self._channels)) if gone.watermark >= self._emitted else []
        if not self._idle:
            self._idle = True
            outcome.append(WatermarkStatus(idle=True))
        return outcome

    def _least(self) -> int:
        return _min((channel.watermark for channel in self._channels if channel.aligned), default=self._emitted)

    def _advance(self, timestamp: int) -> Outcome:
        if timestamp <= self._emitted:
            return []
        self._emitted = timestamp
        return [Watermark(timestamp)]

    def __repr__(self) -> str:
        return f"<WatermarkValve at {self._emitted}{', idle' if self._idle else ''}, {len(self._channels)} channels>"


def _min(values: Iterable[int], default: int) -> int:
    return min(values, default=default)
