"""Gives metrics to Ray, whose own Prometheus export shows them as ``ray_flink_…``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from flinkpy.metrics.samples import Sample, numbers

_ODD = re.compile(r"[^a-zA-Z0-9_]")


class RayExport:
    """Each call sets gauges of Ray to what the samples say now. Ray keeps a series for a while
    after its last value."""

    def __init__(self) -> None:
        self._gauges: dict[tuple[str, tuple[str, ...]], Any] = {}

    def __call__(self, samples: Iterable[Sample]) -> None:
        for sample, statistic, number in numbers(samples):
            name = _ODD.sub("_", "_".join(("flink", sample.scope.value, *sample.path)) + statistic)
            labels = {_ODD.sub("_", key): value for key, value in sample.labels.items()}
            self._gauge(name, tuple(labels), sample.meaning).set(float(number), labels)

    def _gauge(self, name: str, keys: tuple[str, ...], meaning: str) -> Any:
        found = self._gauges.get((name, keys))
        if found is None:
            from ray.util.metrics import Gauge

            found = self._gauges[name, keys] = Gauge(name, meaning, keys)
        return found
