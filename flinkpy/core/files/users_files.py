"""Files of one user in the system's temporary folder, where everybody may make files, links and
pipes of any name."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flinkpy.core.errors import ResourceUnavailableError


def users_folder() -> Path:
    """The user's own folder, which nobody else can read or change; made where it lacks. Raises
    ResourceUnavailableError if something else has its name."""
    folder = Path(tempfile.gettempdir(), f"flinkpy-of-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise ResourceUnavailableError(
            f"no folder {folder} can be made ({error.strerror}); set TMPDIR to another place"
        ) from None
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise ResourceUnavailableError(
            f"{folder} is not a folder that this user alone can change: remove it, or set "
            "TMPDIR to another place"
        )
    return folder


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Holds the lock of this name, one process of the user's at a time. Waits for it. What is at
    the file's place is not followed, and stays as it is."""
    path = users_folder() / name
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise ResourceUnavailableError(
            f"the lock {path} cannot be opened ({error.strerror}): remove it"
        ) from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ResourceUnavailableError(f"the lock {path} is not a file: remove it")
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
