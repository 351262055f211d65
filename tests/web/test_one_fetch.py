"""REST and the metric reporters have threads of their own, and one reading of the cluster."""

from __future__ import annotations

import time
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from flinkpy.cluster.embedded import stop_embedded
from tests.ports import free_port
from tests.web.rest import Rest, waiting_job

NAME = "Status.Python.CPU.Time"  # another one when the process has worked


def scraped(port: int) -> float:
    with urllib.request.urlopen(f"http://localhost:{port}/metrics", timeout=30) as response:
        families = {
            each.name: each for each in text_string_to_metric_families(response.read().decode())
        }
    [sample] = families[f"flink_jobmanager_{NAME.replace('.', '_')}"].samples
    return float(sample.value)


def test_what_one_has_fetched_the_other_does_not_fetch_again() -> None:
    port, prometheus = free_port(), free_port()
    options = {
        "rest.enabled": "true",
        "rest.authentication": "NONE",
        "rest.port": str(port),
        "metrics.fetcher.update-interval": "1 h",
        "metrics.reporters": "prom",
        "metrics.reporter.prom.port": str(prometheus),
    }
    try:
        with waiting_job(options):
            [first] = Rest(port).get(f"/jobmanager/metrics?get={NAME}")
            began_s = time.process_time()
            while time.process_time() < began_s + 0.1:  # of this process, which is the cluster's
                pass
            assert float(first["value"]) == scraped(prometheus) == scraped(prometheus)
            assert Rest(port).get(f"/jobmanager/metrics?get={NAME}") == [first]
    finally:
        stop_embedded()
