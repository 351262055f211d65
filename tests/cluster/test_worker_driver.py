"""What the ResourceManager hears of workers on Ray, with an actor that dies when the test says
so."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

pytest.importorskip("ray")

from ray.exceptions import ActorDiedError, ActorUnavailableError

from flinkpy.actors.rpc.leadership import FixedLeader
from flinkpy.actors.rpc.ray_service import RayHost, RayRpcService
from flinkpy.cluster.ray import workers
from flinkpy.cluster.session import SessionConfig
from flinkpy.core.ids import FencingToken, ResourceId
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.graph.resources import ANY
from tests.waiting import eventually

WORKER = ResourceId("taskexecutor-1")


class FakeActor:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.started: Future[str] = Future()
        self.ends: list[Future[str]] = []
        self.ready = SimpleNamespace(remote=lambda: SimpleNamespace(future=lambda: self.started))
        self.await_termination = SimpleNamespace(
            remote=lambda: SimpleNamespace(future=self._new_end)
        )

    def _new_end(self) -> Future[str]:
        self.ends.append(Future())
        return self.ends[-1]


@pytest.fixture
def actor() -> FakeActor:
    return FakeActor()


@pytest.fixture
def told(actor: FakeActor, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is told of a worker that starts."""
    monkeypatch.setattr(
        workers, "start_host", lambda process, *args, **kwargs: RayHost(process, actor)
    )
    service = RayRpcService("jobmanager")
    leader = FixedLeader("jobmanager/resourcemanager", FencingToken("term"))
    driver = workers.RayWorkerDriver(
        service, leader, SessionConfig.of({}), NetworkConfig.of({}), None, b"", ""
    )
    reasons: list[str] = []
    driver.start_worker(WORKER, 1, ANY, reasons.append)
    yield reasons
    service.stop().result(10)


def test_a_worker_that_cannot_start_is_told(actor: FakeActor, told: list[str]) -> None:
    actor.started.set_exception(RuntimeError("no such package"))
    assert told == ["process taskexecutor-1 did not start: no such package"]
    assert actor.ends == []


def test_a_worker_that_dies_once_it_was_ready_is_told_also_if_it_never_registered(
    actor: FakeActor, told: list[str]
) -> None:
    actor.started.set_result("taskexecutor-1")
    assert told == []
    actor.ends[0].set_exception(ActorDiedError())
    [reason] = told
    assert reason.startswith("process taskexecutor-1 died: ")


def test_a_worker_that_is_out_of_reach_for_a_moment_is_not_dead(
    actor: FakeActor, told: list[str]
) -> None:
    actor.started.set_result("taskexecutor-1")
    actor.ends[0].set_exception(ActorUnavailableError("for a moment", None))
    eventually(lambda: len(actor.ends) == 2)
    assert told == []
    actor.ends[1].set_result("stopped")
    assert told == ["process taskexecutor-1 has stopped"]
