"""Finds the files that a path means: a file, a directory (all files in it, at any depth), a
pattern, or a URL of these in a file system that Arrow supports (s3, gs, hdfs …).

Paths are resolved when the program is built. So a mistyped name raises an error with the line of
the program, and all workers read the same list."""

from __future__ import annotations

import errno
import glob
import gzip
import os
import re
import socket
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote

from flinkpy.core.errors import ProgramError
from flinkpy.core.files.file_systems import file_system, shown, split_url, told
from flinkpy.core.secrets.engine_logs import engine_logger

PathArgument = str | Path | Sequence[str | Path]
# of compressed files, and Arrow's names
SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
_LOG = engine_logger(__name__)
_FILE_URI = "file:///"
_FILLED = 5  # bytes: more than the length of what is compressed takes, which may be zero


_MAGIC = {
    b"\x1f\x8b\x08": "compressed with gzip: give its name the ending .gz",
    b"BZh91AY&SY": "compressed with bzip2: give its name the ending .bz2",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard: give its name the ending .zst",
    b"\x04\x22\x4d\x18": "compressed with LZ4: give its name the ending .lz4",
    b"\xfd7zXZ\x00": (
        "compressed with xz, which Arrow does not read: compress it with gzip or zstd instead"
    ),
    b"PK\x03\x04": "a ZIP archive: unpack it, or compress its files with gzip or zstd instead",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: unpack it",
    b"PAR1\x15": "a Parquet file: read it with from_parquet()",
    b"Obj\x01": "an Avro file: read it with from_avro()",
}


def refuse_other_kind(path: str, beginning: bytes) -> None:
    """Raises ProgramError if a file that should hold text begins as a compressed file, an archive
    or a file of columns does."""
    for magic, kind in _MAGIC.items():
        if beginning.startswith(magic):
            raise ProgramError(f"{path} is {kind}")


class NoFilesError(ProgramError):
    """The folder or pattern has no files; they may still come."""


@dataclass(frozen=True)
class FileInfo:
    """A file and its length in bytes. ``store`` is the URL of its file system, with options; "":
    the local disk."""

    path: str
    size: int
    store: str = ""

    @property
    def compression(self) -> str | None:
        """Arrow's name for the file's compression, from its suffix; None if it has none."""
        return SUFFIXES.get(os.path.splitext(self.path)[1].lower())


def find_files(paths: PathArgument) -> list[FileInfo]:
    """The files that ``paths`` mean, sorted within each path. Raises ProgramError, with the path,
    if there are none. Files and folders in directories, and matches of patterns, are left out if
    their names begin with ``.`` or ``_``: they are still being written. A pattern finds them that
    has such a name itself, as ``_delta_log/*.json`` has; and a folder ``_day=1`` is a partition."""
    given = (
        [paths]
        if isinstance(paths, (str, Path))
        else list(paths)
        if isinstance(paths, Iterable)
        else [paths]
    )
    if not given:
        raise ProgramError("no path given")
    for path in given:
        if not isinstance(path, (str, Path)):
            raise ProgramError(f"a path is text or a Path, this is {path!r:.80}")
    return [info for path in given for info in _find(os.path.expanduser(path))]


def local_path(path: str) -> str:
    """The path in a ``file://`` URI; ``~`` is the folder of this user; any other path unchanged."""
    return (
        unquote(path[len(_FILE_URI) - 1 :])
        if path.startswith(_FILE_URI)
        else os.path.expanduser(path)
    )


def at_home(paths: PathArgument) -> PathArgument:
    """The paths with the folder of this user in place of ``~``, for a process that is another
    user's."""
    if isinstance(paths, (str, Path)):
        return os.path.expanduser(paths)
    return (
        [os.path.expanduser(path) if isinstance(path, (str, Path)) else path for path in paths]
        if isinstance(paths, Iterable)
        else paths
    )


def _find(path: str) -> list[FileInfo]:
    if "://" in path:
        return _find_remote(path)
    matches = [path] if os.path.lexists(path) else _matches(path)
    if not matches:
        error = NoFilesError if fixed_part(path) != path.rstrip("/") else ProgramError
        raise error(
            f"no such file or directory: {path}"
            + ("" if os.path.isabs(path) else f" (looked in {os.getcwd()})")
        )
    found = [
        info
        for match in matches
        for info in (_walk(match) if len(matches) == 1 else _walk_match(match))
    ]
    if not found:
        raise NoFilesError(f"no files in {path}")
    # ``folder/**`` matches a file and also every folder that contains it
    return list(dict.fromkeys(found))


def _walk_match(path: str) -> Iterator[FileInfo]:
    """The files of one match among others: what is no plain file is left out, as in a folder."""
    kind = None if os.path.isdir(path) else _other_kind(path)
    if kind is None:
        yield from _walk(path)
    else:
        _tell_left_out(path, kind)


def _matches(pattern: str) -> list[str]:
    """The matches of the pattern; hidden files only if the pattern asks for them."""
    fixed = len(fixed_part(pattern))
    return [
        path
        for path in sorted(glob.glob(pattern, recursive=True))
        if not _is_hidden(path[fixed:], pattern[fixed:])
    ]


