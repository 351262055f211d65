"""The command line with real jobs, embedded: each a process of its own, as a user has it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flinkpy.actors.gateways import ClusterOverview, JobOverview
from flinkpy.cli.jobs import job_table
from flinkpy.cli.session_commands import session_table
from flinkpy.cli.shown.durations import duration
from flinkpy.cluster.ray.ray_sessions import RunningCluster
from flinkpy.cluster.session import SessionInfo
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState
from tests.cluster.ray_fixture import Finished, finish
from tests.waiting import eventually

WORDS = """
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
pairs = env.from_collection(["a b a", "b a"]).flat_map(lambda line: [(word, 1) for word in line.split()])
counts = pairs.key_by(lambda pair: pair[0]).reduce(lambda x, y: (x[0], x[1] + y[1]))
with counts.execute_and_collect("words") as results:
    print(sorted(dict(results).items()), env.get_parallelism())
"""

BROKEN = """
from flinkpy.datastream import StreamExecutionEnvironment

def ratio(x):
    return 1 / x

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([2, 1, 0]).map(ratio).name("Ratio").add_sink(lambda value: None)
env.execute("broken")
"""

ENDLESS = """
import itertools, sys
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.datastream import StreamExecutionEnvironment

class Endless(PythonSource):
    bounded = False
    def read(self, split, position):
        open(sys.argv[1], "w").close()
        return itertools.count(position)

env = StreamExecutionEnvironment.get_execution_environment()
env.from_source(Endless(), None, "endless").add_sink(lambda value: None)
env.execute("endless")
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "flinkpy", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def flinkpy(*arguments: str) -> Finished:
    return finish(start(*arguments), 30)


def job(folder: Path, text: str) -> str:
    path = folder / "job.py"
    path.write_text(text)
    return str(path)


def test_a_job_runs_with_the_parallelism_of_the_command_line(tmp_path: Path) -> None:
    outcome = flinkpy("run", "-p", "2", job(tmp_path, WORDS))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "[('a', 3), ('b', 2)] 2\n"


