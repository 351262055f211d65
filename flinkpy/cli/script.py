"""Runs the user's program as ``python job.py`` would: as ``__main__``, its folder first on ``sys.path``, its own arguments in ``sys.argv``."""

from __future__ import annotations

import os
import runpy
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flinkpy.core.errors import ProgramError


def find_script(name: str) -> Path:
    """Returns the program's file. Raises ProgramError if there is none, with the nearest file name in the message."""
    path = Path(name)
    if os.path.isdir(path):  # not pathlib's, which raises if a folder in the path may not be searched
        raise ProgramError(f"{path} is a folder; name the Python file of the job")
    if not os.path.isfile(path):
        near = _nearest(path)
        raise ProgramError(f"there is no file {name}" + (f"; did you mean {near}?" if near else ""))
    if not os.access(path, os.R_OK):
        raise ProgramError(f"{name} cannot be read: permission denied")
    _check_text(path)
    return path.absolute()


def _check_text(path: Path) -> None:
    """Raises ProgramError for what Python takes for no program: data, mostly. Compiled programs and archives are some."""
    with open(path, "rb") as file:
        beginning = file.read(1 << 16)
    if b"\0" in beginning and path.suffix != ".pyc" and not zipfile.is_zipfile(path):
        raise ProgramError(f"{path} is no Python program: it has bytes that no text has; name the Python file of the job")


def run_script(script: Path, arguments: Sequence[str]) -> None:
    """Runs the program to its end. Its exceptions propagate; ``sys.exit(0)`` is a normal end."""
    with _as_program(script, arguments):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if exit_code(end):
                raise


def exit_code(end: SystemExit) -> int:
    """Python's exit code: a value that is not an integer is a message, and the code is 1."""
    if end.code is None:
        return 0
    return end.code if isinstance(end.code, int) else 1


def exit_message(end: SystemExit) -> str | None:
    """Returns what Python would show on standard error: for ``sys.exit("no input")``, ``sys.exit(error)``."""
    return None if end.code is None or isinstance(end.code, int) else str(end.code)


@contextmanager
def _as_program(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))  # like Python: the folder of the file, not of a link to it
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _nearest(path: Path) -> str | None:
    import difflib

    try:
        files = [entry.name for entry in os.scandir(path.parent) if entry.is_file()]
    except OSError:
        return None
    near = difflib.get_close_matches(path.name, files, n=1)
    return str(path.parent / near[0]) if near else None
