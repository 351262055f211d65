"""Runs the user's program as ``python job.py`` would: as ``__main__``, its folder first on
``sys.path``, its own arguments in ``sys.argv``; or a module as ``python -m`` would."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flinkpy.core.errors import ProgramError


def find_script(name: str) -> Path:
    """Returns the program's file. Raises ProgramError if there is none, with the nearest file name
    in the message."""
    path = Path(name)
    # not pathlib's, which raises if a folder in the path may not be searched
    if os.path.isdir(path):
        path = path / "__main__.py"
        if not os.path.isfile(path):
            raise ProgramError(
                f"{name} is a folder without a __main__.py; name the Python file of the job"
            )
    if not os.path.isfile(path):
        near = _nearest(path)
        raise ProgramError(f"there is no file {name}" + (f"; did you mean {near}?" if near else ""))
    if not os.access(path, os.R_OK):
        raise ProgramError(f"{name} cannot be read: permission denied")
    _check_text(path)
    return path.absolute()


def _check_text(path: Path) -> None:
    """Raises ProgramError for what Python takes for no program: data, mostly. Compiled programs and
    archives are some."""
    with open(path, "rb") as file:
        beginning = file.read(1 << 16)
    if b"\0" not in beginning or path.suffix == ".pyc":
        return
    import zipfile

    if not zipfile.is_zipfile(path):
        raise ProgramError(
            f"{path} is no Python program: it has bytes that no text has; name the Python "
            "file of the job"
        )


def find_module(name: str) -> Path:
    """Returns the file of the module that ``python -m name`` would run. Raises ProgramError if
    there is none."""
    with _first_on_path(os.getcwd()):
        try:
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.submodule_search_locations is not None:
                spec = importlib.util.find_spec(f"{name}.__main__")
                if spec is None:
                    raise ProgramError(
                        f"{name} is a package without a __main__.py; name one of its modules: "
                        f"-m {name}.MODULE"
                    )
        except (ModuleNotFoundError, ValueError):
            spec = None
    if spec is None or spec.origin is None or not os.path.isfile(spec.origin):
        raise ProgramError(
            (
                f"there is no module {name} to run, in this folder or in what python.files "
                "(-pyfs) names"
            )
            + (f"; for a file write flinkpy run {name}" if name.endswith(".py") else "")
        )
    return Path(spec.origin).absolute()


def run_program(file: Path, arguments: Sequence[str], module: str | None = None) -> None:
    """Runs the program's file, or the module that it is of, to its end. Its exceptions propagate;
    ``sys.exit(0)`` is a normal end."""
    # like Python: the folder of the file, not of a link to it
    folder = str(file.resolve().parent) if module is None else os.getcwd()
    argv, sys.argv = sys.argv, [str(file), *arguments]
    try:
        with _first_on_path(folder):
            if module is None:
                runpy.run_path(str(file), run_name="__main__")
            else:
                runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if exit_code(end):
            raise
    finally:
        sys.argv = argv


def exit_code(end: SystemExit) -> int:
    """Python's exit code: a value that is not an integer is a message, and the code is 1."""
    if end.code is None:
        return 0
    return end.code if isinstance(end.code, int) else 1


def exit_message(end: SystemExit) -> str | None:
    """Returns what Python would show on standard error: for ``sys.exit("no input")``,
    ``sys.exit(error)``."""
    return None if end.code is None or isinstance(end.code, int) else str(end.code)


@contextmanager
def _first_on_path(folder: str) -> Iterator[None]:
    path = list(sys.path)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path[:] = path


def _nearest(path: Path) -> str | None:
    import difflib

    try:
        files = [entry.name for entry in os.scandir(path.parent) if entry.is_file()]
    except OSError:
        return None
    near = difflib.get_close_matches(path.name, files, n=1)
    return str(path.parent / near[0]) if near else None
