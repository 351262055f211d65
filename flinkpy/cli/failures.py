"""The error message of a failed command: short, the user's own code first, the engine's frames only
with ``--verbose``."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import flinkpy
from flinkpy.core.errors import (
    EngineError,
    FlinkpyError,
    JobExecutionError,
    ProgramError,
    RemoteError,
)

_ENGINE = tuple(
    str(Path(folder).resolve()) for package in (flinkpy,) for folder in package.__path__
)
_ENGINE_LINKS = tuple(
    str(Path(folder).resolve().parent / name)
    for folder in flinkpy.__path__
    for name in ("actors", "network", "scheduler")
)

_NO_TEXT = "source code string cannot contain null bytes"


def describe(error: BaseException, script: Path | None = None, *, verbose: bool = False) -> str:
    """The text for standard error.

    A failed job shows the user's frame, the operator and the record; a refused program the line
    that was refused; an exception of the program itself its own traceback, from the script on."""
    if verbose:
        return _everything(error)
    if (
        isinstance(error, (SyntaxError, ValueError))
        and script is not None
        and _is_of_script(error, script)
    ):
        return "".join(traceback.format_exception_only(error)).rstrip()
    if isinstance(error, EngineError):
        return (
            f"this is a bug in flinkpy, please report it: {error}\n(run again with --verbose "
            "for the full traceback)"
        )
    if isinstance(error, JobExecutionError):
        return f"job {error.job_name!r} failed: {_short(error.cause)}"
    if isinstance(error, ProgramError):
        return "\n".join([_short(error), *_where(error, script)])
    if isinstance(error, FlinkpyError):
        return _short(error)
    return "\n".join([_own_traceback(error, script), *_hint(error)])


def _hint(error: BaseException) -> Iterator[str]:
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "pyflink":
        yield (
            "this program was written for PyFlink: run it with flinkpy run --pyflink, and "
            "`import pyflink` means flinkpy"
        )


def _short(error: BaseException) -> str:
    if isinstance(error, RemoteError):
        return error.message
    if isinstance(error, EngineError):
        return f"this is a bug in flinkpy, please report it: {error}"
    return str(error) if isinstance(error, FlinkpyError) else f"{type(error).__name__}: {error}"


def _is_of_script(error: SyntaxError | ValueError, script: Path) -> bool:
    """Whether the job's file, or a module beside it, does not parse; not a text that the job itself
    has parsed."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return _lies_beside(error.filename, script)
    # Python names no file; a ValueError before Python 3.11.4
    is_no_text = isinstance(error, SyntaxError) or str(error) == _NO_TEXT
    return is_no_text and not _has_run(script, error.__traceback__)


def _lies_beside(file: str, script: Path) -> bool:
    """Whether it is the script or under its folder; ``<string>`` and the like are no files."""
    return os.path.isfile(file) and Path(file).resolve().is_relative_to(script.resolve().parent)


def _has_run(script: Path, tb: TracebackType | None) -> bool:
    return any(Path(frame.f_code.co_filename) == script for frame, _ in traceback.walk_tb(tb))


def _where(error: BaseException, script: Path | None) -> Iterator[str]:
    """The last line of the user's own code on the way to the error."""
    if script is None:
        return
    frames = traceback.extract_tb(error.__traceback__)
    inside = [
        frame
        for frame in frames
        if _lies_beside(frame.filename, script) and not _is_engine(frame.filename)
    ]
    if inside:
        yield f'  File "{inside[-1].filename}", line {inside[-1].lineno}, in {inside[-1].name}'
        if inside[-1].line:
            yield f"    {inside[-1].line}"


def _is_engine(file: str) -> bool:
    return str(Path(file).resolve()).startswith((*_ENGINE, *_ENGINE_LINKS))


def _own_traceback(error: BaseException, script: Path | None) -> str:
    return "".join(
        traceback.format_exception(type(error), error, _from_script_on(error.__traceback__, script))
    ).rstrip()


def _from_script_on(tb: TracebackType | None, script: Path | None) -> TracebackType | None:
    """Returns the traceback without the frames of the command line and of runpy, which come before
    the script's own."""
    start = tb
    while (
        start is not None
        and script is not None
        and Path(start.tb_frame.f_code.co_filename) != script
    ):
        start = start.tb_next
    return start if start is not None else tb


def _everything(error: BaseException) -> str:
    parts = ["".join(traceback.format_exception(error)).rstrip()]
    cause: BaseException | None = error
    while cause is not None:
        parts += [
            text
            for text in (getattr(cause, "traceback", ""), getattr(cause, "remote_traceback", ""))
            if text
        ]
        cause = (
            getattr(cause, "cause", None)
            if isinstance(getattr(cause, "cause", None), BaseException)
            else None
        )
    return "\n".join(parts)
