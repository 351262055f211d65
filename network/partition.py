"""A pipelined result partition: what a subtask produces for one data set, with a queue of elements
for each consumer, limited by the partition's pool.

The reader of a subpartition is either a gate of the same process, which takes the objects
themselves, or the producer's end of a connection. Elements that are written before there is a
reader wait, as far as the pool allows.

The partition owns all that was written and not read yet: the queues, and behind them the elements
without room. So a barrier that overtakes goes to the front here, and what it passes is what the
checkpoint must keep."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from flinkpy.core.elements import CheckpointBarrier, Element, EndOfPartition, RowBatch
from flinkpy.core.errors import PartitionNotFoundError
from flinkpy.core.ids import ResultPartitionId
from flinkpy.network.flow.segments import LocalBufferPool


class SubpartitionReader(Protocol):
    """Takes elements out of a subpartition."""

    def data_available(self) -> None:
        """Called when an element was added."""
        ...

    def barrier_available(self, barrier: CheckpointBarrier) -> None:
        """Called when that barrier has overtaken the elements before it, and is the first."""
        ...

    def producer_failed(self, cause: BaseException) -> None:
        """Called when no more elements will come, and the subpartition is not complete."""
        ...


class ReadableSubpartition(Protocol):
    """A subpartition as its reader sees it: a queue of elements, each with the segments that it
    holds.

    The reader calls ``release_segments`` for each batch that it has taken, ``barrier_taken`` for
    each barrier, and ``release_subpartition`` after the last element, or when it needs no more."""

    reader: SubpartitionReader | None

    @property
    def queue(self) -> deque[tuple[Element, int]]: ...

    @property
    def backlog(self) -> int: ...

    @property
    def done(self) -> bool: ...

    @property
    def index(self) -> int: ...

    @property
    def partition(self) -> ReadablePartition: ...

    def release_segments(self, segments: int) -> None: ...

    def barrier_taken(self, checkpoint_id: int) -> None: ...

    def release_subpartition(self) -> None: ...


class ReadablePartition(Protocol):
    """The partition as a channel sees it: ``on_error`` reports records that cannot be sent;
    ``bytes_to`` and ``batches_to`` count what was written for each consumer."""

    bytes_to: list[int]
    batches_to: list[int]

    @property
    def on_error(self) -> Callable[[BaseException], None]: ...


class WritablePartition(Protocol):
    """The partition as its writer sees it, who counts in ``bytes_to`` and ``batches_to`` what it
    writes for each consumer.

    Its writer calls from its task's thread, its readers from theirs: each call holds the ``lock``
    of the data plane."""

    bytes_to: list[int]
    batches_to: list[int]

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    def held(self) -> tuple[int, int, int]:
        """The elements that were not read, the segments that they hold, and those that it may use.
        May be called from any thread."""
        ...

    @property
    def partition_id(self) -> ResultPartitionId: ...

    @property
    def done(self) -> bool:
        """Whether the producer's task may end."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether no element waits for room."""
        ...

    def set_room_listener(self, on_room: Callable[[], None]) -> None:
        """Sets what to call when ``has_room`` becomes true again."""
        ...

    def add_element(self, channel: int, element: Element, segments: int) -> None:
        """Takes the element for one consumer, behind all before it. If there is no room for it, it
        waits."""
        ...

    def drop_waiting(self) -> None:
        """Drops the elements that wait for room."""
        ...

    def add_barrier(self, barrier: CheckpointBarrier) -> None:
        """Takes the barrier for every consumer, behind all before it."""
        ...

    def overtake(self, checkpoint_id: int) -> list[list[Element]]:
        """Puts the checkpoint's barrier in front of all that was not read, for each consumer that
        has not taken it yet; returns what it has overtaken there, for each consumer."""
        ...

    def holds_barrier(self, checkpoint_id: int) -> bool:
        """Whether a consumer has not taken the checkpoint's barrier yet."""
        ...

    @property
    def holds_ends(self) -> bool:
        """Whether the end was written, and no consumer has taken it yet."""
        ...

    def set_barrier_listener(self, on_barrier_left: Callable[[int], None]) -> None:
        """Sets what to call with a checkpoint whose barrier the last consumer has taken."""
        ...


