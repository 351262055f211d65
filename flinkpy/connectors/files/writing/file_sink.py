"""Part files, one series per subtask and bucket. A part is written under a hidden name and gets its
own when the checkpoint that has it is complete, or when the stream has ended well. So a reader of
the directory never sees half a file, nor a record of a lost attempt."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flinkpy.common.time import checked_milliseconds
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.connectors.files.paths import SUFFIXES
from flinkpy.connectors.files.writing.buckets import BucketAssigner, ByColumns
from flinkpy.connectors.files.writing.compaction import FileCompactor, FileCompactStrategy
from flinkpy.connectors.files.writing.file_formats import (
    AvroFormat,
    CsvFormat,
    FileFormat,
    JsonLinesFormat,
    ParquetFormat,
    TextFormat,
)
from flinkpy.connectors.files.writing.file_writer import FileWriter, FileWriterState, PartFileConfig
from flinkpy.connectors.files.writing.part_commits import PartCommitter
from flinkpy.connectors.files.writing.part_names import PartNames
from flinkpy.connectors.files.writing.part_storage import PartStorage, split_location, storage_of
from flinkpy.connectors.files.writing.rolling import NEVER_BEFORE_THE_END, RollingPolicy
from flinkpy.core.errors import ProgramError
from flinkpy.core.files.file_systems import is_lasting, shown
from flinkpy.core.options.checkpointing import takes_checkpoints
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter

_FORMATS: dict[str, type[FileFormat]] = {
    "text": TextFormat,
    "csv": CsvFormat,
    "json": JsonLinesFormat,
    "parquet": ParquetFormat,
    "avro": AvroFormat,
}
CHECK_INTERVAL_MS = 60_000


class FileSink(Sink):
    """Writes into the directory ``path``: ``part-<job>-<sink>-<subtask>.txt``, so that neither runs
    nor several sinks of a job overwrite each other. Further parts, where ``rolling`` says so, end
    in ``-1``, ``-2`` and so on.

    ``format`` is ``"text"``, ``"csv"``, ``"json"`` (lines), ``"parquet"``, ``"avro"``, or a
    FileFormat with options of its own. ``buckets`` says which folder a record goes to;
    ``partition_by`` names columns: there is a folder for each of their values, such as
    ``city=Oslo``. Subtasks that got no record write no file. ``path`` may be a URL of an object
    store, such as ``s3://bucket/folder``.

    With checkpoints each record is seen exactly once. Every checkpoint ends the parts that are
    open, whatever ``rolling`` says. Its parts are seen when it is complete. Names of a job that was
    restored have a random piece, so nothing that was seen is ever overwritten. Without checkpoints
    files are seen when a subtask has ended well. A failed job leaves hidden files behind, which
    readers pass over.

    >>> stream.sink_to(
    ...     FileSink("out", format=CsvFormat(columns=["word", "count"]))
    ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | Path,
        format: str | FileFormat = "text",
        prefix: str = "part",
        suffix: str | None = None,
        *,
        buckets: BucketAssigner | None = None,
        rolling: RollingPolicy = NEVER_BEFORE_THE_END,
        check_interval_ms: int = CHECK_INTERVAL_MS,
        compact: tuple[FileCompactStrategy, FileCompactor] | None = None,
        partition_by: Sequence[str] | None = None,
    ) -> None:
        if isinstance(format, str) and format not in _FORMATS:
            raise ProgramError(f"unknown file format {format!r}; there are {', '.join(_FORMATS)}")
        if not isinstance(path, (str, Path)) or not str(path):
            raise ProgramError(f"a file sink's directory is text or a Path, this is {path!r:.80}")
        self._store, self._path = split_location(str(path))
        if not self._store and os.path.isfile(self._path):
            raise ProgramError(
                f"{path} is a file; a file sink writes several parts and takes a directory"
            )
        self._format = _FORMATS[format]() if isinstance(format, str) else format
        if compact is not None and compact[1].concatenates and not self._format.can_be_concatenated:
            raise ProgramError(
                f"{type(self._format).__name__}: files of it cannot be joined by "
                "concatenation; derive from FileCompactor to read "
                "them and write one, or do without enable_compact() (CSV "
                "without header lines and text can be joined, if "
                "their encoding has no byte order mark)"
            )
        if (
            compact is not None
            and compact[1].delimiter
            and self._format.suffix.endswith(tuple(SUFFIXES))
        ):
            raise ProgramError(
                f"a delimiter between compressed files ({self._format.suffix}) would damage "
                "them; leave it out"
            )
        self._prefix = prefix
        self._suffix = self._format.suffix if suffix is None else suffix
        if partition_by is not None:
            if buckets is not None:
                raise ProgramError("a file sink takes either partition_by= or buckets=")
            buckets = ByColumns(partition_by)
        self._buckets = BucketAssigner.base_path_bucket_assigner() if buckets is None else buckets
        if not isinstance(self._buckets, BucketAssigner):
            raise ProgramError(
                "buckets= takes a BucketAssigner, such as BucketAssigner.by_columns(...); "
                f"this is {buckets!r:.80}"
            )
        if not isinstance(rolling, RollingPolicy):
            raise ProgramError(
                "rolling= takes a RollingPolicy, such as "
                f"RollingPolicy.on_checkpoint_rolling_policy(); this is {rolling!r:.80}"
            )
        self._rolling = rolling
        self._check_interval_ms = checked_milliseconds(
            check_interval_ms, "FileSink: check_interval_ms", 1
        )
        self._compact = compact
        self._format = self._format.without_columns(self._buckets.names_in_folders)

    def of_type(self, type_info: TypeInformation | None) -> FileSink:
        """This sink, adapted to a stream of that declared type."""
        sink = copy.copy(self)
        sink._format = self._format.of_type(self._buckets.type_written(type_info))
        return sink

    def check_stream(self, names: Sequence[str] | None, is_columnar: bool) -> None:
        if names is not None:
            self._buckets.check_names(names)

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        names = self._names(context, restored=False)
        if context.task.attempt_id.attempt > 0:
            names.clear_leftovers(self._storage, None)
        return self._writer_of(context, names)

    def restore_writer(self, context: OperatorContext, states: Sequence[Any]) -> SinkWriter:
        names = self._names(context, restored=True)
        state = FileWriterState.of_all(states)
        if state is not None:
            names.clear_leftovers(self._storage, state.checkpoint_id)
        return self._writer_of(context, names, state)

    def create_committer(self, context: OperatorContext) -> Committer:
        return PartCommitter(
            self._storage, self._path if takes_checkpoints(context.configuration) else None
        )

    @property
    def _storage(self) -> PartStorage:
        return storage_of(self._store)

    def _names(self, context: OperatorContext, restored: bool) -> PartNames:
        try:
            self._storage.make_folder(self._path)
        except OSError as error:
            # else the disk may be at fault
            if is_lasting(error) and context.task.attempt_id.attempt == 0:
                reason = error.strerror or error
                raise ProgramError(
                    f"the file sink cannot write to {self._path}: {reason}"
                ) from error
            raise
        return PartNames.of_task(
            self._path, self._prefix, self._suffix, context.task, context.operator_id, restored
        )

    def _writer_of(
        self, context: OperatorContext, names: PartNames, state: FileWriterState | None = None
    ) -> FileWriter:
        return FileWriter(
            PartFileConfig(
                self._format, self._buckets, self._rolling, self._check_interval_ms, self._compact
            ),
            self._storage,
            names,
            context.timers,
            synced=takes_checkpoints(context.configuration),
            state=state,
        )

    def __repr__(self) -> str:
        return (
            f"FileSink({shown(self._store) if self._store else ''}{self._path}, "
            f"{type(self._format).__name__})"
        )
