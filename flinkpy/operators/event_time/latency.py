"""How long elements travel from a source to an operator: told by latency markers, kept as one histogram per source.

With ``metrics.latency.interval`` above 0 each subtask of a source sends a marker so often; markers queue with the records (but pass those that an
operator holds back: windows, asynchronous calls), every operator reads the time and passes them on. They say how long the network and the
queues take, not the functions' own time. Clocks of several machines must agree.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from flinkpy.core.elements import LatencyMarker
from flinkpy.metrics.metricbase import Metric
from flinkpy.metrics.reported import metrics_of

HISTORY = 128  # the last values, from which quantiles are made


class LatencyHistogram(Metric):
    """Milliseconds: of all, how many and the extremes; of the last ``HISTORY``, the mean and quantiles.

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
    """Adds the marker to the histogram of its source at that operator. A clock that went back counts as no time."""
    metrics, identifier = metrics_of(accumulators), latency_identifier(operator, subtask, marker.operator_id)
    histogram = metrics.get(identifier)
    if histogram is None:
        histogram = metrics[identifier] = LatencyHistogram()
    if isinstance(histogram, LatencyHistogram):
        histogram.update(max(0, now_ms - marker.marked_ms))


def latency_identifier(operator: str, subtask: int, source_id: str) -> str:
    """The metric's name in the job's result."""
    return f"{operator}.{subtask}.latency.{source_id}"
