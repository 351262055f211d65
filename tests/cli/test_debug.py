"""``flinkpy debug``: a job that failed is replayed from the checkpoint it left, under a debugger
that is given its commands by standard input."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JOB = """
import sys
from pathlib import Path
from flinkpy.common import Types, WatermarkStrategy
from flinkpy.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import FileSink
from flinkpy.datastream.state import ValueStateDescriptor
from tests.checkpoints.paced import PacedSource

out, pace = sys.argv[1], int(sys.argv[2])  # the source waits for a checkpoint after so many records
RECORDS = [(("roof", float(number)) if number % 2 else ("cellar", float(number)), number) for number in range(1, 40)]
RECORDS[35:35] = [(("roof", 0.0), 35)]


class Growth(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, value, ctx):
        last = self.last.value()
        self.last.update(value[1])
        if last is not None:
            yield value[0], value[1] / last


env = StreamExecutionEnvironment.get_execution_environment()
readings = env.from_source(PacedSource(RECORDS, pace, 1), WatermarkStrategy.for_monotonous_timestamps(), "readings")
growth = readings.map(lambda reading: reading).name("as it is").key_by(lambda reading: reading[0]).process(Growth())
growth.name("growth").uid("growth of readings")
growth.map(str, Types.STRING()).sink_to(FileSink(Path(out)))
env.execute("growth")
"""


def flinkpy(
    *arguments: object, commands: str = "", folder: Path
) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder), "COLUMNS": "500"}
    return subprocess.run(
        [sys.executable, "-m", "flinkpy", *map(str, arguments)],
        input=commands,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environ,
        timeout=120,
        check=False,
    )


class Failed:
    """A job that failed, its program, and the checkpoint that it left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "job.py"
        self.out = folder / "out"
        self.script.write_text(JOB)
        options = {
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": folder / "checkpoints",
            "restart-strategy.type": "none",
            "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
        }
        ran = flinkpy(
            "run",
            *(each for key, value in options.items() for each in ("-D", f"{key}={value}")),
            self.script,
            self.out,
            10,
            folder=folder,
        )
        assert "ZeroDivisionError" in ran.stderr, ran.stderr
        [self.job] = (folder / "checkpoints").iterdir()

    def debug(
        self, *arguments: object, commands: str = "", script: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return flinkpy(
            "debug",
            self.job,
            *arguments,
            script or self.script,
            self.out,
            1000,
            commands=commands,
            folder=self.folder,
        )

    def files(self) -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Failed:
    return Failed(tmp_path_factory.mktemp("failed"))


def test_it_reads_on_from_the_checkpoint_with_the_state_of_each_key(failed: Failed) -> None:
    before = failed.files()
    look = "p value, self.last.value()\n"
    ran = failed.debug(
        "--operator", "growth of readings", "--key", "roof", commands=f"{look}c\n{look}n\nq\n"
    )
    stop = re.search(
        r"growth, subtask 0: record \('roof', (\d+).0\), key 'roof', event time (\d+)", ran.stdout
    )
    assert stop is not None, ran.stdout
    first = int(stop[1])  # it depends on when the last checkpoint was complete
    assert (first in (11, 21, 31), int(stop[2])) == (True, first)
    assert f"(Pdb) (('roof', {first}.0), {first - 2}.0)" in ran.stdout
    assert f"(Pdb) (('roof', {first + 2}.0), {first}.0)" in ran.stdout
    assert "-> self.last.update(value[1])" in ran.stdout
    assert "cellar" not in ran.stdout
    assert (ran.returncode, ran.stderr) == (0, "")
    assert failed.files() == before  # neither results nor checkpoints


def test_it_stops_where_the_job_failed(failed: Failed) -> None:
    ran = failed.debug("--operator", "growth", "--only-errors", commands="p value, last\nq\n")
    assert (
        "ZeroDivisionError: float division by zero, raised here in 'growth' for record "
        "('roof', 37.0)"
    ) in ran.stdout
    assert "(Pdb) (('roof', 37.0), 0.0)" in ran.stdout
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_job_that_fails_in_the_replay_says_so_as_before(failed: Failed) -> None:
    ran = failed.debug("--operator", "growth", "--only-errors", commands="c\n")
    assert ran.returncode == 1
    assert "job 'growth' failed: ZeroDivisionError" in ran.stderr


def test_another_operator_before_it(failed: Failed) -> None:
    ran = failed.debug("--operator", "as it is", commands="p reading\nq\n")
    assert re.search(
        r"as it is, subtask 0: record \('(roof|cellar)', \d+.0\), event time", ran.stdout
    )
    assert ran.returncode == 0


@pytest.mark.wide
def test_with_another_parallelism_one_subtask(failed: Failed) -> None:
    ran = failed.debug(
        "-p", "2", "--operator", "growth", "--subtask", "0", "--key", "roof", commands="q\n"
    )
    other = failed.debug(
        "-p", "2", "--operator", "growth", "--subtask", "1", "--key", "roof", commands="q\n"
    )
    assert ("record ('roof'," in ran.stdout) != (
        "record ('roof'," in other.stdout.replace("for record", "")
    )


WRONG = {
    "another operator": (
        ["--operator", "grow"],
        (
            "no operator 'grow'; did you mean 'growth'? It has 'as it is', 'growth', 'growth "
            "of readings', 'Map'"
        ),
    ),
    "a sink": (["--operator", "Sink: Writer"], "the program has no operator 'Sink: Writer'"),
    "a subtask": (["--operator", "growth", "--subtask", "1"], "has one subtask, 0, and no 1"),
}


@pytest.mark.wide
@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_in_a_sentence(name: str, failed: Failed) -> None:
    arguments, text = WRONG[name]
    ran = failed.debug(*arguments)
    assert text in ran.stderr
    assert (ran.returncode, "Traceback" in ran.stderr) == (1, False)


PROGRAMS = {
    "another program": (
        "env.from_collection([1]).map(str).print()",
        (
            "is a checkpoint of another program: it is of 'Sink: Writer', "
            "'Source: readings', 'growth'"
        ),
    ),
    "a socket": (
        (
            "env.socket_text_stream('localhost', 9).map(str).name('growth').uid('growth of "
            "readings').print()"
        ),
        "cannot be replayed",
    ),
    "no job": ("", "never called execute()"),
    "batch": (
        "env.set_runtime_mode(RuntimeExecutionMode.BATCH)\nenv.from_collection([1]).map(str).print()",
        "a job in BATCH",
    ),
    "two of one name": (
        (
            "one = env.from_collection([1]).map(str).name('growth')\none.uid('growth of "
            "readings')\none.map(str).name('growth').print()"
        ),
        "2 operators of the name 'growth'",
    ),
}


@pytest.mark.wide
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_cannot_be_replayed_are_told_in_a_sentence(
    name: str, failed: Failed, tmp_path: Path
) -> None:
    body, text = PROGRAMS[name]
    script = tmp_path / "other.py"
    head = (
        "from flinkpy.datastream import RuntimeExecutionMode, StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
    )
    script.write_text(head + body + ("\nenv.execute()\n" if body else ""))
    ran = failed.debug("--operator", "growth", script=script)
    assert text in ran.stderr
    assert (ran.returncode, "Traceback" in ran.stderr) == (1, False)


@pytest.mark.wide
def test_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("")
    ran = flinkpy("debug", tmp_path / "nowhere", "--operator", "growth", script, folder=tmp_path)
    assert (ran.returncode, "there is no checkpoint" in ran.stderr) == (1, True)
    # the checkpoint behind the options
    behind = flinkpy("debug", "--operator", "growth", tmp_path / "nowhere", script, folder=tmp_path)
    among = flinkpy(
        "debug",
        "-n",
        tmp_path / "nowhere",
        "--operator",
        "growth",
        script,
        "--of-the-script",
        folder=tmp_path,
    )
    assert behind.stderr == among.stderr == ran.stderr
    assert (
        "name the checkpoint and the program"
        in flinkpy("debug", "--operator", "growth", script, folder=tmp_path).stderr
    )
