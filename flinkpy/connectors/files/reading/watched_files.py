"""A source of text files that keeps running: the enumerator looks for new files at an interval, and
the stream never ends.

A file is read once, as it is when it is found. So write it under a hidden name, and rename it when
it is complete."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from flinkpy.connectors.files.paths import FileInfo, PathArgument, at_home, find_files
from flinkpy.connectors.files.reading.text_files import (
    FileSplit,
    check_charset,
    cut_file,
    line_reader,
)
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.errors import ProgramError
from flinkpy.core.secrets.engine_logs import engine_logger

S = TypeVar("S", bound=SourceSplit)
_LOG = engine_logger(__name__)


def files_by_now(paths: PathArgument) -> list[FileInfo]:
    """The files there are; none if none was written yet, or the file system does not answer."""
    try:
        return find_files(paths)
    except ProgramError as error:
        _LOG.info("no files for now: %s", error)
        return []


@dataclass(frozen=True)
class WatchedFiles:
    """The enumerator's state in a checkpoint."""

    seen: frozenset[str]
    left: tuple[Any, ...]


class WatchedTextFileSource(Source[FileSplit]):
    """Reads the lines of existing files and of files that appear later. ``paths`` need not exist
    yet; with ``split_bytes`` None, files are not cut.

    >>> WatchedTextFileSource("incoming", interval_ms=1000).boundedness
    <Boundedness.CONTINUOUS_UNBOUNDED: 'CONTINUOUS_UNBOUNDED'>
    """

    has_timestamps = False
    takes_error_policy = True

    def __init__(
        self,
        paths: PathArgument,
        charset: str = "utf-8",
        split_bytes: int | None = None,
        *,
        interval_ms: int,
    ) -> None:
        check_charset(charset)
        self._paths = at_home(paths)
        self._charset = charset
        self._split_bytes = split_bytes
        self._interval_s = interval_ms / 1000

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[FileSplit], checkpoint: Any = None
    ) -> SplitEnumerator[FileSplit]:
        return FileWatcher(
            context, lambda: files_by_now(self._paths), self._cut, self._interval_s, checkpoint
        )

    def _cut(self, file: FileInfo) -> Iterable[FileSplit]:
        return cut_file(file, max(file.size, 1) if self._split_bytes is None else self._split_bytes)

    def create_reader(self, context: ReaderContext) -> SourceReader[FileSplit]:
        return line_reader(context, self._charset)

    def __repr__(self) -> str:
        return f"WatchedTextFileSource({self._paths!r}, every {self._interval_s:g} s)"


class FileWatcher(SplitEnumerator[S]):
    """Hands out the splits of new files. Readers that ask while there are none wait. ``look`` and
    ``cut`` may take their time: they run in the background."""

    def __init__(
        self,
        context: SplitEnumeratorContext[S],
        look: Callable[[], list[FileInfo]],
        cut: Callable[[FileInfo], Iterable[S]],
        interval_s: float,
        checkpoint: WatchedFiles | None = None,
    ) -> None:
        self._context = context
        self._look = look
        self._cut = cut
        self._interval_s = interval_s
        self._seen = set(checkpoint.seen) if checkpoint is not None else set()
        self._left: deque[S] = deque(checkpoint.left if checkpoint is not None else ())
        self._waiting: list[int] = []

    def start(self) -> None:
        self._context.call_async(self._look_for_new, self._found, self._interval_s)

    def _look_for_new(self) -> dict[str, list[S]]:
        return {
            file.path: list(self._cut(file)) for file in self._look() if file.path not in self._seen
        }

    def _found(self, files: dict[str, list[S]] | None, error: BaseException | None) -> None:
        if error is not None:
            raise error
        for path, splits in (files or {}).items():
            if path not in self._seen:  # two looks may have been on the way at the same time
                self._seen.add(path)
                self._left.extend(splits)
        self._serve()

    def _serve(self) -> None:
        registered = self._context.registered_readers if self._waiting and self._left else {}
        while self._waiting and self._left:
            subtask = self._waiting.pop(0)
            # else it has failed meanwhile, and its next attempt asks for itself
            if subtask in registered:
                self._context.assign_splits(subtask, [self._left.popleft()])

    def handle_split_request(self, subtask: int, host: str) -> None:
        if subtask not in self._waiting:
            self._waiting.append(subtask)
        self._serve()

    def add_splits_back(self, splits: list[S], subtask: int) -> None:
        self._left.extendleft(reversed(splits))
        self._serve()

    def snapshot_state(self, checkpoint_id: int) -> WatchedFiles:
        return WatchedFiles(frozenset(self._seen), tuple(self._left))

    def __repr__(self) -> str:
        return f"<FileWatcher: {len(self._seen)} files seen, {len(self._left)} splits left>"
