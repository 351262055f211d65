"""How time goes on for operators over slices, of rows and of columns alike: by watermarks, or by one timer for the next window."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from flinkpy.core.elements import Watermark
from flinkpy.operators.base import StreamOperator, Work
from flinkpy.operators.wake_up import WakeUp
from flinkpy.windowing.slices.slicing import Slicing
from flinkpy.windowing.slices.times import SliceTimes, Standing


class FollowsTime(StreamOperator):
    """Calls ``_advance`` when time has gone on. In processing time ``_add_now`` puts records into the slice of this moment."""

    parks = True
    slicing: Slicing
    event_time: bool
    _times: SliceTimes

    @abstractmethod
    def _add(self, start: int, records: Any) -> None:
        """Adds them to the slice that begins then."""

    @abstractmethod
    def _advance(self, until: int) -> Work | None:
        """Evaluates what is due, and lets go of what is over."""

    def start_clock(self) -> None:
        """When the slices are there."""
        self._wake_up = WakeUp(self.context.timers, self._due)
        if not self.event_time:
            self._wake_up.at(self._times.wake)

    def stop_clock(self) -> None:
        if hasattr(self, "_wake_up"):
            self._wake_up.cancel()

    def process_watermark(self, watermark: Watermark) -> Work:
        if self.event_time and watermark.timestamp > self._times.now:
            yield from self._advance(watermark.timestamp) or ()
        super().process_watermark(watermark)

    def _add_now(self, records: Any) -> None:
        now = max(self.context.timers.now_ms(), self._times.now + 1)  # a clock that was set back reopens nothing
        start = self.slicing.slice_of(now)
        if self._times.standing(start) is not Standing.OUTSIDE:
            self._add(start, records)
            self._wake_up.at(self._times.wake)

    def _due(self, moment: int) -> None:
        self.do(self._at_timer(moment))

    def _at_timer(self, moment: int) -> Work:
        yield from self._advance(max(moment, self._times.now)) or ()
        self._wake_up.at(self._times.wake)
