"""How long elements travel from a source to an operator: measured with latency markers, kept in one histogram per
source.

If ``metrics.latency.interval`` is above 0, each subtask of a source sends a marker at that interval. Markers queue
with the records, but pass those that an operator holds back (windows, asynchronous calls). Every operator records a
marker's age and passes it on. So latencies measure the network and the queues, not the functions' own time. The
clocks of all machines must agree.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from flinkpy.core.elements import LatencyMarker
from flinkpy.metrics.metricbase import Metric
from flinkpy.metrics.reported import metrics_of

HISTORY = 128  # how many of the latest values quantiles are taken from


class LatencyHistogram(Metric):
    """Latencies in milliseconds: count and extremes of all, mean and quantiles of the last ``HISTORY``.

    >>> histogram = LatencyHistogram()
    >>> for latency in (4, 1, 2, 3): histogram.update(latency)
    >>> histogram.value()
    {'count': 4, 'min': 1, 'max': 4, 'mean': 2.5, 'p50': 3, 'p95': 4, 'p99': 4}
    """

    def __init__(self) -> None:
        self._count = 0
        self._min = self._max = 0
        self._last: deque[int] = deque(maxlen=HISTORY)

    def update(self, latency_ms: int) -> None:
        self._min = min(self._min, latency_ms) if self._count else latency_ms
        self._max = max(self._max, latency_ms) if self._count else latency_ms
        self._count += 1
        self._last.append(latency_ms)

    def value(self) -> dict[str, Any]:
        last = sorted(self._last)
        if not last:
            return {"count": 0}
        quantiles = {f"p{percent}": last[min(len(last) - 1, len(last) * percent // 100)] for percent in (50, 95, 99)}
        return {"count": self._count, "min": self._min, "max": self._max, "mean": sum(last) / len(last), **quantiles}


def record_latency(marker: LatencyMarker, now_ms: int, operator: str, subtask: int, accumulators: dict[str, Any]) -> None:
    """Adds the marker's age to the operator's histogram for its source. A negative age, from a clock that went back,
    counts as 0."""
    metrics, identifier = metrics_of(accumulators), latency_identifier(operator, subtask, marker.operator_id)
    histogram = metrics.get(identifier)
    if histogram is None:
        histogram = metrics[identifier] = LatencyHistogram()
    if isinstance(histogram, LatencyHistogram):
        histogram.update(max(0, now_ms - marker.marked_ms))


def latency_identifier(operator: str, subtask: int, source_id: str) -> str:
    """The metric's name in the job's result."""
    return f"{operator}.{subtask}.latency.{source_id}"
