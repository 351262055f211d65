"""When a window ends, and the timers that end it.

An event-time window ends when the watermark reaches its last timestamp plus the allowed lateness, a
processing-time window when its last millisecond is over. Until then it takes records, and its
contents and state are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.core.errors import ProgramError
from flinkpy.windowing.general.per_window.window_timers import WindowTimerService

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window

_LEAST = -(2**62)  # no event time is before it; a record without one has MIN_TIMESTAMP


class WindowLifetimes:
    """The lifetimes of one operator's windows. ``timers`` are those of the windows' own time
    domain."""

    def __init__(
        self, service: WindowTimerService, event_time: bool, allowed_lateness: int
    ) -> None:
        self.event_time, self.allowed_lateness = event_time, allowed_lateness if event_time else 0
        self.timers = service.event if event_time else service.processing
        self._add_timer = service.event.add if event_time else service.add_processing
        self._service = service

    def cleanup_time(self, window: Window) -> int:
        """When the window ends; MAX_TIMESTAMP means that it ends only when time does. Raises as
        ``last_timestamp``."""
        last = last_timestamp(window)
        return min(last + self.allowed_lateness, MAX_TIMESTAMP)

    def has_ended(self, window: Window) -> bool:
        """Whether the window takes no more records. Never true of processing-time windows, because
        records are assigned by the current time."""
        return self.event_time and self.cleanup_time(window) <= self._service.watermark

    def is_late(self, timestamp: int) -> bool:
        """Whether a record that no window took counts as late. If the assigner just has no window
        for it, it does not (Flink's rule)."""
        return self.event_time and timestamp + self.allowed_lateness <= self._service.watermark

    def refuse_ended(self, merged: Any, assigner: object) -> None:
        """Raises ProgramError for a merged window that would never be evaluated, because it has
        ended already."""
        service = self._service
        if self.has_ended(merged):
            passed = f"the watermark {service.watermark}"
        elif not self.event_time and merged.max_timestamp() < service.now_ms():
            passed = f"the clock {service.now_ms()}"
        else:
            return
        raise ProgramError(
            f"{assigner!r} merged windows into {merged!r}, which {passed} has passed: "
            "a merged window must not end before those it is made of"
        )

    # -- timers ------------------------------------------------------------------------------------

    def register_cleanup(self, key: object, window: Window) -> None:
        """Sets the timer that ends the window. A window that ends only with time itself needs
        none."""
        time = self.cleanup_time(window)
        if time != MAX_TIMESTAMP:
            self._add_timer(time, key, window)

    def delete_cleanup(self, key: object, window: Window) -> None:
        time = self.cleanup_time(window)
        if time != MAX_TIMESTAMP:
            self.timers.remove(time, key, window)

    def register_default(self, key: object, window: Window) -> None:
        """Sets the timers of a new window with the default trigger: to fire and, if that is later,
        to end."""
        self._add_timer(last_timestamp(window), key, window)
        if self.allowed_lateness:
            self.register_cleanup(key, window)

    def move_default(self, key: Any, before: Any, window: Window) -> None:
        """Moves the timers of a session with the default trigger to its new, later end."""
        self.timers.remove(before.max_timestamp(), key, before)
        if self.allowed_lateness:
            self.delete_cleanup(key, before)
        self.register_default(key, window)


def last_timestamp(window: Window) -> int:
    """The window's last timestamp. Raises ValueError for a window that would never fire, and for
    one of records without timestamps."""
    last: int = window.max_timestamp()
    if (type(last) is not int and not hasattr(last, "__index__")) or last > MAX_TIMESTAMP:
        raise ValueError(
            f"the window {window!r} would never fire: it ends at {last!r}, and time is a "
            "whole number of "
            f"milliseconds up to {MAX_TIMESTAMP}"
        )
    if last < _LEAST:
        raise ValueError(
            f"the window {window!r} is of records without timestamps: "
            "assign_timestamps_and_watermarks(...) gives them some"
        )
    return last
