"""What a prompt does with errors: flinkpy's are shown in short, and Ctrl-C in the user's own code reaches those who have work under way for it.

Ctrl-C while flinkpy waits is seen where it waits. In the body of a loop over results it is not: nothing of flinkpy is on the stack, and a name of
the user's may keep the results and their job.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any

from flinkpy.core.program.places import is_tools, running_ipython

Listener = Callable[[BaseException, "set[CodeType]"], None]

_listeners: list[Listener] = []
_shells: list[Any] = []  # IPython's, that tell us


def on_interrupt(listener: Listener) -> None:
    """Calls it with every KeyboardInterrupt that ends what was typed, and with the code that was interrupted."""
    if listener not in _listeners:
        _listeners.append(listener)
    shell = running_ipython()
    if shell is not None and not any(each is shell for each in _shells):
        _shells.append(shell)
        shell.events.register("post_run_cell", _after_cell)


def interrupted(error: BaseException | None) -> None:
    """For prompts: what was typed ended with this."""
    if isinstance(error, KeyboardInterrupt):
        codes = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
        for listener in _listeners:
            listener(error, codes)


def user_code() -> CodeType | None:
    """The code of the user's that calls, directly or through the standard library."""
    frame = sys._getframe(1)
    while frame is not None and is_tools(frame):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else frame.f_code


def shorten_errors() -> None:
    """Has Python's own prompt show errors as notebooks do. Where somebody else sees to errors already, they stay as they are."""
    if hasattr(sys, "ps1") and shows_errors_plainly():
        sys.excepthook = _show


def shows_errors_plainly() -> bool:
    """Whether nobody has chosen how errors are shown: the hook is Python's, or Ray's, which tells its cluster and then shows them as Python does."""
    return sys.excepthook is sys.__excepthook__ or getattr(sys.excepthook, "__module__", "") == "ray._private.worker"


def _show(kind: type[BaseException], error: BaseException, start: TracebackType | None) -> None:
    interrupted(error)
    render = getattr(error, "_render_traceback_", None)
    if render is None:
        sys.__excepthook__(kind, error, start)
    else:
        print("\n".join(render()), file=sys.stderr)


def _after_cell(result: Any) -> None:
    interrupted(result.error_in_exec)
