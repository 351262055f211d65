"""A source that gives a few records for each checkpoint: so a failure falls between two checkpoints without waiting for a clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.readers import UNTIL_WOKEN, NothingYet, SequentialReader, SplitReader
from flinkpy.connectors.source_api.source import Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator, SplitEnumeratorContext
from flinkpy.core.elements import Batch, RowBatch


@dataclass(frozen=True)
class PacedSplit:
    """The records from ``next`` on, every ``step``-th."""

    split_id: str
    next: int
    step: int


class PacedSource(Source[PacedSplit]):
    """``records`` with event times; a reader gives ``pace`` of them, and then waits for a checkpoint to be complete. Cut into ``splits``."""

    def __init__(self, records: list[tuple[Any, int]], pace: int = 10, splits: int = 4) -> None:
        self.records, self.pace, self.splits = records, pace, splits

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext[PacedSplit], checkpoint: Any = None) -> SplitEnumerator[PacedSplit]:
        return SplitQueue(context, lambda parallelism: [PacedSplit(str(n), n, self.splits) for n in range(self.splits)], checkpoint)

    def create_reader(self, context: ReaderContext) -> SourceReader[PacedSplit]:
        return PacedReader(context, self.records, self.pace)


class PacedReader(SequentialReader[PacedSplit]):
    def __init__(self, context: ReaderContext, records: list[tuple[Any, int]], pace: int) -> None:
        super().__init__(context, lambda split: _SplitReader(split, self))
        self.context, self.records, self.pace, self.left = context, records, pace, pace

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_complete(checkpoint_id)
        self.left = self.pace
        self.context.wake_up()


class _SplitReader(SplitReader[PacedSplit]):
    def __init__(self, split: PacedSplit, reader: PacedReader) -> None:
        self._split, self._reader = split, reader

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        reader, split = self._reader, self._split
        if split.next >= len(reader.records):
            return None
        if not reader.left:
            return UNTIL_WOKEN
        positions = range(split.next, len(reader.records), split.step)[: min(limit, reader.left)]
        reader.left -= len(positions)
        self._split = replace(split, next=positions[-1] + split.step)
        return RowBatch([reader.records[at][0] for at in positions], [reader.records[at][1] for at in positions])

    def snapshot(self) -> PacedSplit:
        return self._split
