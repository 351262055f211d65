"""The command line without a job: what it says when something is wrong, and how it runs the
program."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from flinkpy import __version__
from flinkpy.core.ids import JobId, OperatorId
from flinkpy.core.options.engine import TASK_SLOTS
from flinkpy.graph.checkpoints import CompletedCheckpoint, OperatorCheckpoint, OperatorSubtaskState
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from tests.cli.conftest import Flinkpy


def job(folder: Path, text: str, name: str = "job.py") -> str:
    (folder / name).write_text(text)
    return name


def test_the_version_is_told_with_the_commit(flinkpy: Flinkpy) -> None:
    outcome = flinkpy("--version")
    assert outcome.code == 0
    assert re.fullmatch(
        rf"flinkpy {re.escape(__version__)}(, commit [0-9a-f]{{12}})?\n", outcome.out
    )
    assert flinkpy("-v").out == outcome.out


def test_a_typo_in_a_command_names_the_nearest(flinkpy: Flinkpy) -> None:
    outcome = flinkpy("cancle", "abc")
    assert outcome.code == 2
    assert "Did you mean 'cancel'?" in outcome.err


@pytest.mark.finding("first-use 24")
@pytest.mark.finding("mechanisms F9")
@pytest.mark.parametrize(
    "arguments",
    [("stop", "ab12"), ("stop", "--drain", "ab12"), ("savepoint", "ab12"), ("checkpoint", "ab12")],
)
def test_what_asks_a_job_for_a_savepoint_starts_no_cluster(
    flinkpy: Flinkpy, arguments: tuple[str, ...]
) -> None:
    outcome = flinkpy(*arguments, "-t", "embedded")
    assert outcome.code == 1
    assert "embedded jobs live in the process that started them" in outcome.err


@pytest.mark.parametrize("arguments", [("savepoint",), ("savepoint", "ab12", "--dispose", "x")])
def test_a_savepoint_is_taken_of_a_job_or_disposed_of(
    flinkpy: Flinkpy, arguments: tuple[str, ...]
) -> None:
    outcome = flinkpy(*arguments)
    assert outcome.code == 2
    assert (
        "name a job to take a savepoint of, or with --dispose a savepoint to remove" in outcome.err
    )


def test_a_folder_that_is_no_savepoint_is_not_disposed_of(flinkpy: Flinkpy, tmp_path: Path) -> None:
    Path(tmp_path, "mine").touch()
    for path, reason in (
        (tmp_path, "is no checkpoint: it has no _metadata"),
        (tmp_path / "other", "there is no checkpoint"),
    ):
        outcome = flinkpy("savepoint", "--dispose", str(path))
        assert outcome.code == 1
        assert reason in outcome.err
    assert Path(tmp_path, "mine").exists()


def test_a_savepoint_is_disposed_of_and_what_else_is_in_its_folder_stays(
    flinkpy: Flinkpy, tmp_path: Path
) -> None:
    folder = tmp_path / "savepoint-1"
    storage = CheckpointStorage.of({}, JobId("job")).of_snapshot(str(folder))
    with storage.state_writer(1, "a", 0) as writer:
        state = OperatorSubtaskState(writer.write(bytes(100_000)))
    storage.store(
        CompletedCheckpoint(1, 0, {OperatorId("a"): OperatorCheckpoint("a", 1, 128, {0: state})})
    )
    Path(folder, "notes").touch()
    outcome = flinkpy("savepoint", "-d", str(folder))
    assert (outcome.code, outcome.out) == (0, f"removed the savepoint {folder}\n")
    assert [each.name for each in folder.iterdir()] == ["notes"]


def test_a_typo_in_a_session_command_names_the_nearest(flinkpy: Flinkpy) -> None:
    outcome = flinkpy("session", "strat", "nightly")
    assert outcome.code == 2
    assert "Did you mean 'start'?" in outcome.err


def test_a_script_instead_of_a_command_says_how_to_run_it(flinkpy: Flinkpy) -> None:
    assert "flinkpy run job.py" in flinkpy("job.py").err


def test_a_typo_in_an_option_names_the_nearest(flinkpy: Flinkpy) -> None:
    outcome = flinkpy("run", "--paralelism", "2", "job.py")
    assert outcome.code == 2
    assert "--parallelism" in outcome.err


def test_a_typo_in_a_key_names_the_nearest(flinkpy: Flinkpy, tmp_path: Path) -> None:
    outcome = flinkpy("run", "-D", "paralelism.default=2", job(tmp_path, "print('ran')"))
    assert (outcome.code, outcome.out) == (1, "")
    assert (
        outcome.err
        == "-D: unknown option 'paralelism.default'; did you mean 'parallelism.default'?\n"
    )


def test_a_missing_file_names_the_nearest(flinkpy: Flinkpy, tmp_path: Path) -> None:
    job(tmp_path, "")
    outcome = flinkpy("run", "jop.py")
    assert (outcome.code, outcome.err) == (1, "there is no file jop.py; did you mean job.py?\n")


def test_the_program_runs_as_main_with_its_arguments_and_its_folder_on_the_path(
    flinkpy: Flinkpy, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "helper.py").write_text("WORD = 'helped'")
    (tmp_path / "sub" / "job.py").write_text(
        "import sys, helper\nprint(__name__, sys.argv[1:], helper.WORD)"
    )
    outcome = flinkpy("run", "sub/job.py", "--input", "x", "-p", "3")
    assert (outcome.code, outcome.out) == (0, "__main__ ['--input', 'x', '-p', '3'] helped\n")


def test_a_link_to_the_program_finds_the_modules_beside_the_file_it_leads_to(
    flinkpy: Flinkpy, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "helper_of_the_linked.py").write_text("WORD = 'helped'")
    (tmp_path / "sub" / "job.py").write_text(
        "import helper_of_the_linked\nprint(helper_of_the_linked.WORD)"
    )
    (tmp_path / "link.py").symlink_to(tmp_path / "sub" / "job.py")
    outcome = flinkpy("run", "link.py")
    assert (outcome.code, outcome.out) == (0, "helped\n")


def test_the_exit_code_of_the_program_is_kept(flinkpy: Flinkpy, tmp_path: Path) -> None:
    assert flinkpy("run", job(tmp_path, "import sys; sys.exit(7)")).code == 7
    assert flinkpy("run", job(tmp_path, "import sys; sys.exit()")).code == 0
    outcome = flinkpy("run", job(tmp_path, "import sys; sys.exit('no input')"))
    assert (outcome.code, outcome.err) == (1, "no input\n")


@pytest.mark.parametrize(
    ("value", "shown"),
    [("ValueError('no input')", "no input\n"), ("('a', 1)", "('a', 1)\n"), ("0.0", "0.0\n")],
)
def test_a_program_that_exits_with_anything_but_a_number_shows_it_as_under_python(
    flinkpy: Flinkpy, tmp_path: Path, value: str, shown: str
) -> None:
    outcome = flinkpy("run", job(tmp_path, f"import sys; sys.exit({value})"))
    assert (outcome.code, outcome.err) == (1, shown)


def test_a_program_may_end_with_an_error_that_is_no_exception(
    flinkpy: Flinkpy, tmp_path: Path
) -> None:
    outcome = flinkpy(
        "run", job(tmp_path, "class Abandoned(BaseException): pass\nraise Abandoned('now')")
    )
    assert outcome.code == 1
    assert outcome.err.startswith(
        f'Traceback (most recent call last):\n  File "{tmp_path}/job.py", line 2'
    )
    assert outcome.err.endswith("Abandoned: now\n")


def test_ctrl_c_ends_a_command_as_a_signal_does(
    flinkpy: Flinkpy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flinkpy.cli.jobs.show_jobs", interrupted)
    assert flinkpy("list").code == 128 + signal.SIGINT


def test_a_text_that_the_program_fails_to_parse_is_an_error_of_the_line_that_parses_it(
    flinkpy: Flinkpy, tmp_path: Path
) -> None:
    outcome = flinkpy("run", job(tmp_path, "def rule(text):\n    return eval(text)\nrule('1 +')\n"))
    assert 'job.py", line 3, in <module>' in outcome.err
    assert 'job.py", line 2, in rule' in outcome.err
    assert outcome.err.endswith("SyntaxError: invalid syntax\n")


def test_what_is_refused_inside_exec_names_the_line_that_calls_it(
    flinkpy: Flinkpy, tmp_path: Path
) -> None:
    outcome = flinkpy(
        "run",
        job(
            tmp_path,
            "from flinkpy.datastream import StreamExecutionEnvironment\n"
            "env = "
            "StreamExecutionEnvironment.get_execution_environment()\n"
            "exec('env.set_parallelism(0)')\n",
        ),
    )
    assert outcome.code == 1
    assert f'  File "{tmp_path}/job.py", line 3, in <module>' in outcome.err


def test_a_refused_program_shows_its_line_also_where_the_working_folder_is_gone(
    flinkpy: Flinkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(
        tmp_path,
        "from flinkpy.datastream import StreamExecutionEnvironment\n"
        "StreamExecutionEnvironment.get_execution_environment().set_parallelism(0)\n",
    )
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    outcome = flinkpy("run", f"{tmp_path}/job.py")
    assert f'  File "{tmp_path}/job.py", line 2, in <module>' in outcome.err
    assert "Traceback" not in outcome.err


def test_a_name_that_no_file_can_have_is_a_missing_file(flinkpy: Flinkpy, tmp_path: Path) -> None:
    assert flinkpy("run", "x" * 1000).err == f"there is no file {'x' * 1000}\n"
    assert (
        flinkpy("run", "--conf", "x" * 1000, job(tmp_path, "")).err
        == f"there is no configuration file {'x' * 1000}\n"
    )


def test_a_file_that_is_no_text_is_refused_without_the_engines_frames(
    flinkpy: Flinkpy, tmp_path: Path
) -> None:
    outcome = flinkpy("run", job(tmp_path, "x = 1\0\n"))
    assert outcome.code == 1
    assert outcome.err == (
        "job.py is no Python program: it has bytes that no text has; name the Python file of "
        "the job\n"
    )
    assert "Traceback" not in outcome.err


def test_a_file_that_may_not_be_read_is_refused_in_a_word(
    flinkpy: Flinkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # root, who runs tests too, may read every file
    monkeypatch.setattr("os.access", lambda path, mode: False)
    outcome = flinkpy("run", job(tmp_path, "print(1)"))
    assert (outcome.code, outcome.err) == (1, "job.py cannot be read: permission denied\n")


@pytest.mark.parametrize(
    "program",
    [
        "try:\n    env.execute()\nexcept:\n    pass\n",
        (
            "import threading\nthread = "
            "threading.Thread(target=env.execute)\nthreading.excepthook = "
            "print\nthread.start()\nthread.join()\n"
        ),
    ],
)
def test_a_plan_that_was_drawn_is_enough_however_the_program_goes_on(
    flinkpy: Flinkpy, tmp_path: Path, program: str
) -> None:
    outcome = flinkpy(
        "info",
        job(
            tmp_path,
            "from flinkpy.datastream import StreamExecutionEnvironment\n"
            "env = "
            "StreamExecutionEnvironment.get_execution_environment()\n"
            f"env.from_collection([1]).print()\n{program}",
        ),
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert "Collection Source" in outcome.out


def test_a_syntax_error_shows_the_line_only(flinkpy: Flinkpy, tmp_path: Path) -> None:
    outcome = flinkpy("run", job(tmp_path, "x = 1\nfor x in\n"))
    assert outcome.code == 1
    assert "line 2" in outcome.err
    assert "SyntaxError" in outcome.err
    assert "runpy" not in outcome.err
    assert len(outcome.err.splitlines()) <= 5


def test_an_exception_outside_the_job_shows_the_programs_own_traceback(
    flinkpy: Flinkpy, tmp_path: Path
) -> None:
    outcome = flinkpy("run", job(tmp_path, "def f():\n    return 1 / 0\nf()\n"))
    assert outcome.code == 1
    assert outcome.err.startswith("Traceback (most recent call last):\n")
    assert 'job.py", line 3, in <module>' in outcome.err
    assert outcome.err.endswith("ZeroDivisionError: division by zero\n")
    assert "runpy" not in outcome.err
    assert "flinkpy/cli" not in outcome.err


def test_verbose_shows_every_frame(flinkpy: Flinkpy, tmp_path: Path) -> None:
    assert "runpy" in flinkpy("run", "-v", job(tmp_path, "1 / 0")).err


def test_an_embedded_job_cannot_be_detached(flinkpy: Flinkpy, tmp_path: Path) -> None:
    outcome = flinkpy("run", "-t", "embedded", "-d", job(tmp_path, "print('ran')"))
    assert (outcome.code, outcome.out) == (1, "")
    assert "-t ray" in outcome.err


def test_embedded_jobs_cannot_be_listed_from_elsewhere(flinkpy: Flinkpy) -> None:
    outcome = flinkpy("list", "-t", "embedded")
    assert outcome.code == 1
    assert "-t ray" in outcome.err


def test_options_are_listed_with_their_variables(flinkpy: Flinkpy) -> None:
    outcome = flinkpy("options", "numberOf")
    assert outcome.code == 0
    assert TASK_SLOTS.key in outcome.out
    assert "$FLINKPY_TASKMANAGER_NUMBEROFTASKSLOTS" in outcome.out
    everything = flinkpy("options").out
    assert "taskmanager.memory.network.min  (memory, default 64 mb)" in everything
    assert (
        "execution.target  (embedded | ray | ray-session | ray-application, default none)"
        in everything
    )


def test_a_pattern_that_no_option_has_names_the_nearest(flinkpy: Flinkpy) -> None:
    outcome = flinkpy("options", "paralelism")
    assert outcome.code == 1
    assert "parallelism" in outcome.err
