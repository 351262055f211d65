"""The option ``python.files`` in this process: what a program and its embedded functions import
from there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flinkpy.core.options.compatibility import PYTHON_FILES
from flinkpy.core.options.schema import read
from flinkpy.core.program.fetched_files import local_copy

ZIPS = (".zip", ".egg", ".whl")


def listed(text: str | None) -> list[str]:
    """The entries of an option that separates them by commas.

    >>> listed("lib, one.py,")
    ['lib', 'one.py']
    """
    return [entry.strip() for entry in (text or "").split(",") if entry.strip()]


def put_on_path(values: Mapping[str, Any]) -> list[str]:
    """Puts the folders, zips and folders of modules that ``python.files`` names first on
    ``sys.path``; returns what was not there yet.

    Raises ConfigurationError if there is no such file.
    """
    added: list[str] = []
    for name in listed(read(values, PYTHON_FILES)):
        path = os.path.abspath(local_copy(name, PYTHON_FILES.key))
        entry = path if os.path.isdir(path) or path.endswith(ZIPS) else os.path.dirname(path)
        if entry not in sys.path and entry not in added:
            added.append(entry)
    sys.path[0:0] = added
    return added


@contextmanager
def on_path(values: Mapping[str, Any]) -> Iterator[None]:
    """The same, for the time of one program."""
    added = put_on_path(values)
    try:
        yield
    finally:
        sys.path[:] = [entry for entry in sys.path if entry not in added]
