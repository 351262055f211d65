"""Runs the user's program as ``python job.py`` would: as ``__main__``, its folder first on ``sys.path``, its own arguments in ``sys.argv``."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flinkpy.core.errors import ProgramError


def find_script(name: str) -> Path:
    """The program's file; raises ProgramError naming one that looks like it when there is none."""
    path = Path(name)
    if path.is_dir():
        raise ProgramError(f"{name} is a folder; name the Python file of the job")
    if not path.is_file():
        near = _nearest(path)
        raise ProgramError(f"there is no file {name}" + (f"; did you mean {near}?" if near else ""))
    return path.absolute()


def run_script(script: Path, arguments: Sequence[str]) -> None:
    """Runs it to its end; what it raises comes through. ``sys.exit(0)`` is a good end."""
    with _as_program(script, arguments):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise


@contextmanager
def _as_program(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))  # as Python: that of the file, not of a link to it
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _nearest(path: Path) -> str | None:
    import difflib

    if not path.parent.is_dir():
        return None
    near = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir() if entry.is_file()], n=1)
    return str(path.parent / near[0]) if near else None
