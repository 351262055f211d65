"""What a client does with the files that a program registered for its functions: they go with the
job, in each vertex's data.

In embedded mode a file's content is copied to this machine's disk when the job is submitted. On Ray
it travels with the job if it is small; otherwise it is put into the object store once, where each
TaskExecutor fetches it. Data in the store ends with the program, so a job that outlives its program
carries its files, up to a limit. URLs are left to the TaskExecutors."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.compatibility import CACHED_FILES, registered_files
from flinkpy.core.program.fetched_files import is_remote, path_of
from flinkpy.graph.job_graph import JobGraph
from flinkpy.runtime.files.cached_files import CachedFile, Content, FromSnapshot, FromUrl

_CHUNK_BYTES = 1 << 20

ContentOf = Callable[[Path, str], Content]
"""The content of a file or folder, for workers, from its path here and its digest."""


def with_cached_files(job_graph: JobGraph, content_of: ContentOf) -> JobGraph:
    """The job with its registered files. Raises ConfigurationError if one is not there."""
    files = [
        _cached(name, path, executable, content_of)
        for name, path, executable in registered_files(job_graph.configuration)
    ]
    if not files:
        return job_graph
    return replace(
        job_graph,
        vertices=[
            replace(vertex, out_of_band=(*vertex.out_of_band, *files))
            for vertex in job_graph.vertices
        ],
    )


def _cached(name: str, location: str, executable: bool, content_of: ContentOf) -> CachedFile:
    file_name = os.path.basename(path_of(location).partition("?")[0].rstrip("/")) or "file"
    if is_remote(location):
        return CachedFile(name, file_name, location, FromUrl(location), executable)
    path = Path(path_of(location))
    if not path.exists():
        raise ConfigurationError(
            f"{CACHED_FILES.key}, register_cached_file(): there is no {location} (registered "
            f"as {name!r})"
        )
    digest = digest_of(path)
    return CachedFile(name, file_name, digest, content_of(path, digest), executable)


def snapshot(path: Path, digest: str) -> Content:
    """The content of a file for TaskExecutors of this process."""
    return FromSnapshot(path)


def digest_of(path: Path) -> str:
    """The same for the same names, contents and executable bits, on every machine."""
    found = hashlib.blake2b(digest_size=16)
    for file in _files_in(path):
        is_executable = os.access(file, os.X_OK)
        found.update(f"{file.relative_to(path)}\0{is_executable}\0{file.stat().st_size}\0".encode())
        for chunk in chunks_of(file, _CHUNK_BYTES):
            found.update(chunk)
    return found.hexdigest()


def packed(path: Path) -> Path:
    """A temporary tar archive of a folder; the caller deletes it."""
    import tarfile

    handle, name = tempfile.mkstemp(prefix="flinkpy-registered-", suffix=".tar")
    os.close(handle)
    with tarfile.open(name, "w") as archive:
        archive.add(path, arcname=".")
    return Path(name)


def chunks_of(file: Path, size: int) -> Iterator[bytes]:
    """The file's bytes, so many at a time."""
    with open(file, "rb") as opened:
        while chunk := opened.read(size):
            yield chunk


def _files_in(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
