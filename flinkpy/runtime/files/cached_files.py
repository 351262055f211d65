"""A file or folder that a program registered for its functions (``env.register_cached_file``), as
it travels with its job: what it is called, and where its content comes from.

Its content is that of the moment at which the job was submitted, so the program may change or
delete the file afterwards. A file at a URL is not read by the program: each TaskExecutor fetches
it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from flinkpy.core.files.unpacking import unpacked_safely
from flinkpy.core.options.compatibility import CACHED_FILES
from flinkpy.core.program.code import OutOfBand
from flinkpy.core.program.fetched_files import fetch
from flinkpy.state.checkpoints.own_folder import OwnFolder


class Content(Protocol):
    """Where the content of a file comes from."""

    def write_to(self, target: Path) -> None:
        """Makes ``target``, a file or a folder. Blocks until it is there."""
        ...


@dataclass(frozen=True, eq=False)
class CachedFile(OutOfBand):
    """Files of the same ``digest`` and ``file_name`` are the same; ``name`` is what functions call
    it."""

    name: str
    file_name: str
    digest: str
    content: Content
    executable: bool = False

    @property
    def key(self) -> tuple[str, str, bool]:
        """What two jobs, or two names in one, have in common if they mean the same file."""
        return self.digest, self.file_name, self.executable

    def materialise(self, folder: Path) -> Path:
        """Makes the file in this folder; returns its path."""
        target = folder / self.file_name
        self.content.write_to(target)
        if self.executable and target.is_file():
            target.chmod(target.stat().st_mode | stat.S_IXUSR)
        return target


@dataclass(frozen=True)
class FromUrl:
    """A file or folder that each TaskExecutor fetches from a file system that all reach."""

    url: str

    def write_to(self, target: Path) -> None:
        fetch(self.url, target, CACHED_FILES.key)


class FromSnapshot:
    """A copy on this machine's disk, made when the job was submitted; for TaskExecutors of the
    program's own process.

    The copy is deleted when nobody has this object any more.
    """

    def __init__(self, source: Path) -> None:
        self._folder = OwnFolder(None, "registered")
        self._path = self._folder.path / "content"
        _copy(source, self._path, shutil.copy2)

    def write_to(self, target: Path) -> None:
        _copy(self._path, target, _link)


class Blocks(Protocol):
    """Bytes in blocks, which may have to be fetched (``connectors.memory.pieces.Pieces``)."""

    @property
    def rows(self) -> list[int]: ...

    def fetch(self, number: int, on_done: Callable[[], None]) -> Future[Any]: ...


@dataclass(frozen=True)
class FromBlocks:
    """Bytes that travel with the job, or lie in the cluster's store; those of a folder are a tar
    archive."""

    blocks: Blocks
    is_folder: bool = False

    def write_to(self, target: Path) -> None:
        written = target.with_name(target.name + ".tar") if self.is_folder else target
        with open(written, "wb") as file:
            for number in range(len(self.blocks.rows)):
                file.write(memoryview(self.blocks.fetch(number, _nothing).result()))
        if self.is_folder:
            import tarfile

            with tarfile.open(written) as archive:
                archive.extractall(target, **unpacked_safely())
            written.unlink()


def cached_files_of(out_of_band: Sequence[OutOfBand]) -> tuple[CachedFile, ...]:
    """Those among a vertex's data."""
    return tuple(data for data in out_of_band if isinstance(data, CachedFile))


def _copy(source: Path, target: Path, copy: Callable[[str, str], object]) -> None:
    if source.is_dir():
        shutil.copytree(source, target, copy_function=copy)
    else:
        copy(str(source), str(target))


def _link(source: str, target: str) -> None:
    """A second name where the disk has them, as nobody is to write into a registered file; else a
    copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _nothing() -> None:
    """A block is awaited, so nobody needs to be told of it."""
