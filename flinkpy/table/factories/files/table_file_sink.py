"""A file sink with one commit for all writers: for tables that are overwritten, and for those that
say when a partition is complete.

The parts of all writers are made visible together. INSERT OVERWRITE removes what was there before
behind that, so a failure in between leaves both and loses nothing; the next commit removes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.partition_folders import named_folders
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.files.writing.part_names import PartFile
from flinkpy.connectors.files.writing.part_storage import split_location, storage_of
from flinkpy.core.elements import Batch, Watermark
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import (
    Committer,
    GlobalCommitter,
    Sink,
    SinkWriter,
    SupportsGlobalCommitter,
)
from flinkpy.table.factories.files.partition_commits import PartitionCommit, PendingPartition

if TYPE_CHECKING:
    from flinkpy.common.typeinfo import TypeInformation

_END_OF_TIME = (1 << 63) - 1


@dataclass(frozen=True)
class Overwrite:
    """What INSERT OVERWRITE replaces: one folder with all below it, also if no rows come; or, if
    ``folder`` is None, each partition that gets rows."""

    folder: str | None


@dataclass(frozen=True)
class Written:
    """What one of ``writers`` has prepared since the last time, and how far event time is there."""

    writer: int
    writers: int
    watermark_ms: int | None
    parts: tuple[PartFile, ...]


class TableFileSink(Sink, SupportsGlobalCommitter):
    """Writes with ``files`` into ``path``."""

    def __init__(
        self,
        path: str,
        files: FileSink,
        overwrite: Overwrite | None = None,
        partition_commit: PartitionCommit | None = None,
    ) -> None:
        self._path, self._files = path, files
        self._overwrite, self._partition_commit = overwrite, partition_commit

    def of_type(self, type_info: TypeInformation | None) -> TableFileSink:
        """This sink, adapted to a stream of that declared type."""
        files = self._files.of_type(type_info)
        return TableFileSink(self._path, files, self._overwrite, self._partition_commit)

    def check_stream(self, names: Sequence[str] | None, is_columnar: bool) -> None:
        self._files.check_stream(names, is_columnar)

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _Reporting(self._files.create_writer(context), context)

    def restore_writer(self, context: OperatorContext, states: Sequence[Any]) -> SinkWriter:
        return _Reporting(self._files.restore_writer(context, states), context)

    def create_global_committer(self, context: OperatorContext) -> GlobalCommitter:
        parts = self._files.create_committer(context)
        now_ms = context.timers.now_ms
        return TableCommitter(self._path, parts, self._overwrite, self._partition_commit, now_ms)

    def __repr__(self) -> str:
        return f"TableFileSink({self._files!r})"


class _Reporting(SinkWriter):
    """A writer of part files that says how far event time has come."""

    def __init__(self, files: SinkWriter, context: OperatorContext) -> None:
        self._files = files
        self._task = context.task
        self._watermark_ms: int | None = None

    def write_batch(self, batch: Batch) -> None:
        self._files.write_batch(batch)

    def write_watermark(self, watermark: Watermark) -> None:
        self._watermark_ms = watermark.timestamp

    def flush(self) -> None:
        self._files.flush()

    def finish(self) -> None:
        self._files.finish()
        self._watermark_ms = _END_OF_TIME

    def prepare_commit(self) -> Sequence[Written]:
        parts = tuple(self._files.prepare_commit())
        return [
            Written(self._task.subtask_index, self._task.parallelism, self._watermark_ms, parts)
        ]

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any]:
        return self._files.snapshot_state(checkpoint_id)

    def close(self) -> None:
        self._files.close()


class TableCommitter(GlobalCommitter):
    """Makes parts visible, removes what they replace, and says which partitions are complete.

    A partition that is not complete yet is put off, so it comes again with the next checkpoint."""

    def __init__(
        self,
        path: str,
        parts: Committer,
        overwrite: Overwrite | None,
        partition_commit: PartitionCommit | None,
        now_ms: Callable[[], int],
    ) -> None:
        self._store, self._top = split_location(path)
        self._parts = parts
        self._overwrite, self._partition_commit = overwrite, partition_commit
        self._now_ms = now_ms
        self._watermarks: dict[int, int | None] = {}

    def commit(
        self, committables: Sequence[Written | PendingPartition], checkpoint_id: int | None
    ) -> Sequence[PendingPartition]:
        written = [each for each in committables if isinstance(each, Written)]
        parts = [part for each in written for part in each.parts]
        self._parts.commit(parts)
        if self._overwrite is not None:
            self._remove_replaced(self._overwrite, parts)
        if self._partition_commit is None:
            return ()
        for each in written:
            self._watermarks[each.writer] = each.watermark_ms
        pending = [each for each in committables if isinstance(each, PendingPartition)]
        return self._complete(self._partition_commit, pending + self._begun(parts), written)

    # -- INSERT OVERWRITE --------------------------------------------------------------------------

    def _remove_replaced(self, overwrite: Overwrite, parts: Sequence[PartFile]) -> None:
        storage = storage_of(self._store)
        kept = {part.final for part in parts}
        if overwrite.folder is None:
            folders = {os.path.dirname(part.final) for part in parts}
        else:
            folders = {os.path.join(self._top, overwrite.folder).rstrip("/")}
        for folder in folders:
            for path in list(storage.below(folder)):
                if path not in kept and not os.path.basename(path).startswith("."):
                    storage.remove(path)

    # -- partitions --------------------------------------------------------------------------------

    def _begun(self, parts: Sequence[PartFile]) -> list[PendingPartition]:
        folders = dict.fromkeys(os.path.dirname(part.final) for part in parts)
        now_ms = self._now_ms()
        return [
            PendingPartition(folder, named_folders(folder[len(self._top) :].split("/")), now_ms)
            for folder in folders
        ]

    def _complete(
        self, rule: PartitionCommit, pending: Sequence[PendingPartition], written: Sequence[Written]
    ) -> list[PendingPartition]:
        writers = max((each.writers for each in written), default=len(self._watermarks))
        known = [each for each in self._watermarks.values() if each is not None]
        watermark_ms = min(known) if known and len(known) >= writers else None
        has_ended = watermark_ms == _END_OF_TIME
        now_ms = self._now_ms()
        left = []
        for partition in pending:
            if has_ended or rule.is_due(partition, now_ms, watermark_ms):
                storage = storage_of(self._store)
                storage.create(os.path.join(partition.folder, rule.success_file)).close()
            else:
                left.append(partition)
        return left

    def close(self) -> None:
        self._parts.close()
