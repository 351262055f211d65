"""How long elements travel from a source to an operator: measured with latency markers, kept in one
histogram per source.

If ``metrics.latency.interval`` is above 0, each subtask of a source sends a marker at that
interval. Markers queue with the records, but pass those that an operator holds back (windows,
asynchronous calls). Every operator records a marker's age and passes it on. So latencies measure
the network and the queues, not the functions' own time. The clocks of all machines must agree."""

from __future__ import annotations

from typing import Any

from flinkpy.core.elements import LatencyMarker
from flinkpy.metrics.metricbase import Histogram, Place
from flinkpy.metrics.reported import metrics_of

SOURCE, LATENCY = "source_id", "latency"


def record_latency(
    marker: LatencyMarker,
    now_ms: int,
    operator_id: str,
    operator: str,
    subtask: int,
    accumulators: dict[str, Any],
) -> None:
    """Adds the marker's age in milliseconds to the operator's histogram for its source. A negative
    age, from a clock that went back, counts as 0."""
    metrics = metrics_of(accumulators)
    identifier = latency_identifier(operator, subtask, marker.operator_id)
    histogram = metrics.get(identifier)
    if histogram is None:
        histogram = Histogram()
        source_id = str(marker.operator_id)
        histogram.place = Place(
            operator_id, (SOURCE, source_id), LATENCY, (), ((SOURCE, source_id),)
        )
        metrics[identifier] = histogram
    if isinstance(histogram, Histogram):
        histogram.update(max(0, now_ms - marker.marked_ms))


def latency_identifier(operator: str, subtask: int, source_id: str) -> str:
    """The metric's name in the job's result."""
    return f"{operator}.{subtask}.latency.{source_id}"