def test_plain_python_runs_it_too(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", job(tmp_path, WORDS)]
    outcome = finish(
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    )
    assert (outcome.code, outcome.out, outcome.err) == (0, "[('a', 3), ('b', 2)] 1\n", "")


def test_a_failing_function_shows_the_users_frame_and_no_other(tmp_path: Path) -> None:
    script = job(tmp_path, BROKEN)
    outcome = flinkpy("run", script)
    assert outcome.code == 1
    lines = outcome.err.splitlines()
    assert lines[:4] == [
        "job 'broken' failed: ZeroDivisionError: division by zero",
        f'  File "{script}", line 5, in ratio',
        "    return 1 / x",
        lines[3],
    ]
    assert lines[3].startswith("  in operator 'Ratio'")
    assert lines[4] == "  on record 0"
    assert outcome.err.count("File ") == 1


def test_verbose_shows_the_engines_frames_too(tmp_path: Path) -> None:
    assert flinkpy("run", "-v", job(tmp_path, BROKEN)).err.count("File ") > 3


def test_a_refused_program_shows_its_line(tmp_path: Path) -> None:
    outcome = flinkpy(
        "run",
        job(
            tmp_path,
            "from flinkpy.datastream import StreamExecutionEnvironment\n"
            "env = "
            "StreamExecutionEnvironment.get_execution_environment()\n"
            "env.set_parallelism(0)\n",
        ),
    )
    assert outcome.code == 1
    assert "job.py" in outcome.err
    assert "3" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.wide(but=("15",))
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_endless_job_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    started = tmp_path / "started"
    process = start("run", job(tmp_path, ENDLESS), str(started))
    eventually(started.exists)
    process.send_signal(number)
    outcome = finish(process)
    assert (outcome.code, outcome.out, outcome.err) == (128 + number, "", "")


def test_info_draws_the_plan_and_runs_nothing(tmp_path: Path) -> None:
    outcome = flinkpy("info", "-p", "2", job(tmp_path, WORDS))
    assert (outcome.code, outcome.err) == (0, "")
    assert "HASH from 2" in outcome.out
    assert "x2 ─┐" in outcome.out
    assert "('a', 3)" not in outcome.out


def test_info_of_a_program_that_executes_nothing_says_so(tmp_path: Path) -> None:
    outcome = flinkpy("info", job(tmp_path, "x = 1"))
    assert outcome.code == 1
    assert "never called execute()" in outcome.err


def test_a_forgotten_execute_is_told_at_the_programs_end(tmp_path: Path) -> None:
    outcome = flinkpy(
        "run",
        job(
            tmp_path,
            "from flinkpy.datastream import StreamExecutionEnvironment\n"
            "env = "
            "StreamExecutionEnvironment.get_execution_environment()\n"
            "env.from_collection([1]).print()\n",
        ),
    )
    assert (outcome.code, outcome.out) == (0, "")
    assert (
        outcome.err == "job.py defined streams and ended without execute(), so they did not run\n"
    )


def test_a_program_that_only_looks_into_its_streams_or_draws_them_forgot_nothing(
    tmp_path: Path,
) -> None:
    outcome = flinkpy(
        "run",
        job(
            tmp_path,
            "from flinkpy.datastream import StreamExecutionEnvironment\n"
            "env = "
            "StreamExecutionEnvironment.get_execution_environment()\n"
            "print(env.from_collection([1]).take(1))\n"
            "env.from_collection([1]).print()\n"
            "assert env.get_execution_plan()\n",
        ),
    )
    assert (outcome.code, outcome.out, outcome.err) == (0, "[1]\n", "")


def test_jobs_are_listed_in_a_table() -> None:
    jobs = [
        JobOverview(
            JobId("ab" * 16),
            "first job",
            JobState.RUNNING,
            1_000,
            None,
            {ExecutionState.RUNNING: 2, ExecutionState.FAILED: 0},
        ),
        JobOverview(
            JobId("cd" * 16), "b", JobState.FINISHED, 1_000, 62_000, {ExecutionState.FINISHED: 4}
        ),
    ]
    head, first, second = job_table(jobs, 3_500)
    assert head.split() == ["JOB", "ID", "STATE", "STARTED", "FOR", "TASKS", "NAME"]
    assert first.split()[1:2] == ["RUNNING"]
    assert first.endswith("2.5 s      2 running   first job")
    assert second.endswith("1 min 1 s  4 finished  b")


def test_sessions_are_listed_in_a_table() -> None:
    clusters = [
        RunningCluster("hung", None, None),
        RunningCluster("nightly", SessionInfo("1.2", {}), ClusterOverview(2, 4, 1, 3)),
        RunningCluster("own", SessionInfo("1.2", {}, is_application=True), None),
    ]
    assert [line.split(maxsplit=6) for line in session_table(clusters)] == [
        ["NAME", "KIND", "JOBS", "WORKERS", "SLOTS", "FREE", "VERSION"],
        ["hung", "?", "?", "?", "?", "?", "does not answer"],
        ["nightly", "session", "3", "2", "4", "1", "1.2"],
        ["own", "application", "?", "?", "?", "?", "1.2"],
    ]


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0.0 s"), (59_949, "59.9 s"), (60_000, "1 min 0 s"), (3_723_000, "1 h 2 min")],
)
def test_durations_are_for_people(ms: int, text: str) -> None:
    assert duration(ms) == text


CHILDREN = """
import multiprocessing, sys

def wait(ready):
    ready.set()
    while True:
        try:
            multiprocessing.Event().wait()
        except KeyboardInterrupt:
            print("interrupted")

ready = multiprocessing.Event()
child = multiprocessing.get_context("fork").Process(target=wait, args=(ready,))
child.start()
ready.wait()
child.terminate()
child.join()
print(child.exitcode)
"""


def test_a_child_of_the_program_is_terminated_as_under_python(tmp_path: Path) -> None:
    outcome = flinkpy("run", job(tmp_path, CHILDREN))
    assert (outcome.out, outcome.err) == (f"{-signal.SIGTERM}\n", "")
