"""A job whose workers show each other certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.ray_fixture import RayCluster
from tests.web.certificates import Authority

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.timeout(200)]

JOB = """
import sys
from flinkpy.datastream import StreamExecutionEnvironment

def encrypted(number):
    return number, "flinkpy.network.wire.tls_transport" in sys.modules

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
numbers = env.from_sequence(0, 99_999).key_by(lambda number: number % 7)
pairs = list(numbers.map(encrypted).execute_and_collect())
print(sum(number for number, _ in pairs), all(is_encrypted for _, is_encrypted in pairs))
"""


def test_two_workers_pass_records_over_tls(ray: RayCluster, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    worker = authority.sign("worker")
    options = [
        "cluster.id=encrypted",
        "client.timeout=150 s",
        "taskmanager.numberOfTaskSlots=1",
        "security.ssl.internal.enabled=true",
        f"security.ssl.internal.keystore={worker.certificate}",
        f"security.ssl.internal.key={worker.key}",
        f"security.ssl.internal.truststore={authority.certificate}",
    ]
    settings = [part for option in options for part in ("-D", option)]
    try:
        outcome = ray.flinkpy("run", "-t", "ray", *settings, ray.job(JOB, "encrypted.py"))
        assert (outcome.code, outcome.out) == (0, f"{sum(range(100_000))} True\n"), outcome.err
    finally:
        ray.flinkpy("session", "stop", "encrypted")
