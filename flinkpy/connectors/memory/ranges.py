"""Sources whose records have indices: a number sequence, a collection, an Arrow table. Their splits
are ranges of indices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from flinkpy.connectors.memory.pieces import Pieces, opened, pieces_of
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
from flinkpy.core.errors import ProgramError

COMPARED_ROWS = 1000  # how many rows tell two tables of one job apart


@dataclass(frozen=True)
class RangeSplit:
    """The indices from ``start`` up to but not including ``end``; ``start`` advances as they are
    read."""

    split_id: str
    start: int
    end: int


def cut(start: int, end: int, pieces: int) -> list[RangeSplit]:
    """Cuts the range into ``pieces`` ranges of nearly equal length, in order, without empty ones.

    >>> [(split.start, split.end) for split in cut(0, 10, 3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    bounds = [start + (end - start) * index // pieces for index in range(pieces + 1)]
    return [RangeSplit(f"{low}-{high}", low, high) for low, high in pairwise(bounds) if low < high]


class RangeReader(SplitReader[RangeSplit]):
    """Reads a range in slices: ``slice_of(start, end)`` returns the batch for those indices."""

    def __init__(self, split: RangeSplit, slice_of: Callable[[int, int], Batch]) -> None:
        self._split = split
        self._next = split.start
        self._last = split.start
        self._slice_of = slice_of

    def next_batch(self, limit: int) -> Batch | None:
        start = self._next
        if start >= self._split.end:
            return None
        self._last, self._next = start, min(start + limit, self._split.end)
        return self._slice_of(start, self._next)

    def snapshot(self) -> RangeSplit:
        return replace(self._split, start=self._next)

    def position(self) -> str:
        return f"index {self._last}"


class RangeSource(Source[RangeSplit]):
    """Indices from ``start`` up to but not including ``end``, cut into one range per reader;
    subclasses turn indices into records."""

    has_timestamps = False
    interleaves_splits = False

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[RangeSplit], checkpoint: Any = None
    ) -> SplitEnumerator[RangeSplit]:
        start, end = self._start, self._end
        return SplitQueue(context, lambda parallelism: cut(start, end, parallelism), checkpoint)

    def create_reader(self, context: ReaderContext) -> SourceReader[RangeSplit]:
        slice_of = self.slicer()
        return SequentialReader(context, lambda split: RangeReader(split, slice_of))

    def slicer(self) -> Callable[[int, int], Batch]:
        """Called in the task: a function that returns the batch for the indices from ``start`` up
        to ``end``."""
        return lambda start, end: RowBatch(list(range(start, end)))

    def without_data(self) -> Source[RangeSplit]:
        return RangeSource(self._start, self._end)

    def __len__(self) -> int:
        return self._end - self._start

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._start}..{self._end - 1})"


class NumberSequenceSource(RangeSource):
    """Emits the integers from ``start`` to ``end``, both included, in order within each reader.
    Raises ProgramError if they are not integers or go down.

    >>> NumberSequenceSource(1, 1000)
    NumberSequenceSource(1..1000)
    """

    def __init__(self, start: int, end: int) -> None:
        for number in (start, end):
            if type(number) is bool or not hasattr(number, "__index__"):
                raise ProgramError(
                    f"a number sequence is from one whole number to another, this is {number!r:.80}"
                )
        if start > end:
            raise ProgramError(
                f"a number sequence goes up: start {start} is greater than end {end}"
            )
        super().__init__(operator.index(start), operator.index(end) + 1)


class InMemorySource(RangeSource):
    """Reads records in the program's memory by their indices."""

    batch_rows: int | None = None  # a fixed length of batches, whatever the task asks for

    def __init__(self, pieces: Pieces) -> None:
        super().__init__(0, len(pieces))
        self.pieces = pieces

    def create_enumerator(
        self, context: SplitEnumeratorContext[RangeSplit], checkpoint: Any = None
    ) -> SplitEnumerator[RangeSplit]:
        return _QueueOfPieces(
            context,
            lambda parallelism: cut(self._start, self._end, parallelism),
            checkpoint,
            self.pieces,
        )

    def create_reader(self, context: ReaderContext) -> SourceReader[RangeSplit]:
        return SequentialReader(context, lambda split: PieceReader(split, self, context.wake_up))

    def batch_of(self, piece: Any, start: int, end: int) -> Batch:
        """The records of the piece from ``start`` up to ``end``."""
        return RowBatch(piece[start:end])

    def told_apart_by(self) -> Any:
        """The number of records, and the first of them."""
        first = opened(self.pieces.fetch(0, lambda: None).result()) if len(self.pieces) else []
        return len(self.pieces), first if isinstance(first, list) else (
            str(first.schema),
            first.slice(0, COMPARED_ROWS).to_pylist(),
        )

    def without_data(self) -> Source[RangeSplit]:
        return self  # its data travels separately


class _QueueOfPieces(SplitQueue[RangeSplit]):
    """Keeps the pieces alive as long as it exists."""

    def __init__(
        self,
        context: SplitEnumeratorContext[RangeSplit],
        discover: Callable[[int], Iterable[RangeSplit]],
        checkpoint: Any,
        pieces: Pieces,
    ) -> None:
        super().__init__(context, discover, checkpoint)
        self._pieces, self._began = pieces, False

    def start(self) -> None:
        self._pieces.job_started()
        self._began = True
        super().start()

    def close(self) -> None:
        if self._began:
            self._pieces.job_ended()


class PieceReader(SplitReader[RangeSplit]):
    """Reads a range piece by piece, each as soon as it is here."""

    def __init__(
        self, split: RangeSplit, source: InMemorySource, wake_up: Callable[[], None]
    ) -> None:
        self._split = split
        self._next = split.start
        self._last = split.start
        self._pieces = source.pieces
        self._batch_of = source.batch_of
        self._rows = source.batch_rows
        self._wake_up = wake_up
        self._begin = self._end = split.start  # of the current piece
        self._fetched: Future[Any] | None = None
        self._piece: Any = None

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        start = self._next
        if start >= self._split.end:
            return None
        if self._fetched is None or start >= self._end:
            number, self._begin, self._end = self._pieces.span(start)
            self._fetched, self._piece = self._pieces.fetch(number, self._wake_up), None
        if self._piece is None:
            if not self._fetched.done():
                return UNTIL_WOKEN
            self._piece = opened(self._fetched.result())
        self._last = start
        self._next = min(start + (self._rows or limit), self._split.end, self._end)
        return self._batch_of(self._piece, start - self._begin, self._next - self._begin)

    def snapshot(self) -> RangeSplit:
        return replace(self._split, start=self._next)

    def position(self) -> str:
        return f"index {self._last}"

    def close(self) -> None:
        self._piece = None


class CollectionSource(InMemorySource):
    """Emits the values of a collection, in order at parallelism 1; with more readers each gets a
    contiguous part, in order.

    An iterator is read to its end when the program is built. The values are those of that moment,
    even if they are changed later. Raises ProgramError for values that could be changed and cannot
    be pickled."""

    def __init__(self, values: Iterable[Any]) -> None:
        super().__init__(pieces_of(list(values)))
