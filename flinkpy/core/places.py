"""Where the user's code stands, told the way its author knows it: a file and a line, or the cell of a notebook.

A notebook's cells are compiled under made-up file names that only its own process can tell apart, so a place that comes back from a worker is
read here, where the error is shown, and the text of its line is looked up here too.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

_TOOLS = ("flinkpy", "IPython", "ipykernel", "code", "codeop", "contextlib", "cloudpickle", "pickle")  # whose frames tell the user nothing


def cell_of(file: str) -> str | None:
    """``Cell In[3]`` for the made-up file of a notebook's cell; None for any other file."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    name = getattr(getattr(shell, "compile", None), "format_code_name", None)
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
    text = text or linecache.getline(file, line).strip()
    return f"  {where}, line {line}, in {function}" + (f"\n    {text}" if text else "")


def own_frames(start: TracebackType | None) -> Iterator[str]:
    """The user's own frames of a traceback, outermost first."""
    for frame, line in traceback.walk_tb(start):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _TOOLS:
            yield frame_text(frame.f_code.co_filename, line, frame.f_code.co_name)


def short_traceback(error: BaseException, message: str | None = None) -> list[str]:
    """What notebooks and prompts show of flinkpy's own errors: the user's frames and the message, none of the engine's."""
    message = str(error) if message is None else message
    return [*own_frames(error.__traceback__), f"{type(error).__name__}: {message}" if message else type(error).__name__]


def shorten(interrupt: BaseException, message: str) -> None:
    """Has notebooks show this error, which is not flinkpy's own, in short too."""
    interrupt._render_traceback_ = lambda: short_traceback(interrupt, message)  # type: ignore[attr-defined]  # IPython's name
