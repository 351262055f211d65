"""Names for places in the user's code, as its author knows them: a file and a line, or the cell of
a notebook.

A notebook's cells are compiled under made-up file names that only the notebook's own process can
resolve. So a place that a worker reports is turned into text here, in the process that shows the
error; so is the text of the line."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from types import FrameType, TracebackType
from typing import Any

from flinkpy.core.secrets.hidden_secrets import without_secrets

# Packages whose frames tell the user nothing; "" is generated code.
_TOOLS = sys.stdlib_module_names | {"flinkpy", "IPython", "ipykernel", "cloudpickle", "ray", ""}


def in_notebook() -> bool:
    """Whether this process runs cells for a front end that can redraw its output (Jupyter, but not
    IPython in a terminal)."""
    return getattr(running_ipython(), "kernel", None) is not None


def running_ipython() -> Any:
    """The IPython shell if it runs this program, as in a notebook; else None."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if hasattr(ipython, "get_ipython") else None


def cell_of(file: str) -> str | None:
    """``Cell In[3]`` for the made-up file of a notebook's cell; None for any other file."""
    name = getattr(getattr(running_ipython(), "compile", None), "format_code_name", None)
    found = name(file) if name is not None else None
    return " ".join(found) if found else None


def place(file: str, line: int) -> str:
    """The place as messages begin with it.

    >>> place("job.py", 3)
    'job.py:3'
    """
    cell = cell_of(file)
    return f"{cell}, line {line}" if cell else f"{file}:{line}"


def frame_text(file: str, line: int, function: str, text: str = "") -> str:
    """One frame as a traceback shows it, indented. Without ``text``, the line's text is looked up.

    >>> print(frame_text("job.py", 3, "double", "return x * 2"))
      File "job.py", line 3, in double
        return x * 2
    """
    where = cell_of(file) or f'File "{file}"'
    inside = "" if function == "<module>" and not where.startswith("File") else f", in {function}"
    text = text or linecache.getline(file, line).strip()
    return f"  {where}, line {line}{inside}" + (f"\n    {text}" if text else "")


def own_frames(start: TracebackType | None) -> list[tuple[str, int, str]]:
    """The user's own frames of a traceback, outermost first, as (file, line, function). Frames of
    packages that flinkpy calls are left out."""
    found, is_inside = [], False
    for frame, line in traceback.walk_tb(start):
        is_inside = is_inside or _package(frame) == "flinkpy"
        if not is_tools(frame) and not (is_inside and _is_installed(frame)):
            found.append((frame.f_code.co_filename, line, frame.f_code.co_name))
    return found


def is_tools(frame: FrameType) -> bool:
    """Whether the frame belongs to flinkpy, Python or the notebook."""
    return _package(frame) in _TOOLS


def _is_installed(frame: FrameType) -> bool:
    # The frames of a compiled module name a source file that is not there, so the module's own file
    # is used.
    file = getattr(sys.modules.get(_package(frame)), "__file__", None)
    return f"{os.sep}site-packages{os.sep}" in (file or frame.f_code.co_filename)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def short_traceback(error: BaseException, message: str | None = None) -> list[str]:
    """What notebooks and prompts show of flinkpy's errors: the user's frames and the message,
    without the engine's frames."""
    message = str(error) if message is None else message
    frames = own_frames(error.__traceback__)
    if frames:
        # the last frame already shows the place
        message = message.removeprefix(place(*frames[-1][:2]) + ": ")
    name = type(error).__name__
    lines = [*(frame_text(*frame) for frame in frames), f"{name}: {message}" if message else name]
    return list(map(without_secrets, lines))


def shorten(interrupt: BaseException, message: str) -> None:
    """Makes notebooks show this error, which is not one of flinkpy's, in the same short form."""
    # IPython's name
    interrupt._render_traceback_ = lambda: short_traceback(interrupt, message)  # type: ignore[attr-defined]
