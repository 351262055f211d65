"""The end of a task's chain: splits batches over the channels of a partition, gathers small parts,
and passes them on as batches.

A part is passed on when it is large enough, when ``flush`` says that the task has no more input for
now, and at the latest after the buffer timeout. A large part is passed on by reference, at once.
Small parts are gathered, except those of the first batch after a flush: the next batch may take
long, and if it comes soon, that one is gathered. The writer never blocks and never loses records:
elements without room wait in the partition in order, and meanwhile ``available`` is False."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from flinkpy.core.elements import (
    Batch,
    CheckpointBarrier,
    ColumnBatch,
    ControlElement,
    Element,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
)
from flinkpy.core.memory import SizeEstimator
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.reactor import Reactor, ReactorTimer
from flinkpy.graph.checkpoints import ChannelKey
from flinkpy.network.flow.batch_pieces import pieces
from flinkpy.network.partition import WritablePartition
from flinkpy.network.partitioning.partitioners import ChannelSelector, SingleChannel
from flinkpy.network.port import Traffic

_BY_REFERENCE_SHARE = 8  # a part of at least an eighth of a full batch is not worth copying


class _Gather:
    """The small parts gathered for one channel, of one kind at a time."""

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
        """Whether the part can join those gathered: rows join rows, columns join columns with the
        same schema, and all have timestamps or none has."""
        if isinstance(part, RowBatch):
            return self.values is not None and (self.stamps is None) == (part.timestamps is None)
        if not self.columns:
            return False
        first = self.columns[0]
        return (first.timestamps is None) == (part.timestamps is None) and bool(
            first.data.schema.equals(part.data.schema, check_metadata=True)
        )

    def add(self, part: Batch) -> None:
        self.count += len(part)
        if isinstance(part, RowBatch):
            if self.values is None:  # copied, because the caller may keep the part
                self.values = part.values[:]
                self.stamps = None if part.timestamps is None else part.timestamps[:]
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
        return RowBatch(values, stamps) if values is not None else ColumnBatch.concat(columns or [])


def _written_to(partition: WritablePartition) -> Traffic:
    return Traffic(sum(partition.bytes_to), sum(partition.batches_to), 0, 0, *partition.held())


class PartitionWriter:
    """The RecordWriter of one partition (see ``flinkpy.network.port``).

    It belongs to its task's thread, which is that of ``reactor``. ``buffer_timeout_ms``: -1 passes
    on full batches, and the rest on flush; 0 passes on everything after every batch."""

    def __init__(
        self,
        partition: WritablePartition,
        selector: ChannelSelector,
        buffer_timeout_ms: int,
        config: NetworkConfig,
        reactor: Reactor,
    ) -> None:
        self._partition = partition
        self._selector = selector
        self.reactor = reactor
        self._single = type(selector) is SingleChannel
        self._timeout_ms = buffer_timeout_ms
        self._records = config.batch_records
        self._bytes = config.batch_bytes
        self._segment = config.segment_size
        self._by_reference = max(1, config.batch_records // _BY_REFERENCE_SHARE)
        self._sizes = SizeEstimator()
        self.records = 0
        self._bytes_to, self._batches_to = partition.bytes_to, partition.batches_to
        # a part of RecordWriter
        self.traffic: Callable[[], Traffic] = partial(_written_to, partition)
        self._gathers = [_Gather(channel) for channel in range(selector.channels)]
        self._gathered: list[_Gather] = []  # those of ``_gathers`` that are not empty
        self._flush_wanted = False
        self._first_after_flush = False
        self._timer: ReactorTimer | None = None
        self._on_available: Callable[[], None] | None = None
        self._marker_channel = -1  # the channel of the last latency marker
        self._ended = False
        self._closed = False
        partition.set_room_listener(reactor.bind(self._room_available))

    @property
    def available(self) -> bool:
        return self._partition.has_room

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    def emit(self, batch: Batch) -> None:
        count = len(batch.values) if type(batch) is RowBatch else len(batch)
        if not count or self._closed:
            return
        self.records += count
        put: Callable[[int, Batch], None] = self._put
        if self._first_after_flush and not self._gathered:
            put = self._pass_batch
        self._first_after_flush = False
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
        self._pass_gathered()
        if type(element) is CheckpointBarrier:
            self._partition.add_barrier(element)
            return
        self._ended = self._ended or type(element) is EndOfPartition
        # To one channel in turn: sent to all, markers would multiply with the number of paths
        if type(element) is LatencyMarker:
            self._marker_channel = (self._marker_channel + 1) % self._selector.channels
            self._partition.add_element(self._marker_channel, element, 0)
            return
        for channel in range(self._selector.channels):
            self._partition.add_element(channel, element, 0)

    def flush(self) -> None:
        self._first_after_flush = self._timeout_ms >= 0
        if self._gathered:
            if self._partition.has_room:
                self._pass_gathered()
            else:  # more may be gathered meanwhile
                self._flush_wanted = True

    def overtake(self, checkpoint_id: int) -> list[list[Element]]:
        return self._partition.overtake(checkpoint_id)

    def holds_barrier(self, checkpoint_id: int) -> bool:
        return self._partition.holds_barrier(checkpoint_id)

    @property
    def holds_ends(self) -> bool:
        return self._partition.holds_ends

    @property
    def lock(self) -> AbstractContextManager[Any]:
        return self._partition.lock

    def set_barrier_listener(self, on_barrier_left: Callable[[int], None]) -> None:
        self._partition.set_barrier_listener(self.reactor.bind(on_barrier_left))

    def key_of(self, channel: int) -> ChannelKey:
        partition_id = self._partition.partition_id
        return ChannelKey(partition_id.data_set_id, partition_id.producer.subtask_index, channel)

    def restore(self, channel: int | None, element: Element) -> None:
        if isinstance(element, (RowBatch, ColumnBatch)):
            parts = self._selector.split(element) if channel is None else ((channel, element),)
            for number, part in parts:
                self._pass_batch(number, part)
        elif channel is not None:
            self._partition.add_element(channel, element, 0)

    @property
    def drained(self) -> bool:
        """Whether no element is gathered or waits for room."""
        return self._partition.has_room and not self._gathered

    @property
    def consumed(self) -> bool:
        return self._ended and self._partition.done

    def consumers_done(self) -> None:
        """Called when the last consumer has released its subpartition."""
        if self._on_available is not None:
            self._on_available()

    def end_partition(self) -> None:
        """Ends every channel, unless the task has done so."""
        if not self._ended:
            self.emit_control(EndOfPartition())
        self._stop_timer()

    def close_writer(self) -> None:
        """Drops what is left; ignores later elements."""
        self._closed = True
        self._stop_timer()
        self._partition.drop_waiting()
        self._gathered.clear()
        self._on_available = None

    def _put(self, channel: int, part: Batch) -> None:
        gather, count = self._gathers[channel], len(part)
        if gather.count and not (count < self._by_reference and gather.fits(part)):
            self._gathered.remove(gather)
            self._pass_batch(channel, gather.take())
        if count >= self._by_reference or (
            type(part) is ColumnBatch and part.data.num_columns == 0
        ):
            self._pass_batch(channel, part)
            return
        if not gather.count:
            self._gathered.append(gather)
            if self._timer is None and self._timeout_ms > 0:
                self._timer = self.reactor.call_later(self._timeout_ms / 1000, self._timed_out)
        gather.add(part)
        if gather.count >= self._records or self._is_large(gather):
            self._gathered.remove(gather)
            self._pass_batch(channel, gather.take())

    def _is_large(self, gather: _Gather) -> bool:
        if gather.values is None:
            return self._sizes.bytes_of_column_rows(gather.count) >= self._bytes
        return (
            gather.count
            * (self._sizes.bytes_per_row or self._sizes.bytes_of_rows(gather.values) / gather.count)
            >= self._bytes
        )

    def _pass_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        for gather in gathered:
            self._pass_batch(gather.channel, gather.take())

    def _pass_batch(self, channel: int, batch: Batch) -> None:
        size = self._sizes.bytes_of(batch)
        self._bytes_to[channel] += size
        if size <= self._bytes or len(batch) == 1:
            self._batches_to[channel] += 1
            self._partition.add_element(channel, batch, -(-size // self._segment) or 1)
            return
        parts = pieces(batch, -(-size // self._bytes))
        self._batches_to[channel] += len(parts)
        segments = -(-size // len(parts) // self._segment) or 1
        for part in parts:
            self._partition.add_element(channel, part, segments)

    def _room_available(self) -> None:
        """Called when the partition has room again: flushes what was to be flushed."""
        if self._flush_wanted:
            self._flush_wanted = False
            self._pass_gathered()
        if self._partition.has_room and self._on_available is not None:
            self._on_available()

    def _timed_out(self) -> None:
        """Flushes. The timer starts when the first part is gathered, so no part waits longer than
        the timeout, and later ones wait less."""
        self._timer = None
        self.flush()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def __repr__(self) -> str:
        return (
            f"PartitionWriter({self._partition}, {len(self._gathered)} channels "
            f"gathering{'' if self.available else ', no room'})"
        )
