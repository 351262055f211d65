"""Prometheus's text format, with the names and labels of Flink's reporter.

As there, counters and meters are gauges: a program's counter may go down, and what is called
``…PerSecond`` is a rate. Histograms are summaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from flinkpy.metrics.definitions import Kind
from flinkpy.metrics.metricbase import QUANTILES
from flinkpy.metrics.samples import Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ODD = re.compile(r"[^a-zA-Z0-9_:]")
_ODD_IN_LABEL = re.compile(r"[^a-zA-Z0-9_]")


def metric_name(sample: Sample) -> str:
    """``flink_``, the scope, the groups and the name, joined by underscores."""
    return _ODD.sub("_", "_".join(("flink", sample.scope.value, *sample.path)))


def exposition(samples: Iterable[Sample]) -> bytes:
    """All samples as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(list(samples)))
    return generate_latest(registry)


class _Collected(Collector):
    def __init__(self, samples: list[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for sample in self._samples:
            name = metric_name(sample)
            kind = "summary" if sample.kind is Kind.HISTOGRAM else "gauge"
            family = families.get(name)
            if family is None:
                family = families[name] = Metric(name, sample.meaning or "Of the program.", kind)
            # else two programs have given one name to two kinds: the first one counts
            if family.type == kind:
                _add(family, name, sample)
        yield from families.values()


def _add(family: Metric, name: str, sample: Sample) -> None:
    # A name may hold what UTF-8 has no bytes for
    labels = {
        _ODD_IN_LABEL.sub("_", key): value.encode("utf-8", "replace").decode()
        for key, value in sample.labels.items()
    }
    value = sample.value
    if not isinstance(value, Mapping):
        family.add_sample(name, labels, float(value))
    elif sample.kind is Kind.METER:
        family.add_sample(name, labels, float(value.get("rate", 0.0)))
    else:
        for statistic, quantile in QUANTILES.items():
            if statistic in value:
                family.add_sample(
                    name, {**labels, "quantile": f"{quantile:g}"}, float(value[statistic])
                )
        family.add_sample(f"{name}_count", labels, float(value.get("count", 0)))
