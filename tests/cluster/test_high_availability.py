"""The JobManager's process is killed while jobs run (``kill -9``). Ray starts it again, and the
jobs go on: nothing is lost, and nothing comes twice.

What the program collects and what lies in the files is that of an undisturbed run."""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.launch import connect, submitted_jobs
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.core.errors import JobCancelledError, JobExecutionError
from flinkpy.datastream import StreamExecutionEnvironment
from tests.cluster.recovery_programs import KILLED, Recovering
from tests.cluster.test_recovery import OPTIONS, newest_checkpoint, workers, written
from tests.ports import free_port
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

WINDOWS, JOIN, COLUMNS = KILLED[0], KILLED[2], KILLED[5]
CLUSTER = "survivor"


def processes() -> dict[str, int]:
    from ray._private import state

    return {
        actor["Name"]: actor["Pid"]
        for actor in state.actors().values()
        if actor["State"] == "ALIVE"
    }


def kill_job_manager() -> None:
    """Returns when Ray has started it again."""
    name = f"jobmanager-{CLUSTER}"
    process = processes()[name]
    os.kill(process, signal.SIGKILL)
    eventually(lambda: processes().get(name, process) != process)


def kill_worker() -> None:
    own = sorted(name for name in workers() if name.startswith(f"taskexecutor-{CLUSTER}-"))
    os.kill(workers()[own[0]], signal.SIGKILL)


@pytest.fixture
def options(on_ray: None, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Of a session that ends with the test."""
    from flinkpy.cluster.ray.ray_sessions import stop_session

    chosen = {
        **OPTIONS,
        "execution.target": "ray-session",
        "cluster.id": CLUSTER,
        "high-availability.type": "filesystem",
        "high-availability.storageDir": str(tmp_path / "ha"),
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
    }
    yield chosen
    stop_session(chosen)
    eventually(lambda: not [name for name in processes() if CLUSTER in name])
    assert list((tmp_path / "ha").iterdir()) == []


def environment(options: dict[str, Any]) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(2)
    return env


def checkpoint_taken(folder: Path) -> None:
    """From now on."""
    taken = newest_checkpoint(folder)
    eventually(lambda: newest_checkpoint(folder) > taken)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("case", "killed"),
    [
        (WINDOWS, "once"),
        (WINDOWS, "twice"),
        (WINDOWS, "with a worker"),
        (JOIN, "once"),
        (COLUMNS, "once"),
    ],
    ids=str,
)
def test_a_killed_job_manager_changes_nothing_in_the_results(
    case: Recovering,
    killed: str,
    options: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = case.build(environment({**options, **case.options}), tmp_path)
    stream.sink_to(FileSink(tmp_path / "out", case.format))
    with stream.execute_and_collect(case.name) as results:
        checkpoint_taken(tmp_path / "checkpoints")
        if killed == "with a worker":
            kill_worker()
        kill_job_manager()
        if killed == "twice":
            checkpoint_taken(tmp_path / "checkpoints")
            kill_job_manager()
        assert submitted_jobs()[-1].status().name in (
            "RUNNING",
            "RESTARTING",
            "CREATED",
            "INITIALIZING",
            "FINISHED",  # on a slow machine the job may end between the checkpoint and the kill
        )
        collected = [tuple(record) for record in results]
    wanted = sorted(case.wanted())
    assert sorted(collected) == wanted
    assert sorted(written(tmp_path / "out", case.format)) == wanted
    assert list((tmp_path / "checkpoints").iterdir()) == []
    assert "the JobManager died, and is started again" in capsys.readouterr().err


@pytest.mark.wide
def test_jobs_that_had_ended_are_not_run_again_and_their_results_are_still_told(
    options: dict[str, Any], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()

    def note(number: int) -> int:
        (runs / f"{os.getpid()}-{number}").touch()
        return number

    env = environment(options)
    env.from_collection([1, 2, 3]).map(note).sink_to(FileSink(tmp_path / "out"))
    finished = env.execute_async("finished")
    finished.get_job_execution_result().result()
    options["restart-strategy.type"] = "none"
    failing = environment(options)
    failing.from_collection([1, 0]).map(lambda n: 1 / n).sink_to(FileSink(tmp_path / "never"))
    failed = failing.execute_async("failed")
    with pytest.raises(JobExecutionError):
        failed.get_job_execution_result().result()
    before = set(runs.iterdir())
    kill_job_manager()
    client = connect(options)
    states = {job.name: job.state.name for job in client.list_jobs()}
    assert states == {"finished": "FINISHED", "failed": "FAILED"}
    assert set(runs.iterdir()) == before
    again = client.job(submitted_jobs()[-1].job_id)
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        again.result()


@pytest.mark.wide
def test_a_job_is_cancelled_through_the_next_job_manager(
    options: dict[str, Any], tmp_path: Path
) -> None:
    env = environment(options)
    env.generate(lambda index: index, rate=100.0).key_by(lambda n: n % 3).reduce(
        lambda a, b: a + b
    ).sink_to(FileSink(tmp_path / "out"))
    env.execute_async("endless")
    job = submitted_jobs()[-1]
    checkpoint_taken(tmp_path / "checkpoints")
    kill_job_manager()
    eventually(lambda: job.status().name == "RUNNING")
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.result()
    assert list((tmp_path / "checkpoints").iterdir()) == []


@pytest.mark.wide
def test_the_page_is_at_its_address_again_when_the_job_manager_is(options: dict[str, Any]) -> None:
    from flinkpy.cluster.ray.ray_sessions import running_clusters, start_session

    port = free_port()
    options |= {"rest.enabled": True, "rest.port": port, "rest.token": "kept"}
    start_session(options)

    def page() -> str:
        """Where the session says it is; empty while it does not answer."""
        told = next(
            (
                cluster.info.page
                for cluster in running_clusters(options)
                if cluster.name == CLUSTER and cluster.info is not None
            ),
            "",
        )
        if told:
            urllib.request.urlopen(told, timeout=30).close()
        return told

    assert page() == f"http://localhost:{port}"
    kill_job_manager()
    eventually(lambda: page() == f"http://localhost:{port}")
