"""A big cluster: 1,000 TaskExecutors of 10 slots, and a job of 10,000 subtasks that takes all of
them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.engine import SlotConfig
from flinkpy.graph.job_graph import DistributionPattern, JobGraph, JobVertex
from flinkpy.testing.simulation import SimulatedCluster, TaskBehaviour
from flinkpy.testing.simulation.simulated_jobs import JobBuilder

pytestmark = pytest.mark.wide

SUBTASKS = 10_000
REAL_SECONDS = 20.0


def wide_job(vertices: int) -> JobGraph:
    """Connected all to all, each vertex in a sharing group of its own, so that every subtask needs
    a slot."""
    builder = JobBuilder(JobId("wide"))
    last: JobVertex | None = None
    for number in range(vertices):
        inputs = [(last, DistributionPattern.ALL_TO_ALL)] if last is not None else []
        last = builder.vertex(
            SUBTASKS // vertices, inputs, TaskBehaviour(run_s=5.0), group=f"group-{number}"
        )
    return builder.build()


@pytest.mark.parametrize("vertices", [10, 2])
def test_ten_thousand_subtasks_are_scheduled_in_time_and_give_everything_back(
    vertices: int,
) -> None:
    cluster = SimulatedCluster(
        slot_config=SlotConfig(10, idle_timeout=timedelta(seconds=30)), max_slots=SUBTASKS
    )
    client = cluster.result(cluster.client())
    job = wide_job(vertices)
    began = SYSTEM_CLOCK.monotonic()
    cluster.result(client.submit_job(job))
    graph = cluster.job_masters[job.job_id].scheduler.graph
    assert cluster.network.run_until(lambda: graph.count(ExecutionState.RUNNING) == SUBTASKS, 60)
    took = SYSTEM_CLOCK.monotonic() - began
    assert took < REAL_SECONDS, f"scheduling took {took:.1f} s"
    assert cluster.resource_manager.slots.statistics().free == 0
    assert cluster.driver.started == SUBTASKS // 10  # not one worker more than needed
    result = cluster.result(client.request_job_result(job.job_id, 8.0))
    assert result is not None
    assert (result.state, result.accumulators["tasks"]) == (JobState.FINISHED, SUBTASKS)
    assert cluster.network.run_until(lambda: not cluster.workers, 60)  # idle, and stopped
    assert cluster.resource_manager.slots.statistics().executors == 0
