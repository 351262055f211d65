"""Metrics on their way to OpenTelemetry and Ray, and reporters that cannot be had."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from flinkpy.core.errors import ConfigurationError, FlinkpyError
from flinkpy.core.options.metrics import MetricsConfig
from flinkpy.metrics.definitions import Kind, Scope
from flinkpy.metrics.prometheus import exposition
from flinkpy.metrics.samples import Sample, of_engine

LABELS = {"job_name": "words", "subtask_index": "0"}
SAMPLES = [
    *of_engine(
        Scope.TASK,
        {"numRecordsIn": 7, "Shuffle.Netty.Input.Buffers.inPoolUsage": 0.5, "unknown": 1},
        LABELS,
    ),
    Sample(
        Scope.OPERATOR,
        ("cache", "ages"),
        Kind.HISTOGRAM,
        {"count": 2, "max": 9.0, "median": 4.0},
        {**LABELS, "region-id": 'a "b"\n'},
    ),
    Sample(Scope.OPERATOR, ("hits",), Kind.METER, {"count": 20, "rate": 2.0}, LABELS),
]


def test_prometheus_gets_gauges_and_summaries() -> None:
    text = exposition(SAMPLES).decode()
    labels = 'job_name="words",subtask_index="0"'
    assert f"flink_taskmanager_job_task_numRecordsIn{{{labels}}} 7.0\n" in text
    assert (
        f"flink_taskmanager_job_task_Shuffle_Netty_Input_Buffers_inPoolUsage{{{labels}}} 0.5\n"
        in text
    )
    assert "# TYPE flink_taskmanager_job_task_operator_cache_ages summary\n" in text
    assert (
        '{job_name="words",quantile="0.5",region_id="a \\"b\\"\\n",subtask_index="0"} 4.0\n' in text
    )
    assert (
        'cache_ages_count{job_name="words",region_id="a \\"b\\"\\n",subtask_index="0"} 2.0\n'
        in text
    )
    assert f"flink_taskmanager_job_task_operator_hits{{{labels}}} 2.0\n" in text
    assert "unknown" not in text


def test_a_label_that_utf_8_cannot_hold_does_not_cost_all_of_them() -> None:
    assert (
        'job_name="caf?"'
        in exposition(
            [Sample(Scope.TASK, ("hits",), Kind.GAUGE, 1, {"job_name": "caf\udce9"})]
        ).decode()
    )


def test_a_name_that_stands_for_two_kinds_is_told_once() -> None:
    other = Sample(Scope.OPERATOR, ("hits",), Kind.HISTOGRAM, {"count": 1}, LABELS)
    assert (
        exposition([*SAMPLES, other])
        .decode()
        .count("# TYPE flink_taskmanager_job_task_operator_hits")
        == 1
    )


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a collector, and what it got."""
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/metrics", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_collector_gets_sums_and_gauges(collector: tuple[str, list[bytes]]) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs flinkpy[otel]")
    import gzip

    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    from flinkpy.metrics.otel import OtelExport

    endpoint, got = collector
    OtelExport(endpoint, "cluster")(SAMPLES)
    [data] = got
    request = ExportMetricsServiceRequest.FromString(
        gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    )
    [resource] = request.resource_metrics
    metrics = {each.name: each for each in resource.scope_metrics[0].metrics}
    assert "cluster" in [each.value.string_value for each in resource.resource.attributes]
    [counted] = metrics["flink.taskmanager.job.task.numRecordsIn"].sum.data_points
    assert counted.as_int == 7 or counted.as_double == 7
    assert {each.key: each.value.string_value for each in counted.attributes} == LABELS
    assert (
        metrics["flink.taskmanager.job.task.operator.cache.ages_max"].gauge.data_points[0].as_double
        == 9.0
    )
    assert metrics["flink.taskmanager.job.task.operator.hits"].gauge.data_points[0].as_double == 2.0


@pytest.mark.wide
def test_a_collector_that_is_not_there_is_told() -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs flinkpy[otel]")
    from flinkpy.metrics.otel import OtelExport

    export = OtelExport("http://127.0.0.1:9/v1/metrics", "cluster")
    export._exporter._timeout = 0.1
    with pytest.raises(
        FlinkpyError,
        match=r"the collector at http://127\.0\.0\.1:9/v1/metrics does not take metrics",
    ):
        export(SAMPLES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metrics.reporters": "prom, jmx"},
            "there is no reporter 'jmx'; there are prom, otel, ray",
        ),
        ({"metrics.reporter.prom.port": "9249"}, "needs metrics.reporters: prom"),
        ({"metrics.reporter.otel.interval": "1 ms"}, "too small"),
    ],
)
def test_reporters_that_cannot_be_had_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        MetricsConfig.of(options)
