"""The sender of latency markers in a source's task."""

from __future__ import annotations

from flinkpy.core.elements import LatencyMarker
from flinkpy.core.options.compatibility import LATENCY_INTERVAL
from flinkpy.core.options.schema import read
from flinkpy.operators.chain.operator_chain import OperatorChain
from flinkpy.operators.context import OperatorContext


class LatencyMarkers:
    """Sends one behind the head's output every ``metrics.latency.interval``; none with 0, and none
    while the output is full, where they would pile up."""

    def __init__(self, chain: OperatorChain, context: OperatorContext) -> None:
        self._chain, self._context = chain, context
        self._interval_s = read(context.configuration, LATENCY_INTERVAL).total_seconds()

    def start(self) -> None:
        """The task's timers end it."""
        if self._interval_s > 0:
            self._context.timers.call_later(self._interval_s, self._send)

    def _send(self) -> None:
        if self._chain.available:
            context = self._context
            self._chain.emit_from_head(
                LatencyMarker(
                    context.timers.now_ms(), str(context.operator_id), context.task.subtask_index
                )
            )
        self.start()
