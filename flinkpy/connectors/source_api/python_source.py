"""A source in ten lines of Python: say what the splits are, and how to iterate over one from a position.

::

    class Sensors(PythonSource):
        bounded = False
        blocking = True                          # waits for its device: give it a thread

        def splits(self, parallelism):
            return ["sensor-1", "sensor-2"]

        def read(self, split, position):         # position: how many records of this split were read before, 0 at first
            with connect(split) as device:
                device.skip(position)
                yield from device.readings()

    env.from_source(Sensors(), WatermarkStrategy.no_watermarks(), "sensors")

If a count of records is not enough to resume from, set ``positioned = True`` and yield ``(value, position)`` pairs.
The position (any object that can be pickled; None at first) is passed to ``read`` when the split is read again from
after that value.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from flinkpy.connectors.source_api.enumerators import SplitQueue, SplitShares
from flinkpy.connectors.source_api.readers import SequentialReader, SideBySideReader, SplitReader, ThreadedSplitReader
from flinkpy.connectors.source_api.source import Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator, SplitEnumeratorContext
from flinkpy.core.elements import Batch, RowBatch


@dataclass(frozen=True)
class PythonSplit:
    """One of the user's splits, and the position up to which it was read."""

    split_id: str
    value: Any
    position: Any


class PythonSource(Source[PythonSplit]):
    """Base class of sources written as plain Python iteration; see the module's example.

    ``bounded``: whether the splits end. Splits that end are read one after the other, by whichever subtask is free.
    Splits without end are assigned at the start, and a subtask reads all of its splits concurrently. ``blocking``:
    whether iterating may wait (for a device, a server); such a split is read on a thread of its own. ``positioned``:
    whether ``read`` yields ``(value, position)`` pairs.
    """

    bounded: bool = True
    blocking: bool = False
    positioned: bool = False
    has_timestamps = False

    def splits(self, parallelism: int) -> Iterable[Any]:
        """Called in the JobMaster: the splits, which can be read independently of each other; any values that can be
        pickled. By default there is one split."""
        return [None]

    @abstractmethod
    def read(self, split: Any, position: Any) -> Iterable[Any]:
        """Called in the task: the records of the split from ``position`` on."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext[PythonSplit], checkpoint: Any = None) -> SplitEnumerator[PythonSplit]:
        return (SplitQueue if self.bounded else SplitShares)(context, self._discover, checkpoint)

    def _discover(self, parallelism: int) -> Iterator[PythonSplit]:
        first = None if self.positioned else 0
        for index, value in enumerate(self.splits(parallelism)):
            yield PythonSplit(str(index), value, first)

    def create_reader(self, context: ReaderContext) -> SourceReader[PythonSplit]:
        def open_split(split: PythonSplit) -> SplitReader[PythonSplit]:
            return _IteratorReader(self, split)

        def open_on_thread(split: PythonSplit) -> SplitReader[PythonSplit]:
            # One record at a time, because the next may take long. The reader's queue joins records that accumulate.
            return ThreadedSplitReader(split, open_split, 1, context.wake_up, f"{type(self).__name__} {split.value}"[:60])

        return (SequentialReader if self.bounded else SideBySideReader)(context, open_on_thread if self.blocking else open_split)


class _IteratorReader(SplitReader[PythonSplit]):
    """Takes records from the user's iterator."""

    def __init__(self, source: PythonSource, split: PythonSplit) -> None:
        self._split, self._position = split, split.position
        self._positioned = source.positioned
        self._records = iter(source.read(split.value, split.position))
        self._first = split.position

    def next_batch(self, limit: int) -> Batch | None:
        values = list(islice(self._records, limit))
        if not values:
            return None
        self._first = self._position
        if self._positioned:
            self._position = values[-1][1]
            values = [value for value, _ in values]
        else:
            self._position += len(values)
        return RowBatch(values)

    def snapshot(self) -> PythonSplit:
        return replace(self._split, position=self._position)

    def position(self) -> str:
        name = f"split {self._split.split_id}" if self._split.value is None else f"split {self._split.value!r:.80}"
        return f"{name}, position {self._first!r:.80}"

    def close(self) -> None:
        close = getattr(self._records, "close", None)
        if close is not None:
            close()
