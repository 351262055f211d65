"""Every path, every test and every function that a page names in backticks is there; of functions
``path.py:Class.method``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@cache
def functions_of(path: Path) -> frozenset[str]:
    return frozenset(names_in(ast.parse(path.read_text())))


def names_in(body: ast.Module | ast.ClassDef) -> Iterator[str]:
    """``Class``, ``Class.method`` and ``function`` of a file."""
    for node in body.body:
        if isinstance(node, ast.ClassDef):
            yield from [node.name, *(f"{node.name}.{name}" for name in names_in(node))]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name


PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FOLDERS = ("actors", "benchmarks", "docs", "examples", "flinkpy", "network", "scheduler", "tests")
FILES = [
    f"/{path.relative_to(ROOT)}"
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if "__pycache__" not in path.parts
] + [f"/{path.name}" for path in ROOT.iterdir()]
PLACES = frozenset(
    ending
    for file in FILES
    for ending in [file[place:] for place, letter in enumerate(file) if letter == "/"]
)
ROOMS = frozenset(path.name for path in (ROOT / "flinkpy").iterdir()).union(FOLDERS)
TESTS = frozenset(
    name
    for path in (ROOT / "tests").rglob("*.py")
    for name in re.findall(r"def (test_\w+)", path.read_text())
)
READERS_OWN = {"job.py", "network.py", "helpers.py", "ratios.py"}
"""Files that a page speaks of as the reader's."""

CODE_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"[\w./-]+\.(?:py|js|toml|yml|md)")
FOLDER = re.compile(r"[\w.-]+(?:/[\w.-]+)+/?")
TEST = re.compile(r"test_\w+")
FUNCTION = re.compile(r"([\w./-]+\.py):([\w.]+)")


def is_there(named: str) -> bool:
    """Whether there is a file, a folder or a test of this name; others are no names of places."""
    if TEST.fullmatch(named):
        return named in TESTS
    if function := FUNCTION.fullmatch(named):
        ending, name = f"/{function[1]}", function[2]
        return any(name in functions_of(ROOT / file[1:]) for file in FILES if file.endswith(ending))
    if FILE.fullmatch(named):
        return named in READERS_OWN or f"/{named}" in PLACES or _is_linked(named)
    if FOLDER.fullmatch(named) and named.partition("/")[0] in ROOMS:
        return f"/{named.rstrip('/')}" in PLACES or f"/{named}.py" in PLACES or _is_linked(named)
    return True


def _is_linked(named: str) -> bool:
    """``flinkpy/actors``, ``network`` and ``scheduler`` are links to the folders at the top."""
    return (ROOT / named).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_and_every_test_that_a_page_names_is_there(page: Path) -> None:
    text = CODE_BLOCK.sub("", page.read_text())
    named = re.findall(r"`([^`\s]+)`", text)
    assert [each for each in named if not is_there(each)] == []


def test_a_file_or_a_test_that_has_gone_is_noticed() -> None:
    assert is_there("tests/test_named_places.py")
    assert is_there("flinkpy/scheduler/scheduler.py")
    assert is_there("test_a_file_or_a_test_that_has_gone_is_noticed")
    assert not is_there("flinkpy/web/routes.py")
    assert not is_there("web/no_room")
    assert not is_there("test_that_nobody_wrote")
    assert is_there("runtime/task.py:Task.step")
    assert not is_there("runtime/task.py:Task.run_step")
