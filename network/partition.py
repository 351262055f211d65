"""A pipelined result partition: what a subtask produces for one data set, with a queue of elements for each consumer,
limited by the partition's pool.

The reader of a subpartition is either a gate of the same process, which takes the objects themselves, or the
producer's end of a connection. Elements that are written before there is a reader wait, as far as the pool allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from flinkpy.core.elements import Element, RowBatch
from flinkpy.core.errors import PartitionNotFoundError
from flinkpy.core.ids import ResultPartitionId
from flinkpy.network.flow.segments import LocalBufferPool


class SubpartitionReader(Protocol):
    """Takes elements out of a subpartition."""

    def data_available(self) -> None:
        """Called when an element was added."""
        ...

    def producer_failed(self, cause: BaseException) -> None:
        """Called when no more elements will come, and the subpartition is not complete."""
        ...


class ReadableSubpartition(Protocol):
    """A subpartition as its reader sees it: a queue of elements, each with the segments that it holds.

    The reader calls ``release_segments`` for each batch that it has taken, and ``release_subpartition`` after the
    last element, or when it needs no more.
    """

    reader: SubpartitionReader | None

    @property
    def queue(self) -> deque[tuple[Element, int]]: ...

    @property
    def backlog(self) -> int: ...

    @property
    def done(self) -> bool: ...

    @property
    def partition(self) -> ReadablePartition: ...

    def release_segments(self, segments: int) -> None: ...

    def release_subpartition(self) -> None: ...


class ReadablePartition(Protocol):
    """The partition as a channel sees it: ``on_error`` reports records that cannot be sent."""

    @property
    def on_error(self) -> Callable[[BaseException], None]: ...


class WritablePartition(Protocol):
    """The partition as its writer sees it."""

    @property
    def done(self) -> bool:
        """Whether the producer's task may end."""
        ...

    def set_room_listener(self, on_room: Callable[[], None]) -> None:
        """Sets what to call when an ``add_element`` that found no room may succeed."""
        ...

    def add_element(self, channel: int, element: Element, segments: int) -> bool: ...


class ResultSubpartition:
    """The elements for one consumer, each with the segments that it holds; ``backlog`` is their sum."""

    __slots__ = ("backlog", "done", "index", "partition", "queue", "reader")

    def __init__(self, partition: ResultPartition, index: int) -> None:
        self.partition, self.index = partition, index
        self.queue: deque[tuple[Element, int]] = deque()
        self.backlog = 0
        self.reader: SubpartitionReader | None = None
        self.done = False

    def release_segments(self, segments: int) -> None:
        """Called when the reader has taken a batch that held ``segments``."""
        self.backlog -= segments
        self.partition.pool.return_segments(segments)

    def release_subpartition(self) -> None:
        """Called when the reader has read to the end, or needs no more: drops the elements left, and those still to
        come."""
        if not self.done:
            self.done, self.reader = True, None
            left, self.backlog = self.backlog, 0
            self.queue.clear()
            if left:
                self.partition.pool.return_segments(left)
            self.partition.subpartition_done()

    def __repr__(self) -> str:
        return f"ResultSubpartition({self.index}: {len(self.queue)} elements, {self.backlog} segments{', done' if self.done else ''})"


class ResultPartition:
    """All subpartitions of one output of one attempt. ``on_done`` is called once, when every consumer has released its subpartition.

    A consumer's queue takes no more rows beyond ``rows_limit`` segments, however much room the pool has: rows are objects scattered over memory, and
    a longer queue of them leaves the processor's caches before it is read. Columns are contiguous, and may queue as far as the pool allows.
    """

    def __init__(
        self, partition_id: ResultPartitionId, subpartitions: int, pool: LocalBufferPool, rows_limit: int,
        on_done: Callable[[ResultPartition], None], on_error: Callable[[BaseException], None],
    ) -> None:
        self.partition_id, self.pool = partition_id, pool
        self.subpartitions = [ResultSubpartition(self, index) for index in range(subpartitions)]
        self.released = False
        self.on_error = on_error
        self._rows_limit = rows_limit
        self._on_done = on_done
        self._open = subpartitions

    def add_element(self, channel: int, element: Element, segments: int) -> bool:
        """Queues the element for one consumer. Returns False if there is no room for it now; the room listener is
        called later."""
        subpartition = self.subpartitions[channel]
        if subpartition.done:
            return True
        if subpartition.backlog >= self._rows_limit and type(element) is RowBatch:
            self.pool.wait_for_return()
            return False
        if segments and not self.pool.take_segments(segments):
            segments = self._squeeze(segments)
            if not segments:
                return False
        subpartition.queue.append((element, segments))
        subpartition.backlog += segments
        reader = subpartition.reader
        if reader is not None:
            reader.data_available()
        return True

    def set_room_listener(self, on_room: Callable[[], None]) -> None:
        """Sets what to call when an ``add_element`` that found no room may succeed."""
        self.pool.on_room = on_room

    def _squeeze(self, segments: int) -> int:
        """Lets a batch that is larger than the whole pool pass alone, with the segments that there are."""
        return self.pool.take_segments_up_to(segments) if self.pool.in_use == 0 else 0

    def subpartition_done(self) -> None:
        self._open -= 1
        if self._open == 0 and not self.released:
            self.pool.close_pool()
            self._on_done(self)

    def release_partition(self, cause: BaseException | None = None) -> None:
        """Drops everything, and reports ``cause`` to the readers. May be called again."""
        if self.released:
            return
        self.released = True
        for subpartition in self.subpartitions:
            reader = None if subpartition.done else subpartition.reader
            subpartition.release_subpartition()
            if reader is not None:
                reader.producer_failed(cause or PartitionNotFoundError(f"{self} was released by its producer before it was read to the end"))
        self.pool.close_pool()

    @property
    def subpartition_count(self) -> int:
        return len(self.subpartitions)

    @property
    def done(self) -> bool:
        """Whether every consumer has released its subpartition."""
        return self._open == 0

    @property
    def queued(self) -> int:
        """The number of segments of elements that wait for their readers."""
        return sum(subpartition.backlog for subpartition in self.subpartitions)

    def __repr__(self) -> str:
        producer = self.partition_id.producer
        return (f"partition {self.partition_id.data_set_id:.8} of {producer.vertex_id:.8} subtask {producer.subtask_index} attempt {producer.attempt}"
                f" ({self.queued} segments queued)")