def _walk(path: str) -> Iterator[FileInfo]:
    if not os.path.isdir(path):
        kind = _other_kind(path)
        if kind is not None:
            raise ProgramError(f"{path} is {kind}; sources read plain files and folders of them")
        yield FileInfo(os.path.abspath(path), os.path.getsize(path))
        return
    seen: set[str] = set()
    for folder, folders, names in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # a link that leads back, or to what another one leads to
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(names):
            if _is_hidden(name):
                continue
            file = os.path.join(os.path.abspath(folder), name)
            kind = _other_kind(file)
            if kind is None:
                yield FileInfo(file, os.path.getsize(file))
            else:
                _tell_left_out(file, kind)


@lru_cache(maxsize=1024)
def _tell_left_out(path: str, kind: str) -> None:
    """Once: a folder that is watched is looked at again and again."""
    _LOG.warning("left out: %s is %s", path, kind)


def _other_kind(path: str) -> str | None:
    """What the path is, if it is no plain file. Nothing else is opened: a pipe would wait for its
    other end."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "a link to what is not there"
    kinds = (
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((kind for is_a, kind in kinds if is_a(mode)), None)


def _find_remote(url: str) -> list[FileInfo]:
    from pyarrow import fs

    store, within = split_url(url)
    try:
        system, root = file_system(store)
        fixed = fixed_part(within)
        start = root + fixed
        exact = (
            system.get_file_info(root + within.rstrip("/")) if fixed != within.rstrip("/") else None
        )
        # brackets and stars are letters of its name
        if exact is not None and exact.type is not fs.FileType.NotFound:
            fixed = within.rstrip("/")
            start = root + fixed
        info = system.get_file_info(start)
        infos = (
            system.get_file_info(fs.FileSelector(start, recursive=True))
            if info.type is fs.FileType.Directory
            else [info]
        )
    except (OSError, ValueError, NotImplementedError) as error:
        raise ProgramError(
            f"cannot look at {shown(store)}{within}: {told(error, store)}"
        ) from error
    pattern = re.escape(fixed) if fixed == within.rstrip("/") else _pattern(within.rstrip("/"))
    wanted = re.compile(re.escape(root) + pattern + r"(?:/.*)?", re.DOTALL)
    files = [
        one
        for one in infos
        if one.type is fs.FileType.File
        and not _is_hidden(one.path[len(start) :], within[len(fixed) :])
    ]
    found = [
        FileInfo(shown(store) + one.path[len(root) :], int(one.size), store)
        for one in files
        if wanted.fullmatch(one.path)
    ]
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
    """The regular expression of a pattern with ``*`` and ``?``, which match within one folder,
    ``**`` and ``[…]``."""
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
    hidden = [
        name
        for name in path.split("/")
        if name.startswith(".") or (name.startswith("_") and "=" not in name)
    ]
    return any(not any(fnmatchcase(name, piece) for piece in asked) for name in hidden)


def open_binary(info: FileInfo, offset: int = 0) -> IO[bytes]:
    """The file's bytes from ``offset`` on, decompressed if its suffix says so; ``offset`` then
    counts decompressed bytes."""
    if info.compression is None:
        with _on_this_host(info):
            stream = open(info.path, "rb", buffering=0) if not info.store else open_seekable(info)  # noqa: SIM115  (the caller closes it)
        stream.seek(offset)
        return cast("IO[bytes]", stream)
    import pyarrow as pa

    compressed: Any
    if info.compression == "gzip" and _ends_in_zeros(info):
        compressed = gzip.GzipFile(fileobj=open_seekable(info))
    else:
        compressed = pa.CompressedInputStream(open_seekable(info), info.compression)
    while offset > 0:
        skipped = len(compressed.read(min(offset, 1 << 20)))
        if not skipped:
            break
        offset -= skipped
    return cast("IO[bytes]", compressed)


@contextmanager
def _on_this_host(info: FileInfo) -> Iterator[None]:
    """A file that the program has seen may not be on the machine of the worker that reads it: the
    error says which machine that is."""
    try:
        yield
    except FileNotFoundError:
        told = (
            f"No such file or directory on {socket.gethostname()}, where it is to be read (it "
            "was found when the program was built, so it may be "
            "on another machine, or gone since; on Ray all nodes must see it, in a "
            "shared folder or an object store)"
        )
        raise FileNotFoundError(errno.ENOENT, told, info.path) from None


def _ends_in_zeros(info: FileInfo) -> bool:
    """Whether a file of gzip is filled up with zeros, as tapes and some tools do, which Python's
    reader passes over, and Arrow's does not."""
    with open_seekable(info) as file:
        file.seek(max(0, info.size - _FILLED))
        return info.size > _FILLED and not any(file.read(_FILLED))


def open_seekable(info: FileInfo) -> Any:
    """The file as an Arrow input file. It is not memory-mapped (which would be no faster): if the
    file were truncated meanwhile, the process would be killed."""
    import pyarrow as pa

    if not info.store:
        with _on_this_host(info):
            return pa.OSFile(info.path)
    system, root = file_system(info.store)
    return system.open_input_file(root + info.path[len(shown(info.store)) :])
