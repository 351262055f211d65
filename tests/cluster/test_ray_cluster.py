"""Sessions on a real Ray cluster, used the way people use them: programs and commands, each a
process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.ray_fixture import Finished, RayCluster, finish
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

PIDS = """
import json, os
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection(list(range(1000))).rebalance()
counted = numbers.map(lambda n: (n % 7, 1, os.getpid())).key_by(lambda r: r[0]).reduce(lambda a, b: (a[0], a[1] + b[1], b[2]))
with counted.map(lambda r: (*r, os.getpid())).execute_and_collect("pids") as results:
    rows = list(results)
print(json.dumps({"counts": {r[0]: r[1] for r in rows}, "pids": sorted({r[2] for r in rows} | {r[3] for r in rows})}))
"""

ENDLESS = """
import itertools, os, sys
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.datastream import StreamExecutionEnvironment

class Endless(PythonSource):
    bounded = False
    def splits(self, parallelism):
        return list(range(parallelism))
    def read(self, split, position):
        open(f"{folder}/started-{split}", "w").write(str(os.getpid()))
        return itertools.count(position)

folder = sys.argv[1]
env = StreamExecutionEnvironment.get_execution_environment()
pairs = env.from_source(Endless(), None, "endless").map(lambda n: (n % 10, 1))
pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], b[1])).add_sink(lambda pair: None)
env.execute(sys.argv[2])
"""


def run_pids(ray: RayCluster) -> dict[str, object]:
    outcome = ray.flinkpy("run", "-t", "ray", "-p", "2", ray.job(PIDS))
    assert outcome.code == 0, outcome.err
    found: dict[str, object] = json.loads(outcome.out)
    return found


def start_endless(ray: RayCluster, folder: Path, name: str, *options: str) -> subprocess.Popen[str]:
    process = ray.start(
        "run", "-t", "ray", "-p", "2", *options, ray.job(ENDLESS, "endless.py"), str(folder), name
    )
    try:
        eventually(lambda: len(pids(folder)) == 2 or process.poll() not in (None, 0))
        assert len(pids(folder)) == 2
    except AssertionError:
        process.kill()
        raise AssertionError(f"the job did not start: {finish(process)}") from None
    return process


def pids(folder: Path) -> list[int]:
    return [int(text) for path in sorted(folder.glob("started-*")) if (text := path.read_text())]


def running(ray: RayCluster) -> str:
    return ray.flinkpy("list", "-t", "ray").out


def job_id(line: str) -> str:
    match = re.search(r"\b[0-9a-f]{32}\b", line)
    assert match is not None, line
    return match.group()


def test_a_job_runs_in_two_processes_and_the_next_run_reuses_session_and_workers(
    ray: RayCluster,
) -> None:
    first = run_pids(ray)
    assert first["counts"] == {str(k): 143 - (k == 6) for k in range(7)}
    assert len(first["pids"]) == 2  # type: ignore[arg-type]
    assert run_pids(ray) == first
    ended = ray.flinkpy("list", "-a").out
    assert ended.count("FINISHED") == 2
    assert ended.count("  pids\n") == 2


@pytest.mark.wide
def test_a_running_job_is_listed_and_cancelled_from_another_process(
    ray: RayCluster, tmp_path: Path
) -> None:
    process = start_endless(ray, tmp_path, "listed")
    line = next(line for line in running(ray).splitlines() if "listed" in line)
    assert "RUNNING" in line
    cancelled = ray.flinkpy("cancel", job_id(line)[:10])
    assert cancelled.code == 0, cancelled.err
    assert job_id(line) in cancelled.out
    outcome = finish(process)
    # on a busy machine it also says that it waits for slots
    assert (outcome.code, outcome.err.splitlines()[-1]) == (1, "job 'listed' was cancelled")
    assert "listed" not in running(ray)


@pytest.mark.wide
def test_a_detached_job_prints_its_id_and_goes_on(ray: RayCluster, tmp_path: Path) -> None:
    outcome = finish(start_endless(ray, tmp_path, "detached", "-d"))
    assert outcome.code == 0, outcome.err
    assert job_id(outcome.out) in running(ray)
    assert ray.flinkpy("cancel", job_id(outcome.out)).code == 0
    eventually(lambda: "detached" not in running(ray))


@pytest.mark.wide
def test_ctrl_c_cancels_an_attached_job(ray: RayCluster, tmp_path: Path) -> None:
    process = start_endless(ray, tmp_path, "interrupted")
    process.send_signal(signal.SIGINT)
    assert finish(process).code == 130
    assert "interrupted" not in running(ray)


@pytest.mark.wide
def test_a_killed_worker_fails_the_job_at_once_and_clearly(ray: RayCluster, tmp_path: Path) -> None:
    process = start_endless(ray, tmp_path, "killed")
    os.kill(pids(tmp_path)[0], signal.SIGKILL)
    started = time.perf_counter()
    outcome = finish(process)
    # noticed within 2 s; the rest is the client's interpreter ending, beside other tests
    assert time.perf_counter() - started < 10
    assert outcome.code == 1
    assert re.search(
        r"job 'killed' failed: .*(taskexecutor-\w+.*(lost|died)|lost .*taskexecutor-\w+)",
        outcome.err,
    )
    assert len(outcome.err.splitlines()) <= 3
    assert run_pids(ray)["counts"]


@pytest.mark.wide
def test_an_impossible_job_fails_fast_with_numbers_and_the_option(ray: RayCluster) -> None:
    started = time.perf_counter()
    outcome = ray.flinkpy("run", "-t", "ray", "-p", "9", ray.job(PIDS))
    assert time.perf_counter() - started < 8
    assert outcome.code == 1
    assert "needs 9 slots of 1 CPU, this Ray cluster has 4 CPUs" in outcome.err
    assert "-D taskmanager.ray.num-cpus-per-slot=0.44" in outcome.err


@pytest.mark.wide
def test_workers_that_are_larger_than_every_node_are_refused_with_their_size(
    ray: RayCluster,
) -> None:
    size = "taskmanager.memory.process.size=900g"
    # a session that is there already keeps its own sizes
    outcome = ray.flinkpy("run", "-t", "ray-application", "-D", size, "-p", "1", ray.job(PIDS))
    assert outcome.code == 1
    assert "needs 1 slot of 1 CPU and 921600 MB, this Ray cluster has 4 CPUs" in outcome.err


@pytest.mark.wide
def test_a_worker_runs_where_a_node_has_its_size(ray: RayCluster) -> None:
    size = "taskmanager.memory.process.size=600m"
    overhead = "taskmanager.memory.framework.heap.size=64m"
    managed = "taskmanager.memory.managed.size=0m"
    sizes = [each for size in (size, overhead, managed) for each in ("-D", size)]
    outcome = ray.flinkpy("run", "-t", "ray-application", *sizes, "-p", "1", ray.job(PIDS))
    assert outcome.code == 1, outcome.err
    assert "the parts add up to" in outcome.err
    sizes[1] = "taskmanager.memory.process.size=900m"
    outcome = ray.flinkpy("run", "-t", "ray-application", *sizes, "-p", "1", ray.job(PIDS))
    assert outcome.code == 0, outcome.err


@pytest.mark.wide
def test_the_advice_of_that_message_helps(ray: RayCluster) -> None:
    outcome = ray.flinkpy(
        "run", "-t", "ray", "-p", "5", "-D", "taskmanager.ray.num-cpus-per-slot=0.4", ray.job(PIDS)
    )
    assert outcome.code == 0, outcome.err


def test_a_failing_function_shows_the_users_frame(ray: RayCluster) -> None:
    outcome = ray.flinkpy(
        "run",
        "-t",
        "ray",
        ray.job(
            "from flinkpy.datastream import StreamExecutionEnvironment\n"
            "env = StreamExecutionEnvironment.get_execution_environment()\n"
            "env.from_collection([2, 1, 0]).map(lambda x: 1 / x).name('Ratio').add_sink(print)\n"
            "env.execute('broken')\n",
            "broken.py",
        ),
    )
    assert outcome.code == 1
    assert outcome.err.startswith("job 'broken' failed: ZeroDivisionError: division by zero\n")
    assert 'broken.py", line 3, in <lambda>' in outcome.err
    assert "in operator 'Ratio'" in outcome.err
    assert "on record 0" in outcome.err
    assert "site-packages" not in outcome.err


@pytest.mark.wide
def test_a_module_beside_the_job_travels_with_it(ray: RayCluster) -> None:
    (ray.folder / "network.py").write_text("def double(x):\n    return 2 * x\n")
    outcome = ray.flinkpy(
        "run",
        "-t",
        "ray",
        ray.job(
            "import network\nfrom flinkpy.datastream import StreamExecutionEnvironment\n"
            "env = StreamExecutionEnvironment.get_execution_environment()\n"
            "print(list(env.from_collection([1, "
            "2]).map(network.double).execute_and_collect()))\n",
            "beside.py",
        ),
    )
    assert outcome.code == 0, outcome.err
    assert outcome.out == "[2, 4]\n"


@pytest.mark.wide
def test_options_a_running_session_cannot_take_are_told(ray: RayCluster) -> None:
    outcome = ray.flinkpy(
        "run", "-t", "ray", "-D", "taskmanager.numberOfTaskSlots=3", ray.job(PIDS)
    )
    assert outcome.code == 0, outcome.err
    assert "without effect: taskmanager.numberOfTaskSlots=3" in outcome.err


@pytest.mark.wide
def test_another_version_of_flinkpy_is_refused(ray: RayCluster) -> None:
    code = (
        "import flinkpy; flinkpy.__version__ = '9.9'; from flinkpy.cli.main import main; "
        "main(['list'])"
    )
    outcome = finish(
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ray.environment,
        )
    )
    assert outcome.code == 1
    assert "was started by flinkpy" in outcome.err
    assert "flinkpy session stop " in outcome.err


@pytest.mark.wide
def test_sessions_of_other_names_live_beside_it(ray: RayCluster) -> None:
    other = ("-D", "cluster.id=other")
    assert ray.flinkpy("run", "-t", "ray", *other, ray.job(PIDS)).code == 0
    assert ray.flinkpy("list", "-a", *other).out.count("FINISHED") == 1
    assert ray.flinkpy("stop-cluster", *other).code == 0
    gone = ray.flinkpy("list", *other)
    assert gone.code == 1
    assert gone.err.startswith("there is no flinkpy session 'other' on this Ray cluster")


@pytest.mark.wide
def test_a_dead_job_manager_is_one_clear_message_and_the_next_run_starts_anew(
    ray: RayCluster, tmp_path: Path
) -> None:
    process = start_endless(ray, tmp_path, "orphan")
    workers = pids(tmp_path)
    for pid in _hosts_beside(workers):
        os.kill(pid, signal.SIGKILL)
    outcome: Finished = finish(process)
    assert outcome.code == 1
    assert outcome.err.startswith("the flinkpy session 'default' on Ray is gone")
    assert len(outcome.err.splitlines()) == 1
    eventually(lambda: not any(_alive(pid) for pid in workers))
    assert run_pids(ray)["counts"]


def _hosts_beside(workers: list[int]) -> list[int]:
    """The other actors of this cluster that host endpoints: the JobManager, and idle workers."""
    siblings = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and int(entry.name) not in workers
    ]
    raylet = _parent(workers[0])
    return [
        pid
        for pid in siblings
        if _alive(pid)
        and _parent(pid) == raylet
        and _name(pid).startswith("ray::")
        and "Process" in _name(pid)
    ]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def _alive(pid: int) -> bool:
    return (
        Path(f"/proc/{pid}").exists()
        and "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    )


@pytest.mark.wide
def test_a_function_that_reads_what_is_typed_finds_the_end_and_waits_for_nobody(
    ray: RayCluster,
) -> None:
    outcome = ray.flinkpy(
        "run",
        "-t",
        "ray",
        ray.job(
            "from flinkpy.datastream import StreamExecutionEnvironment\n"
            "env = "
            "StreamExecutionEnvironment.get_execution_environment()\n"
            "env.from_collection([1]).map(lambda "
            "value: input()).print()\n"
            "env.execute()\n"
        ),
    )
    assert outcome.code == 1
    assert "EOFError" in outcome.err


STUCK = """
import sys, time
from pathlib import Path
from flinkpy.datastream import StreamExecutionEnvironment

