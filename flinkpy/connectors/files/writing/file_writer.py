"""The part files of one subtask: records go to the open part of their bucket, parts end and wait
for their commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flinkpy.connectors.files.writing.buckets import BucketAssigner
from flinkpy.connectors.files.writing.compaction import (
    FileCompactor,
    FileCompactStrategy,
    compacted,
)
from flinkpy.connectors.files.writing.file_formats import FileFormat
from flinkpy.connectors.files.writing.part_names import PartFile, PartNames
from flinkpy.connectors.files.writing.part_storage import PartStorage
from flinkpy.connectors.files.writing.part_writer import PartWriter
from flinkpy.connectors.files.writing.rolling import NEVER_BEFORE_THE_END, OpenPart, RollingPolicy
from flinkpy.core.elements import Batch
from flinkpy.operators.context import ProcessingTimeService, TimerHandle
from flinkpy.operators.sinks.sink_port import SinkWriter


@dataclass(frozen=True)
class FileWriterState:
    """Which checkpoint this is, and the parts that wait to be put together, for how many
    checkpoints by now."""

    checkpoint_id: int
    waiting: tuple[PartFile, ...] = ()
    waited: int = 0

    @staticmethod
    def of_all(states: Sequence[FileWriterState]) -> FileWriterState | None:
        """One of several, of subtasks that were; None of none."""
        if not states:
            return None
        return FileWriterState(
            checkpoint_id=max(state.checkpoint_id for state in states),
            waiting=tuple(part for state in states for part in state.waiting),
            waited=max(state.waited for state in states),
        )


@dataclass
class _Bucket:
    """The parts of one folder since the last checkpoint: the one being written, and those that are
    whole."""

    number: int
    part: PartWriter | None = None
    names: PartFile = field(default_factory=lambda: PartFile("", ""))
    opened_ms: int = 0
    written_ms: int = 0
    whole: list[PartFile] = field(default_factory=list)

    def end_part(self) -> None:
        part, self.part = self.part, None
        if part is not None:
            part.close()
            self.whole.append(self.names)


@dataclass(frozen=True)
class PartFileConfig:
    """What the user chose for the part files: their format, which bucket a record goes to, when a
    part is rolled and how often that is looked at, and how parts are compacted (None: not)."""

    format: FileFormat
    assigner: BucketAssigner
    rolling: RollingPolicy
    check_interval_ms: int
    compact: tuple[FileCompactStrategy, FileCompactor] | None = None


class FileWriter(SinkWriter):
    """The parts of one subtask, each begun with its first record. ``synced``: they are on disk
    before a checkpoint is."""

    def __init__(
        self,
        config: PartFileConfig,
        storage: PartStorage,
        names: PartNames,
        timers: ProcessingTimeService,
        *,
        synced: bool,
        state: FileWriterState | None = None,
    ) -> None:
        self._format = config.format
        self._storage = storage
        self._assigner = config.assigner
        self._rolling = config.rolling
        self._compact = config.compact
        self._names = names
        self._timers = timers
        self._interval_s = config.check_interval_ms / 1000
        self._synced = synced
        self._buckets: dict[str, _Bucket] = {}
        # of a bucket's parts behind a checkpoint: no earlier part of any bucket has it
        self._first_number = 0
        self._timer: TimerHandle | None = None
        self._waiting = [] if state is None else list(state.waiting)
        self._waited = 0 if state is None else state.waited
        self._ended = False
        if state is not None:
            names.checkpoint_id = state.checkpoint_id

    def write_batch(self, batch: Batch) -> None:
        now = self._timers.now_ms()
        for bucket, share in self._assigner.shares_of(batch, now):
            self._write(bucket, share, now)

    def _write(self, name: str, batch: Batch, now: int) -> None:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket(self._first_number)
        if bucket.part is None:
            bucket.names = self._names.part(name, bucket.number)
            bucket.part = self._format.open(self._storage.create(bucket.names.hidden))
            bucket.opened_ms = now
            bucket.number += 1
        bucket.part.write(batch)
        bucket.written_ms = now
        self._roll(bucket, now)
        if self._timer is None and self._rolling is not NEVER_BEFORE_THE_END:
            self._timer = self._timers.call_later(self._interval_s, self._check)

    def _roll(self, bucket: _Bucket, now: int) -> None:
        if bucket.part is None:
            return
        size, largest = bucket.part.size, self._storage.largest_part
        if (largest is not None and size >= largest) or self._rolling.should_roll(
            OpenPart(size, bucket.opened_ms, bucket.written_ms), now
        ):
            bucket.end_part()

    def _check(self) -> None:
        """Parts may be too old while no record comes."""
        self._timer = self._timers.call_later(self._interval_s, self._check)
        for bucket in self._buckets.values():
            self._roll(bucket, self._timers.now_ms())

    def flush(self) -> None:
        for bucket in self._buckets.values():
            if bucket.part is not None:
                bucket.part.flush()

    def finish(self) -> None:
        self._ended = True

    def prepare_commit(self) -> Sequence[PartFile]:
        """The parts since the last time, whole; or what they and those that waited were put
        together to."""
        parts: list[PartFile] = []
        for bucket in self._buckets.values():
            bucket.end_part()
            parts += bucket.whole
            self._first_number = max(self._first_number, bucket.number)
        self._buckets.clear()
        self._sync(parts)
        if self._compact is None:
            return parts
        self._waiting += parts
        self._waited += 1
        if self._waited < self._compact[0].checkpoints and not self._ended:
            return ()
        waiting, self._waiting, self._waited = self._waiting, [], 0
        joined = compacted(waiting, self._names, self._storage, *self._compact)
        self._sync(joined)
        return joined

    def _sync(self, parts: Sequence[PartFile]) -> None:
        if self._synced and parts:
            for part in parts:
                self._storage.sync(part.hidden)
            self._storage.sync_names([part.hidden for part in parts], self._names.folder)

    def snapshot_state(self, checkpoint_id: int) -> Sequence[FileWriterState]:
        self._names.checkpoint_id = checkpoint_id
        return [FileWriterState(checkpoint_id, tuple(self._waiting), self._waited)]

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for bucket in self._buckets.values():
            part, bucket.part = bucket.part, None
            if part is not None:
                part.abandon()
