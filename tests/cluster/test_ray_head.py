"""Whether a program that waits finds out that Ray's head has gone, from real ports."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from flinkpy.actors.gateways import DispatcherGateway, JobResult
from flinkpy.cluster.client import ClientConfig, ClientSession, ClusterClient
from flinkpy.cluster.ray.head_node import GONE_AFTER_S, RECONNECT_TIMEOUT, RayHead
from flinkpy.core.errors import JobExecutionError, ResourceUnavailableError, TaskExecutorLostError
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import JobState
from tests.cluster.ray_fixture import finish, ray_cluster
from tests.cluster.test_sessions import ENDLESS
from tests.waiting import eventually


class Listener:
    """Somebody at a port, who can go and come back."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._socket.getsockname())

    def go(self) -> None:
        self._socket.close()

    def come_back(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", int(self.address.rpartition(":")[2])))


class UnderRay(ClientSession):
    """Of a Ray head that listens there."""

    def __init__(self, listener: Listener) -> None:
        self.head = RayHead(listener.address, "Ray is gone")


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.go()


def test_a_head_that_refuses_connections_for_a_while_is_gone(listener: Listener) -> None:
    head = RayHead(listener.address, "Ray is gone")
    head.check(100.0)
    listener.go()
    head.check(101.0)
    head.check(101.0 + GONE_AFTER_S - 0.1)
    with pytest.raises(ResourceUnavailableError, match="Ray is gone"):
        head.check(102.0 + GONE_AFTER_S)
    assert head.is_gone


def test_a_head_that_comes_back_in_time_is_not(listener: Listener) -> None:
    head = RayHead(listener.address, "Ray is gone")
    listener.go()
    head.check(100.0)
    listener.come_back()
    head.check(102.0)
    assert not head.is_gone
    listener.go()
    head.check(104.0)
    head.check(106.0)  # counted anew
    listener.come_back()
    head.check(120.0)


def test_who_has_a_head_that_comes_back_says_how_long_that_takes(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RECONNECT_TIMEOUT, "300")
    head = RayHead(listener.address, "Ray is gone")
    listener.go()
    head.check(100.0)
    head.check(399.0)
    with pytest.raises(ResourceUnavailableError):
        head.check(400.0)


def test_looking_is_not_done_at_every_call(listener: Listener) -> None:
    head = RayHead(listener.address, "Ray is gone")
    head.check(100.0)
    listener.go()
    head.check(100.5)
    assert not head.is_gone


@pytest.mark.finding("hunts 18")
def test_a_wait_for_an_answer_that_does_not_come_ends_when_the_head_is_gone(
    listener: Listener,
) -> None:
    class Silent:
        def request_job_status(self, job_id: JobId) -> Future[object]:
            listener.go()
            return Future()

    client = ClusterClient(
        cast(DispatcherGateway, Silent()),
        ClientConfig(ask_timeout_s=50.0),
        session=UnderRay(listener),
    )
    with pytest.raises(ResourceUnavailableError, match="Ray is gone"):
        client.job(JobId("ab12")).status()


def test_a_job_that_lost_its_worker_because_ray_went_away_says_that_ray_is_gone(
    listener: Listener,
) -> None:
    """The worker died first, and the JobManager had time to tell."""
    lost = TaskExecutorLostError("taskexecutor-1 is lost")

    class Dying:
        def request_job_result(self, job_id: JobId, wait_s: float) -> Future[JobResult]:
            return Future.completed(JobResult(job_id, "endless", JobState.FAILED, 1, lost))

    client = ClusterClient(cast(DispatcherGateway, Dying()), session=UnderRay(listener))
    with pytest.raises(JobExecutionError, match="taskexecutor-1 is lost"):
        client.job(JobId("ab12")).result()
    listener.go()
    with pytest.raises(ResourceUnavailableError, match="Ray is gone"):
        client.job(JobId("ab12")).result()


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.finding("hunts 18")
def test_a_program_that_waits_is_told_when_the_head_is_killed(tmp_path: Path) -> None:
    """The processes of the job live, and answer: Ray gives them a minute."""
    with ray_cluster(tmp_path) as ray:
        started = tmp_path / "started"
        waiting = ray.start("run", "-t", "ray-session", ray.job(ENDLESS), str(started), "endless")
        eventually(started.exists)
        os.kill(ray.control, signal.SIGKILL)
        outcome = finish(waiting, 30)
    assert outcome.code == 1
    assert outcome.err == (
        f"the flinkpy session 'default' on Ray is gone: no Ray answers at {ray.address} any "
        "more (`ray status` tells); "
        "run the program again to start anew\n"
    )
