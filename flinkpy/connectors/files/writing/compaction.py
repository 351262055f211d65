"""Making few large files of many small ones, before they become visible.

Parts are put together at a checkpoint, or at every n-th, and when the input ends: those of one
subtask and one folder that came since the last time. Until then they stay hidden. The sources are
kept until the joined file is committed, as an earlier checkpoint may still know them. A compactor
works on the local disk: elsewhere the parts are fetched to it, and what it makes is sent back."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from flinkpy.connectors.files.writing.part_names import PartFile, PartNames
from flinkpy.connectors.files.writing.part_storage import Disk, PartStorage
from flinkpy.core.errors import ProgramError


@dataclass(frozen=True)
class FileCompactStrategy:
    """When part files are compacted, and into how large files.

    >>> FileCompactStrategy.builder().set_size_threshold(1 << 20).build().size_threshold
    1048576
    """

    size_threshold: int = -1  # bytes; -1: no bound
    # compaction after so many checkpoints, -1: after each; what is left at the end is compacted
    # then
    checkpoints: int = -1
    threads: int = 1

    class Builder:
        """Builds the strategy."""

        def __init__(self) -> None:
            self._size_threshold = -1
            self._checkpoints = -1
            self._threads = 1

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Files of so many checkpoints are put together, and seen then only."""
            self._checkpoints = _positive(
                num_checkpoints_before_compaction, "num_checkpoints_before_compaction"
            )
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Files are put together until they have so many bytes; those of one checkpoint, unless
            compaction waits for several."""
            self._size_threshold = _positive(size_threshold, "size_threshold")
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Stored without effect: each subtask compacts its own files, one after the other."""
            self._threads = _positive(num_compact_threads, "num_compact_threads")
            return self

        def build(self) -> FileCompactStrategy:
            """The strategy. Raises ProgramError if neither a size nor a number of checkpoints is
            set."""
            if self._size_threshold < 0 and self._checkpoints < 0:
                raise ProgramError(
                    "a FileCompactStrategy needs set_size_threshold(...) or "
                    "enable_compaction_on_checkpoint(...)"
                )
            return FileCompactStrategy(self._size_threshold, self._checkpoints, self._threads)

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        return FileCompactStrategy.Builder()

    def groups(self, sizes: Sequence[int]) -> list[list[int]]:
        """The positions of the files that are joined, in order.

        >>> FileCompactStrategy(size_threshold=10).groups([4, 6, 3, 20, 1])
        [[0, 1], [2, 3], [4]]
        """
        found: list[list[int]] = []
        group: list[int] = []
        total = 0
        for at, size in enumerate(sizes):
            group.append(at)
            total += size
            if 0 < self.size_threshold <= total:
                found.append(group)
                group, total = [], 0
        return [*found, group] if group else found


class FileCompactor(ABC):
    """Makes one file from several.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = [pathlib.Path(folder, name) for name in "ab"]
    ...     written = [part.write_text(part.name) for part in parts]
    ...     FileCompactor.concat_file_compactor(b"-").compact(
    ...         [str(part) for part in parts], str(pathlib.Path(folder, "c"))
    ...     )
    ...     pathlib.Path(folder, "c").read_text()
    'a-b'
    """

    @abstractmethod
    def compact(self, sources: Sequence[str], target: str) -> None:
        """Writes ``target`` from the files in their order, and leaves them as they are."""

    joins = True  # whether it takes more than one file
    concatenates = False  # whether it puts their bytes one behind the other
    delimiter = b""  # what it puts between them

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Concatenates the files, with the delimiter between them."""
        return _Concat(file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Leaves each file as it is."""
        return _Identical()


@dataclass(frozen=True)
class _Concat(FileCompactor):
    delimiter: bytes = b""
    concatenates = True

    def compact(self, sources: Sequence[str], target: str) -> None:
        with open(target, "wb") as out:
            for at, path in enumerate(sources):
                if at:
                    out.write(self.delimiter)
                with open(path, "rb") as part:
                    shutil.copyfileobj(part, out, 1 << 20)


@dataclass(frozen=True)
class _Identical(FileCompactor):
    joins = False

    def compact(self, sources: Sequence[str], target: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(target)
        try:
            os.link(sources[0], target)
        except OSError:  # a file system without links
            shutil.copyfile(sources[0], target)


def _positive(number: int, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ProgramError(f"{what} is a whole number from 1 on, this is {number!r}")
    return number


def compacted(
    parts: Sequence[PartFile],
    names: PartNames,
    storage: PartStorage,
    strategy: FileCompactStrategy,
    compactor: FileCompactor,
) -> list[PartFile]:
    """The files that the parts were put together to."""
    folders: dict[str, list[PartFile]] = {}
    for part in parts:
        folders.setdefault(os.path.dirname(part.final), []).append(part)
    made = []
    for of_folder in folders.values():
        sizes = [storage.size(part.hidden) for part in of_folder]
        for group in (
            strategy.groups(sizes) if compactor.joins else [[at] for at in range(len(of_folder))]
        ):
            joined = names.joined([of_folder[at] for at in group])
            _compact(storage, compactor, joined)
            made.append(joined)
    return made


def _compact(storage: PartStorage, compactor: FileCompactor, joined: PartFile) -> None:
    if isinstance(storage, Disk):
        compactor.compact(joined.sources, joined.hidden)
        return
    with tempfile.TemporaryDirectory(prefix="flinkpy-parts-") as folder:
        sources = [
            os.path.join(folder, f"{at}-{os.path.basename(path)}")
            for at, path in enumerate(joined.sources)
        ]
        for path, source in zip(joined.sources, sources):
            storage.fetch(path, source)
        made = os.path.join(folder, "made")
        compactor.compact(sources, made)
        storage.store(made, joined.hidden)
