"""docs/pyflink-compatibility.md says what is so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.compatibility.names import OURS, load
from tests.compatibility.notes import ABSENT, DIFFERENT
from tests.compatibility.page import PAGE

ROOT = Path(__file__).parents[2]


@pytest.mark.wide
def test_every_name_is_called_and_the_page_says_what_it_does() -> None:
    """In a process of its own: the recording sees threads from their start only."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.compatibility.page", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, (
        f"{PAGE} is out of date (make compatibility writes it)\n{done.stdout}\n{done.stderr}"
    )


def test_at_least_97_of_100_names_are_there() -> None:
    names = [name for name in load() if name.tier in OURS]
    assert sum(bool(name.found) for name in names) >= 0.97 * len(names)


def test_notes_are_about_names_there_are_and_absences_about_names_there_are_not() -> None:
    names = {name.path: name for name in load()}
    assert not [path for path in (*DIFFERENT, *ABSENT) if path not in names]
    assert not [path for path in ABSENT if names[path].found]
