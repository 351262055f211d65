"""What a SinkFunction can ask about the current value."""

from __future__ import annotations

import inspect
from typing import Any

from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.operators.context import OperatorContext


class SinkContext:
    """The context passed to ``invoke(value, context)``. One object serves all values: do not keep
    it."""

    __slots__ = ("_timers", "event_time", "watermark")

    def __init__(self, context: OperatorContext) -> None:
        self._timers = context.timers
        # set by the writer, before each value and at each watermark
        self.event_time: int | None = None
        self.watermark = MIN_TIMESTAMP

    def timestamp(self) -> int | None:
        """The value's event time in milliseconds, or None."""
        return self.event_time

    def current_watermark(self) -> int:
        """The current watermark: how far event time has advanced, in milliseconds since 1970-01-01
        UTC."""
        return self.watermark

    def current_processing_time(self) -> int:
        """The machine's clock, in milliseconds since 1970-01-01 UTC."""
        return self._timers.now_ms()


def takes_context(invoke: Any) -> bool:
    """Whether ``invoke`` can be called with a value and a context; False if its signature is not
    known."""
    try:
        inspect.signature(invoke).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True
