"""How a task's metrics reach the job's result: as one accumulator of the engine, which is read when
the task ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.metrics.metricbase import Metric

ACCUMULATOR = "flinkpy.metrics"  # the name among a task's accumulators; hidden from programs

LOG = engine_logger(__name__)


def metrics_of(accumulators: dict[str, Any]) -> dict[str, Metric]:
    """The task's metrics, which are stored among its accumulators."""
    found: dict[str, Metric] = accumulators.setdefault(ACCUMULATOR, {})
    return found


def reported(accumulators: Mapping[str, Any]) -> dict[str, Any]:
    """The accumulators as they are sent, with the metrics as values. A gauge that raises is left
    out, because a metric must not fail a task."""
    sent = dict(accumulators)
    metrics = sent.pop(ACCUMULATOR, None)
    if metrics is None:
        return sent
    values: list[tuple[str, Any]] = []  # a list, because lists of several tasks are concatenated
    for identifier, metric in metrics.items():
        try:
            values.append((identifier, metric.value()))
        except Exception as error:
            LOG.warning("metric %s: %s: %s", identifier, type(error).__name__, error)
    sent[ACCUMULATOR] = values
    return sent


def without_metrics(accumulators: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The program's accumulators, and the values of the metrics."""
    own = dict(accumulators)
    return own, dict(own.pop(ACCUMULATOR, ()))
