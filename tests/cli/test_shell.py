"""``flinkpy shell``, and Python's own prompt: what is typed runs, mistakes are short, Ctrl-C
cancels the job and gives the prompt back."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cli import shell
from flinkpy.cli.prompt import Above, IdleLine
from tests.cli.terminal import CTRL_C, CTRL_D, Terminal
from tests.cluster.ray_fixture import RayCluster
from tests.waiting import PATIENCE_S, eventually

FLINKPY = [sys.executable, "-m", "flinkpy"]
ENDLESS = "numbers = env.from_sequence(1, 10**15)"
SAYS_SO = "lambda n: n == 5 and print('it is' + ' going', flush=True)"
GOING = f"_ = numbers.add_sink({SAYS_SO})"


def feed(text: str, folder: Path, *options: str, code: int = 0) -> tuple[str, str]:
    """What the shell prints, and its errors, when ``text`` comes through a pipe."""
    done = subprocess.run(
        [*FLINKPY, "shell", *options],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=folder,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


# -- through a pipe --------------------------------------------------------------------------------


def test_the_common_names_are_there(tmp_path: Path) -> None:
    out, _ = feed(
        "sorted(env.from_collection([1, 2]).map(lambda n: n + 1, "
        "Types.INT()).take(2))\nenv.get_parallelism()\n"
        "Row(1), col('x'), TumblingEventTimeWindows.of(Time.seconds(1)) and "
        "Duration\n",
        tmp_path,
        "-p",
        "3",
        "-t",
        "embedded",
    )
    taken, parallelism, names = out.splitlines()
    assert taken == "[2, 3]"
    assert parallelism == "3"
    assert "Row(1)" in names


def test_functions_of_several_lines_are_told_by_the_input_and_its_line(tmp_path: Path) -> None:
    _, err = feed(
        (
            "def careless(n):\n    left = n - 2\n    return 1 / left\n\nenv.from_collection([1, "
            "2]).map(careless).show()\n"
        ),
        tmp_path,
        code=1,
    )
    assert err.splitlines()[3:8] == [
        '  File "<input 2>", line 1, in <module>',
        "    env.from_collection([1, 2]).map(careless).show()",
        "JobExecutionError: job 'show(20)' failed: ZeroDivisionError: division by zero",
        '  File "<input 1>", line 3, in careless',
        "    return 1 / left",
    ]
    assert "flinkpy/" not in err


def test_an_error_of_ones_own_is_pythons(tmp_path: Path) -> None:
    _, err = feed("def f():\n    return {}['missing']\n\nf()\n", tmp_path, code=1)
    assert 'Traceback (most recent call last):\n  File "<input 2>", line 1, in <module>' in err
    assert err.strip().splitlines()[-1] == "KeyError: 'missing'"


def test_modules_of_the_folder_one_is_in_travel_with_the_functions(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("def twice(n):\n    return 2 * n\n")
    out, _ = feed(
        "import helpers\nenv.from_collection([4]).map(lambda n: helpers.twice(n)).take()\n",
        tmp_path,
    )
    assert out == "[8]\n"


def test_a_file_where_one_is_may_be_named_as_a_module_that_the_prompt_needs(tmp_path: Path) -> None:
    # as the installed command: not from here
    (tmp_path / "command.py").write_text(
        "import flinkpy.cli.main\nflinkpy.cli.main.main(['shell'])\n"
    )
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "code.py").write_text("raise RuntimeError('not that one')\n")
    done = subprocess.run(
        [sys.executable, tmp_path / "command.py"],
        input="print('typed')\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=tmp_path / "here",
    )
    assert (done.returncode, done.stdout) == (0, "typed\n"), done.stderr


def test_exit_gives_its_code(tmp_path: Path) -> None:
    feed("exit(3)\n", tmp_path, code=3)
    _, err = feed("exit('no input')\n", tmp_path, code=1)
    assert err.endswith("no input\n")


def test_a_wrong_option_is_refused_before_the_prompt(tmp_path: Path) -> None:
    out, err = feed("print('typed')\n", tmp_path, "-D", "paralelism.default=2", code=1)
    assert out == ""
    assert "did you mean 'parallelism.default'" in err


def test_pyflink_means_flinkpy_where_asked_for(tmp_path: Path) -> None:
    out, _ = feed("from pyflink.common import Types as T\nT is Types\n", tmp_path, "--pyflink")
    assert out == "True\n"


# -- at a terminal ---------------------------------------------------------------------------------


@pytest.mark.wide(but=("show",))
@pytest.mark.parametrize(
    ("waiting", "shown"),
    [
        pytest.param(
            "_ = numbers.add_sink(lambda n: None); env.execute('long')",
            "long · RUNNING",
            id="execute",
        ),
        pytest.param(
            "numbers.filter(lambda n: n < 0).show(job_name='long')", "long · RUNNING", id="show"
        ),
        pytest.param(
            f"list(numbers.filter({SAYS_SO}).execute_and_collect('long'))",
            "it is going",
            id="iterate",
        ),
    ],
)
def test_ctrl_c_cancels_the_job_and_gives_the_prompt_back(
    tmp_path: Path, waiting: str, shown: str
) -> None:
    with Terminal([*FLINKPY, "shell", "--plain", "-t", "embedded"], tmp_path) as terminal:
        terminal.expect(">>> ")
        terminal.type(ENDLESS)
        terminal.type(waiting)
        terminal.expect(shown)
        terminal.press(CTRL_C)
        terminal.expect("KeyboardInterrupt: job 'long' was cancelled")
        assert "flinkpy/" not in terminal.screen
        terminal.expect(">>> ")
        terminal.type(
            "import flinkpy.cluster.launch; "
            "flinkpy.cluster.launch.submitted_jobs()[-1].status().name"
        )
        terminal.expect("\n'CANCELED'")
        terminal.type("env.from_collection([20]).map(lambda n: n + 1).take(1)")
        terminal.expect("[21]\n>>> ")  # on a busy machine behind a line of progress
        terminal.press(CTRL_D)
        assert terminal.end() == 0


def test_ctrl_c_in_the_body_of_a_loop_cancels_the_job_too(tmp_path: Path) -> None:
    with Terminal([*FLINKPY, "shell", "--plain"], tmp_path) as terminal:
        terminal.expect(">>> ")
        for line in (
            ENDLESS,
            "results = numbers.execute_and_collect('worked on')",
            "for n in results:",
            " print('at', n)",
            " while True: pass",
            "",
        ):
            terminal.type(line)
        terminal.expect("\nat 1")
        terminal.press(CTRL_C)
        terminal.expect("job 'worked on' was cancelled")
        terminal.expect(">>> ")
        terminal.type("list(results)")
        terminal.expect("JobCancelledError: job 'worked on' was cancelled")


def test_ctrl_c_at_an_empty_prompt_keeps_the_prompt_and_the_jobs(tmp_path: Path) -> None:
    with Terminal([*FLINKPY, "shell", "--plain"], tmp_path) as terminal:
        terminal.expect(">>> ")
        for line in (ENDLESS, GOING, "client = env.execute_async('in the background')"):
            terminal.type(line)
        terminal.expect("it is going")
        terminal.type("'the prompt is back'")
        terminal.expect("\n'the prompt is back'\n>>> ")
        terminal.press(CTRL_C)
        # Python notices a Ctrl-C that comes right when it begins to wait at the next key
        terminal.type("")
        terminal.expect("KeyboardInterrupt\n")
        terminal.type("client")
        terminal.expect("in the background · RUNNING")
        terminal.expect(">>> ")
        terminal.press(CTRL_D)
        terminal.expect("cancelled job 'in the background', which ran in this process")
        assert terminal.end() == 0


def test_pythons_own_prompt_does_the_same(tmp_path: Path) -> None:
    with Terminal([sys.executable, "-q"], tmp_path, {"PYTHON_BASIC_REPL": "1"}) as terminal:
        terminal.expect(">>> ")
        terminal.type(
            "from flinkpy.datastream import *; env = "
            "StreamExecutionEnvironment.get_execution_environment()"
        )
        for line in (ENDLESS, "env.from_collection([1]).map(3)"):
            terminal.type(line)
        refused = terminal.expect("ProgramError: map() takes a function")
        assert "flinkpy/" not in refused
        terminal.type("numbers.filter(lambda n: n < 0).show(job_name='long')")
        terminal.expect("long · RUNNING")
        terminal.press(CTRL_C)
        terminal.expect("KeyboardInterrupt: job 'long' was cancelled")
        terminal.expect(">>> ")
        terminal.type("1 / 0")
        terminal.expect("ZeroDivisionError: division by zero")
        terminal.type("env.from_collection([20]).map(lambda n: n + 1).take(1)")
        terminal.expect("\n[21]")


@pytest.mark.wide
def test_ipython_is_the_prompt_where_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    environment = {"IPY_TEST_SIMPLE_PROMPT": "1", "IPYTHONDIR": str(tmp_path / "ipython")}
    with Terminal([*FLINKPY, "shell"], tmp_path, environment) as terminal:
        terminal.expect("In [1]: ")
        terminal.type(ENDLESS)
        terminal.expect("In [2]: ")
        terminal.type("numbers.filter(lambda n: n < 0).show(job_name='long')")
        terminal.expect("long · RUNNING")
        terminal.press(CTRL_C)
        terminal.expect("Cell In[2], line 1\n")
        terminal.expect("KeyboardInterrupt: job 'long' was cancelled")
        terminal.expect("In [3]: ")
        terminal.type("env.from_collection([20]).map(lambda n: n + 1).take(1)")
        terminal.expect("Out[3]: [21]")


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.timeout(400)
def test_the_shell_on_ray_cancels_what_is_waited_for_and_leaves_what_runs_in_the_background(
    ray: RayCluster,
) -> None:
    with Terminal(
        [*FLINKPY, "shell", "--plain", "-t", "ray-session"], ray.folder, ray.environment
    ) as terminal:
        terminal.expect("jobs run on Ray")
        for line in (ENDLESS, GOING, "env.execute('waited for')"):
            terminal.type(line)
        terminal.expect("it is going")
        terminal.press(CTRL_C)
        terminal.expect("KeyboardInterrupt: job 'waited for' was cancelled")
        terminal.type(
            "_ = numbers.add_sink(lambda n: None); client = env.execute_async('background'); "
            "print('was', 'submitted')"
        )
        terminal.expect("was submitted\n>>> ")
        terminal.press(CTRL_D)
        terminal.expect("job 'background' runs on in the session on Ray; to end it: ")
        assert terminal.end() == 0
    command = terminal.screen.rpartition("to end it: ")[2].split()
    running = ray.flinkpy("list", "-t", "ray-session").out
    assert "background" in running
    assert "waited for" not in running
    assert ray.flinkpy(*command[1:]).code == 0
    eventually(lambda: "background" not in ray.flinkpy("list", "-t", "ray-session").out)


# -- its parts -------------------------------------------------------------------------------------


def test_spark_starts_when_it_is_used_and_takes_the_names_place() -> None:
    started: list[Any] = []
    session = {"a": 1}
    spark = shell.LazySpark(started.append, lambda: session)
    assert repr(spark) == "<Spark: starts on Ray when it is used>"
    assert not hasattr(spark, "_repr_html_")
    assert started == []
    assert list(spark.keys()) == ["a"]
    assert started == [session]
    assert spark._spark_session() is session
    assert len(started) == 1
    assert repr(spark) == repr(session)


def test_spark_is_there_only_where_its_packages_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for installed in (True, False):
        monkeypatch.setattr(shell, "has_spark", lambda there=installed: there)
        namespace: dict[str, Any] = {}
        shell.fill(namespace)
        assert ("spark" in namespace) is installed
        assert (", spark" in shell.banner({"execution.target": "embedded"}, namespace)) is installed


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def in_another_thread(*texts: str, to: Above) -> None:
    printer = threading.Thread(target=lambda: [to.write(text) for text in texts])
    printer.start()
    printer.join(10)


def test_what_jobs_print_goes_above_the_line_that_is_being_typed_by_whole_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line, screen = IdleLine(), Tty()
    monkeypatch.setattr(line, "typed", lambda: "env.ex")
    output = Above(screen, line)
    with line.while_typing(">>> "):
        in_another_thread("it is", " ", "7", "\n", "8 beg", to=output)
        assert screen.getvalue() == "\r\x1b[Kit is 7\n>>> env.ex"
    in_another_thread("9\n", to=output)
    assert screen.getvalue().endswith("env.ex9\n")
    output.write("typed\n")
    output.give_out()
    assert screen.getvalue().endswith("9\ntyped\n8 beg\n")


def test_output_that_is_no_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = sys.stdout
    with IdleLine().covering_output():
        assert sys.stdout is stdout
    monkeypatch.setattr(sys, "stdin", Tty())
    monkeypatch.setattr(sys, "stdout", Tty())
    with IdleLine().covering_output():
        covered: object = sys.stdout
    assert isinstance(covered, Above)
    assert not isinstance(sys.stdout, Above)
