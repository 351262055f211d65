"""Where the user's code stands, told the way its author knows it: a file and a line, or the cell of a notebook.

A notebook's cells are compiled under made-up file names that only its own process can tell apart, so a place that comes back from a worker is
read here, where the error is shown, and the text of its line is looked up here too.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from types import FrameType, TracebackType
from typing import Any

_TOOLS = sys.stdlib_module_names | {"flinkpy", "IPython", "ipykernel", "cloudpickle", "ray", ""}  # whose frames tell the user nothing; "": generated


def in_notebook() -> bool:
    """Whether this process runs cells for a front end that can draw over what was drawn (Jupyter and its kin; not IPython in a terminal)."""
    return getattr(running_ipython(), "kernel", None) is not None


def running_ipython() -> Any:
    """IPython, where it runs this program (a notebook does); else None."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if hasattr(ipython, "get_ipython") else None


def cell_of(file: str) -> str | None:
    """``Cell In[3]`` for the made-up file of a notebook's cell; None for any other file."""
    name = getattr(getattr(running_ipython(), "compile", None), "format_code_name", None)
    found = name(file) if name is not None else None
    return " ".join(found) if found else None


def place(file: str, line: int) -> str:
    """For the beginning of a message.

    >>> place("job.py", 3)
    'job.py:3'
    """
    cell = cell_of(file)
    return f"{cell}, line {line}" if cell else f"{file}:{line}"


def frame_text(file: str, line: int, function: str, text: str = "") -> str:
    """As a traceback has it, indented; the line's text is looked up where none is given.

    >>> print(frame_text("job.py", 3, "double", "return x * 2"))
      File "job.py", line 3, in double
        return x * 2
    """
    where = cell_of(file) or f'File "{file}"'
    inside = "" if function == "<module>" and not where.startswith("File") else f", in {function}"
    text = text or linecache.getline(file, line).strip()
    return f"  {where}, line {line}{inside}" + (f"\n    {text}" if text else "")


def own_frames(start: TracebackType | None) -> list[tuple[str, int, str]]:
    """The user's own frames of a traceback, outermost first: file, line, function. Not those of packages that flinkpy calls."""
    found, is_inside = [], False
    for frame, line in traceback.walk_tb(start):
        is_inside = is_inside or _package(frame) == "flinkpy"
        if not is_tools(frame) and not (is_inside and _is_installed(frame)):
            found.append((frame.f_code.co_filename, line, frame.f_code.co_name))
    return found


def is_tools(frame: FrameType) -> bool:
    """Whether it is flinkpy's, Python's or the notebook's own."""
    return _package(frame) in _TOOLS


def _is_installed(frame: FrameType) -> bool:
    file = getattr(sys.modules.get(_package(frame)), "__file__", None)  # a compiled module's frames name a file that is not there
    return f"{os.sep}site-packages{os.sep}" in (file or frame.f_code.co_filename)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def short_traceback(error: BaseException, message: str | None = None) -> list[str]:
    """What notebooks and prompts show of flinkpy's own errors: the user's frames and the message, none of the engine's."""
    message = str(error) if message is None else message
    frames = own_frames(error.__traceback__)
    if frames:
        message = message.removeprefix(place(*frames[-1][:2]) + ": ")  # the frame says it
    name = type(error).__name__
    return [*(frame_text(*frame) for frame in frames), f"{name}: {message}" if message else name]


def shorten(interrupt: BaseException, message: str) -> None:
    """Has notebooks show this error, which is not flinkpy's own, in short too."""
    interrupt._render_traceback_ = lambda: short_traceback(interrupt, message)  # type: ignore[attr-defined]  # IPython's name
