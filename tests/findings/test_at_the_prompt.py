"""What a person sees in a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def flinkpy(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flinkpy", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.finding("first-use 22")
def test_the_shell_keeps_pythons_advice_and_exits_with_1_where_piped_lines_failed() -> None:
    ended = flinkpy("shell", "--plain", text="env.from_colection([1])\nprnt(1)\n")
    assert "Did you mean: 'from_collection'?" in ended.stderr
    assert "Did you mean: 'print'?" in ended.stderr
    assert "prnt(1)" in ended.stderr
    assert ended.returncode == 1


@pytest.mark.wide(but=("exit(3)-3",))
@pytest.mark.finding("first-use 22")
@pytest.mark.parametrize(("line", "code"), [("1 + 1", 0), ("if", 1), ("exit(3)", 3)])
def test_the_shells_exit_code_tells_how_the_piped_lines_ended(line: str, code: int) -> None:
    assert flinkpy("shell", "--plain", text=line + "\n").returncode == code


def test_a_pyflink_program_without_the_option_is_told_of_it(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text("import pyflink.datastream\n")
    ended = flinkpy("run", str(program))
    assert ended.returncode == 1
    assert "flinkpy run --pyflink" in ended.stderr


@pytest.mark.wide
@pytest.mark.parametrize(
    ("end", "told"), [("", True), ("env.execute()\n", False), ("1 / 0\n", False)]
)
def test_a_forgotten_execute_is_told_at_the_end_of_a_program(
    tmp_path: Path, end: str, told: bool
) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        "from flinkpy.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).print()\n" + end
    )
    ended = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120
    )
    assert ("job.py defined streams and ended without execute()" in ended.stderr) is told
