"""The line of the user's program that made a call, for error messages with file and line from any
layer.

This is for calls made while the program is built: assigners, descriptors, strategies, types. Errors
that occur while records are processed name the operator instead."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from flinkpy.core.errors import ProgramError
from flinkpy.core.source_places import place

# the last two: the outermost frames of threads
_OWN_MODULES = ("flinkpy.", "contextlib", "threading", "concurrent.futures")


def caller() -> str | None:
    """``file:line`` of the nearest frame outside flinkpy, or the notebook's cell and the line in
    it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith(_OWN_MODULES):
            return place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def refuse(message: str) -> ProgramError:
    """A ProgramError for a call that is not allowed, with the place of the call in front."""
    where = caller()
    return ProgramError(f"{where}: {message}" if where else message)


def with_line(error: ProgramError) -> ProgramError:
    """The error with the user's file and line in front, if it does not start with them already."""
    where = caller()
    return (
        error if where is None or str(error).startswith(where) else type(error)(f"{where}: {error}")
    )


@contextmanager
def located() -> Iterator[None]:
    """Puts the user's file and line in front of any ProgramError raised inside."""
    try:
        yield
    except ProgramError as error:
        raise with_line(error) from None
