"""The sink of part files, one series per subtask and bucket. A part is written under a hidden name and renamed when
the stream has ended well, so that a reader of the directory never sees an incomplete file."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.connectors.files.paths import local_path
from flinkpy.connectors.part_files.buckets import BucketAssigner
from flinkpy.connectors.part_files.compaction import FileCompactor, FileCompactStrategy
from flinkpy.connectors.part_files.file_formats import CsvFormat, FileFormat, JsonLinesFormat, ParquetFormat, PartWriter, TextFormat
from flinkpy.connectors.part_files.rolling import NEVER_BEFORE_THE_END, OpenPart, RollingPolicy
from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.context import OperatorContext, TimerHandle
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter

_FORMATS: dict[str, type[FileFormat]] = {"text": TextFormat, "csv": CsvFormat, "json": JsonLinesFormat, "parquet": ParquetFormat}
CHECK_INTERVAL_MS = 60_000


class FileSink(Sink):
    """Writes files into the directory ``path``, named ``part-<job>-<subtask>.txt``, so that runs never overwrite each
    other. If ``rolling`` starts further parts, their names end in ``-1``, ``-2`` and so on. ``format`` is ``"text"``,
    ``"csv"``, ``"json"`` (lines), ``"parquet"``, or a FileFormat with its own options. ``buckets`` says which folder
    a record goes to; ``check_interval_ms`` is how often, in milliseconds, the rolling policy is asked while no record
    comes. Subtasks without records write no file. A failed job leaves only hidden files, which readers ignore. Raises
    ProgramError for an unknown format and for a path that cannot be a local directory.

    >>> stream.sink_to(FileSink("out", format=CsvFormat(columns=["word", "count"])))  # doctest: +SKIP
    """

    def __init__(
        self, path: str | Path, format: str | FileFormat = "text", prefix: str = "part", suffix: str | None = None, *,
        buckets: BucketAssigner | None = None, rolling: RollingPolicy = NEVER_BEFORE_THE_END, check_interval_ms: int = CHECK_INTERVAL_MS,
        compact: tuple[FileCompactStrategy, FileCompactor] | None = None,
    ) -> None:
        if isinstance(format, str) and format not in _FORMATS:
            raise ProgramError(f"unknown file format {format!r}; there are {', '.join(_FORMATS)}")
        if not isinstance(path, (str, Path)) or not str(path):
            raise ProgramError(f"a file sink's directory is text or a Path, this is {path!r:.80}")
        path = local_path(str(path))
        if "://" in path:
            raise ProgramError(f"a file sink writes to a directory all workers see, not to {path}")
        if os.path.isfile(path):
            raise ProgramError(f"{path} is a file; a file sink writes several parts and takes a directory")
        self._path = os.path.abspath(path)
        self._format = _FORMATS[format]() if isinstance(format, str) else format
        self._prefix = prefix
        self._suffix = self._format.suffix if suffix is None else suffix
        self._buckets = BucketAssigner.base_path_bucket_assigner() if buckets is None else buckets
        self._rolling, self._check_interval_ms, self._compact = rolling, check_interval_ms, compact

    def of_type(self, type_info: TypeInformation | None) -> FileSink:
        """This sink, adapted to a stream of that declared type."""
        sink = copy.copy(self)
        sink._format = self._format.of_type(type_info)
        return sink

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        task = context.task
        os.makedirs(self._path, exist_ok=True)
        stem = f"{self._prefix}-{task.attempt_id.job_id:.8}-{task.subtask_index}"
        hidden = f".inprogress.{task.attempt_id.attempt}"

        def names(bucket: str, number: int) -> _Names:
            folder = os.path.join(self._path, bucket)
            os.makedirs(folder, exist_ok=True)
            name = f"{stem}-{number}{self._suffix}" if number else f"{stem}{self._suffix}"
            return _Names(os.path.join(folder, f".{name}{hidden}"), os.path.join(folder, name))

        return _FileWriter(self._format, self._buckets, self._rolling, self._compact, names, context, self._check_interval_ms)

    def __repr__(self) -> str:
        return f"FileSink({self._path}, {type(self._format).__name__})"


@dataclass(frozen=True)
class _Names:
    hidden: str
    final: str


@dataclass
class _Bucket:
    """The parts of one folder: the one that is being written, and those that wait to become visible."""

    number: int = 0
    part: PartWriter | None = None
    names: _Names = field(default_factory=lambda: _Names("", ""))
    opened_ms: int = 0
    written_ms: int = 0
    pending: list[_Names] = field(default_factory=list)

    def end_part(self) -> None:
        part, self.part = self.part, None
        if part is not None:
            part.close()
            self.pending.append(self.names)


class _FileWriter(SinkWriter):
    """Writes the parts of one subtask; each begins with its first record."""

    def __init__(self, form: FileFormat, assigner: BucketAssigner, rolling: RollingPolicy, compact: tuple[FileCompactStrategy, FileCompactor] | None,
                 names: Callable[[str, int], _Names], context: OperatorContext, check_interval_ms: int) -> None:
        self._format, self._assigner, self._rolling, self._compact, self._names = form, assigner, rolling, compact, names
        self._timers, self._interval_s = context.timers, check_interval_ms / 1000
        self._buckets: dict[str, _Bucket] = {}
        self._timer: TimerHandle | None = None

    def write_batch(self, batch: Batch) -> None:
        now = self._timers.now_ms()
        bucket = self._assigner.bucket_for(now)
        if bucket is not None:
            self._write(bucket, batch, now)
            return
        values = rows_of(batch)
        shares: dict[str, list[int]] = {}
        for at, value in enumerate(values):
            shares.setdefault(self._assigner.bucket_of(value), []).append(at)
        for bucket, positions in shares.items():
            share = ColumnBatch(batch.data.take(positions)) if isinstance(batch, ColumnBatch) else RowBatch([values[at] for at in positions])
            self._write(bucket, share, now)

    def _write(self, name: str, batch: Batch, now: int) -> None:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket()
        if bucket.part is None:
            bucket.names = self._names(name, bucket.number)
            bucket.part, bucket.opened_ms = self._format.open(bucket.names.hidden), now
            bucket.number += 1
        bucket.part.write(batch)
        bucket.written_ms = now
        self._roll(bucket, now)
        if self._timer is None and self._rolling is not NEVER_BEFORE_THE_END:
            self._timer = self._timers.call_later(self._interval_s, self._check)

    def _roll(self, bucket: _Bucket, now: int) -> None:
        if bucket.part is not None and self._rolling.should_roll(OpenPart(bucket.part.size, bucket.opened_ms, bucket.written_ms), now):
            bucket.end_part()

    def _check(self) -> None:
        """Ends parts that have become too old, though no record comes."""
        self._timer = self._timers.call_later(self._interval_s, self._check)
        for bucket in self._buckets.values():
            self._roll(bucket, self._timers.now_ms())

    def flush(self) -> None:
        for bucket in self._buckets.values():
            if bucket.part is not None:
                bucket.part.flush()

    def finish(self) -> None:
        for bucket in self._buckets.values():
            bucket.end_part()
            pending, bucket.pending = bucket.pending, []
            if self._compact is None:
                for names in pending:
                    os.replace(names.hidden, names.final)
            else:
                _compact(pending, *self._compact)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for bucket in self._buckets.values():
            part, bucket.part = bucket.part, None
            if part is not None:
                part.abandon()


def _compact(pending: list[_Names], strategy: FileCompactStrategy, compactor: FileCompactor) -> None:
    groups = strategy.groups([os.path.getsize(names.hidden) for names in pending]) if compactor.joins else [[at] for at in range(len(pending))]
    for group in groups:
        parts = [pending[at] for at in group]
        folder, name = os.path.split(parts[0].final)
        joined = os.path.join(folder, f".compacted-{name}.inprogress")
        compactor.compact([part.hidden for part in parts], joined)
        os.replace(joined, os.path.join(folder, f"compacted-{name}"))
        for part in parts:
            if os.path.exists(part.hidden):
                os.remove(part.hidden)
