"""Files and folders that a program names by a path or a URL, brought to this machine's disk."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.files.file_systems import file_system, shown, split_url, told

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_remote(location: str) -> bool:
    """Whether the location is a URL of another file system than this machine's.

    >>> is_remote("s3://models/a.bin"), is_remote("file:///data/a.bin"), is_remote("data/a.bin")
    (True, False, False)
    """
    return _URL.match(location) is not None and urlsplit(location).scheme.lower() != "file"


def path_of(location: str) -> str:
    """The path in a ``file:`` URL; any other location unchanged.

    >>> path_of("file:///data/my%20model.bin"), path_of("model.bin")
    ('/data/my model.bin', 'model.bin')
    """
    return (
        unquote(urlsplit(location).path)
        if _URL.match(location) and not is_remote(location)
        else location
    )


def local_copy(location: str, option: str) -> Path:
    """A path on this machine: the location itself, or what was fetched from its URL, which this
    process does once.

    Raises ConfigurationError, which names ``option``, if there is no such file or it cannot be
    fetched."""
    if is_remote(location):
        return _fetched_once(location, option)
    path = Path(path_of(location))
    if not path.exists():
        raise ConfigurationError(f"{option}: there is no {location}")
    return path


def fetch(url: str, target: Path, option: str) -> None:
    """Copies the file or folder at the URL to ``target``, which must not exist yet. Raises
    ConfigurationError if that fails."""
    from pyarrow import fs

    store, path = split_url(url)
    try:
        system, root = file_system(store)
        source = f"{root}/{path.strip('/')}" if root else path
        found = system.get_file_info(source)
        if found.type == fs.FileType.NotFound:
            raise ConfigurationError(f"{option}: there is no {shown(store)}{path}")
        fs.copy_files(
            source,
            str(target),
            source_filesystem=system,
            destination_filesystem=fs.LocalFileSystem(),
        )
    except (OSError, ValueError, NotImplementedError) as error:
        raise ConfigurationError(
            f"{option}: {shown(store)}{path} cannot be fetched: {told(error, store)}"
        ) from None


@lru_cache(maxsize=256)
def _fetched_once(url: str, option: str) -> Path:
    folder = tempfile.mkdtemp(prefix="flinkpy-fetched-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = Path(folder, os.path.basename(split_url(url)[1].rstrip("/")) or "files")
    fetch(url, target, option)
    return target
