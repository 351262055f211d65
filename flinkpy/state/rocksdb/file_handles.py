"""File handles: how many files a database may keep open, and whether the process may open as many
as its databases need."""

from __future__ import annotations

import sys
import threading

from flinkpy.core.errors import ProgramError

if sys.platform != "win32":
    import resource

OTHERS = 64  # of the process: connections, logs, checkpoints' files
LEAST = 24  # of a database: RocksDB keeps twenty open at least, and its folder has a lock
PLENTY = 1 << 16  # with so many nobody counts
_SHARES = 16  # a database may take this part of what there is

_lock = threading.Lock()
_open = 0


def file_handles() -> int:
    """How many files this process may have open. Raises the process's limit to what the system lets
    it have, as Java does."""
    if sys.platform == "win32":
        return PLENTY
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or soft < hard):
        wanted = PLENTY if hard == resource.RLIM_INFINITY else hard
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
            soft = max(soft, wanted)
        except (OSError, ValueError):  # a system may have another limit beside it
            pass
    return PLENTY if soft == resource.RLIM_INFINITY else soft


def most_open_files(handles: int) -> int:
    """How many files one database may keep open; -1: all.

    >>> most_open_files(1024), most_open_files(1 << 20)
    (60, -1)
    """
    return -1 if handles >= PLENTY else max(20, (handles - OTHERS) // _SHARES)


def take_handles(handles: int) -> None:
    """Called before a database is opened. Raises ProgramError, which ends the job, if the process
    cannot open enough files for it: it would fail later, in the middle of a checkpoint, and again
    after each restart."""
    global _open
    with _lock:
        needed = OTHERS + LEAST * (_open + 1)
        if needed > handles:
            raise ProgramError(
                f"RocksDB has too few file handles: this process may open {handles} "
                f"files, and {_open + 1} databases "
                f"need about {needed}. Raise the limit (ulimit -n), or have fewer slots "
                "in a worker "
                "(taskmanager.numberOfTaskSlots) or a lower parallelism"
            )
        _open += 1


def return_handles() -> None:
    """The database is closed."""
    global _open
    with _lock:
        _open -= 1
