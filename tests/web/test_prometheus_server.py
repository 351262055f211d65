"""A real Prometheus reads the metrics of a running job."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.metrics.definitions import Scope
from tests.ports import free_port
from tests.waiting import eventually
from tests.web.rest import held_job

PROMETHEUS = shutil.which("prometheus")
pytestmark = pytest.mark.skipif(
    PROMETHEUS is None, reason="there is no prometheus on this machine: apt-get install prometheus"
)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def server(port: int, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that reads the metrics at that port every second."""
    assert PROMETHEUS is not None
    (tmp_path / "prometheus.yml").write_text(
        f"scrape_configs: [{{job_name: flinkpy, scrape_interval: 1s, static_configs: "
        f"[{{targets: ['localhost:{port}']}}]}}]"
    )
    address = f"127.0.0.1:{free_port()}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                PROMETHEUS,
                f"--config.file={tmp_path}/prometheus.yml",
                f"--storage.tsdb.path={tmp_path}/data",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield address
    finally:
        process.terminate()
        process.wait(60)


def asked(address: str, query: str) -> list[dict[str, Any]]:
    try:
        with urllib.request.urlopen(
            f"http://{address}/api/v1/query?query={urllib.parse.quote(query)}", timeout=30
        ) as response:
            found: list[dict[str, Any]] = json.load(response)["data"]["result"]
            return found
    except OSError:  # it has not begun yet
        return []


@pytest.mark.wide
def test_prometheus_reads_a_running_job(server: str, port: int) -> None:
    options = {
        "metrics.reporters": "prom",
        "metrics.reporter.prom.port": str(port),
        "metrics.fetcher.update-interval": "0",
        "taskmanager.network.batch.max-records": "1",
    }
    try:
        with held_job(options) as client:
            name = "flink_taskmanager_job_task_numRecordsOut"
            eventually(lambda: any(each["value"][1] == "5" for each in asked(server, name)))
            [source] = [each["metric"] for each in asked(server, name) if each["value"][1] == "5"]
            assert (source["job_id"], source["job_name"], source["subtask_index"]) == (
                str(client.get_job_id()),
                "held",
                "0",
            )
            for scope in Scope:
                assert asked(server, f'count({{__name__=~"flink_{scope.value}_.+"}})'), scope
            assert asked(server, 'up{job="flinkpy"}')[0]["value"][1] == "1"
    finally:
        stop_embedded()
