"""The log files of this process: those that its standard output, its standard error and the
handlers of Python's logging go into.

A program at a terminal has none, unless its logging has a file. On Ray each worker's output goes
into files of its own. What is asked for is looked up among these by its name, and a name never
becomes a path: no other file can be read."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from glob import escape, glob

from flinkpy.actors.inspector.inspector_gateway import LONGEST_PIECE, LogFile, LogKind
from flinkpy.core.errors import ProgramError

FindLogs = Callable[[], Iterable[tuple[LogKind, str]]]
"""Where there may be logs: kinds and paths."""

MOST_OLDER = 100  # rotated files told of, for each handler


def logs_of_this_process() -> Iterator[tuple[LogKind, str]]:
    for kind, descriptor in ((LogKind.STDOUT, 1), (LogKind.STDERR, 2)):
        path = _path_of(descriptor)
        if path is not None:
            yield kind, path
    for path in _paths_of_handlers():
        yield LogKind.LOGGING, path
        for older in sorted(glob(f"{escape(path)}.*"))[:MOST_OLDER]:
            if not os.path.islink(older):
                yield LogKind.OLDER, older


class LogFiles:
    """Looks for the files anew with each question: handlers come and go."""

    def __init__(self, find: FindLogs = logs_of_this_process) -> None:
        self._find = find

    def listed(self) -> tuple[LogFile, ...]:
        return tuple(log for log, _ in self._found().values())

    def read(self, name: str, offset: int, size: int) -> bytes:
        found = self._found().get(name)
        if found is None:
            raise ProgramError(f"this process has no log {name!r:.80}")
        with open(found[1], "rb") as file:
            file.seek(max(0, offset))
            return file.read(max(0, min(size, LONGEST_PIECE)))

    def _found(self) -> dict[str, tuple[LogFile, str]]:
        """By name. Standard output and error may go into one file, and two files of different
        folders may have one name."""
        found: dict[str, tuple[LogFile, str]] = {}
        seen = set()
        for kind, path in self._find():
            try:
                status = os.stat(path)
            except OSError:  # deleted meanwhile
                continue
            if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            name, copies = os.path.basename(path), 1
            while name in found:
                copies += 1
                name = f"{copies}-{os.path.basename(path)}"
            found[name] = LogFile(name, kind, status.st_size, status.st_mtime_ns // 1_000_000), path
        return found


def _path_of(descriptor: int) -> str | None:
    """The file that is open there; None where the system does not tell."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def _paths_of_handlers() -> list[str]:
    loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.copy().values()]
    handlers = [
        handler
        for logger in loggers
        if isinstance(logger, logging.Logger)
        for handler in logger.handlers.copy()
    ]
    return [
        *dict.fromkeys(
            handler.baseFilename for handler in handlers if isinstance(handler, logging.FileHandler)
        )
    ]
