"""What a SinkFunction learns of the value at hand."""

from __future__ import annotations

import inspect
from typing import Any

from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.operators.context import OperatorContext


class SinkContext:
    """Passed to ``invoke(value, context)``. One object serves all values: do not keep it."""

    __slots__ = ("_timers", "_timestamp", "_watermark")

    def __init__(self, context: OperatorContext) -> None:
        self._timers = context.timers
        self._timestamp: int | None = None
        self._watermark = MIN_TIMESTAMP

    def timestamp(self) -> int | None:
        """The value's event time in milliseconds, or None."""
        return self._timestamp

    def current_watermark(self) -> int:
        """How far event time has come, in milliseconds."""
        return self._watermark

    def current_processing_time(self) -> int:
        """Milliseconds since 1970-01-01 UTC, by the machine's clock."""
        return self._timers.now_ms()


def takes_context(invoke: Any) -> bool:
    """Whether ``invoke`` may be called with a value and a context; with the value alone where it says nothing."""
    try:
        inspect.signature(invoke).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True
