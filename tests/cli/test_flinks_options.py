"""What people write for Flink's command line: it runs, or says what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from flinkpy.cli.main import commands
from flinkpy.core.elements import SnapshotType
from flinkpy.core.lifecycles import JobState
from tests.cli.conftest import Flinkpy

pytestmark = pytest.mark.finding("gaps G11")

SHOWS = (
    "import sys\nfrom flinkpy.core.program.launch_context import launch_configuration\n"
    "print(__name__, sys.argv[1:], dict(sorted(launch_configuration().items())))\n"
)


@pytest.fixture(autouse=True)
def programs(flinkpy: Flinkpy, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "word_count.py").write_text(SHOWS)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "__init__.py").touch()
    (tmp_path / "jobs" / "near.py").write_text("WORD = 'near'")
    (tmp_path / "jobs" / "words.py").write_text(
        "from .near import WORD\n" + SHOWS + "print(WORD, __spec__.name)\n"
    )
    (tmp_path / "user.txt").touch()
    (tmp_path / "job.py").write_text(SHOWS)


# Each command of the section "Submitting PyFlink Jobs" of Flink's page on its command line, with
# files that are there
SUBMITTING = [
    ("run --python job.py", "__main__ [] {}"),
    (
        "run --python job.py --pyFiles file://{tmp}/user.txt",
        "'python.files': 'file://{tmp}/user.txt'",
    ),
    ("run --python job.py --jarfile connector.jar", "there is no JVM: leave it out"),
    ("run --pyModule word_count --pyFiles lib", "__main__ [] {'python.files': 'lib'}"),
    ("run --jobmanager host:8081 --python job.py", "-t ray-session -D cluster.id=NAME"),
    ("run --target yarn-per-job --python job.py", "write -t ray-application"),
    (
        "run -t yarn-application -pyarch lib/venv.zip -pyfs lib -pym word_count",
        "write -t ray-application",
    ),
    (
        (
            "run --target kubernetes-application --parallelism 8 --pyModule word_count --pyFiles "
            "lib/word_count.py"
        ),
        "write -t ray-application",
    ),
    (
        (
            "run -pyarch venv.zip#venv -pyexec python3 -pyreq requirements.txt#wheels -pyfs lib "
            "-pym word_count"
        ),
        (
            "{'python.archives': 'venv.zip#venv', 'python.executable': 'python3', "
            "'python.files': 'lib', 'python.requirements': 'requirements.txt#wheels'}"
        ),
    ),
    ("run -pyclientexec venv.zip/venv/bin/python3 -py job.py", "PYTHON -m flinkpy run"),
]
OTHERS = [
    ("run -c org.Main job.py", "name the program's file, or -m MODULE"),
    ("run -C file:///x.jar job.py", "there is no JVM"),
    ("run -m host:8081 job.py", "-m names a module here"),
    ("run -z /nightly job.py", "cluster.id=NAME"),
    ("run -yjm 1024m job.py", "there is no YARN"),
    ("run -t local job.py", "write -t embedded"),
    ("run-application job.py", "flinkpy run -t ray-application"),
    ("run -sae job.py", "__main__ [] {}"),
    ("run -sae -t ray-session job.py", "-sae: a session does not end with a program"),
    (
        "run -cm CLAIM -s /c job.py",
        ("'execution.state-recovery.claim-mode': 'CLAIM', 'execution.state-recovery.path': '/c'"),
    ),
    (
        "run -rm NO_CLAIM -s /c -n job.py",
        "'execution.state-recovery.ignore-unclaimed-state': 'true'",
    ),
    ("run -rm NO_CLAIM -s /c -n job.py", "'execution.state-recovery.claim-mode': 'NO_CLAIM'"),
    ("run -rm LEGACY job.py", "CLAIM"),
    ("run --par 3 job.py", "{'parallelism.default': 3}"),
    ("run --par=3 --detac=x job.py", "does not take a value"),
    ("run --py x job.py", "--py may be --pyArchives, "),
    (
        "run -p3 -Dpipeline.name=x job.py -p 4",
        "__main__ ['-p', '4'] {'parallelism.default': 3, 'pipeline.name': 'x'}",
    ),
    ("run -p 3 -- job.py --in x", "__main__ ['--in', 'x'] {'parallelism.default': 3}"),
    (
        "run -py job.py -p 3 --input x -p 4",
        "__main__ ['--input', 'x', '-p', '4'] {'parallelism.default': 3}",
    ),
    ("run -py job.py -- -p 4", "__main__ ['-p', '4'] {}"),
    ("run -py job.py one -p 4", "__main__ ['one', '-p', '4'] {}"),
    ("run -m jobs.words -p 3 one", "__main__ ['one'] {'parallelism.default': 3}\nnear jobs.words"),
    (
        "run -m jobs",
        "jobs is a package without a __main__.py; name one of its modules: -m jobs.MODULE",
    ),
    ("run -m job.s", "there is no module job.s to run"),
    ("run -m job.py", "for a file write flinkpy run job.py"),
    ("run -p 3", "Missing argument 'SCRIPT'"),
    ("checkpoint --full 2f8a", "flinkpy savepoint JOB"),
    ("info -py job.py", "never called execute()"),
]


@pytest.mark.parametrize(("line", "said"), SUBMITTING + OTHERS)
def test_each_line_runs_or_says_what_to_write(
    flinkpy: Flinkpy, tmp_path: Path, line: str, said: str
) -> None:
    outcome = flinkpy(*line.replace("{tmp}", str(tmp_path)).split())
    assert said.replace("{tmp}", str(tmp_path)) in outcome.out + outcome.err
    assert outcome.code == (
        0 if said.startswith(("__main__", "{", "'")) else 2 if "Error: " in outcome.err else 1
    )


def test_a_folder_with_a_main_is_a_program(flinkpy: Flinkpy, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text("import part_of_app\nprint(part_of_app.WORD)")
    (tmp_path / "app" / "part_of_app.py").write_text("WORD = 'inside'")
    assert flinkpy("run", "app").out == "inside\n"
    assert "without a __main__.py" in flinkpy("run", "lib").err


def test_functions_of_a_module_run(flinkpy: Flinkpy, tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "near.py").write_text("WORD = 'near'")
    (tmp_path / "streams" / "counted.py").write_text(
        "from flinkpy.datastream import StreamExecutionEnvironment\nfrom .near import WORD\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "print(env.from_collection([1]).map(lambda n: WORD * n).take(1))\n"
    )
    assert flinkpy("run", "-m", "streams.counted").out == "['near']\n"


class Asked:
    """Stands in for what a command asks a session."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *arguments: Any) -> None:
        self.calls.append(arguments)


