"""The example that survives a kill, as the tutorial has it: embedded, and on Ray with a worker that
is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from examples import nothing_is_lost
from flinkpy.datastream import StreamExecutionEnvironment
from tests.cluster.ray_fixture import RayCluster, finish
from tests.waiting import eventually


def test_each_number_is_counted_once(tmp_path: Path) -> None:
    nothing_is_lost.write_counts(
        StreamExecutionEnvironment.get_execution_environment(), tmp_path, 1000, 1e6
    )
    assert nothing_is_lost.verdict(tmp_path, 1000) == "1000 numbers, each counted once"


def test_a_count_that_is_lost_and_one_that_came_twice_are_seen(tmp_path: Path) -> None:
    (tmp_path / "part.txt").write_text("0 1\n0 1\n")
    assert nothing_is_lost.verdict(tmp_path, 20) == "19 counts are lost, 1 came twice"


def workers_of(ray: RayCluster) -> list[int]:
    """The processes that the tutorial kills; of this Ray cluster only."""
    found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [
        pid
        for pid in found
        if "ray::TaskExecutorProcess" in command(pid) and ray.address in command(parent(pid))
    ]


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:  # it has ended
        return ""


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.timeout(400)
def test_workers_that_are_killed_as_the_tutorial_says_lose_nothing(
    ray: RayCluster, tmp_path: Path
) -> None:
    program = Path(nothing_is_lost.__file__)
    job = ray.job(program.read_text(), program.name)
    running = ray.start(
        "run", "-t", "ray", "-p", "2", job, "--numbers", "30000", "--folder", str(tmp_path)
    )
    eventually(lambda: any(tmp_path.glob("*.txt")))  # a checkpoint is complete
    workers = workers_of(ray)
    assert workers
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    outcome = finish(running)
    assert outcome.code == 0, outcome.err
    assert "30000 numbers, each counted once" in outcome.out
    assert "restart" in outcome.err
