"""A stream that the first job to compute it writes to files, and that later jobs read from them.

Each subtask writes the batches that pass through it to a file with a hidden name. At the end of its
input it renames the file; the new name says how many files there are. The cache is complete only
when all files of one attempt of one job are there, so nothing that a failed job leaves is read."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.readers import SequentialReader, SplitReader
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch
from flinkpy.operators.base import BatchForm, OneInputOperator

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = re.compile(r"(?P<run>[0-9a-f-]+)_(?P<subtask>\d+)_of_(?P<parallelism>\d+)")


class CacheFolder:
    """The folder of a cache. It is deleted with the program that made it; ``clear`` deletes the
    files."""

    def __init__(self) -> None:
        self._path: str | None = None

    @property
    def path(self) -> str:
        if self._path is None:
            self._path = tempfile.mkdtemp(prefix="flinkpy-cache-")
        return self._path

    def complete(self) -> list[str] | None:
        """The files of one complete run, in the order of their subtasks; None if there is none."""
        if self._path is None:
            return None
        runs: dict[str, dict[int, str]] = {}
        wanted: dict[str, int] = {}
        for name in os.listdir(self._path):
            match = _NAME.fullmatch(name)
            if match is not None:
                runs.setdefault(match["run"], {})[int(match["subtask"])] = os.path.join(
                    self._path, name
                )
                wanted[match["run"]] = int(match["parallelism"])
        for run, files in sorted(runs.items()):
            if len(files) == wanted[run]:
                return [files[subtask] for subtask in sorted(files)]
        return None

    def clear(self) -> None:
        """Deletes the files; the next job that computes the stream writes them again."""
        if self._path is not None:
            for name in os.listdir(self._path):
                os.remove(os.path.join(self._path, name))

    def remove(self) -> None:
        path, self._path = self._path, None
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)

    def __del__(self) -> None:
        self.remove()


class CacheWriter(OneInputOperator):
    """Passes every batch on, and writes it to the cache. The cache is a table: of running results
    it has the last one of each key, because those who read it later could not tell which is."""

    batch_form = BatchForm.AS_IN_STREAM
    takes_last_results = True
    emits_changes = INSERT_ONLY

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def output_schema(self, schema: pa.Schema) -> Any:
        """The input's schema."""
        return schema

    def open(self) -> None:
        task = self.context.task
        attempt = task.attempt_id
        subtask = f"{task.subtask_index}_of_{task.parallelism}"
        name = f"{attempt.job_id}-{attempt.attempt}_{subtask}"
        self._final = os.path.join(self._folder, name)
        os.makedirs(self._folder, exist_ok=True)
        self._file: IO[bytes] | None = open(f"{self._folder}/.{name}", "wb", buffering=256 << 10)  # noqa: SIM115  (closed in close)

    def process_batch(self, batch: Batch) -> None:
        if self._file is not None:
            pickle.dump(batch, self._file, protocol=5)
        self.output.emit(batch)

    def finish(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
            os.replace(file.name, self._final)

    def close(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()
            os.remove(file.name)


@dataclass(frozen=True)
class CacheSplit:
    """A file, and how many of its batches have been read."""

    split_id: str
    path: str
    batches_read: int = 0


class _CacheReader(SplitReader[CacheSplit]):
    def __init__(self, split: CacheSplit) -> None:
        self._split, self._read = split, 0
        self._file = open(split.path, "rb", buffering=256 << 10)  # noqa: SIM115  (closed in close)
        for _ in range(split.batches_read):
            self.next_batch(0)

    def next_batch(self, limit: int) -> Batch | None:
        try:
            batch: Batch = pickle.load(self._file)
        except EOFError:
            return None
        self._read += 1
        return batch

    def snapshot(self) -> CacheSplit:
        return replace(self._split, batches_read=self._read)

    def close(self) -> None:
        self._file.close()


class CacheSource(Source[CacheSplit]):
    """Reads the batches of these files, with their timestamps."""

    has_timestamps = True
    gives_valid_times = True

    def __init__(self, files: list[str], columnar: bool, schema: pa.Schema | None = None) -> None:
        self._files = files
        self._columnar = columnar
        self.schema = schema

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def is_columnar(self) -> bool:
        return self._columnar

    def create_enumerator(
        self, context: SplitEnumeratorContext[CacheSplit], checkpoint: Any = None
    ) -> SplitEnumerator[CacheSplit]:
        return SplitQueue(context, self._splits, checkpoint)

    def _splits(self, parallelism: int) -> Iterator[CacheSplit]:
        return (CacheSplit(os.path.basename(path), path) for path in self._files)

    def create_reader(self, context: ReaderContext) -> SourceReader[CacheSplit]:
        return SequentialReader(context, _CacheReader)

    def __repr__(self) -> str:
        return f"CacheSource({len(self._files)} files)"
