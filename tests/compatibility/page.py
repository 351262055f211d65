"""Writes ``docs/pyflink-compatibility.md``: every name of PyFlink's DataStream API, and what it is
here.

``python -m tests.compatibility.page`` writes the page; with ``--check`` it says whether the page is
what it would write. A name counts as there when the programs of this package called it and what it
did was what they assert; classes and constants when they are found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.compatibility import files, functions, options, streams, values, windows
from tests.compatibility.names import OURS, Name, load
from tests.compatibility.notes import ABSENT, DIFFERENT, note_of
from tests.compatibility.recording import Calls, recorded

PAGE = Path(__file__).parents[2] / "docs" / "pyflink-compatibility.md"
PROGRAMS = [values, options, windows, files, streams, functions]
_INTRO = """# PyFlink compatibility

`flinkpy run --pyflink job.py` runs a program written for PyFlink: `import pyflink` then means flinkpy. `make compatibility` writes this page from
the public names of PyFlink 1.20 and 2.3. A function or method is listed as there only if calling it did what its test asserts. A test fails when the
page is out of date.

- `pyflink.common`, `pyflink.datastream` and `pyflink.metrics` are flinkpy's modules under a second name, so `isinstance` holds across both.
- `pyflink.table`, `pyflink.java_gateway` and other modules that need the JVM raise an ImportError that names what to use instead.
- Results print as PyFlink prints them. `Types.FLOAT()` keeps Python's 64 bits while the program runs and prints as 32 bits.
"""


def run_programs() -> Calls:
    """Everything under one recording; what a program asserts must hold."""
    with recorded() as calls:
        for module in PROGRAMS:
            for program in module.SCENARIOS:
                program()
    return calls


def status(name: Name, calls: Calls) -> str:
    """``there``, ``different: how``, ``absent: why``; ``not shown`` is for those who must write the
    program that shows it."""
    if not name.found:
        return f"absent: {note_of(ABSENT, name.path, 'not shown')}"
    if name.is_callable and not calls.ran(name):
        return "not shown"
    different = note_of(DIFFERENT, name.path, "")
    return f"different: {different}" if different else "there"


def write(names: list[Name], calls: Calls) -> str:
    """The page."""
    ours = [(name, status(name, calls)) for name in names if name.tier in OURS]
    there = sum(found == "there" for _, found in ours)
    different = sum(found.startswith("different") for _, found in ours)
    absent = len(ours) - there - different
    lines = [
        _INTRO,
        (
            f"Of {len(ours)} names {there} are there, {different} are there and differ, {absent} "
            "are absent."
        ),
    ]
    lines += [
        (
            "This does not count tables, connectors, formats of messages and settings of the JVM, "
            "which are described below."
        ),
        "",
    ]
    lines += [
        "## Different and absent",
        "",
        *_exceptions(ours),
        "",
        *_others(names),
        "",
        "## All names",
        "",
        *_by_owner(ours),
    ]
    return "\n".join(lines) + "\n"


def _exceptions(ours: list[tuple[Name, str]]) -> Iterator[str]:
    yield "| name | how |"
    yield "|---|---|"
    for name, found in ours:
        # the notes of a class hold for its members, which need no line each
        if name.path in DIFFERENT or name.path in ABSENT:
            yield f"| `{name.path.removeprefix('pyflink.')}` | {found} |"


def _others(names: list[Name]) -> Iterator[str]:
    for tier, why in (
        ("jvm-only", "settings and objects of the JVM"),
        ("format", "formats of messages and files (`datastream.formats`)"),
        ("connector-kafka", "the Kafka connector's builders"),
        ("connector-other", "connectors to other systems, which PyFlink takes from jars"),
    ):
        count = sum(name.tier == tier for name in names)
        there = sum(bool(name.found) for name in names if name.tier == tier)
        yield (
            f"- {tier}: {count} names, {why}; "
            f"{f'{there} of them are there' if there else 'none is there'}."
        )


def _by_owner(ours: list[tuple[Name, str]]) -> Iterator[str]:
    """A line for each class or module: its names, the absent ones struck out, the different ones in
    italics."""
    owners: dict[str, list[str]] = {}
    for name, found in ours:
        owner, _, attribute = name.path.removeprefix("pyflink.").rpartition(".")
        shown = (
            attribute
            if found == "there"
            else f"*{attribute}*"
            if found.startswith("different")
            else f"~~{attribute}~~"
        )
        owners.setdefault(owner, []).append(shown.replace("__init__", "\\_\\_init\\_\\_"))
    for owner, attributes in owners.items():
        yield f"- `{owner}`: {', '.join(attributes)}"


def main(arguments: list[str]) -> int:
    names = load()
    calls = run_programs()
    unshown = [
        name.path
        for name in names
        if name.tier in OURS and status(name, calls).endswith("not shown")
    ]
    if unshown:
        print(
            "no program shows these names; write one, or a note in notes.py:", *unshown, sep="\n  "
        )
        return 2
    page = write(names, calls)
    if "--check" in arguments:
        return 0 if PAGE.is_file() and PAGE.read_text() == page else 1
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
