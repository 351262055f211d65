"""Where part files are: on a disk, or in a file system that Arrow knows.

A disk and HDFS rename a file in one step. An object store has no rename: it copies the object and
then removes the first one. So there, a part is seen when its copy is whole. If that is cut off in
between, doing it again gives the same."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache

from flinkpy.connectors.files.paths import local_path
from flinkpy.connectors.files.writing.part_writer import OutputFile
from flinkpy.core.errors import ProgramError
from flinkpy.core.files.file_systems import (
    StoreError,
    file_system,
    is_object_store,
    is_without_answer,
    shown,
    split_url,
    told,
)

# S3 copies objects of up to 5 GB in one request; a part may exceed this by its last batch
_LARGEST_COPY = 4 << 30


class PartStorage(ABC):
    """A file system, as a file sink uses it. Paths are those within it."""

    # bytes after which a part ends, whatever the rolling policy says
    largest_part: int | None = None

    @abstractmethod
    def name_of(self, path: str) -> str:
        """The path as messages show it."""

    def make_folder(self, path: str) -> None:
        """Makes the folder, where there are folders without files."""

    @abstractmethod
    def create(self, path: str) -> OutputFile:
        """A new file, with the folders above it."""

    @abstractmethod
    def publish(self, hidden: str, final: str) -> bool:
        """Gives a whole file its own name. If that was done before, it does nothing; False if there
        is neither of the two."""

    @abstractmethod
    def size(self, path: str) -> int: ...

    @abstractmethod
    def remove(self, path: str) -> None:
        """Removes the file if it is there."""

    @abstractmethod
    def below(self, folder: str) -> Iterator[str]:
        """All files in the folder, at any depth."""

    def folders(self, folder: str) -> Sequence[str]:
        """The folders directly in the folder, sorted; none in one that is not there."""
        below = {path[len(folder) :].strip("/") for path in self.below(folder)}
        names = {path.partition("/")[0] for path in below if "/" in path}
        return [f"{folder}/{name}" for name in sorted(names)]

    def remove_folder(self, folder: str) -> None:
        """Removes the folder with all that is in it."""
        for path in self.below(folder):
            self.remove(path)

    def sync(self, path: str) -> None:
        """Waits until the closed file will outlive a crash of the machine."""

    def sync_names(self, paths: Iterable[str], top: str) -> None:
        """Waits until the names of these files, and of the folders from ``top`` down to them,
        will."""

    def fetch(self, path: str, target: str) -> None:
        """Copies the file to the local disk."""
        raise NotImplementedError

    def store(self, source: str, path: str) -> None:
        """Copies a file of the local disk here."""
        raise NotImplementedError


class Disk(PartStorage):
    """A folder that all workers see."""

    def name_of(self, path: str) -> str:
        return path

    def make_folder(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def create(self, path: str) -> OutputFile:
        self.make_folder(os.path.dirname(path))
        return open(path, "wb", buffering=256 << 10)

    def publish(self, hidden: str, final: str) -> bool:
        try:
            os.replace(hidden, final)
        except FileNotFoundError:
            return os.path.exists(final)
        return True

    def size(self, path: str) -> int:
        return os.path.getsize(path)

    def remove(self, path: str) -> None:
        try:
            os.remove(path)
        except FileNotFoundError:
            pass

    def below(self, folder: str) -> Iterator[str]:
        return (os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)

    def folders(self, folder: str) -> Sequence[str]:
        try:
            return sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
        except FileNotFoundError:
            return ()

    def remove_folder(self, folder: str) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)

    def sync(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_names(self, paths: Iterable[str], top: str) -> None:
        folders = {os.path.dirname(top)}
        for path in paths:
            folder = os.path.dirname(path)
            while folder not in folders:
                folders.add(folder)
                folder = os.path.dirname(folder)
        for folder in folders:
            # taken away since, or above what this user may read
            with suppress(FileNotFoundError, PermissionError):
                self.sync(folder)


class ArrowStorage(PartStorage):
    """What Arrow knows: S3, Google's and Azure's stores, HDFS."""

    def __init__(self, store: str) -> None:
        self._store, self._name = store, shown(store)
        try:
            self._system, self._root = file_system(store)
        except (OSError, ValueError, NotImplementedError) as error:
            raise ProgramError(f"cannot write to {self._name}: {told(error, store)}") from error
        self._copies = is_object_store(self._system)
        self.largest_part = _LARGEST_COPY if self._copies else None

    def name_of(self, path: str) -> str:
        return self._name + path

    @contextmanager
    def _telling(self, what: str, path: str) -> Iterator[None]:
        """Around calls of Arrow. Raises StoreError with the path, and for a server that does not
        answer with its place."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(f"{what} {self.name_of(path)}: {told(error, self._store)}") from error

    def create(self, path: str) -> OutputFile:
        try:
            if not self._copies:
                self._system.create_dir(os.path.dirname(self._root + path), recursive=True)
            file: OutputFile = self._system.open_output_stream(self._root + path)
        except OSError as error:
            kind = StoreError if is_without_answer(error) else ProgramError
            raise kind(f"cannot write {self.name_of(path)}: {told(error, self._store)}") from error
        return file

    def publish(self, hidden: str, final: str) -> bool:
        with self._telling("cannot give a written part its name", final):
            if not self._is_there(hidden):
                return self._is_there(final)
            self._system.move(self._root + hidden, self._root + final)
        return True

    def _is_there(self, path: str) -> bool:
        return bool(self._system.get_file_info(self._root + path).is_file)

    def size(self, path: str) -> int:
        with self._telling("cannot look at", path):
            return int(self._system.get_file_info(self._root + path).size)

    def remove(self, path: str) -> None:
        try:
            with self._telling("cannot remove", path):
                self._system.delete_file(self._root + path)
        except FileNotFoundError:
            pass

    def below(self, folder: str) -> Iterator[str]:
        from pyarrow import fs

        with self._telling("cannot look at", folder):
            found = self._system.get_file_info(
                fs.FileSelector(self._root + folder, recursive=True, allow_not_found=True)
            )
        return (info.path[len(self._root) :] for info in found if info.is_file)

    def fetch(self, path: str, target: str) -> None:
        with (
            self._system.open_input_stream(self._root + path) as source,
            open(target, "wb") as file,
        ):
            shutil.copyfileobj(source, file, 1 << 20)

    def store(self, source: str, path: str) -> None:
        with (
            open(source, "rb") as file,
            self._system.open_output_stream(self._root + path) as target,
        ):
            shutil.copyfileobj(file, target, 1 << 20)


def split_location(path: str) -> tuple[str, str]:
    """The URL of the file system ("": the local disk) and the path in it.

    >>> split_location("s3://lake/sales/?scheme=http")
    ('s3://lake/?scheme=http', '/sales')
    """
    path = local_path(path)
    if "://" not in path:
        return "", os.path.abspath(path)
    store, within = split_url(path)
    return store, within.rstrip("/")


@lru_cache(maxsize=64)
def storage_of(store: str) -> PartStorage:
    """The file system with that URL. Raises ProgramError if Arrow cannot reach it."""
    return ArrowStorage(store) if store else Disk()
