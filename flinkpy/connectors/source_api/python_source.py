"""A source in ten lines of Python: say what the splits are, and how to iterate over one from a
position.

::

    class Sensors(PythonSource):
        bounded = False
        blocking = True  # waits for its device: give it a thread

        def splits(self, parallelism):
            return ["sensor-1", "sensor-2"]

        def read(
            self, split, position
        ):  # position: how many records of this split were read before, 0 at first
            with connect(split) as device:
                device.skip(position)
                yield from device.readings()


    env.from_source(Sensors(), WatermarkStrategy.no_watermarks(), "sensors")

If a count of records is not enough to resume from, set ``positioned = True`` and yield ``(value,
position)`` pairs. The position (any object that can be pickled; None at first) is passed to
``read`` when the split is read again from after that value. With ``has_timestamps = True`` a record
comes with its event time in milliseconds: ``(value, time)``, or ``(value, time, position)``. With
``columnar = True`` each value is a batch of columns, a ``pyarrow.RecordBatch`` or ``Table``, and
its time an array of as many numbers::

    class Pages(PythonSource):
        columnar = positioned = True

        def read(self, split, position):
            page = client.page(position or "first")
            while page is not None:
                yield page.to_arrow(), page.next_token
                page = client.page(page.next_token)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from flinkpy.connectors.source_api.enumerators import SplitDiscovery, SplitQueue, SplitShares
from flinkpy.connectors.source_api.readers import (
    SequentialReader,
    SideBySideReader,
    SplitReader,
    ThreadedSplitReader,
)
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.codegen.idle_results import refuse_idle_records
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.users_values import bounded_repr, several
from flinkpy.operators.event_time.valid_times import are_times, milliseconds


@dataclass(frozen=True)
class PythonSplit:
    """One of the user's splits, and the position up to which it was read."""

    split_id: str
    value: Any
    position: Any


class PythonSource(Source[PythonSplit]):
    """Base class of sources written as plain Python iteration; see the module's example.

    ``bounded``: whether the splits end. Splits that end are read one after the other, by whichever
    subtask is free. Splits without end are assigned at the start, and a subtask reads all of its
    splits concurrently; with ``discovery_interval_s`` ``splits`` is asked again every so many
    seconds, and new ones are read too. ``blocking``: whether iterating may wait (for a device, a
    server); such a split is read on a thread of its own. ``positioned``: whether ``read`` yields
    positions. ``has_timestamps``: whether it yields event times. ``columnar``: whether it yields
    batches of columns; ``schema`` is theirs, if it is known, so that mistakes in names are found
    early. Batches are brought to it: columns are taken by name and cast exactly."""

    bounded: bool = True
    blocking: bool = False
    positioned: bool = False
    columnar: bool = False
    schema: Any = None
    discovery_interval_s: float | None = None
    has_timestamps: bool = False
    gives_valid_times = True  # what ``read`` yields is checked below

    def splits(self, parallelism: int) -> Iterable[Any]:
        """Called in the JobMaster: the splits, which can be read independently of each other; any
        values that can be pickled. By default there is one split."""
        return [None]

    @abstractmethod
    def read(self, split: Any, position: Any) -> Iterable[Any]:
        """Called in the task: the records of the split from ``position`` on."""

    def split_id(self, split: Any) -> str:
        """With ``discovery_interval_s``: what distinguishes this split from others, each time
        ``splits`` gives it. By default its text."""
        if (
            vars(object)["__repr__"] is type(split).__repr__
            and vars(object)["__str__"] is type(split).__str__
        ):
            raise TypeError(
                f"{bounded_repr(split, 60)} has no text that tells it from other splits: "
                "define split_id(self, split) in "
                f"{type(self).__name__}, or give splits as text"
            )
        return str(split)

    def interrupt(self, split: Any) -> None:
        """Called in another thread when the task ends: makes a ``read`` of this split return or
        raise, say by closing its connection. It may be waiting, or just about to begin. By default
        its thread goes on waiting, and ends with the process."""

    def acknowledge(self, split: Any, position: Any) -> None:
        """Called in the task's thread when a checkpoint is complete: of this split nothing up to
        ``position`` comes again, so a server may forget it. With ``blocking``, ``read`` may be
        waiting in another thread meanwhile. It must return soon."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def is_columnar(self) -> bool:
        return self.columnar

    def create_enumerator(
        self, context: SplitEnumeratorContext[PythonSplit], checkpoint: Any = None
    ) -> SplitEnumerator[PythonSplit]:
        if self.bounded:
            return SplitQueue(context, self._discover, checkpoint)
        if self.discovery_interval_s is not None:
            return SplitDiscovery(context, self._discover, self.discovery_interval_s, checkpoint)
        return SplitShares(context, self._discover, checkpoint)

    def _discover(self, parallelism: int) -> Iterator[PythonSplit]:
        first = None if self.positioned else 0
        by_name = not self.bounded and self.discovery_interval_s is not None
        for index, value in enumerate(
            several(self.splits(parallelism), f"{type(self).__name__}.splits()", "splits")
        ):
            yield PythonSplit(self.split_id(value) if by_name else str(index), value, first)

    def create_reader(self, context: ReaderContext) -> SourceReader[PythonSplit]:
        def open_split(split: PythonSplit) -> SplitReader[PythonSplit]:
            return _BatchIterator(self, split) if self.columnar else _IteratorReader(self, split)

        def open_on_thread(split: PythonSplit) -> SplitReader[PythonSplit]:
            # One record at a time, because the next may take long. The reader's queue joins records
            # that accumulate.
            return ThreadedSplitReader(
                split, open_split, 1, context.wake_up, f"{type(self).__name__} {split.value}"[:60]
            )

        opened = open_on_thread if self.blocking else open_split
        if self.bounded:
            return SequentialReader(context, opened, self._acknowledge_all)
        return SideBySideReader(context, opened, self._acknowledge_all, awaits_all=True)

    def _acknowledge_all(self, splits: list[PythonSplit]) -> None:
        for split in splits:
            self.acknowledge(split.value, split.position)


class _IteratorReader(SplitReader[PythonSplit]):
    """Takes records from the user's iterator."""

    def __init__(self, source: PythonSource, split: PythonSplit) -> None:
        self._source = source
        self._split = split
        self._position = split.position
        self._call = f"{type(source).__name__}.read()"
        self._positioned, self._stamped = source.positioned, source.has_timestamps
        self._records = iter(
            several(source.read(split.value, split.position), self._call, "records")
        )
        self._first = split.position

    def next_batch(self, limit: int) -> Batch | None:
        found = list(islice(self._records, limit))
        if not found:
            return None
        self._first = self._position
        values, times, position = self._parts(found)
        refuse_idle_records(values, self._source.read)
        self._position = position if self._positioned else self._position + len(values)
        return RowBatch(values, None if times is None else self._milliseconds(values, times))

    def _milliseconds(self, values: list[Any], times: list[Any]) -> list[int]:
        if are_times(times):
            return times
        found = []
        for value, time in zip(values, times):
            try:
                found.append(milliseconds(time, self._call))
            except (TypeError, ValueError) as error:
                # which the error of the job shows
                error.record_at_fault = value  # type: ignore[union-attr]
                raise
        return found

    def _parts(self, found: list[Any]) -> tuple[list[Any], list[int] | None, Any]:
        """The records, their event times, and the position behind the last."""
        try:
            if self._positioned and self._stamped:
                return (
                    [value for value, _, _ in found],
                    [time for _, time, _ in found],
                    found[-1][2],
                )
            if self._positioned:
                return [value for value, _ in found], None, found[-1][1]
            if self._stamped:
                return [value for value, _ in found], [time for _, time in found], None
        except (TypeError, ValueError, LookupError):
            raise self._wrong(found[0]) from None
        return found, None, None

    def _wrong(self, found: Any) -> TypeError:
        what = "a batch" if self._source.columnar else "a record"
        parts = [
            what,
            *(["its event time"] if self._stamped else []),
            *(["the position behind it"] if self._positioned else []),
        ]
        flags = [
            name
            for name, is_set in (
                ("has_timestamps", self._stamped),
                ("positioned", self._positioned),
            )
            if is_set
        ]
        shape = (
            "pairs of " + " and ".join(parts)
            if len(parts) == 2
            else f"triples of {', '.join(parts[:2])} and {parts[2]}"
        )
        return TypeError(
            f"{self._call} gives {bounded_repr(found, 60)}; as {' and '.join(flags)} "
            f"{'is' if len(flags) == 1 else 'are'} True, "
            f"it gives {shape}"
        )

    def snapshot(self) -> PythonSplit:
        return replace(self._split, position=self._position)

    def position(self) -> str:
        name = (
            f"split {self._split.split_id}"
            if self._split.value is None
            else f"split {self._split.value!r:.80}"
        )
        return (
            f"{name}, its beginning"
            if self._first is None
            else f"{name}, position {self._first!r:.80}"
        )

    def interrupt(self) -> None:
        self._source.interrupt(self._split.value)

    def close(self) -> None:
        close = getattr(self._records, "close", None)
        if close is not None:
            close()