class ResultSubpartition:
    """The elements for one consumer, each with the segments that it holds; ``backlog`` is their
    sum."""

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

    def barrier_taken(self, checkpoint_id: int) -> None:
        """Called when the reader has taken a barrier."""
        self.partition.barrier_left(checkpoint_id)

    def overtake(self, checkpoint_id: int, waiting: Sequence[Element]) -> list[Element]:
        """Puts the barrier in front of all that this consumer has not read, and returns what it has
        overtaken. ``waiting`` are the elements behind the queue."""
        elements = [element for element, _ in self.queue]
        elements += waiting
        at = next(
            (
                n
                for n, element in enumerate(elements)
                if type(element) is CheckpointBarrier and element.checkpoint_id == checkpoint_id
            ),
            None,
        )
        if at is None or self.done:
            return []
        barrier = elements[at]
        assert isinstance(barrier, CheckpointBarrier)
        if at < len(self.queue):
            del self.queue[at]
        self.queue.appendleft((barrier.overtaking(), 0))
        if self.reader is not None:
            self.reader.barrier_available(barrier.overtaking())
        return elements[:at]

    def release_subpartition(self) -> None:
        """Called when the reader has read to the end, or needs no more: drops the elements left,
        and those still to come."""
        if not self.done:
            self.done, self.reader = True, None
            left, self.backlog = self.backlog, 0
            dropped = [element for element, _ in self.queue]
            self.queue.clear()
            for element in dropped:
                if type(element) is CheckpointBarrier:
                    self.partition.barrier_left(element.checkpoint_id)
            if left:
                self.partition.pool.return_segments(left)
            self.partition.subpartition_done()

    def __repr__(self) -> str:
        return (
            f"ResultSubpartition({self.index}: {len(self.queue)} elements, {self.backlog} "
            f"segments{', done' if self.done else ''})"
        )


