"""Where in the user's program a call stands, so that a mistake is refused with file and line, whichever floor finds it.

For what programs call while they are built: assigners, descriptors, strategies, types. What records run into has its operator instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from flinkpy.core.errors import ProgramError
from flinkpy.core.program.places import place

_OWN_MODULES = ("flinkpy.", "contextlib", "threading")  # a task's thread begins in the last: there is no program above


def caller() -> str | None:
    """``file:line`` of the nearest frame outside flinkpy, or the notebook's cell and the line in it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith(_OWN_MODULES):
            return place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def refuse(message: str) -> ProgramError:
    """The error for a call that cannot be; says where it stands."""
    where = caller()
    return ProgramError(f"{where}: {message}" if where else message)


def with_line(error: ProgramError) -> ProgramError:
    """What a lower floor refused, with the user's file and line in front; itself where it has them already."""
    where = caller()
    return error if where is None or str(error).startswith(where) else type(error)(f"{where}: {error}")


@contextmanager
def located() -> Iterator[None]:
    """Puts the user's file and line in front of what the lower floors refuse."""
    try:
        yield
    except ProgramError as error:
        raise with_line(error) from None
