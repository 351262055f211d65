"""Sessions and applications beside each other on one Ray cluster, and what is left of each when it
has ended: nothing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.ray_fixture import Census, Eyes, Finished, RayCluster, finish
from tests.waiting import eventually
from tests.web.rest import Rest

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

ENDLESS = """
import itertools, sys
from pathlib import Path
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.datastream import StreamExecutionEnvironment

class Endless(PythonSource):
    bounded = False
    def read(self, split, position):
        started.touch()
        return itertools.count(position)

started = Path(sys.argv[1])
env = StreamExecutionEnvironment.get_execution_environment()
env.from_source(Endless(), None, "endless").map(lambda n: n + 1).add_sink(lambda value: None)
env.execute(sys.argv[2])
"""

COLUMNS = """
import sys
import pyarrow as pa
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
with env.from_collection([b"x" * 1_000_000 for _ in range(20)]).rebalance().map(len).execute_and_collect("columns") as results:
    print(sum(results))
if len(sys.argv) > 1:
    env.from_collection([1, 0]).map(lambda n: 1 / n).print()
    env.execute("broken")
"""

UNWAITED = """
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda n: n * 10).print()
env.execute_async("unwaited")
print("the last line of the program", flush=True)
"""

MANY = """
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
for number in range(25):
    env.from_sequence(1, 100).map(lambda n: n % 7).add_sink(lambda value: None)
    env.execute(f"job {number}")
"""

DATASET = """
import pyarrow as pa
import pyarrow.parquet as pq
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table.expressions import col

