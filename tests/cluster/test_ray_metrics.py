"""Metrics of a job on Ray, whose tasks are in several processes: for Prometheus, and in Ray's own
export."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.ray_fixture import RayCluster, joined, ray_cluster
from tests.ports import free_port
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.timeout(400)]

ENDLESS = """
import itertools
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.datastream import StreamExecutionEnvironment

class Endless(PythonSource):
    bounded = False
    def read(self, split, position):
        return itertools.count(position)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
source = env.from_source(Endless(), None, "endless").set_parallelism(1)
source.rebalance().map(lambda n: n + 1).name("add").add_sink(lambda value: None)
env.execute_async("endless job")
"""


@pytest.fixture
def ray(tmp_path: Path) -> Iterator[RayCluster]:
    with ray_cluster(tmp_path) as cluster:
        yield cluster


def scraped(address: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """By name; nothing while the address does not answer."""
    found: dict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
    try:
        with urllib.request.urlopen(address, timeout=30) as response:
            text = response.read().decode()
    except (OSError, urllib.error.URLError):
        return found
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name].append((sample.labels, sample.value))
    return found


def test_metrics_come_from_every_process(ray: RayCluster, tmp_path: Path) -> None:
    port = free_port()
    options = [
        "-D",
        "metrics.reporters=prom,ray",
        "-D",
        f"metrics.reporter.prom.port={port}",
        "-D",
        "metrics.fetcher.update-interval=0",
        "-D",
        "metrics.reporter.ray.interval=1 s",
    ]
    assert ray.flinkpy("session", "start", *options).code == 0
    ran = ray.flinkpy("run", "-t", "ray-session", ray.job(ENDLESS))
    assert ran.code == 0, ran.err
    address, task = f"http://localhost:{port}/metrics", "flink_taskmanager_job_task_"

    def remote() -> list[float]:
        return [
            value
            for labels, value in scraped(address)[f"{task}numBytesInRemote"]
            if labels["job_name"] == "endless job" and value > 0
        ]

    eventually(lambda: bool(remote()), 2 * PATIENCE_S)
    found = scraped(address)
    assert (
        len({labels["tm_id"] for labels, _ in found[f"{task}numRecordsIn"]})
        == len(found["flink_taskmanager_numRunningTasks"])
        >= 2
    )
    assert all(value > 0 for _, value in found["flink_taskmanager_Status_Python_Memory_RSS"])
    with joined(ray):
        import ray as joined_ray

        [(host, own)] = [
            (node["NodeManagerAddress"], node["MetricsExportPort"]) for node in joined_ray.nodes()
        ]
    eventually(
        lambda: bool(scraped(f"http://{host}:{own}/metrics")[f"ray_{task}numRecordsIn".lower()]),
        2 * PATIENCE_S,
    )
    assert ray.flinkpy("session", "stop").code == 0
