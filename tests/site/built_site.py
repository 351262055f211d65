"""What the built site must have; `make docs` runs it after the build, as it needs `build/site`."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from flinkpy.core import options  # noqa: F401  (declares them)
from flinkpy.core.options.schema import SCHEMA
from tests.datastream.test_documentation import NAMES

SITE = Path(__file__).resolve().parents[2] / "build" / "site"


@cache
def index() -> list[dict[str, str]]:
    """The entries that the page's search looks through."""
    return list(json.loads((SITE / "search" / "search_index.json").read_text())["docs"])


@cache
def anchors() -> set[str]:
    return {entry["location"].partition("#")[2] for entry in index()}


def own_methods(value: Any) -> Iterator[str]:
    """The public methods and properties that a class itself declares."""
    for name, member in vars(value).items():
        if not name.startswith("_") and (
            inspect.isfunction(getattr(member, "__func__", member)) or isinstance(member, property)
        ):
            yield name


def public_paths() -> Iterator[str]:
    """``Class`` and ``Class.method`` of everything that a program may import and call."""
    for _, name, value in NAMES:
        yield name
        if inspect.isclass(value):
            yield from (f"{name}.{method}" for method in own_methods(value))


def test_search_finds_every_public_name() -> None:
    found = {
        ".".join(parts[-count:])
        for anchor in anchors()
        if (parts := anchor.split("."))[0] == "flinkpy"
        for count in (1, 2)
    }
    assert sorted(set(public_paths()) - found) == []


def test_search_finds_every_option() -> None:
    text = unescape(
        next(entry["text"] for entry in index() if entry["location"] == "reference/options/")
    )
    assert [option.key for option in SCHEMA if option.key not in text] == []


@pytest.mark.parametrize(
    "page", sorted(SITE.rglob("*.html")), ids=lambda page: str(page.relative_to(SITE))
)
def test_no_prompt_is_left_as_a_quotation(page: Path) -> None:
    """A docstring's example that no fence holds would be shown as nested quotations."""
    assert not re.search(r"<blockquote>\s*<blockquote>", page.read_text())


def test_a_docstring_becomes_markdown() -> None:
    spec = importlib.util.spec_from_file_location(
        "docstrings", SITE.parents[1] / "docs" / "docstrings.py"
    )
    assert spec is not None
    assert spec.loader is not None
    docstrings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docstrings)
    text = (
        "Adds, as :meth:`~flinkpy.x.Y.sum` does.\n\n>>> add(1, 1)  # doctest: "
        "+SKIP\n2\n\nWritten so::\n\n    add(1, 2)"
    )
    fenced = (
        "Adds, as `sum` does.\n\n```pycon\n>>> add(1, 1)\n2\n```\n\nWritten so:\n\n    add(1, 2)"
    )
    assert docstrings.readable(text) == fenced
