"""The processes of a cluster, asked by those who serve HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from flinkpy.actors.gateways import ResourceManagerGateway
from flinkpy.actors.inspector.inspector_gateway import ProcessFigures
from flinkpy.actors.rpc.leadership import connect_to_leader
from flinkpy.actors.task_executor_info import TaskExecutorInfo
from flinkpy.cluster.embedded import EmbeddedCluster
from flinkpy.core.errors import RecipientUnreachableError, RpcTimeoutError
from flinkpy.core.futures import Future
from flinkpy.core.ids import ResourceId
from flinkpy.graph.resources import ANY
from flinkpy.web import inspector_calls
from flinkpy.web.inspector_calls import InspectorCalls
from tests.waiting import eventually

ONE, TWO = ResourceId("tm-1"), ResourceId("tm-2")


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """A session with two TaskExecutors of two slots."""
    cluster = EmbeddedCluster({})
    try:
        for resource_id in (ONE, TWO):
            cluster.driver.start_worker(resource_id, 2, ANY, lambda reason: None)
        eventually(lambda: len(told(cluster)) == 2)
        yield cluster
    finally:
        cluster.stop()


def manager_of(cluster: EmbeddedCluster) -> ResourceManagerGateway:
    return connect_to_leader(
        cluster.service, cluster.job_manager.managing.retrieval(), ResourceManagerGateway
    ).result(30)


def told(cluster: EmbeddedCluster) -> tuple[TaskExecutorInfo, ...]:
    return manager_of(cluster).request_task_executors().result(30)


async def figures(calls: InspectorCalls) -> dict[ResourceId, ProcessFigures]:
    return await calls.ask_all("figures", lambda inspector: inspector.request_figures())


def test_the_resource_manager_tells_of_each_task_executor(cluster: EmbeddedCluster) -> None:
    one, two = sorted(told(cluster), key=lambda each: each.resource_id)
    assert (one.resource_id, two.resource_id, len(one.slots), one.free_slots) == (ONE, TWO, 2, 2)
    assert one.process.pid == os.getpid()
    assert one.process.inspector == "tm-1/inspector"
    assert 0 < one.registered_ms <= one.heartbeat_ms + 1000  # two clocks
    assert one.process.cpu_cores > 0
    assert one.data_port > 0


def test_every_process_answers_for_itself(cluster: EmbeddedCluster) -> None:
    async def ask() -> None:
        calls = InspectorCalls(cluster.service, manager_of(cluster))
        answers = await figures(calls)
        assert answers.keys() == {ONE, TWO}
        assert answers[ONE].threads > 2
        assert answers[ONE].cpu_s > 0
        own = await calls.ask(
            calls.job_manager, "figures", lambda inspector: inspector.request_figures()
        )
        assert own.rss > 1_000_000

    asyncio.run(ask())


def test_a_process_that_has_gone_is_left_out(cluster: EmbeddedCluster) -> None:
    async def ask() -> None:
        calls = InspectorCalls(cluster.service, manager_of(cluster))
        known = await calls.task_executors()
        gone = replace(known[0], process=replace(known[0].process, inspector="tm-3/inspector"))
        calls.task_executors = lambda: asyncio.sleep(0, (gone, known[1]))  # type: ignore[method-assign]
        assert (await figures(calls)).keys() == {known[1].resource_id}
        with pytest.raises(RecipientUnreachableError):
            await calls.ask(
                "tm-3/inspector", "figures", lambda inspector: inspector.request_figures()
            )

    asyncio.run(ask())


def test_a_process_that_does_not_answer_is_not_waited_for(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspector_calls, "PATIENCE_S", 0.01)
    asked = []

    def no_answer(_: object) -> Future[int]:
        asked.append(1)
        return Future()

    async def ask() -> None:
        calls = InspectorCalls(cluster.service, manager_of(cluster))
        for _ in range(3):
            with pytest.raises(RpcTimeoutError, match="tm-1/inspector: no answer"):
                await calls.ask("tm-1/inspector", "nothing", no_answer)
        assert len(asked) <= 1, "who asks again waits for the first answer"

    asyncio.run(ask())
