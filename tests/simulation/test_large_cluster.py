"""What a large cluster costs its masters: messages by kind, as a budget; and what the death of one
worker costs. ``python -m benchmarks large_cluster`` measures 5,000 TaskExecutors."""

from __future__ import annotations

import pytest

from tests.simulation.large_cluster import INTERVAL_S, TAKES_S, large_cluster

EXECUTORS = 60

# Calls for each TaskExecutor. To start: it registers at the ResourceManager and the JobMaster, is
# asked for slots, offers them, is sent tasks, and says that all of them run.
TO_RUN = {
    "register_task_executor": 2,
    "report_slots": 1,
    "request_slots": 1,
    "offer_slots": 1,
    "submit_tasks": 1,
    "report_tasks": 1,
}
# In ten seconds, with a checkpoint of all: what begins it and that it is complete; that its tasks
# have taken part, with the heartbeat to the JobMaster; a heartbeat of the ResourceManager, and its
# answer.
IN_TEN_SECONDS = {
    "deliver_messages": 2,
    "report_tasks": 1,
    "heartbeat_from_job_master": 0,
    "heartbeat_from_resource_manager": 1,
    "heartbeat_from_task_executor": 1,
}


@pytest.mark.wide
def test_a_large_cluster_keeps_its_budget_of_messages_and_loses_a_region_with_a_worker() -> None:
    with large_cluster(EXECUTORS, regions=5) as large:
        large.run_until(large.all_run, 60)
        for method, calls in TO_RUN.items():
            assert large.messages[method] <= calls * EXECUTORS + 2, method
        large.next_checkpoint()
        large.run_for(1.0)  # until all know
        begun = large.checkpoint_id
        sent = large.run_for(INTERVAL_S)
        assert large.checkpoint_id == begun + 1
        assert set(sent) <= set(IN_TEN_SECONDS)
        for method, calls in IN_TEN_SECONDS.items():
            assert sent[method] <= calls * EXECUTORS + 2, method
        # 5,000 TaskExecutors may send 5,800 calls a second
        assert sum(sent.values()) / INTERVAL_S <= 5_800 * EXECUTORS / 5_000

        worker = next(iter(large.cluster.workers))
        vertices = {
            each.vertex_id for each in large.cluster.crash_worker(worker).runner.tasks_in_slots()
        }
        large.run_until(lambda: not large.all_run(), 60)
        large.run_until(large.all_run, 60)
        per_region = large.subtasks // 5
        restarted = large.subtasks - large.attempts()[0]
        assert restarted % per_region == 0
        assert 0 < restarted // per_region <= len(vertices) < 5
        large.next_checkpoint()
        assert large.cluster.network.bugs == []


def test_a_checkpoint_is_complete_when_the_last_task_has_taken_its_part_and_no_tick_later() -> None:
    with large_cluster(1) as large:
        large.run_until(large.all_run, 60)
        assert all(large.next_checkpoint() < TAKES_S + 0.02 for _ in range(5))
        assert large.messages["report_tasks"] == 1 + 5
