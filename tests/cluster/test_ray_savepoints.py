"""A job in a session on Ray is stopped with a savepoint from the command line, and goes on from it
with fewer subtasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.ray_fixture import RayCluster
from tests.waiting import eventually

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

RECORDS, KEYS = 20_000, 7
SLOWLY, FAST = "100", "100000"  # records a second: the first run must not end before it is stopped
COUNTING = f"""
import sys
from pathlib import Path
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.datastream import StreamExecutionEnvironment

folder, mark, rate = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])

def passed(number):
    if number >= mark:
        (folder / f"reached-{{mark}}").touch()
    return number

env = StreamExecutionEnvironment.get_execution_environment()
env.set_max_parallelism(16)
numbers = env.generate(lambda index: index, count={RECORDS}, rate=rate).uid("numbers").map(passed).uid("passed")
counted = numbers.map(lambda number: (number % {KEYS}, 1)).uid("ones").key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
counted.uid("counts").sink_to(FileSink(folder / "out")).uid("out")
env.execute("counting")
"""
SESSION = ("-D", "cluster.id=saving")


def lines(folder: Path) -> list[str]:
    return sorted(
        line for file in (folder / "out").glob("part-*") for line in file.read_text().splitlines()
    )


@pytest.fixture
def session(ray: RayCluster) -> Iterator[RayCluster]:
    yield ray
    ray.flinkpy("session", "stop", "saving")


def test_a_job_is_stopped_with_a_savepoint_and_goes_on_with_another_parallelism(
    session: RayCluster, tmp_path: Path
) -> None:
    ray = session
    job = ray.job(COUNTING, "counting.py")
    run = ("run", "-t", "ray-session", *SESSION)
    started = ray.flinkpy(
        *run,
        "-d",
        "-p",
        "2",
        "-D",
        "taskmanager.numberOfTaskSlots=1",
        job,
        str(tmp_path),
        "50",
        SLOWLY,
    )
    found = re.search(r"submitted 'counting', job id ([0-9a-f]{32})\n", started.out)
    assert found is not None, started
    eventually((tmp_path / "reached-50").exists)
    job_id = found[1]

    nowhere = ray.flinkpy(
        *run, "-d", "-s", str(tmp_path / "nothing"), job, str(tmp_path), "50", SLOWLY
    )
    assert nowhere.code == 1, nowhere  # and not 0, of a job that has failed by then
    assert "submitted" not in nowhere.out
    assert f"the job cannot start from {tmp_path / 'nothing'}" in nowhere.err

    unnamed = ray.flinkpy("savepoint", *SESSION, job_id)
    assert (unnamed.code, unnamed.err) == (
        1,
        "name the folder for the savepoint, or set execution.checkpointing.savepoint-dir\n",
    )
    refused = ray.flinkpy("checkpoint", *SESSION, job_id[:8])
    assert (refused.code, refused.err) == (
        1,
        (
            "job 'counting' takes no checkpoints: set execution.checkpointing.interval, or "
            "take a savepoint\n"
        ),
    )
    taken = ray.flinkpy("savepoint", *SESSION, job_id[:8], str(tmp_path / "savepoints"))
    first = re.fullmatch(rf"savepoint of {job_id} 'counting': (.*)\n", taken.out)
    assert first is not None, taken
    stopped = ray.flinkpy("stop", *SESSION, "-p", str(tmp_path / "savepoints"), job_id)
    second = re.match(
        (
            rf"savepoint of {job_id} 'counting': (.*)\nstopped {job_id} 'counting'; to go on: "
            r"flinkpy run -s \1 PROGRAM\n"
        ),
        stopped.out,
    )
    assert second is not None, stopped
    assert re.search(
        rf"^{job_id} +FINISHED ", ray.flinkpy("list", "-a", *SESSION).out, re.MULTILINE
    )
    assert 0 < len(lines(tmp_path)) < RECORDS

    ended = ray.flinkpy("stop", *SESSION, "-p", str(tmp_path), job_id)
    assert (ended.code, ended.err) == (1, f"job {job_id} 'counting' has ended: it is FINISHED\n")
    went_on = ray.flinkpy(*run, "-p", "1", "-s", second[1], job, str(tmp_path), str(RECORDS), FAST)
    assert went_on.code == 0, went_on
    assert lines(tmp_path) == sorted(
        f"({key}, {count + 1})"
        for key in range(KEYS)
        for count, _ in enumerate(range(key, RECORDS, KEYS))
    )

    for path in (first[1], second[1]):
        assert ray.flinkpy("savepoint", "--dispose", path).out == f"removed the savepoint {path}\n"
    assert list((tmp_path / "savepoints").iterdir()) == []
