"""How a process ends before its time: by an error that escaped from one of its endpoints, or because it was told to (SIGTERM)."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

from flinkpy.core.errors import ProcessEndedError

EXIT_CODE = 1  # for Ray a failure, which has it start the next JobManager

log = logging.getLogger("flinkpy.rpc")


def on_termination(action: Callable[[], None]) -> None:
    """Calls ``action``, which must return at once, when this process of Ray's gets SIGTERM.

    Ray has a handler of its own, which ends the process once all calls under way have returned; some never do. Python takes another handler
    only in the main thread, in which an actor runs nothing. So this exchanges what Ray's handler calls; with a Ray that has no such function,
    SIGTERM does what Ray makes of it.
    """
    from ray._private import worker

    name = "raise_sys_exit_with_custom_error_message"
    if hasattr(worker, name):
        setattr(worker, name, lambda *args, **kwargs: action())
    else:
        log.warning("SIGTERM may not end this process, as this version of Ray handles it in another way")


def ended_by(address: str, error: BaseException) -> ProcessEndedError:
    """What is told to those who ask a process that ends by an error of the engine: the error, and its place."""
    return ProcessEndedError(f"{address} ended by an error of the engine: {type(error).__name__}: {error}{_place_of(error)}", is_bug=True)


def told_to_stop(process: str) -> ProcessEndedError:
    """What is told to those who ask a process that ends because somebody wants it to."""
    return ProcessEndedError(f"{process} was told to stop (SIGTERM)")


def _place_of(error: BaseException) -> str:
    """The line that raised the error, by the name of its module: files have other names on other machines."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return ""
    frame, line = frames[-1]
    return f" ({frame.f_globals.get('__name__', '?')}:{line}, in {frame.f_code.co_name})"
