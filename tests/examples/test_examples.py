from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from examples import side_outputs, word_count
from flinkpy.datastream import StreamExecutionEnvironment
from tests.waiting import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    """What the example prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("parallelism", [1, 2])
def test_words_are_counted_as_a_counter_counts_them(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    text = word_count.DATA.read_text()
    assert word_count.count_file(env, word_count.DATA) == Counter(text.lower().split())


@pytest.mark.parametrize("arguments", [(), ("--batch",)])
def test_the_word_count_prints_the_most_frequent_words(arguments: tuple[str, ...]) -> None:
    lines = run("word_count.py", *arguments).splitlines()
    assert len(lines) == 10
    assert lines[0].split()[1] == "the"


def test_the_word_count_follows_a_socket_to_its_end() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(30)
    program = subprocess.Popen(
        [
            sys.executable,
            str(EXAMPLES / "word_count.py"),
            "--host",
            "127.0.0.1",
            "--port",
            str(listener.getsockname()[1]),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        connection, _ = listener.accept()
        connection.sendall(b"to be or\nnot to be\n")
        connection.close()
        out, errors = program.communicate(timeout=PATIENCE_S)
    finally:
        program.kill()
        program.communicate()
        listener.close()
    assert program.returncode == 0, errors
    printed = [re.sub(r"^\d+> ", "", line) for line in out.splitlines()]
    assert sorted(printed) == sorted(["(to,1)", "(be,1)", "(or,1)", "(not,1)", "(to,2)", "(be,2)"])


@pytest.mark.parametrize("parallelism", [1, 2])
def test_readings_and_rejected_lines_meet_in_one_log(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    with side_outputs.log_of(env, side_outputs.READINGS).execute_and_collect() as lines:
        logged = list(lines)
    assert sorted(logged) == sorted(
        [
            "kitchen: 21.5 °C",
            "cellar: 12.0 °C",
            "kitchen: 22.0 °C",
            "roof: -3.5 °C",
            "rejected: 'roof warm'",
            "rejected: ''",
        ]
    )


def test_the_side_output_example_prints_its_log() -> None:
    assert sorted(run("side_outputs.py").splitlines())[-1].startswith("roof")


TOURS = {"flight_delays.py", "spark_to_stream.py"}  # the others show one thing


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short_and_says_how_to_run_it(example: Path) -> None:
    text = example.read_text()
    assert len(text.splitlines()) <= (350 if example.name in TOURS else 120)
    assert f"python examples/{example.name}" in text
    assert str(EXAMPLES.parent) not in text, "an example must run from any folder"


def test_the_table_of_examples_names_them_all() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert [
        path.name
        for path in sorted(EXAMPLES.glob("*.py"))
        if f"[{path.name}]({path.name})" not in page
    ] == []
