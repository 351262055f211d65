"""Where metrics go, under Flink's keys where Flink has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.ports import Ports
from flinkpy.core.options.schema import option, read

PROMETHEUS, OTEL, RAY = "prom", "otel", "ray"
_KNOWN = (PROMETHEUS, OTEL, RAY)

REPORTERS = option(
    "metrics.reporters",
    str,
    "",
    "Who gets metrics, separated by commas: prom (Prometheus fetches them from /metrics), "
    "otel (OpenTelemetry, over OTLP; needs flinkpy[otel]), "
    "ray (Ray's own export).",
)
FETCH_INTERVAL = option(
    "metrics.fetcher.update-interval",
    timedelta,
    timedelta(seconds=10),
    (
        "How old metrics may be that REST and the reporters tell: TaskExecutors are asked at "
        "most this often. 0: each time."
    ),
    at_least=timedelta(),
)
PROMETHEUS_PORT = option(
    "metrics.reporter.prom.port",
    Ports,
    None,
    "A port on which Prometheus finds /metrics, and nothing else, without a token. 0: a "
    "free one. Of a range (9249-9260) the first "
    "free one is taken. Without the option: only at the REST endpoint.",
)
OTEL_ENDPOINT = option(
    "metrics.reporter.otel.exporter.endpoint",
    str,
    "http://localhost:4318/v1/metrics",
    "The collector's address for OTLP over HTTP.",
)
OTEL_SERVICE = option(
    "metrics.reporter.otel.service.name", str, "flinkpy", "How the cluster calls itself there."
)
OTEL_INTERVAL = option(
    "metrics.reporter.otel.interval",
    timedelta,
    timedelta(seconds=10),
    "How often metrics are sent there.",
    at_least=timedelta(milliseconds=100),
)
RAY_INTERVAL = option(
    "metrics.reporter.ray.interval",
    timedelta,
    timedelta(seconds=10),
    "How often metrics are given to Ray.",
    at_least=timedelta(milliseconds=100),
)


@dataclass(frozen=True)
class MetricsConfig:
    """``prometheus_port`` None: none of its own."""

    reporters: frozenset[str] = frozenset()
    fetch_interval: timedelta = FETCH_INTERVAL.default
    prometheus_port: int | Ports | None = None
    otel_endpoint: str = OTEL_ENDPOINT.default
    otel_service: str = OTEL_SERVICE.default
    otel_interval: timedelta = OTEL_INTERVAL.default
    ray_interval: timedelta = RAY_INTERVAL.default

    @staticmethod
    def of(values: Mapping[str, Any]) -> MetricsConfig:
        """Raises ConfigurationError for an unknown reporter, and for a port of Prometheus without
        its reporter."""
        reporters = frozenset(
            name.strip() for name in read(values, REPORTERS).split(",") if name.strip()
        )
        unknown = sorted(reporters - set(_KNOWN))
        if unknown:
            raise ConfigurationError(
                f"option {REPORTERS.key}: there is no reporter {unknown[0]!r}; there are "
                f"{', '.join(_KNOWN)}"
            )
        port = read(values, PROMETHEUS_PORT)
        if port is not None and PROMETHEUS not in reporters:
            raise ConfigurationError(
                f"option {PROMETHEUS_PORT.key} needs {REPORTERS.key}: {PROMETHEUS}"
            )
        return MetricsConfig(
            reporters,
            read(values, FETCH_INTERVAL),
            port,
            read(values, OTEL_ENDPOINT),
            read(values, OTEL_SERVICE),
            read(values, OTEL_INTERVAL),
            read(values, RAY_INTERVAL),
        )

    @property
    def needs_server(self) -> bool:
        """Whether somebody must be served though there is no REST endpoint."""
        return self.prometheus_port is not None or bool(self.reporters & {OTEL, RAY})