pq.write_table(pa.table({"n": list(range(1_000_000))}), "numbers.parquet")
env = StreamExecutionEnvironment.get_execution_environment()
even = env.from_parquet("numbers.parquet").filter(col("n") % 2 == 0).to_ray_dataset()
import ray
print(sum(len(block) for block in ray.get(even.to_arrow_refs())))
print(ray.cluster_resources()["object_store_memory"] - ray.available_resources()["object_store_memory"] > 1_000_000)
"""


def endless(ray: RayCluster, started: Path, name: str, *target: str) -> subprocess.Popen[str]:
    """A program whose job runs when this returns."""
    process = ray.start("run", *target, ray.job(ENDLESS, "endless_job.py"), str(started), name)
    try:
        eventually(lambda: started.exists() or process.poll() is not None)
        assert started.exists()
    except AssertionError:
        process.kill()
        raise AssertionError(f"the job did not start: {finish(process)}") from None
    return process


def session(name: str) -> tuple[str, ...]:
    return "-t", "ray-session", "-D", f"cluster.id={name}"


def nothing_but(eyes: Eyes, before: Census, *managers: str) -> None:
    """Comes about soon: nothing but these JobManagers, each with its one worker."""

    def holds() -> bool:
        found = eyes.look().beyond(before)
        return {name for name in found if not name.startswith("taskexecutor-")} == set(
            managers
        ) and len(found) == 2 * len(managers)

    try:
        eventually(holds)
    except AssertionError:
        raise AssertionError(
            f"expected {managers} and a worker each, found {eyes.look().beyond(before)}"
        ) from None


@pytest.mark.wide
def test_two_sessions_and_an_application_do_not_see_each_other_and_leave_nothing(
    ray: RayCluster, eyes: Eyes, tmp_path: Path
) -> None:
    before = eyes.look()
    started = ray.flinkpy(
        "session", "start", "-D", "rest.enabled=true", "-D", "rest.port=0", "red"
    ).out
    assert started.startswith(
        "started the flinkpy session 'red'; `flinkpy run -t ray-session -D cluster.id=red"
    )
    red = endless(ray, tmp_path / "red", "red job", *session("red"))
    blue = endless(ray, tmp_path / "blue", "blue job", *session("blue"))  # starts by itself
    own = endless(ray, tmp_path / "own", "own job", "-t", "ray-application", "-D", "cluster.id=own")
    nothing_but(eyes, before, "jobmanager-red", "jobmanager-blue", "jobmanager-own")

    found = re.search(
        (
            r"^red in the browser: http://localhost:(\d+)/#token=\S+ \(for scripts: header '(.+): "
            r"(.+)'\)$"
        ),
        started,
        re.MULTILINE,
    )
    assert found is not None
    rest, token = Rest(int(found[1])), {found[2]: found[3]}
    assert [
        (job["name"], job["state"])
        for job in rest.ask("/jobs/overview", headers=token).json["jobs"]
    ] == [("red job", "RUNNING")]
    assert rest.ask("/jobs/overview").status == 401

    sessions = ray.flinkpy("session", "list").out
    assert found[0] in sessions
    assert re.findall(
        r"^(blue|own|red) +(session|application) +1 +1 +1 +0 ", sessions, re.MULTILINE
    ) == [("blue", "session"), ("own", "application"), ("red", "session")]
    assert ray.flinkpy("session", "start", "red").out.startswith(
        "there is already the flinkpy session 'red'"
    )
    listed = ray.flinkpy("list", "-D", "cluster.id=red").out
    assert "red job" in listed
    assert "blue job" not in listed
    assert "own job" not in listed
    job_id = re.findall(r"\b[0-9a-f]{32}\b", listed)[0]
    elsewhere = ray.flinkpy("cancel", "-D", "cluster.id=blue", job_id)
    assert (elsewhere.code, elsewhere.err) == (
        1,
        f"no job {job_id} in this session; `flinkpy list` shows what there is\n",
    )
    taken = ray.flinkpy("run", "-t", "ray-application", "-D", "cluster.id=red", ray.job(COLUMNS))
    assert (taken.code, taken.err) == (
        1,
        "there is a cluster named 'red' on Ray already; choose another cluster.id\n",
    )

    own.send_signal(signal.SIGINT)
    assert finish(own).code == 130
    nothing_but(eyes, before, "jobmanager-red", "jobmanager-blue")
    assert ray.flinkpy("session", "stop", "red").out.startswith(
        "stopped the flinkpy session 'red'; Ray keeps running"
    )
    assert (finish(red).code, red.poll() is None) == (1, False)
    nothing_but(eyes, before, "jobmanager-blue")
    assert blue.poll() is None
    assert ray.flinkpy("session", "stop", "blue").code == 0
    assert finish(blue) == Finished(1, "", "job 'blue job' was cancelled\n")
    nothing_but(eyes, before)
    assert ray.flinkpy("session", "stop", "blue").out == "there is no flinkpy session 'blue'\n"


@pytest.mark.wide
def test_an_application_whose_program_is_killed_leaves_nothing(
    ray: RayCluster, eyes: Eyes, tmp_path: Path
) -> None:
    before = eyes.look()
    program = endless(ray, tmp_path / "started", "orphan", "-t", "ray-application")
    assert len(eyes.look().beyond(before)) == 2
    program.kill()
    finish(program)
    nothing_but(eyes, before)


@pytest.mark.wide
@pytest.mark.parametrize("broken", [False, True])
def test_an_application_that_ends_leaves_nothing(ray: RayCluster, eyes: Eyes, broken: bool) -> None:
    before = eyes.look()
    outcome = ray.flinkpy("run", "-t", "ray-application", ray.job(COLUMNS), *["broken"] * broken)
    assert outcome.code == int(broken), outcome.err
    assert outcome.out.startswith("20000000\n")
    nothing_but(eyes, before)


@pytest.mark.wide
def test_a_program_with_its_own_cluster_ends_after_the_jobs_it_did_not_wait_for(
    ray: RayCluster, eyes: Eyes
) -> None:
    before = eyes.look()
    outcome = ray.flinkpy("run", "-t", "ray-application", ray.job(UNWAITED, "unwaited.py"))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("the last line of the program\n")
    assert [line.rpartition(" ")[2] for line in outcome.out.splitlines()[1:]] == ["10", "20", "30"]
    nothing_but(eyes, before)


@pytest.mark.wide
@pytest.mark.parametrize("started_by", ["flinkpy run", "python"])
def test_ctrl_c_at_its_end_cancels_what_it_did_not_wait_for(
    ray: RayCluster, eyes: Eyes, tmp_path: Path, started_by: str
) -> None:
    before, started = eyes.look(), tmp_path / "started"
    at_its_end = "env.execute_async(sys.argv[2])\nstarted.with_name('ending').touch()"
    script = ray.job(ENDLESS.replace("env.execute(sys.argv[2])", at_its_end), "unwaited_endless.py")
    arguments = (script, str(started), "unwaited")
    process = (
        ray.start("run", "-t", "ray-application", *arguments)
        if started_by == "flinkpy run"
        else subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ray.folder,
            env={**ray.environment, "FLINKPY_EXECUTION_TARGET": "ray-application"},
        )
    )
    eventually(lambda: started.exists() and started.with_name("ending").exists())
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert "Traceback" not in outcome.err
    assert outcome.code == 130, outcome
    nothing_but(eyes, before)


@pytest.mark.wide
def test_a_job_in_a_session_that_its_program_did_not_wait_for_runs_on_and_is_told(
    ray: RayCluster, eyes: Eyes, tmp_path: Path
) -> None:
    before, started = eyes.look(), tmp_path / "started"
    text = ENDLESS.replace("env.execute(sys.argv[2])", "env.execute_async(sys.argv[2])")
    outcome = ray.flinkpy(
        "run", *session("async"), ray.job(text, "unwaited_endless.py"), str(started), "unwaited"
    )
    told = re.fullmatch(
        (
            r"job 'unwaited' runs on in the session on Ray; to end it: flinkpy (cancel .*-D "
            r"cluster.id=async [0-9a-f]{8})\n"
        ),
        outcome.err,
    )
    assert told is not None, outcome
    assert outcome.code == 0
    eventually(started.exists)
    assert ray.flinkpy("list", "-D", "cluster.id=async").out.count("RUNNING") == 1
    assert ray.flinkpy(*told.group(1).split()).code == 0
    eventually(
        lambda: ray.flinkpy("list", "-a", "-D", "cluster.id=async").out.count("CANCELED") == 1
    )
    assert ray.flinkpy("session", "stop", "async").code == 0
    nothing_but(eyes, before)


@pytest.mark.wide
def test_a_job_of_an_application_cannot_be_detached(ray: RayCluster) -> None:
    refused = ray.flinkpy("run", "-d", "-t", "ray-application", ray.job(COLUMNS))
    assert refused.code == 1
    assert "`flinkpy session start NAME`" in refused.err


@pytest.mark.wide
@pytest.mark.finding("hunts 18")
def test_many_small_jobs_one_after_the_other_need_no_more_workers_than_one(
    ray: RayCluster, eyes: Eyes
) -> None:
    before = eyes.look()
    # on a busy machine the slots of an ended job come back later than usual
    patient = ("-D", "slotmanager.requirement-check-delay=1 s")
    outcome = ray.flinkpy("run", *session("many"), *patient, ray.job(MANY, "many.py"))
    assert outcome.code == 0, outcome.err
    assert (
        len([name for name in eyes.look().beyond(before) if name.startswith("taskexecutor-")]) == 2
    )
    assert ray.flinkpy("session", "stop", "many").code == 0
    nothing_but(eyes, before)


@pytest.mark.wide
def test_a_terminated_program_that_started_ray_itself_cancels_its_job(
    ray: RayCluster, eyes: Eyes, tmp_path: Path
) -> None:
    """Ray's library would end it at once, and the job in the session would go on without it."""
    before = eyes.look()
    text = (
        "from flinkpy.cluster.ray.ray_connection import "
        f"connect_ray\nconnect_ray({{'ray.address': {ray.address!r}}}, "
        f"start=False)\n{ENDLESS}"
    )
    started = tmp_path / "started"
    process = subprocess.Popen(
        [sys.executable, ray.job(text, "with_ray.py"), str(started), "terminated"],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ray.folder,
        env={**ray.environment, "FLINKPY_CLUSTER_ID": "green"},
    )
    eventually(started.exists)
    process.terminate()
    assert finish(process).code == 128 + signal.SIGTERM
    assert ray.flinkpy("list", "-a", "-D", "cluster.id=green").out.count("CANCELED") == 1
    assert ray.flinkpy("session", "stop", "green").code == 0
    nothing_but(eyes, before)


@pytest.mark.wide
def test_blocks_that_a_program_wrote_in_a_session_end_with_the_program(
    ray: RayCluster, eyes: Eyes
) -> None:
    before = eyes.look()
    outcome = ray.flinkpy("run", *session("blocks"), ray.job(DATASET, "dataset.py"))
    assert (outcome.code, outcome.out) == (0, "500000\nTrue\n"), outcome.err
    nothing_but(eyes, before, "jobmanager-blocks")
    assert ray.flinkpy("session", "stop", "blocks").code == 0
    nothing_but(eyes, before)
