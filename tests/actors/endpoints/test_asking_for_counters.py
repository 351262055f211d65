"""Who asks the JobMaster for counters is told what is at most so old; answers that are on their way
are not known yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from flinkpy.actors.job_master.job_master import JobMaster
from flinkpy.actors.job_master.task_executors import TaskExecutors
from flinkpy.actors.rpc.simulated.event_queue import Simulation
from flinkpy.core.futures import Future
from flinkpy.core.ids import AllocationId, JobId, ResourceId
from flinkpy.core.options.engine import RpcConfig
from flinkpy.graph.deployment import JobMasterRegistration, TaskManagerLocation

FRESH_S = 1.0


class Bench:
    """TaskExecutors on a bare simulation: one is registered, and counts how often it was asked
    beside the usual heartbeats."""

    def __init__(self) -> None:
        self.simulation = Simulation()
        self.asked: list[float] = []
        self.lost: list[object] = []  # why slots were
        service = SimpleNamespace(
            clock=self.simulation.clock, watch=lambda *_: SimpleNamespace(cancel=lambda: None)
        )
        endpoint = SimpleNamespace(
            service=service,
            schedule_run_async=self.simulation.schedule,
            main_thread=self.simulation,
            address="job-master",
        )
        job_master = cast(
            JobMasterRegistration,
            SimpleNamespace(token=None, job_id=JobId("job"), resource_id=ResourceId("job-master")),
        )
        self.executors = TaskExecutors(
            cast(Any, endpoint),
            job_master,
            RpcConfig(),
            cast(Any, SimpleNamespace(remove_slots_of=lambda _: [AllocationId("slot")])),
            lambda *events: self.lost.extend(events),
            lambda *_: None,
        )

    def register(self) -> None:
        gateway = SimpleNamespace(
            heartbeat_from_job_master=lambda _: self.asked.append(self.simulation.now),
            cancel_tasks=None,
            disconnect_job_master=lambda *_: None,
        )
        self.executors.add_executor(
            TaskManagerLocation(ResourceId("executor"), "executor"), cast(Any, gateway)
        )
        self.simulation.run_for(0.0)
        self.asked.clear()


@pytest.fixture
def bench() -> Bench:
    found = Bench()
    found.register()
    return found


def test_the_first_is_answered_when_there_was_time_to_count(bench: Bench) -> None:
    told = bench.executors.request_metrics(FRESH_S)
    assert (told.done, bench.asked) == (False, [0.0])
    bench.simulation.run_for(TaskExecutors.METRICS_AGE_S)
    assert told.done


def test_who_asks_while_the_first_answers_are_on_their_way_waits_for_them(bench: Bench) -> None:
    bench.executors.request_metrics()
    bench.simulation.run_for(0.01)
    told = bench.executors.request_metrics(FRESH_S)
    assert (told.done, bench.asked) == (False, [0.0])
    bench.simulation.run_for(TaskExecutors.METRICS_AGE_S)
    assert told.done


def test_what_was_asked_for_lately_is_told_at_once_and_asked_for_again(bench: Bench) -> None:
    bench.executors.request_metrics()
    bench.simulation.run_for(0.5)
    assert bench.executors.request_metrics(FRESH_S).done
    assert bench.asked == [0.0, 0.5]
    bench.simulation.run_for(0.1)
    assert bench.executors.request_metrics(FRESH_S).done


def test_what_is_old_is_asked_for_again_and_waited_for(bench: Bench) -> None:
    bench.executors.request_metrics()
    bench.simulation.run_for(FRESH_S + 0.1)
    assert not bench.executors.request_metrics(FRESH_S).done


def test_a_question_that_reached_nobody_does_not_count() -> None:
    bench = Bench()
    assert bench.executors.request_metrics(FRESH_S).done
    bench.register()
    assert not bench.executors.request_metrics(FRESH_S).done
    assert bench.asked == [0.0]


@pytest.mark.finding("newcomers 8")
@pytest.mark.parametrize("request_name", ["request_details", "request_execution_graph"])
def test_the_first_look_at_a_job_waits_for_what_its_tasks_have_counted(request_name: str) -> None:
    told: list[Any] = []
    counted: Future[None] = Future()
    nothing = SimpleNamespace(details=lambda: None, report=lambda: None)
    status = SimpleNamespace(
        details=lambda *_: "what was counted", graph_info=lambda _: "what was counted"
    )
    executors = SimpleNamespace(
        request_metrics=lambda fresh_s: counted if fresh_s == FRESH_S else None, fullest=lambda: ()
    )
    master = SimpleNamespace(
        _executors=executors, COUNTERS_FRESH_S=FRESH_S, status=status, scheduler=nothing
    )
    getattr(JobMaster, request_name)(master).add_done_callback(
        lambda answer: told.append(answer.result())
    )
    assert told == []
    counted.complete(None)
    assert told == ["what was counted"]