def stuck(path):
    Path(path).touch()
    while True:
        time.sleep(3600)

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([sys.argv[1]]).map(stuck).print()
env.execute("stuck")
"""
AFTER = """
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2]).map(lambda n: n * 2).print()
env.execute()
"""


@pytest.mark.wide
def test_a_worker_whose_function_does_not_return_when_cancelled_ends_and_its_slots_are_free_again(
    ray: RayCluster, tmp_path: Path
) -> None:
    options = (
        "-t",
        "ray-session",
        "-D",
        "cluster.id=stuck",
        "-D",
        "heartbeat.interval=500 ms",
        "-D",
        "slotmanager.number-of-slots.max=1",
        "-D",
        "task.cancellation.timeout=1 s",
    )
    started = tmp_path / "started"
    process = ray.start("run", *options, ray.job(STUCK, "stuck.py"), str(started))
    eventually(started.exists)
    process.send_signal(signal.SIGINT)
    assert finish(process).code == 130
    after = ray.flinkpy("run", *options, ray.job(AFTER, "after.py"))
    assert after.code == 0, after.err
    assert [line[-1] for line in after.out.splitlines()] == ["2", "4"]
    assert ray.flinkpy("session", "stop", "stuck").code == 0


MEETS = """
import os, sys, threading, time
from pathlib import Path
from flinkpy.datastream import StreamExecutionEnvironment

folder = Path(sys.argv[1])

def meets(number):
    (folder / f"{os.getpid()}-{threading.get_ident()}").touch()
    end = time.monotonic() + 60
    while len(list(folder.iterdir())) < 2:
        if time.monotonic() > end:
            raise TimeoutError("the other subtask waits for this one")
        time.sleep(0.01)
    return number

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.from_collection(list(range(16))).rebalance().map(meets).print()
env.execute()
"""


@pytest.mark.wide
@pytest.mark.finding("newcomers 4")
def test_functions_in_two_slots_of_one_worker_wait_at_the_same_time(
    ray: RayCluster, tmp_path: Path
) -> None:
    # no worker of another session has two
    options = ("-t", "ray", "-D", "cluster.id=meets", "-D", "taskmanager.numberOfTaskSlots=2")
    outcome = ray.flinkpy("run", *options, ray.job(MEETS, "meets.py"), str(tmp_path))
    assert outcome.code == 0, outcome.err
    assert ray.flinkpy("session", "stop", "meets").code == 0
    assert len({each.name.partition("-")[0] for each in tmp_path.iterdir()}) == 1
