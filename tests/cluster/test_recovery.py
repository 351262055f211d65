"""Workers are killed while their job runs (``kill -9``): nothing is lost, and nothing comes twice.

What the program collects and what lies in the files is that of an undisturbed run."""

from __future__ import annotations

import ast
import os
import random
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flinkpy.cluster.launch import submitted_jobs
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.datastream import StreamExecutionEnvironment
from tests.checkpoints import test_local_recovery as local_recovery
from tests.cluster.recovery_programs import FAILING, KILLED, Record, Recovering
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

OPTIONS = {
    "execution.checkpointing.interval": "200 ms",
    "execution.checkpointing.data-inline-threshold": "1 kb",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "100 ms",
    "restart-strategy.fixed-delay.attempts": 3,
    "taskmanager.numberOfTaskSlots": 1,
}


def workers() -> dict[str, int]:
    """The TaskExecutors that live, each with its process."""
    from ray._private import state

    living = [actor for actor in state.actors().values() if actor["State"] == "ALIVE"]
    return {
        actor["Name"]: actor["Pid"] for actor in living if actor["Name"].startswith("taskexecutor-")
    }


def newest_checkpoint(folder: Path) -> int:
    manifests = folder.glob("*/chk-*/_metadata")
    return max(
        (int(manifest.parent.name.removeprefix("chk-")) for manifest in manifests), default=0
    )


def kill_one(job: Any, checkpoints: Path) -> str:
    """Kills a worker of the job behind a checkpoint that it takes from now on. Gives its name when
    the job restarts."""
    taken = newest_checkpoint(checkpoints)
    eventually(lambda: newest_checkpoint(checkpoints) > taken)
    name = None
    while name is None:
        name = kill_any(job, checkpoints)
    return name


def kill_any(job: Any, checkpoints: Path) -> str | None:
    """Kills a worker. None if it was an idle one, left from the test before: the job goes on with
    its checkpoints."""
    restarts, taken = job.details().restarts, newest_checkpoint(checkpoints)
    name, process = random.choice(sorted(workers().items()))
    assert job.status().name == "RUNNING", f"it ended before {name} could be killed"
    os.kill(process, signal.SIGKILL)
    eventually(
        lambda: job.details().restarts > restarts or newest_checkpoint(checkpoints) > taken + 2
    )
    eventually(lambda: name not in workers())
    return name if job.details().restarts > restarts else None


def run(case: Recovering, folder: Path) -> tuple[list[Record], set[str]]:
    """What the program collects, and the workers that were killed."""
    options = {
        **OPTIONS,
        **case.options,
        "execution.checkpointing.dir": str(folder / "checkpoints"),
    }
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(2)
    stream = case.build(env, folder)
    stream.sink_to(FileSink(folder / "out", case.format))
    with stream.execute_and_collect(case.name) as results:
        job = submitted_jobs()[-1]
        killed = {kill_one(job, folder / "checkpoints") for _ in range(case.kills)}
        collected = [tuple(record) for record in results]
    return collected, killed


def written(folder: Path, format: str) -> list[Record]:
    if format == "parquet":
        return [
            tuple(row.values())
            for path in folder.glob("*.parquet")
            for row in pq.read_table(path).to_pylist()
        ]
    return [
        ast.literal_eval(line)
        for path in folder.glob("*.txt")
        for line in path.read_text().splitlines()
    ]


def check(case: Recovering, folder: Path) -> None:
    collected, killed = run(case, folder)
    wanted = sorted(case.wanted())
    assert sorted(collected) == wanted
    assert sorted(written(folder / "out", case.format)) == wanted
    assert [path.name for path in (folder / "out").iterdir() if path.name.startswith(".")] == []
    assert list((folder / "checkpoints").iterdir()) == []
    assert len(killed) == case.kills


@pytest.mark.wide(but=("windows over columns",))
@pytest.mark.parametrize("case", KILLED, ids=str)
def test_a_killed_worker_changes_nothing_in_the_results(
    case: Recovering, on_ray: None, tmp_path: Path
) -> None:
    check(case, tmp_path)


@pytest.mark.wide
def test_a_function_that_fails_once_changes_nothing_and_no_worker_ends(
    on_ray: None, tmp_path: Path
) -> None:
    before = workers().keys()
    check(FAILING, tmp_path)
    assert (tmp_path / "failed").exists()
    assert workers().keys() >= before


@pytest.mark.wide
def test_tasks_restart_on_their_workers_from_the_copies_there(on_ray: None, tmp_path: Path) -> None:
    """Their key groups in checkpoints are gone by then. Operator state is not: each task needs also
    that of the other worker."""
    wanted = local_recovery.run(
        tmp_path / "undisturbed", {"execution.checkpointing.dir": str(tmp_path / "checkpoints")}
    )
    fails = local_recovery.failing_when(
        lambda: local_recovery.lose_originals(tmp_path, "shared"), tmp_path / "failed"
    )
    assert (
        local_recovery.run(tmp_path, local_recovery.options(tmp_path, "hashmap"), fails) == wanted
    )
    eventually(lambda: list((tmp_path / "local").iterdir()) == [])
