"""Sends metrics to an OpenTelemetry collector, over OTLP and HTTP. Needs ``pip install
'flinkpy[otel]'``."""

from __future__ import annotations

from collections.abc import Iterable
from time import time_ns
from typing import Any

from flinkpy.core.errors import ConfigurationError, FlinkpyError
from flinkpy.core.program.extras import needs
from flinkpy.metrics.definitions import Kind
from flinkpy.metrics.samples import Sample, numbers


class OtelExport:
    """Each call sends all of them. Names have dots, as Flink's:
    ``flink.taskmanager.job.task.numRecordsIn``. The engine's counters are sums from the beginning
    of their attempt; everything else is a gauge, and a histogram one for each of its statistics."""

    def __init__(self, endpoint: str, service: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        except ImportError:
            raise ConfigurationError(needs("metrics.reporters: otel", "otel")) from None
        self._exporter: Any = OTLPMetricExporter(endpoint=endpoint)
        self._endpoint, self._service = endpoint, service

    def __call__(self, samples: Iterable[Sample]) -> None:
        """Raises FlinkpyError if the collector does not take them."""
        from opentelemetry.sdk.metrics.export import MetricExportResult

        if (
            self._exporter.export(metrics_data(samples, self._service, time_ns()))
            is not MetricExportResult.SUCCESS
        ):
            raise FlinkpyError(f"the collector at {self._endpoint} does not take metrics")


def otel_name(sample: Sample, statistic: str = "") -> str:
    """The scope and the path with dots."""
    return ".".join(("flink", *sample.scope.value.split("_"), *sample.path)) + statistic


def metrics_data(samples: Iterable[Sample], service: str, now_ns: int) -> Any:
    """The samples as OpenTelemetry has them."""
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Gauge,
        Metric,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
        Sum,
    )
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    points: dict[tuple[str, bool], list[Any]] = {}
    meanings: dict[str, str] = {}
    for sample, statistic, number in numbers(samples):
        name = otel_name(sample, statistic)
        points.setdefault((name, sample.kind is Kind.COUNTER and bool(sample.meaning)), []).append(
            NumberDataPoint(
                attributes=dict(sample.labels),
                start_time_unix_nano=0,
                time_unix_nano=now_ns,
                value=number,
            )
        )
        meanings[name] = sample.meaning
    metrics = [
        Metric(
            name,
            meanings[name],
            "",
            Sum(found, AggregationTemporality.CUMULATIVE, is_monotonic=True)
            if is_sum
            else Gauge(found),
        )
        for (name, is_sum), found in points.items()
    ]
    resource = Resource({"service.name": service})
    return MetricsData(
        [
            ResourceMetrics(
                resource, [ScopeMetrics(InstrumentationScope("flinkpy"), metrics, "")], ""
            )
        ]
    )
