"""How a Python prompt or notebook treats errors: it shows flinkpy's in short, and tells listeners
about Ctrl-C.

While flinkpy itself waits, it sees the KeyboardInterrupt there. In the body of the user's loop over
results it does not: no frame of flinkpy is on the stack, and a variable of the user may keep the
results and their job alive. Listeners learn of the interrupt from here."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any

from flinkpy.core.source_places import is_tools, running_ipython

Listener = Callable[[BaseException, "set[CodeType]"], None]

_listeners: list[Listener] = []
_shells: list[Any] = []  # the IPython shells that call _after_cell


def on_interrupt(listener: Listener) -> None:
    """Calls ``listener`` with every KeyboardInterrupt that ends an input, and with the code objects
    it interrupted."""
    if listener not in _listeners:
        _listeners.append(listener)
    shell = running_ipython()
    if shell is not None and not any(each is shell for each in _shells):
        _shells.append(shell)
        shell.events.register("post_run_cell", _after_cell)


def interrupted(error: BaseException | None) -> None:
    """Prompts call this with the error that ended an input, or None."""
    if isinstance(error, KeyboardInterrupt):
        codes = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
        for listener in _listeners:
            listener(error, codes)


def user_code() -> CodeType | None:
    """The innermost code object of the user on the stack; frames of flinkpy and the standard
    library are skipped."""
    frame = sys._getframe(1)
    while frame is not None and is_tools(frame):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else frame.f_code


def shorten_errors() -> None:
    """Makes Python's own prompt show errors as notebooks do, unless another hook already decides
    how they are shown."""
    if hasattr(sys, "ps1") and shows_errors_plainly():
        sys.excepthook = _show


def shows_errors_plainly() -> bool:
    """Whether nobody has replaced the way errors are shown: the hook is Python's own, or Ray's,
    which reports the error to its cluster and then shows it as Python does."""
    return (
        sys.excepthook is sys.__excepthook__
        or getattr(sys.excepthook, "__module__", "") == "ray._private.worker"
    )


def _show(kind: type[BaseException], error: BaseException, start: TracebackType | None) -> None:
    interrupted(error)
    render = getattr(error, "_render_traceback_", None)
    if render is None:
        sys.__excepthook__(kind, error, start)
    else:
        print("\n".join(render()), file=sys.stderr)


def _after_cell(result: Any) -> None:
    interrupted(result.error_in_exec)
