"""A folder on this machine's disk with one owner, such as a database. Its owner deletes it; if the
owner was killed, the next process that uses the parent folder does.

The owner holds a lock on a file in the folder. The system releases it when the process ends,
however it ends and on whatever machine, so a folder whose lock can be taken has no owner. A folder
gets its name only after it is locked."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import weakref
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PREFIX = "flinkpy-"
_UNNAMED, _LOCK = ".unnamed-", "owner"
_swept: set[Path] = set()


class OwnFolder:
    """A new folder within ``parent``, by default the system's temporary folder; its name tells what
    it is ``of``. The first one that this process makes there also removes abandoned ones."""

    def __init__(self, parent: str | None, of: str = "rocksdb") -> None:
        within = Path(parent or tempfile.gettempdir()).resolve()
        within.mkdir(parents=True, exist_ok=True)
        if within not in _swept:
            _swept.add(within)
            remove_abandoned(within)
        made = Path(tempfile.mkdtemp(prefix=f"{_UNNAMED}{PREFIX}{of}-", dir=within))
        lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        _locked(lock)
        self.path = made.rename(within / made.name.removeprefix(_UNNAMED))
        self.database = str(self.path / "db")
        # at the latest when the process ends
        self._removal = weakref.finalize(self, _remove, self.path, lock)

    def remove(self) -> None:
        """Deletes it; a second call does nothing."""
        self._removal()

    def __repr__(self) -> str:
        return f"<OwnFolder {self.path}{'' if self._removal.alive else ', removed'}>"


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def remove_abandoned(within: Path) -> list[Path]:
    """Deletes the folders whose owners are gone, and returns them."""
    removed: list[Path] = []
    if sys.platform == "win32":  # no such locks: folders of killed processes stay
        return removed
    for folder in within.glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # another process is removing it, or it belongs to another user
            continue
        try:
            if _is_own(folder) and _locked(lock):
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
        finally:
            os.close(lock)
    return removed


def _is_own(folder: Path) -> bool:
    """Whether this user has made it: anybody can make folders of such a name in the system's
    temporary folder."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _locked(file: int) -> bool:
    """Takes the lock, if it is free."""
    if sys.platform == "win32":  # no such locks: folders of killed processes stay
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
