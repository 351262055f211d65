"""What TaskExecutors tell the JobMaster of their memory: shown, and the reason given when one is
lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flinkpy.actors.gateways import JobHeartbeat
from flinkpy.actors.job_master.task_executors import TaskExecutors
from flinkpy.core.ids import ResourceId
from flinkpy.runtime.memory.memory_report import MemoryReport
from tests.actors.endpoints.test_asking_for_counters import Bench

EXECUTOR = ResourceId("executor")
MEMORY = MemoryReport(0, 950, 1000, 0, 0)


@pytest.mark.parametrize("tell", [TaskExecutors.heartbeat_received, TaskExecutors.heard_from])
def test_a_heartbeat_tells_of_memory_whether_it_was_asked_for_or_came_with_a_report(
    tell: Callable[[TaskExecutors, ResourceId, JobHeartbeat], None],
) -> None:
    bench = Bench()
    bench.register()
    assert bench.executors.fullest() == ()
    tell(bench.executors, EXECUTOR, JobHeartbeat(1, (), (), memory=MEMORY))
    tell(bench.executors, EXECUTOR, JobHeartbeat(2, (), ()))
    assert bench.executors.fullest() == ((EXECUTOR, MEMORY),)
    bench.executors.lose_executor(EXECUTOR, "it sent no heartbeat in time")
    assert bench.executors.fullest() == ()
    assert "killed for memory, as it seems. It had 95% of" in str(bench.lost)
