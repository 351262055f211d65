"""What a subtask produces of one data set: a queue of elements per consumer, accounted against the partition's pool.

Pipelined: a subpartition hands on what it has as soon as its reader takes it. Its reader is a gate of the same process, which takes the very
objects, or the producer's end of a connection. What is written before a reader came waits, as far as the pool reaches.
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
    """Who takes elements out of a subpartition."""

    def data_available(self) -> None:
        """Something was added."""
        ...

    def producer_failed(self, cause: BaseException) -> None:
        """Nothing more will come, and not all was there."""
        ...


class ReadableSubpartition(Protocol):
    """What a channel's end sees of what it reads: elements with the segments each costs, and whom to tell when there are more.

    Who takes a batch out of the queue says so by ``release_segments``; who has read the last element, or wants no more, by ``release_subpartition``.
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
    """Whom to tell that its records cannot travel."""

    @property
    def on_error(self) -> Callable[[BaseException], None]: ...


class WritablePartition(Protocol):
    """What a writer hands elements to."""

    @property
    def done(self) -> bool:
        """Whether the producer may go."""
        ...

    def set_room_listener(self, on_room: Callable[[], None]) -> None:
        """Called when an ``add_element`` that found no room is worth another try."""
        ...

    def add_element(self, channel: int, element: Element, segments: int) -> bool: ...


class ResultSubpartition:
    """The elements for one consumer, each with the segments it holds. ``backlog`` is the sum of these."""

    __slots__ = ("backlog", "done", "index", "partition", "queue", "reader")

    def __init__(self, partition: ResultPartition, index: int) -> None:
        self.partition, self.index = partition, index
        self.queue: deque[tuple[Element, int]] = deque()
        self.backlog = 0
        self.reader: SubpartitionReader | None = None
        self.done = False

    def release_segments(self, segments: int) -> None:
        """The reader took out so many segments' worth."""
        self.backlog -= segments
        self.partition.pool.return_segments(segments)

    def release_subpartition(self) -> None:
        """Read to the end, or wanted no more: drops what is left, and what still comes."""
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
    """All subpartitions of one output of one attempt. ``on_done`` is called once, when every consumer is through with it.

    No rows are added behind ``rows_limit`` segments of one consumer, however much room the pool has: rows are objects scattered over the memory, and
    a longer queue of them has left the processor's caches before they are read. Columns lie together, and may queue as far as the pool reaches.
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
        """Queues the element for one consumer; False when there is no room for it now (the pool tells when to try again)."""
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
        """Called when an ``add_element`` that found no room is worth another try."""
        self.pool.on_room = on_room

    def _squeeze(self, segments: int) -> int:
        """A batch larger than all the pool may lend passes alone, charged with what there is."""
        return self.pool.take_segments_up_to(segments) if self.pool.in_use == 0 else 0

    def subpartition_done(self) -> None:
        self._open -= 1
        if self._open == 0 and not self.released:
            self.pool.close_pool()
            self._on_done(self)

    def release_partition(self, cause: BaseException | None = None) -> None:
        """Drops everything, and tells the readers why. May be called again."""
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
        """Whether every consumer is through with it."""
        return self._open == 0

    @property
    def queued(self) -> int:
        """Segments waiting for their readers."""
        return sum(subpartition.backlog for subpartition in self.subpartitions)

    def __repr__(self) -> str:
        producer = self.partition_id.producer
        return (f"partition {self.partition_id.data_set_id:.8} of {producer.vertex_id:.8} subtask {producer.subtask_index} attempt {producer.attempt}"
                f" ({self.queued} segments queued)")
