"""A job whose workers show each other certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.ray_fixture import RayCluster
from tests.web.certificates import Authority

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.timeout(200)]

JOB = """
import gc
from flinkpy.datastream import StreamExecutionEnvironment

def encrypted(number):
    streams = (each for each in gc.get_objects() if type(each).__name__ == "TlsStream")
    return number, sum("TLSv1.3" in repr(each) for each in streams) if number % 1000 == 0 else 0

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
pairs = list(env.from_sequence(0, 9_999).key_by(lambda n: n % 7).map(encrypted).execute_and_collect())
print(sum(number for number, _ in pairs), max(streams for _, streams in pairs))
"""


def test_two_workers_pass_records_over_tls(ray: RayCluster, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    worker = authority.sign("worker")
    options = [
        "cluster.id=encrypted",
        "taskmanager.numberOfTaskSlots=1",
        "security.ssl.internal.enabled=true",
        f"security.ssl.internal.keystore={worker.certificate}",
        f"security.ssl.internal.key={worker.key}",
        f"security.ssl.internal.truststore={authority.certificate}",
    ]
    settings = [part for option in options for part in ("-D", option)]
    try:
        outcome = ray.flinkpy("run", "-t", "ray", *settings, ray.job(JOB, "encrypted.py"))
        assert (outcome.code, outcome.out) == (0, f"{sum(range(10_000))} 1\n"), outcome.err
    finally:
        ray.flinkpy("session", "stop", "encrypted")
