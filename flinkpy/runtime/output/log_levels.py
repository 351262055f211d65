"""Logging in a worker whose program has not set it up: as Python does it then, at the level of the
program whose job runs."""

from __future__ import annotations

import logging
import sys


class LogLevels:
    """Log records of a worker go to standard error, as in a program without logging set-up. While
    jobs run, the level is the lowest of their programs' levels. Functions that set up logging
    themselves override this."""

    def __init__(self) -> None:
        self._before: int | None = None

    def install(self) -> None:
        written = logging.StreamHandler(sys.stderr)
        written.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
        logging.lastResort = written  # in use as long as there is no other
        engine = logging.getLogger("flinkpy")
        if engine.level == logging.NOTSET:
            engine.setLevel(logging.WARNING)  # lower records of the engine concern no job

    def begin(self, level: int) -> None:
        """A job comes."""
        root = logging.getLogger()
        if self._before is None:
            self._before = root.level
        if level < root.level:
            root.setLevel(level)

    def end(self) -> None:
        """The last job is gone."""
        if self._before is not None:
            logging.getLogger().setLevel(self._before)
            self._before = None