class ResultPartition:
    """All subpartitions of one output of one attempt. ``on_done`` is called once, when every
    consumer has released its subpartition.

    A consumer's queue takes no more rows beyond ``rows_limit`` segments, however much room the pool
    has: rows are objects scattered over memory, and a longer queue of them leaves the processor's
    caches before it is read. Columns are contiguous, and may queue as far as the pool allows."""

    def __init__(
        self,
        partition_id: ResultPartitionId,
        subpartitions: int,
        pool: LocalBufferPool,
        rows_limit: int,
        on_done: Callable[[ResultPartition], None],
        on_error: Callable[[BaseException], None],
    ) -> None:
        self.partition_id = partition_id
        self.pool = pool
        self.lock = pool.lock
        pool.on_room = self._admit_waiting
        self.subpartitions = [ResultSubpartition(self, index) for index in range(subpartitions)]
        self.bytes_to, self.batches_to = [0] * subpartitions, [0] * subpartitions
        self.released = False
        self.on_error = on_error
        self._rows_limit = rows_limit
        self._on_done = on_done
        self._open = subpartitions
        # elements that found no room, of all consumers, in order
        self._waiting: deque[tuple[int, Element, int]] = deque()
        self._on_room: Callable[[], None] | None = None
        # by checkpoint: the consumers that have not taken its barrier
        self._barriers: dict[int, int] = {}
        self._on_barrier_left: Callable[[int], None] | None = None

    @property
    def has_room(self) -> bool:
        """Whether no element waits for room."""
        return not self._waiting

    def add_element(self, channel: int, element: Element, segments: int) -> None:
        """Takes the element for one consumer, behind all before it. If there is no room for it, it
        waits."""
        with self.lock:
            if self._waiting or not self._queue_element(channel, element, segments):
                self._waiting.append((channel, element, segments))

    # -- barriers ----------------------------------------------------------------------------------

    def add_barrier(self, barrier: CheckpointBarrier) -> None:
        """Takes the barrier for every consumer, behind all before it."""
        with self.lock:
            self._barriers[barrier.checkpoint_id] = len(self.subpartitions)
            for channel in range(len(self.subpartitions)):
                self.add_element(channel, barrier, 0)

    def overtake(self, checkpoint_id: int) -> list[list[Element]]:
        """Puts the checkpoint's barrier in front of all that was not read, for each consumer that
        has not taken it yet; returns what it has overtaken there, for each consumer."""
        with self.lock:
            waiting: list[list[Element]] = [[] for _ in self.subpartitions]
            for channel, element, _ in self._waiting:
                waiting[channel].append(element)
            overtaken = [
                subpartition.overtake(checkpoint_id, waiting[subpartition.index])
                for subpartition in self.subpartitions
            ]
            still = [
                each
                for each in self._waiting
                if type(each[1]) is not CheckpointBarrier or each[1].checkpoint_id != checkpoint_id
            ]
            self._waiting.clear()
            self._waiting.extend(still)
            return overtaken

    def holds_barrier(self, checkpoint_id: int) -> bool:
        """Whether a consumer has not taken the checkpoint's barrier yet."""
        return checkpoint_id in self._barriers

    @property
    def holds_ends(self) -> bool:
        """Whether the end was written, and no consumer has taken it yet."""
        with self.lock:
            waiting = {
                channel for channel, element, _ in self._waiting if type(element) is EndOfPartition
            }
            return all(
                each.index in waiting or (each.queue and type(each.queue[-1][0]) is EndOfPartition)
                for each in self.subpartitions
            )

    def set_barrier_listener(self, on_barrier_left: Callable[[int], None]) -> None:
        """Sets what to call with a checkpoint whose barrier the last consumer has taken."""
        self._on_barrier_left = on_barrier_left

    def barrier_left(self, checkpoint_id: int) -> None:
        """A consumer has taken the barrier, or needs it no more."""
        self._barriers[checkpoint_id] -= 1
        if not self._barriers[checkpoint_id]:
            del self._barriers[checkpoint_id]
            if self._on_barrier_left is not None:
                self._on_barrier_left(checkpoint_id)

    # -- room --------------------------------------------------------------------------------------

    def _queue_element(self, channel: int, element: Element, segments: int) -> bool:
        """Returns False if there is no room for the element now; the pool calls ``_admit_waiting``
        later."""
        subpartition = self.subpartitions[channel]
        if subpartition.done:
            if type(element) is CheckpointBarrier:
                self.barrier_left(element.checkpoint_id)
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
        """Sets what to call when ``has_room`` becomes true again."""
        self._on_room = on_room

    def _admit_waiting(self) -> None:
        """Called when the pool has room: queues the elements that wait."""
        waiting = self._waiting
        if not waiting:
            return
        while waiting:
            first = waiting.popleft()
            if not self._queue_element(*first):
                waiting.appendleft(first)
                return
        if self._on_room is not None:
            self._on_room()

    def drop_waiting(self) -> None:
        """Drops the elements that wait for room."""
        with self.lock:
            self._waiting.clear()

    def _squeeze(self, segments: int) -> int:
        """Lets a batch that is larger than the whole pool pass alone, with the segments that there
        are."""
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
        self._waiting.clear()
        for subpartition in self.subpartitions:
            reader = None if subpartition.done else subpartition.reader
            subpartition.release_subpartition()
            if reader is not None:
                reader.producer_failed(
                    cause
                    or PartitionNotFoundError(
                        f"{self} was released by its producer before it was read to the end"
                    )
                )
        self.pool.close_pool()

    @property
    def subpartition_count(self) -> int:
        return len(self.subpartitions)

    @property
    def done(self) -> bool:
        """Whether every consumer has released its subpartition."""
        return self._open == 0

    def held(self) -> tuple[int, int, int]:
        elements = sum(len(subpartition.queue) for subpartition in self.subpartitions) + len(
            self._waiting
        )
        return elements, self.pool.in_use, self.pool.size

    @property
    def queued(self) -> int:
        """The number of segments of elements that wait for their readers."""
        return sum(subpartition.backlog for subpartition in self.subpartitions)

    def __repr__(self) -> str:
        producer = self.partition_id.producer
        return (
            f"partition {self.partition_id.data_set_id:.8} of {producer.vertex_id:.8} subtask "
            f"{producer.subtask_index} attempt {producer.attempt}"
            f" ({self.queued} segments queued)"
        )
