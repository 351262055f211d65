"""The end of a task's chain: splits batches over the channels of a partition, gathers small parts, and hands them on as batches.

Adaptive batching: a part is handed on when it is large enough, when ``flush`` says that the task has nothing more to read, and at the latest after
the buffer timeout. A large part goes by reference, at once; small ones are gathered, but for those of the first batch after a flush: nothing else may
follow soon, and where more does follow it is that which is gathered. The writer never blocks and never loses: what finds no room
waits here in order, and ``available`` is False meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from flinkpy.core.elements import Batch, ColumnBatch, ControlElement, Element, EndOfPartition, LatencyMarker, RowBatch
from flinkpy.core.memory import SizeEstimator
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.reactor import Reactor, ReactorTimer
from flinkpy.network.flow.sizing import pieces
from flinkpy.network.partition import WritablePartition
from flinkpy.network.partitioning.partitioners import ChannelSelector, SingleChannel

_BY_REFERENCE_SHARE = 8  # a part of an eighth of a full batch is worth no copying


class _Gather:
    """Small parts for one channel, of one kind at a time."""

    __slots__ = ("channel", "columns", "count", "stamps", "values")

    def __init__(self, channel: int) -> None:
        self.channel = channel
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self.values: list[Any] | None = None
        self.stamps: list[int] | None = None
        self.columns: list[ColumnBatch] | None = None

    def fits(self, part: Batch) -> bool:
        """Whether the part can join what is there: rows to rows, columns to columns of the same schema, with timestamps or without like them."""
        if isinstance(part, RowBatch):
            return self.values is not None and (self.stamps is None) == (part.timestamps is None)
        if not self.columns:
            return False
        first = self.columns[0]
        return (first.timestamps is None) == (part.timestamps is None) and bool(first.data.schema.equals(part.data.schema, check_metadata=True))

    def add(self, part: Batch) -> None:
        self.count += len(part)
        if isinstance(part, RowBatch):
            if self.values is None:  # a copy: the part belongs to whoever made it
                self.values, self.stamps = part.values[:], None if part.timestamps is None else part.timestamps[:]
            else:
                self.values += part.values
                if part.timestamps is not None and self.stamps is not None:
                    self.stamps += part.timestamps
            return
        if self.columns is None:
            self.columns = []
        self.columns.append(part)

    def take(self) -> Batch:
        values, stamps, columns = self.values, self.stamps, self.columns
        self.clear()
        return RowBatch(values, stamps) if values is not None else _joined(columns or [])


def _joined(parts: list[ColumnBatch]) -> ColumnBatch:
    """One batch with the records of all."""
    if len(parts) == 1:
        return parts[0]
    import numpy as np
    import pyarrow as pa

    data = pa.Table.from_batches([part.data for part in parts]).combine_chunks().to_batches()[0]
    stamps = [part.timestamps for part in parts if part.timestamps is not None]
    return ColumnBatch(data, np.concatenate(stamps) if stamps else None)


class PartitionWriter:
    """The RecordWriter of one partition (see ``flinkpy.network.port``).

    ``buffer_timeout_ms``: -1 hands on only full batches and on flush, 0 after every batch.
    """

    def __init__(
        self, partition: WritablePartition, selector: ChannelSelector, buffer_timeout_ms: int, config: NetworkConfig, reactor: Reactor,
    ) -> None:
        self._partition, self._selector, self._reactor = partition, selector, reactor
        self._single = type(selector) is SingleChannel
        self._timeout_ms = buffer_timeout_ms
        self._records, self._bytes, self._segment = config.batch_records, config.batch_bytes, config.segment_size
        self._by_reference = max(1, config.batch_records // _BY_REFERENCE_SHARE)
        self._sizes = SizeEstimator()
        self.records = 0
        self._gathers = [_Gather(channel) for channel in range(selector.channels)]
        self._gathered: list[_Gather] = []  # those with something in them
        self._pending: deque[tuple[int, Element, int]] = deque()  # handed on, and no room yet
        self._flush_wanted = False
        self._at_once = False  # the next batch is the first after a flush
        self._timer: ReactorTimer | None = None
        self._on_available: Callable[[], None] | None = None
        self._marked = -1  # the channel that got the last latency marker
        self._ended = False
        self._closed = False
        partition.set_room_listener(self._room)

    @property
    def available(self) -> bool:
        return not self._pending

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    def emit(self, batch: Batch) -> None:
        count = len(batch.values) if type(batch) is RowBatch else len(batch)
        if not count or self._closed:
            return
        self.records += count
        put: Callable[[int, Batch], None] = self._put
        if self._at_once and not self._gathered:
            put = self._hand_on
        self._at_once = False
        if self._single:
            put(0, batch)
        else:
            for channel, part in self._selector.split(batch):
                put(channel, part)
        if self._timeout_ms == 0:
            self.flush()

    def emit_control(self, element: ControlElement) -> None:
        if self._closed:
            return
        self._hand_on_gathered()
        self._ended = self._ended or type(element) is EndOfPartition
        if type(element) is LatencyMarker:  # to one channel, in turn: on its way through all it would become as many as there are paths
            self._marked = (self._marked + 1) % self._selector.channels
            self._pass(self._marked, element, 0)
            return
        for channel in range(self._selector.channels):
            self._pass(channel, element, 0)

    def flush(self) -> None:
        self._at_once = self._timeout_ms >= 0
        if self._gathered:
            if self._pending:  # no room: let it grow meanwhile
                self._flush_wanted = True
            else:
                self._hand_on_gathered()

    @property
    def drained(self) -> bool:
        """Whether nothing is gathered or queued in front of the partition any more."""
        return not self._pending and not self._gathered

    @property
    def consumed(self) -> bool:
        return self._ended and self._partition.done

    def partition_done(self) -> None:
        """The last consumer is through."""
        if self._on_available is not None:
            self._on_available()

    def finish(self) -> None:
        """Ends every channel, if the task has not done so."""
        if not self._ended:
            self.emit_control(EndOfPartition())
        self._stop_timer()

    def close(self) -> None:
        """Drops what is left; takes nothing more."""
        self._closed = True
        self._stop_timer()
        self._pending.clear()
        self._gathered.clear()
        self._on_available = None

    def _put(self, channel: int, part: Batch) -> None:
        gather, count = self._gathers[channel], len(part)
        if gather.count and not (count < self._by_reference and gather.fits(part)):
            self._gathered.remove(gather)
            self._hand_on(channel, gather.take())
        if count >= self._by_reference or (type(part) is ColumnBatch and part.data.num_columns == 0):
            self._hand_on(channel, part)
            return
        if not gather.count:
            self._gathered.append(gather)
            if self._timer is None and self._timeout_ms > 0:
                self._timer = self._reactor.call_later(self._timeout_ms / 1000, self._timed_out)
        gather.add(part)
        if gather.count >= self._records or self._is_large(gather):
            self._gathered.remove(gather)
            self._hand_on(channel, gather.take())

    def _is_large(self, gather: _Gather) -> bool:
        if gather.values is None:
            return self._sizes.bytes_of_column_rows(gather.count) >= self._bytes
        return gather.count * (self._sizes.bytes_per_row or self._sizes.bytes_of_rows(gather.values) / gather.count) >= self._bytes

    def _hand_on_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        for gather in gathered:
            self._hand_on(gather.channel, gather.take())

    def _hand_on(self, channel: int, batch: Batch) -> None:
        size = self._sizes.bytes_of(batch)
        if size <= self._bytes or len(batch) == 1:
            segments = -(-size // self._segment) or 1
            if self._pending or not self._partition.add(channel, batch, segments):
                self._pending.append((channel, batch, segments))
            return
        parts = pieces(batch, -(-size // self._bytes))
        segments = -(-size // len(parts) // self._segment) or 1
        for part in parts:
            self._pass(channel, part, segments)

    def _pass(self, channel: int, element: Element, segments: int) -> None:
        if self._pending or not self._partition.add(channel, element, segments):
            self._pending.append((channel, element, segments))

    def _room(self) -> None:
        """The partition may take more: what waits goes first, then what was to be flushed."""
        pending, add = self._pending, self._partition.add
        if not pending:
            return
        while pending:
            waiting = pending.popleft()
            if not add(*waiting):
                pending.appendleft(waiting)
                return
        if self._flush_wanted:
            self._flush_wanted = False
            self._hand_on_gathered()
        if not pending and self._on_available is not None:
            self._on_available()

    def _timed_out(self) -> None:
        """Runs once after the first part was gathered, so nothing waits longer than the timeout; what came later goes earlier than it must."""
        self._timer = None
        self.flush()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def __repr__(self) -> str:
        return f"PartitionWriter({self._partition}, {len(self._gathered)} channels gathering, {len(self._pending)} elements without room)"
