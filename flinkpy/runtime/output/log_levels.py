"""What is logged in a worker, where nobody has set up logging: Python's own way for that, at the level of the program whose job runs."""

from __future__ import annotations

import logging
import sys


class LogLevels:
    """What is logged in a worker goes to standard error, as in a program that has set up nothing; while jobs are there, from the least level on that
    one of their programs has. A program's functions that set up logging themselves have it their way."""

    def __init__(self) -> None:
        self._before: int | None = None

    def install(self) -> None:
        written = logging.StreamHandler(sys.stderr)
        written.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
        logging.lastResort = written  # in use as long as there is no other
        engine = logging.getLogger("flinkpy")
        if engine.level == logging.NOTSET:
            engine.setLevel(logging.WARNING)  # what the engine tells beyond that is of no job

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
