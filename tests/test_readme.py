"""What the pages show, runs: every block of Python on them; and every command line on them is one
there is.

Blocks with prompts are doctests. Other blocks of a page are run one after the other, as they stand.
What a block prints is compared with the block of text behind it, in any order, as subtasks print
when they have something. A block for PyFlink is a program of its own. A block that shows another
system's program has that system's name as its title; it is not run, but it must be Python."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import click
import pytest

from flinkpy.cli.main import commands as flinkpy
from flinkpy.core import options  # noqa: F401  (declares them)
from flinkpy.core.options.schema import SCHEMA

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
    ROOT / "examples" / "README.md",
]
# the test below, tests/spark/test_page.py and tests/kafka/test_page.py
ELSEWHERE = {"docs/on-ray.md", "docs/spark.md", "docs/kafka.md"}
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[tuple[str, str]]:
    """Each block of Python without prompts, and the text it is to print (nothing, where none is
    given)."""
    return [(code, text) for code, text in BLOCK.findall(page.read_text()) if ">>>" not in code]


def is_for_pyflink(code: str) -> bool:
    return "from pyflink" in code


@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in page.read_text()], ids=name_of)
def test_the_examples_of_a_page_run(page: Path) -> None:
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.wide(but=("README", "columns.md"))
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page) and name_of(page) not in ELSEWHERE], ids=name_of
)
def test_a_page_runs_and_prints_what_it_says(
    page: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "__main__"}
    for code, text in blocks(page):
        if not is_for_pyflink(code):
            exec(compile(code, page.name, "exec"), names)
            assert sorted(capfd.readouterr().out.splitlines()) == sorted(text.splitlines()), code


def test_the_guides_source_ends_when_it_is_interrupted_before_it_is_read(tmp_path: Path) -> None:
    """Its reader may be closed while its thread is about to begin."""
    names: dict[str, Any] = {"__name__": "guide"}
    (source, _), (sink, _), (kit, _) = blocks(ROOT / "docs" / "connector-guide.md")
    for code in (source, sink, kit.partition("\nfor tests in")[0]):
        exec(compile(code, "connector-guide.md", "exec"), names)
    path = str(tmp_path / "sales.db")
    names["make_tables"](path)
    follows = names["SalesSource"](path, follow=True)
    follows.interrupt(2)
    assert list(follows.read(2, None)) == []


def test_the_readme_shows_at_least_six_programs() -> None:
    assert len(blocks(README)) >= 6


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_programs_of_other_systems_on_a_page_are_python(page: Path) -> None:
    for info, code in re.findall(
        r"^ *```python([^\n]*)\n(.*?)^ *```$", page.read_text(), re.DOTALL | re.MULTILINE
    ):
        if info:
            assert re.fullmatch(r' title="(Bytewax|Spark)"', info), (
                f"{page.name}: {info}: a block runs, or its title names another system"
            )
            compile(textwrap.dedent(code), page.name, "exec")


def command_line(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flinkpy", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.wide(but=("README",))
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(is_for_pyflink(code) for code, _ in blocks(page))],
    ids=name_of,
)
def test_a_pages_pyflink_programs_run(page: Path, tmp_path: Path) -> None:
    for code, text in [(code, text) for code, text in blocks(page) if is_for_pyflink(code)]:
        (tmp_path / "job.py").write_text(code)
        done = command_line(tmp_path, "run", "--pyflink", "job.py")
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == sorted(text.splitlines())


def test_the_readmes_failure_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "ratios.py").write_text(
        "\n".join(
            [
                "from flinkpy.datastream import StreamExecutionEnvironment",
                "",
                "env = StreamExecutionEnvironment.get_execution_environment()",
                "ratios = env.from_collection([(6, 3), (1, 0)])",
                "ratios.map(lambda r: r[0] / r[1]).print()",
                'env.execute("ratios")',
                "",
            ]
        )
    )
    done = command_line(tmp_path, "run", "ratios.py")
    told = done.stderr.replace(f"{tmp_path}/", "")
    assert done.returncode == 1
    assert told.strip()
    assert told.strip() in README.read_text()


def run_on_ray(code: str, folder: Path) -> str:
    """What the program prints, on a Ray cluster of its own that ends with it."""
    (folder / "job.py").write_text(code)
    environment = {**os.environ, "RAY_ADDRESS": "local", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "job.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_resources_on_the_page_about_ray_can_be_asked_for() -> None:
    (code, _), *_ = blocks(ROOT / "docs" / "on-ray.md")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(code, names)
    assert names["gpu"].get_external_resources() == {"gpu": 1.0}
    assert names["scored"].get_name() == "Map"


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.timeout(400)
def test_the_datasets_on_the_page_about_ray_give_what_it_says(tmp_path: Path) -> None:
    _, (code, text), _ = blocks(ROOT / "docs" / "on-ray.md")
    assert run_on_ray(code, tmp_path) == text


SHELL = re.compile(
    r"^```sh\n(.*?)^```|^((?:    (?:flinkpy|make|\$).*\n)+)|`(flinkpy [a-z-][^`]*)`",
    re.DOTALL | re.MULTILINE,
)


def commands(page: Path) -> list[str]:
    """The calls of flinkpy on it, in blocks and in sentences."""
    parts = SHELL.findall(page.read_text())
    lines = [
        line.partition("  #")[0].strip()
        for block, indented, _ in parts
        for line in (block or indented).replace("\\\n", " ").splitlines()
    ]
    return [
        line
        for line in [*lines, *(sentence for *_, sentence in parts)]
        if line.startswith("flinkpy ")
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_on_a_page_is_one_there_is(page: Path) -> None:
    for line in commands(page):
        assert_is_there(line)


def test_make_demo_ends_with_commands_that_there_are() -> None:
    told = re.findall(r"\$\(BIN\)/(flinkpy [^\"\n]+)", (ROOT / "Makefile").read_text())
    assert [line.split()[1:3] for line in told] == [
        ["run", "-p"],
        ["session", "start"],
        ["run", "-t"],
        ["session", "stop"],
    ]
    for line in told:
        assert_is_there(line)
        assert all((ROOT / word).exists() for word in line.split() if word.endswith(".py")), line


def assert_is_there(line: str) -> None:
    """A call of flinkpy: its command and its options are those of the command line."""
    arguments = shlex.split(line)[1:]
    command: click.Command = flinkpy
    while isinstance(command, click.Group) and arguments[:1] not in (["-h"], ["--version"]):
        assert arguments, f"{line}: a command is missing"
        name = arguments.pop(0)
        assert name in command.commands, f"{line}: there is no {name}"
        command = command.commands[name]
    known = {option for parameter in command.params for option in parameter.opts} | {"-h", "--help"}
    for argument in arguments:
        if argument.endswith(".py"):
            break  # what follows is the script's own
        assert not argument.startswith("-") or argument in known, f"{line}: there is no {argument}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_on_a_page_leads_somewhere(page: Path) -> None:
    generated = {ROOT / "docs" / "reference" / "options.md"}
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        place = Path(os.path.normpath(page.parent / target))  # docs/hooks.py writes it
        assert target.startswith("http") or place in generated or place.exists(), (
            f"{page.name}: {target}"
        )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_option_set_on_a_page_is_one_there_is(page: Path) -> None:
    for key, value in re.findall(r"-D\s+([\w.-]+)=([^\s`),;]+)", page.read_text()):
        if key != "KEY":
            SCHEMA.get(key).parse(value)


def test_every_file_the_architecture_names_is_there() -> None:
    folder = ""
    for name in re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "ARCHITECTURE.md").read_text()):
        if "/" in name:
            folder = name.rpartition("/")[0]
        # the second of a row is named without its folder
        path = name if "/" in name else f"{folder}/{name}"
        assert (
            (ROOT / "flinkpy" / path).exists()
            or (ROOT / path).exists()
            or name in ("network.py", "helpers.py")
        ), name