class _BatchIterator(_IteratorReader):
    """The same where each value is a batch of columns: those of the source's schema, if it says
    one."""

    def __init__(self, source: PythonSource, split: PythonSplit) -> None:
        from flinkpy.columns.values.conversion import without_views

        super().__init__(source, split)
        self._schema = (
            None if source.schema is None else without_views(source.schema.empty_table()).schema
        )

    def next_batch(self, limit: int) -> Batch | None:
        found = next(self._records, None)
        if found is None:
            return None
        self._first = self._position
        (data, *_), times, position = self._parts([found])
        batch = self._columns(data, None if times is None else times[0])
        self._position = position if self._positioned else self._position + len(batch)
        return batch

    def _columns(self, data: Any, times: Any) -> ColumnBatch:
        import numpy as np
        import pyarrow as pa

        from flinkpy.columns.values.conversion import conformed, without_views

        if isinstance(data, pa.Table):
            batches = data.combine_chunks().to_batches()
            data = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=data.schema)
        if not isinstance(data, pa.RecordBatch):
            given = (
                f"a {type(data).__name__}" if hasattr(data, "columns") else bounded_repr(data, 60)
            )
            raise TypeError(
                f"{self._call} gives {given}; as columnar is True, it gives a "
                "pyarrow.RecordBatch or Table each time"
            )
        data = without_views(data)
        if self._schema is not None and not data.schema.equals(self._schema):
            try:
                data = conformed(data, self._schema)
            except pa.ArrowInvalid as error:
                raise TypeError(
                    f"{self._call} gives columns that are not those of its schema ({error}); "
                    "there are "
                    f"{', '.join(data.schema.names) or 'none'}"
                ) from None
        if times is None:
            return ColumnBatch(data)
        moments: Any = np.asarray(times)
        if moments.size and moments.dtype.kind not in "iu":
            raise TypeError(
                f"{self._call} gives event times of type {moments.dtype}; they must be whole "
                "numbers of milliseconds"
            )
        for extreme in (moments.min(), moments.max()) if moments.size else ():
            milliseconds(extreme, self._call)
        stamps = moments.astype(np.int64)
        if stamps.shape != (data.num_rows,):
            raise TypeError(
                f"{self._call} gives {stamps.size} event times for {data.num_rows} rows; it "
                "gives one for each"
            )
        return ColumnBatch(data, stamps)
