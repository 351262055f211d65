"""A batch job on a real Ray cluster: its results travel between processes, and it needs fewer slots
than a stream would."""

from __future__ import annotations

import pytest

from tests.cluster.ray_fixture import RayCluster

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.timeout(400)]

JOB = """
from flinkpy.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(6).set_runtime_mode(RuntimeExecutionMode.BATCH)
numbers = env.from_collection(list(range(2000))).rebalance().map(lambda n: (n % 7, 1)).slot_sharing_group("first")
counted = numbers.key_by(lambda pair: pair[0]).sum(1).slot_sharing_group("second")
with counted.execute_and_collect("batch") as results:
    print(sorted(results))
"""


def test_a_batch_job_runs_on_less_than_its_parallelism(ray: RayCluster) -> None:
    """Four CPUs; as a stream it would need twelve slots."""
    done = ray.flinkpy(
        "run", "-t", "ray-application", "-D", "execution.sorted-inputs.memory=1 kb", ray.job(JOB)
    )
    assert done.code == 0, done.err
    assert done.out.strip().endswith(str([(key, 286 if key < 5 else 285) for key in range(7)]))
