"""How a process ends before its time: by an error that escaped from one of its endpoints, or
because it was told to (SIGTERM)."""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Callable

from flinkpy.core.errors import FlinkpyError, ProcessEndedError
from flinkpy.core.futures import Future
from flinkpy.core.secrets.engine_logs import engine_logger

EXIT_CODE = 1  # for Ray a failure, which has it start the next JobManager
ANSWERS_S = 0.2  # until the last messages of a process that ends have left it
WIND_UP_S, END_WITHIN_S = 6.0, 10.0  # a process that was told to stop has ended by then

log = engine_logger("flinkpy.rpc")


def ended_by(address: str, error: BaseException) -> ProcessEndedError:
    """The answer to calls of a process that ends by an error of the engine: the error, and its
    place."""
    return ProcessEndedError(
        (
            f"{address} ended by an error of the engine: {type(error).__name__}: "
            f"{error}{_place_of(error)}"
        ),
        is_bug=True,
    )


def told_to_stop(process: str) -> ProcessEndedError:
    """The answer to calls of a process that ends because it was stopped."""
    return ProcessEndedError(f"{process} was told to stop (SIGTERM)")


def _place_of(error: BaseException) -> str:
    """The line that raised the error, by the name of its module: files have other names on other
    machines."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return ""
    frame, line = frames[-1]
    return f" ({frame.f_globals.get('__name__', '?')}:{line}, in {frame.f_code.co_name})"


class ProcessEnd:
    """Ends this process, once and for good. ``refuse_all`` answers everybody with the reason.
    ``wind_up`` does what is left to do before; then the process answers for ``linger_s``
    seconds."""

    def __init__(self, process: str, refuse_all: Callable[[ProcessEndedError], None]) -> None:
        self._process, self._refuse_all = process, refuse_all
        self._begun = threading.Lock()  # taken once
        self.wind_up: Callable[[ProcessEndedError], Future[None]] = lambda reason: Future.completed(
            None
        )
        self.linger_s = ANSWERS_S

    @property
    def has_begun(self) -> bool:
        return self._begun.locked()

    def begin(self, reason: ProcessEndedError) -> None:
        """Returns at once. Ray has means to end a process, but they wait for all calls under way,
        and Ray would not start this actor again."""
        if self._begun.acquire(blocking=False):
            threading.Thread(
                target=self._end, args=(reason,), name="end of the process", daemon=True
            ).start()

    def _end(self, reason: ProcessEndedError) -> None:
        log.log(logging.WARNING if reason.is_bug else logging.INFO, "%s; this process ends", reason)
        deadline = threading.Timer(END_WITHIN_S, os._exit, (EXIT_CODE,))
        deadline.daemon = True
        deadline.start()
        try:
            self.wind_up(reason).result(WIND_UP_S)
        except FlinkpyError as error:
            log.warning("%s ends before it was done with its work: %s", self._process, error)
        self._refuse_all(reason)
        threading.Event().wait(self.linger_s)
        logging.shutdown()
        os._exit(EXIT_CODE)
