"""A source that gives a few records for each checkpoint: so a failure falls between two checkpoints
without waiting for a clock."""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.readers import (
    UNTIL_WOKEN,
    NothingYet,
    SequentialReader,
    SplitReader,
)
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.testing.connectors.kept_sink import KitFailure


@dataclass(frozen=True)
class PacedSplit:
    """The records from ``next`` on, every ``step``-th."""

    split_id: str
    next: int
    step: int


class _Progress:
    """What the readers of one source have done, in this process."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.given = self.readers = 0
        self.has_failed = False

    def add(self, *, given: int = 0, readers: int = 0) -> None:
        with self.changed:
            self.given += given
            self.readers += readers
            self.changed.notify_all()

    def fail(self) -> None:
        self.has_failed = True
        raise KitFailure("the kit lets the job fail here, once")


_here: weakref.WeakValueDictionary[str, _Progress] = weakref.WeakValueDictionary()


class PacedSource(Source[PacedSplit]):
    """``records`` with event times; a reader gives ``pace`` of them, and then waits for a
    checkpoint to be complete. Cut into ``splits``.

    With ``fail_behind`` the job fails, once in this process, when its readers have given so many
    records: when one is asked for more, or with ``in_checkpoint``, while a checkpoint is taken that
    would be the first to have some of them. Sinks have written these out by then."""

    def __init__(
        self,
        records: list[tuple[Any, int]],
        pace: int = 10,
        splits: int = 4,
        fail_behind: int | None = None,
        *,
        in_checkpoint: bool = False,
    ) -> None:
        self.records = records
        self.pace = pace
        self.splits = splits
        self.fail_behind, self.in_checkpoint = fail_behind, in_checkpoint
        self._id = uuid.uuid4().hex
        self._progress = _here[self._id] = _Progress()

    @property
    def given(self) -> int:
        """How many records the readers have given, counting those that were given again."""
        return self._progress.given

    @property
    def readers(self) -> int:
        """How many readers were made: one for each subtask and attempt."""
        return self._progress.readers

    @property
    def has_failed(self) -> bool:
        return self._progress.has_failed

    def wait_until(self, holds: Callable[[], bool], patience_s: float) -> bool:
        """Waits until that holds; False if it does not in this time."""
        with self._progress.changed:
            return self._progress.changed.wait_for(holds, patience_s)

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[PacedSplit], checkpoint: Any = None
    ) -> SplitEnumerator[PacedSplit]:
        return SplitQueue(
            context,
            lambda parallelism: [PacedSplit(str(n), n, self.splits) for n in range(self.splits)],
            checkpoint,
        )

    def create_reader(self, context: ReaderContext) -> SourceReader[PacedSplit]:
        # one of its own where the source was not made in this process
        return PacedReader(self, context, _here.get(self._id) or _Progress())

    def told_apart_by(self) -> Any:
        return self.records, self.pace, self.splits

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_progress"}


class PacedReader(SequentialReader[PacedSplit]):
    def __init__(self, source: PacedSource, context: ReaderContext, progress: _Progress) -> None:
        super().__init__(context, lambda split: _SplitReader(split, self))
        self.source = source
        self.context = context
        self.left = source.pace
        self._progress = progress
        self._in_no_checkpoint = 0
        progress.add(readers=1)

    def gave(self, count: int) -> None:
        self.left -= count
        self._in_no_checkpoint += count
        self._progress.add(given=count)

    def fail_if_it_is_time(self, *, in_checkpoint: bool) -> None:
        behind, progress = self.source.fail_behind, self._progress
        is_here = self.source.in_checkpoint is in_checkpoint
        if is_here and behind is not None and progress.given >= behind and not progress.has_failed:
            progress.fail()

    def snapshot_state(self, checkpoint_id: int) -> list[PacedSplit]:
        if self._in_no_checkpoint:
            self.fail_if_it_is_time(in_checkpoint=True)
        self._in_no_checkpoint = 0
        return super().snapshot_state(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_complete(checkpoint_id)
        self.left = self.source.pace
        self.context.wake_up()


class _SplitReader(SplitReader[PacedSplit]):
    def __init__(self, split: PacedSplit, reader: PacedReader) -> None:
        self._split, self._reader = split, reader

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        reader, split = self._reader, self._split
        records = reader.source.records
        reader.fail_if_it_is_time(in_checkpoint=False)
        if split.next >= len(records):
            return None
        if not reader.left:
            return UNTIL_WOKEN
        positions = range(split.next, len(records), split.step)[: min(limit, reader.left)]
        reader.gave(len(positions))
        self._split = replace(split, next=positions[-1] + split.step)
        return RowBatch([records[at][0] for at in positions], [records[at][1] for at in positions])

    def snapshot(self) -> PacedSplit:
        return self._split
