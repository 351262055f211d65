"""A source that gives a few records for each checkpoint: so a failure falls between two checkpoints without waiting for a clock."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.readers import UNTIL_WOKEN, NothingYet, SequentialReader, SplitReader
from flinkpy.connectors.source_api.source import Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator, SplitEnumeratorContext
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.testing.connectors.kept_sink import KitFailure


@dataclass(frozen=True)
class PacedSplit:
    """The records from ``next`` on, every ``step``-th."""

    split_id: str
    next: int
    step: int


class FailsOnce:
    """Lets a job fail, once in this process, when its readers have given so many records: when one is asked for more, or in a checkpoint. A reader
    is in the checkpoint when sinks have written out what it gave, and no checkpoint has that yet."""

    _left: ClassVar[dict[str, int]] = {}
    _failed: ClassVar[set[str]] = set()

    def __init__(self, behind: int, *, in_checkpoint: bool) -> None:
        self._id, self._in_checkpoint = uuid.uuid4().hex, in_checkpoint
        self._left[self._id] = behind

    def gave(self, count: int) -> None:
        self._left[self._id] -= count

    def asked_for_more(self) -> None:
        if not self._in_checkpoint:
            self._fail_if_it_is_time()

    def in_checkpoint(self) -> None:
        if self._in_checkpoint:
            self._fail_if_it_is_time()

    def _fail_if_it_is_time(self) -> None:
        if self._left[self._id] <= 0 and not self.has_failed:
            self._failed.add(self._id)
            raise KitFailure("the kit lets the job fail here, once")

    @property
    def has_failed(self) -> bool:
        return self._id in self._failed


class PacedSource(Source[PacedSplit]):
    """``records`` with event times; a reader gives ``pace`` of them, and then waits for a checkpoint to be complete. Cut into ``splits``."""

    def __init__(self, records: list[tuple[Any, int]], pace: int = 10, splits: int = 4, failing: FailsOnce | None = None) -> None:
        self.records, self.pace, self.splits, self.failing = records, pace, splits, failing

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext[PacedSplit], checkpoint: Any = None) -> SplitEnumerator[PacedSplit]:
        return SplitQueue(context, lambda parallelism: [PacedSplit(str(n), n, self.splits) for n in range(self.splits)], checkpoint)

    def create_reader(self, context: ReaderContext) -> SourceReader[PacedSplit]:
        return PacedReader(context, self.records, self.pace, self.failing)


class PacedReader(SequentialReader[PacedSplit]):
    def __init__(self, context: ReaderContext, records: list[tuple[Any, int]], pace: int, failing: FailsOnce | None) -> None:
        super().__init__(context, lambda split: _SplitReader(split, self))
        self.context, self.records, self.pace, self.left = context, records, pace, pace
        self.failing = failing
        self._in_no_checkpoint = 0

    def gave(self, count: int) -> None:
        self.left -= count
        self._in_no_checkpoint += count
        if self.failing is not None:
            self.failing.gave(count)

    def snapshot_state(self, checkpoint_id: int) -> list[PacedSplit]:
        if self.failing is not None and self._in_no_checkpoint:
            self.failing.in_checkpoint()
        self._in_no_checkpoint = 0
        return super().snapshot_state(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_complete(checkpoint_id)
        self.left = self.pace
        self.context.wake_up()


class _SplitReader(SplitReader[PacedSplit]):
    def __init__(self, split: PacedSplit, reader: PacedReader) -> None:
        self._split, self._reader = split, reader

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        reader, split = self._reader, self._split
        if reader.failing is not None:
            reader.failing.asked_for_more()
        if split.next >= len(reader.records):
            return None
        if not reader.left:
            return UNTIL_WOKEN
        positions = range(split.next, len(reader.records), split.step)[: min(limit, reader.left)]
        reader.gave(len(positions))
        self._split = replace(split, next=positions[-1] + split.step)
        return RowBatch([reader.records[at][0] for at in positions], [reader.records[at][1] for at in positions])

    def snapshot(self) -> PacedSplit:
        return self._split