@pytest.mark.parametrize(
    ("line", "job", "kind", "folder", "detached"),
    [
        ("cancel -s /s 2f8a", "2f8a", SnapshotType.SUSPEND, "/s", False),
        ("cancel -s 2f8a", "2f8a", SnapshotType.SUSPEND, None, False),
        ("stop --detached 2f8a", "2f8a", SnapshotType.SUSPEND, None, True),
        ("stop --drain -p /s 2f8a", "2f8a", SnapshotType.TERMINATE, "/s", False),
        ("stop --sav /s 2f8a -detached", "2f8a", SnapshotType.SUSPEND, "/s", True),
        ("savepoint -detached -type canonical 2f8a /s", "2f8a", SnapshotType.SAVEPOINT, "/s", True),
    ],
)
def test_savepoints_are_asked_for_as_in_flink(
    flinkpy: Flinkpy,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    job: str,
    kind: SnapshotType,
    folder: str | None,
    detached: bool,
) -> None:
    asked = Asked()
    monkeypatch.setattr("flinkpy.cli.savepoints.ask_for_snapshot", asked)
    outcome = flinkpy(*line.split())
    assert (outcome.code, outcome.err) == (0, "")
    ((_, _, _, *rest),) = asked.calls
    assert rest[:3] == [job, kind, folder]
    assert (rest[4:] or [False]) == [detached]


RUNNING = {JobState.RUNNING, JobState.RESTARTING, JobState.FAILING, JobState.CANCELLING}
SCHEDULED = {JobState.INITIALIZING, JobState.CREATED}


@pytest.mark.parametrize(
    ("line", "states"),
    [
        ("list", RUNNING | SCHEDULED | {JobState.SUSPENDED}),
        ("list -r", RUNNING | {JobState.SUSPENDED}),
        ("list -s", SCHEDULED),
        ("list -r -s", RUNNING | SCHEDULED | {JobState.SUSPENDED}),
        ("list -a", set(JobState)),
    ],
)
def test_jobs_are_listed_as_in_flink(
    flinkpy: Flinkpy, monkeypatch: pytest.MonkeyPatch, line: str, states: set[JobState]
) -> None:
    asked = Asked()
    monkeypatch.setattr("flinkpy.cli.jobs.show_jobs", asked)
    assert flinkpy(*line.split()).code == 0
    assert set(asked.calls[0][-1]) - {JobState.SUSPENDED} == states - {JobState.SUSPENDED}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (["run", "-D"], {"parallelism.default="}),
        (["run", "--py"], {"--pyFiles", "--pyflink"}),
        ([], {"run", "savepoint"}),
    ],
)
def test_a_shell_completes_commands_options_and_keys(line: list[str], found: set[str]) -> None:
    incomplete = {"-D": "parallelism.d", "--py": "--py"}.get(line[-1] if line else "", "")
    completer = ShellComplete(commands, {}, "flinkpy", "_FLINKPY_COMPLETE")
    before = line[:-1] if incomplete == "--py" else line
    assert found <= {item.value for item in completer.get_completions(before, incomplete)}


def test_a_shell_completes_the_values_of_a_key() -> None:
    completer = ShellComplete(commands, {}, "flinkpy", "_FLINKPY_COMPLETE")
    values = {
        item.value for item in completer.get_completions(["run", "-D"], "execution.runtime-mode=")
    }
    assert "execution.runtime-mode=BATCH" in values


def paths(group: click.Group, *before: str) -> Iterator[str]:
    for name, command in group.commands.items():
        yield from (
            paths(command, *before, name)
            if isinstance(command, click.Group)
            else [" ".join((*before, name))]
        )


@pytest.mark.parametrize("command", sorted(set(paths(commands)) - {"session list", "stop-cluster"}))
def test_help_has_an_example_and_none_of_the_refused_options(command: str) -> None:
    shown = CliRunner().invoke(commands, [*command.split(), "-h"]).output
    assert f"\n  flinkpy {command}" in shown
    assert not {"--classpath", "--jarfile", "-sae", "--restoreMode"} & set(
        shown.replace(",", " ").split()
    )


def test_the_list_of_commands_fits_its_lines() -> None:
    _, _, listed = CliRunner().invoke(commands, ["-h"]).output.partition("Commands:")
    assert "..." not in listed
