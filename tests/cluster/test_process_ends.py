"""Processes on Ray that are told to stop (SIGTERM), and those that end by an error of the engine:
who is told what, who goes on, and what is left.

``test_kills`` has the disturbed job whose output must be the undisturbed one's; ``python -m
benchmarks.kills --signal TERM`` does so for longer."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.actors.rpc.ray_service import NAMESPACE, RpcHost
from flinkpy.cluster.client import ClusterJob
from flinkpy.cluster.launch import submit
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import JobCancelledError, JobExecutionError, ResourceUnavailableError
from flinkpy.core.lifecycles import JobState
from tests.cluster.programs import Endless, dropped, graph, mapped, source
from tests.cluster.test_recovery import OPTIONS
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(200)]

CLUSTER = "told-to-stop"
GRACE_S = 12.0  # a process that was told to stop has ended by then; Kubernetes gives 30 s


@pytest.fixture
def options(on_ray: None, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Of a session that ends with the test; its heartbeats are too slow to notice anything."""
    from flinkpy.cluster.ray.ray_sessions import stop_session

    chosen = {
        **OPTIONS,
        "execution.target": "ray-session",
        "cluster.id": CLUSTER,
        "client.progress": False,
        "heartbeat.timeout": "300 s",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "io.tmp.dirs": str(tmp_path / "tmp"),
    }
    (tmp_path / "tmp").mkdir()
    yield chosen
    stop_session(chosen)
    eventually(lambda: not processes())


def processes() -> dict[str, int]:
    from ray._private import state

    return {
        actor["Name"]: actor["Pid"]
        for actor in state.actors().values()
        if actor["State"] == "ALIVE" and not actor["Name"].startswith("_")
    }


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::")
    except OSError:
        return False


def log_of(process: str) -> str:
    """What it has written to standard error, which Ray keeps in a file."""
    return Path(os.readlink(f"/proc/{processes()[process]}/fd/2")).read_text()


def running(options: dict[str, Any]) -> ClusterJob:
    """A job that writes checkpoints and never ends."""
    job = submit(graph(dropped(mapped(source(Endless()), str)), "endless", 2, **options), options)
    eventually(
        lambda: all(vertex.records_in + vertex.records_out > 0 for vertex in job.details().vertices)
    )
    return job


def fail_by_a_bug(process: str, endpoint: str) -> None:
    """An error escapes from the main thread of one of its endpoints."""
    import ray

    def spoil(host: RpcHost) -> None:
        def bug() -> None:
            raise KeyError("a bug")

        host.service._hosts[endpoint].execute(bug)

    ray.get_actor(process, namespace=NAMESPACE).__ray_call__.remote(spoil)


@pytest.mark.wide
@pytest.mark.finding("faults 1")
@pytest.mark.finding("faults 12")
@pytest.mark.finding("newcomers 10")
def test_a_worker_that_is_told_to_stop_gives_its_slots_back_and_its_job_goes_on_at_once(
    options: dict[str, Any],
) -> None:
    job = running(options)
    name, process = next(
        (name, process) for name, process in processes().items() if name.startswith("taskexecutor-")
    )
    os.kill(process, signal.SIGTERM)
    told = SYSTEM_CLOCK.monotonic()
    eventually(lambda: job.details().restarts == 1 and job.status() is JobState.RUNNING)
    eventually(lambda: not lives(process))
    assert SYSTEM_CLOCK.monotonic() - told < GRACE_S
    failure = job.details().last_failure
    assert f"{name} was told to stop (SIGTERM)" in failure
    eventually(
        lambda: (
            log_of(f"jobmanager-{CLUSTER}").count(f"job 'endless' is {JobState.RUNNING.name} ") == 2
        )
    )
    eventually(
        lambda: (
            None
            is not re.search(
                r"INFO .*checkpoint \d+ of job 'endless' is COMPLETED",
                log_of(f"jobmanager-{CLUSTER}"),
            )
        )
    )
    log = log_of(f"jobmanager-{CLUSTER}")
    assert re.search(rf"INFO .*{name} is lost: {name} was told to stop", log), log
    assert re.search(rf"INFO .*job 'endless' is RESTARTING: .*{name} was told to stop", log), log
    job.cancel()


@pytest.mark.wide
@pytest.mark.finding("faults 1")
def test_a_job_manager_without_a_successor_that_is_told_to_stop_cancels_its_jobs_and_says_why(
    options: dict[str, Any], tmp_path: Path
) -> None:
    job = running(options)
    before = processes()
    eventually(lambda: next((tmp_path / "checkpoints").glob("*/chk-*/_metadata"), None) is not None)
    os.kill(before[f"jobmanager-{CLUSTER}"], signal.SIGTERM)
    told = SYSTEM_CLOCK.monotonic()
    with pytest.raises(
        JobCancelledError, match=rf"jobmanager-{CLUSTER} was told to stop \(SIGTERM\)"
    ):
        job.result(PATIENCE_S)
    eventually(lambda: not [process for process in before.values() if lives(process)])
    assert SYSTEM_CLOCK.monotonic() - told < GRACE_S
    left = [path for part in ("checkpoints", "tmp") for path in (tmp_path / part).rglob("*")]
    assert left == []


@pytest.mark.wide
@pytest.mark.finding("gaps G12")
def test_an_error_of_the_engine_in_the_job_manager_is_told_to_clients_with_its_place(
    options: dict[str, Any],
) -> None:
    job = running(options)
    before = processes()
    fail_by_a_bug(f"jobmanager-{CLUSTER}", "resourcemanager")
    with pytest.raises(
        JobExecutionError,
        match=(
            rf"jobmanager-{CLUSTER}/resourcemanager ended by an error.*KeyError: 'a bug'.*in "
            r"bug\)"
        ),
    ):
        job.result(PATIENCE_S)
    with pytest.raises(ResourceUnavailableError):
        job.status()
    eventually(lambda: not [process for process in before.values() if lives(process)])


@pytest.mark.wide
@pytest.mark.finding("gaps G12")
def test_with_high_availability_another_job_manager_follows_one_that_ends_by_an_error(
    options: dict[str, Any], tmp_path: Path
) -> None:
    options |= {
        "high-availability.type": "filesystem",
        "high-availability.storageDir": str(tmp_path / "ha"),
    }
    job = running(options)
    name = f"jobmanager-{CLUSTER}"
    first = processes()[name]
    fail_by_a_bug(name, "dispatcher")
    eventually(lambda: processes().get(name, first) != first)
    eventually(lambda: job.status() is JobState.RUNNING)
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.result(PATIENCE_S)


@pytest.mark.wide
@pytest.mark.finding("gaps G12")
def test_a_worker_that_ends_by_an_error_is_lost_with_this_error(options: dict[str, Any]) -> None:
    job = running(options)
    worker = next(name for name in processes() if name.startswith("taskexecutor-"))
    fail_by_a_bug(worker, "taskexecutor")
    eventually(lambda: job.details().restarts == 1 and job.status() is JobState.RUNNING)
    assert "KeyError: 'a bug'" in job.details().last_failure
    job.cancel()
