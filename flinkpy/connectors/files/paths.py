"""Finds the files that a path means: a file, a directory (all files in it, at any depth), a pattern, or a URL of these
in a file system that Arrow supports (s3, gs, hdfs …).

Paths are resolved when the program is built. So a mistyped name raises an error with the line of the program, and all
workers read the same list.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote

from flinkpy.core.errors import ProgramError
from flinkpy.core.file_systems import file_system, shown, split_url, told

PathArgument = str | Path | Sequence[str | Path]
SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}  # of compressed files, and Arrow's names
_FILE_URI = "file:///"


class NoFilesError(ProgramError):
    """The folder or pattern has no files; they may still come."""


@dataclass(frozen=True)
class FileInfo:
    """A file and its length in bytes. ``store`` is the URL of its file system, with options; "": the local disk."""

    path: str
    size: int
    store: str = ""

    @property
    def compression(self) -> str | None:
        """Arrow's name for the file's compression, from its suffix; None if it has none."""
        return SUFFIXES.get(os.path.splitext(self.path)[1].lower())


def find_files(paths: PathArgument) -> list[FileInfo]:
    """The files that ``paths`` mean, sorted within each path. Raises ProgramError, with the path, if there are none.
    Files and folders in directories, and matches of patterns, are left out if their names begin with ``.`` or ``_``: they
    are still being written. A pattern finds them that has such a name itself, as ``_delta_log/*.json`` has; and a folder
    ``_day=1`` is a partition."""
    given = [paths] if isinstance(paths, (str, Path)) else list(paths) if isinstance(paths, Iterable) else [paths]
    if not given:
        raise ProgramError("no path given")
    for path in given:
        if not isinstance(path, (str, Path)):
            raise ProgramError(f"a path is text or a Path, this is {path!r:.80}")
    return [info for path in given for info in _find(os.path.expanduser(path))]


def local_path(path: str) -> str:
    """The path in a ``file://`` URI; ``~`` is the folder of this user; any other path unchanged."""
    return unquote(path[len(_FILE_URI) - 1:]) if path.startswith(_FILE_URI) else os.path.expanduser(path)


def at_home(paths: PathArgument) -> PathArgument:
    """The paths with the folder of this user in place of ``~``, for a process that is another user's."""
    if isinstance(paths, (str, Path)):
        return os.path.expanduser(paths)
    return [os.path.expanduser(path) if isinstance(path, (str, Path)) else path for path in paths] if isinstance(paths, Iterable) else paths


def _find(path: str) -> list[FileInfo]:
    if "://" in path:
        return _find_remote(path)
    matches = [path] if os.path.exists(path) else _matches(path)
    if not matches:
        error = NoFilesError if fixed_part(path) != path.rstrip("/") else ProgramError
        raise error(f"no such file or directory: {path}" + ("" if os.path.isabs(path) else f" (looked in {os.getcwd()})"))
    found = [info for match in matches for info in _walk(match)]
    if not found:
        raise NoFilesError(f"no files in {path}")
    return list(dict.fromkeys(found))  # ``folder/**`` matches a file and also every folder that contains it


def _matches(pattern: str) -> list[str]:
    """The matches of the pattern; hidden files only if the pattern asks for them."""
    fixed = len(fixed_part(pattern))
    return [path for path in sorted(glob.glob(pattern, recursive=True)) if not _is_hidden(path[fixed:], pattern[fixed:])]


def _walk(path: str) -> Iterator[FileInfo]:
    if os.path.isfile(path):
        yield FileInfo(os.path.abspath(path), os.path.getsize(path))
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(names):
            if not _is_hidden(name):
                file = os.path.join(os.path.abspath(folder), name)
                yield FileInfo(file, os.path.getsize(file))


def _find_remote(url: str) -> list[FileInfo]:
    from pyarrow import fs

    store, within = split_url(url)
    try:
        system, root = file_system(store)
        fixed = fixed_part(within)
        start = root + fixed
        info = system.get_file_info(start)
        infos = system.get_file_info(fs.FileSelector(start, recursive=True)) if info.type is fs.FileType.Directory else [info]
    except (OSError, ValueError, NotImplementedError) as error:
        raise ProgramError(f"cannot look at {shown(store)}{within}: {told(error, store)}") from error
    wanted = re.compile(re.escape(root) + _pattern(within.rstrip("/")) + r"(?:/.*)?", re.DOTALL)
    files = [one for one in infos if one.type is fs.FileType.File and not _is_hidden(one.path[len(start):], within[len(fixed):])]
    found = [FileInfo(shown(store) + one.path[len(root):], int(one.size), store) for one in files if wanted.fullmatch(one.path)]
    if not found:
        raise NoFilesError(f"no such file or directory: {shown(store)}{within}")
    return sorted(found, key=lambda one: one.path)


def fixed_part(path: str) -> str:
    """The path, without slashes at its end; of a pattern the folder before the first wildcard.

    >>> fixed_part("/lake/sales/"), fixed_part("/lake/2024-*/sales.csv")
    ('/lake/sales', '/lake')
    """
    while glob.has_magic(path):
        path = path.rpartition("/")[0]
    return path.rstrip("/")


def _pattern(path: str) -> str:
    """The regular expression of a pattern with ``*`` and ``?``, which match within one folder, ``**`` and ``[…]``."""
    pieces = []
    for piece in re.split(r"(\*\*/?|\*|\?|\[!?[^\]]+\])", path):
        if piece.startswith("**"):
            pieces.append("(?:.*/)?" if piece.endswith("/") else ".*")
        elif piece in ("*", "?"):
            pieces.append("[^/]*" if piece == "*" else "[^/]")
        else:
            pieces.append(piece.replace("[!", "[^") if piece.startswith("[") else re.escape(piece))
    return "".join(pieces)


def _is_hidden(path: str, pattern: str = "") -> bool:
    """Whether a name in the path is hidden, and no name in the pattern asks for it."""
    asked = [piece for piece in pattern.split("/") if piece.startswith((".", "_"))]
    hidden = [name for name in path.split("/") if name.startswith(".") or (name.startswith("_") and "=" not in name)]
    return any(not any(fnmatchcase(name, piece) for piece in asked) for name in hidden)


def open_binary(info: FileInfo, offset: int = 0) -> IO[bytes]:
    """The file's bytes from ``offset`` on, decompressed if its suffix says so; ``offset`` then counts decompressed
    bytes."""
    if info.compression is None:
        with _on_this_host(info):
            stream = open(info.path, "rb", buffering=0) if not info.store else open_seekable(info)  # noqa: SIM115  (the caller closes it)
        stream.seek(offset)
        return cast("IO[bytes]", stream)
    import pyarrow as pa

    compressed = pa.CompressedInputStream(open_seekable(info), info.compression)
    while offset > 0:
        skipped = len(compressed.read(min(offset, 1 << 20)))
        if not skipped:
            break
        offset -= skipped
    return cast("IO[bytes]", compressed)


@contextmanager
def _on_this_host(info: FileInfo) -> Iterator[None]:
    """A file that the program has seen may not be on the machine of the worker that reads it: the error says which machine that is."""
    try:
        yield
    except FileNotFoundError:
        told = (f"No such file or directory on {socket.gethostname()}, where it is to be read (it was found when the program was built, so it may be "
                "on another machine, or gone since; on Ray all nodes must see it, in a shared folder or an object store)")
        raise FileNotFoundError(errno.ENOENT, told, info.path) from None


def open_seekable(info: FileInfo) -> Any:
    """The file as an Arrow input file. It is not memory-mapped (which would be no faster): if the file were truncated
    meanwhile, the process would be killed."""
    import pyarrow as pa

    if not info.store:
        with _on_this_host(info):
            return pa.OSFile(info.path)
    system, root = file_system(info.store)
    return system.open_input_file(root + info.path[len(shown(info.store)):])
