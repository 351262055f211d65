"""One input of a subtask: a channel per producer, all read fairly.

A channel with elements is in the queue of ready channels once, and goes to the end after each
element. A blocked channel (barrier alignment) is not in the queue until it is unblocked. A local
channel reads the producer's subpartition directly: batches are passed by reference, and count
against the producer's pool until they are taken.

An exchange splits the batches of columns among its consumers, and operators over columns pay by the
batch. So small batches that wait one behind the other are put together again as they are taken."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from flinkpy.core.elements import CheckpointBarrier, ColumnBatch, Element, EndOfPartition
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.reactor import Reactor
from flinkpy.graph.checkpoints import ChannelKey
from flinkpy.network.channel_state import ElementLog
from flinkpy.network.flow.segments import LocalBufferPool
from flinkpy.network.partition import ReadableSubpartition
from flinkpy.network.port import Traffic

MOST_ROWS = 8192  # of a batch that is put together


def most_rows_put_together(config: NetworkConfig) -> int:
    """1, which puts nothing together, where producers gather nothing either."""
    return 1 if config.batch_records == 1 else MOST_ROWS


class InputChannel(ABC):
    """The elements of one producer for this gate, each with the segments that it holds."""

    # False: it is the producer's, whose barrier may overtake what is in it, the end too
    owns_queue = True

    def __init__(self, gate: SingleInputGate, index: int, key: ChannelKey) -> None:
        self.gate = gate
        self.index = index
        self.key = key
        self.queue: deque[tuple[Element, int]] = deque()
        self.ready = self.blocked = self.finished = False

    @abstractmethod
    def traffic(self) -> Traffic:
        """What has come, and what waits in its queue."""

    @abstractmethod
    def batch_consumed(self, segments: int) -> None:
        """Called when a batch that held ``segments`` has been processed."""

    @abstractmethod
    def end_reached(self) -> None:
        """Called when the last element has been taken."""

    @abstractmethod
    def release_channel(self) -> None:
        """Called when the gate needs no more from this channel."""

    def barrier_taken(self, checkpoint_id: int) -> None:  # most channels need not know
        """Called when a barrier has left the queue."""


class LocalInputChannel(InputChannel):
    """Reads a subpartition of the same process; its queue is the subpartition's own queue."""

    owns_queue = False

    def __init__(self, gate: SingleInputGate, index: int, key: ChannelKey) -> None:
        super().__init__(gate, index, key)
        self._subpartition: ReadableSubpartition | None = None
        self._came = (0, 0)  # bytes and batches, at its end
        self.released = False

    def traffic(self) -> Traffic:
        subpartition = self._subpartition
        return Traffic(
            *(self._came if subpartition is None else _written_for(subpartition)),
            0,
            0,
            len(self.queue),
        )

    def attach(self, subpartition: ReadableSubpartition) -> None:
        """Called when the producer's partition can be read."""
        self._subpartition = subpartition
        self.queue = subpartition.queue
        subpartition.reader = self
        if self.queue:
            self.gate.channel_ready(self)
            if type(self.queue[0][0]) is CheckpointBarrier:
                self.gate.barrier_arrived(self.queue[0][0])

    def barrier_available(self, barrier: CheckpointBarrier) -> None:
        self.data_available()
        self.gate.barrier_arrived(barrier)

    def barrier_taken(self, checkpoint_id: int) -> None:
        if self._subpartition is not None:
            self._subpartition.barrier_taken(checkpoint_id)

    def data_available(self) -> None:
        if not self.ready:
            self.gate.channel_ready(self)

    def producer_failed(self, cause: BaseException) -> None:
        self._subpartition = None
        self.gate.channel_lost(cause)

    def batch_consumed(self, segments: int) -> None:
        if self._subpartition is not None:
            self._subpartition.release_segments(segments)

    def end_reached(self) -> None:
        subpartition = self._subpartition
        if subpartition is not None:
            self._came, self._subpartition = _written_for(subpartition), None
            subpartition.release_subpartition()

    def release_channel(self) -> None:
        self.released = True
        self.end_reached()


def _written_for(subpartition: ReadableSubpartition) -> tuple[int, int]:
    partition, index = subpartition.partition, subpartition.index
    return partition.bytes_to[index], partition.batches_to[index]


class SingleInputGate:
    """The InputGate of one input (see ``flinkpy.network.port``). ``on_error`` is called once, for
    the first lost channel. ``lock`` is that of the data plane; ``reactor`` the reading task's, in
    whose thread its listeners are called."""

    def __init__(
        self,
        name: str,
        on_error: Callable[[BaseException], None],
        lock: threading.RLock | None = None,
        reactor: Reactor | None = None,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self.name = name
        self._most_rows = most_rows
        self._lock = lock or threading.RLock()
        self._reactor = reactor
        self.members: list[InputChannel] = []
        self.pool: LocalBufferPool | None = None  # the pool of the remote channels
        self._ready: deque[InputChannel] = deque()
        # the channels of the batches polled last, and their segments
        self._being_processed: list[tuple[InputChannel, int]] = []
        self._on_available: Callable[[], None] | None = None
        self._on_error: Callable[[BaseException], None] | None = on_error
        self._unfinished = 0
        self._on_barrier: Callable[[CheckpointBarrier | EndOfPartition], None] | None = None
        self._logs: dict[int, ElementLog] = {}  # of the channels that are recorded

    def add_channel(self, channel: InputChannel) -> None:
        self.members.append(channel)
        self._unfinished += 1

    @property
    def channels(self) -> int:
        return len(self.members)

    def traffic(self) -> Traffic:
        pool = self.pool
        held = (
            Traffic() if pool is None else Traffic(segments_in_use=pool.in_use, segments=pool.size)
        )
        return sum((member.traffic() for member in self.members), held)

    @property
    def finished(self) -> bool:
        return self._unfinished == 0

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = (
            on_available if self._reactor is None else self._reactor.bind(on_available)
        )

    def poll(self) -> tuple[int, Element] | None:
        """The next element. A call means that the previous batch has been processed: only then are
        its segments released, and credit for them granted."""
        with self._lock:
            if self._being_processed:
                for source, held in self._being_processed:
                    source.batch_consumed(held)
                self._being_processed.clear()
            found = self._taken()
            if found is None or type(found[1]) is not ColumnBatch:
                return found
            pieces = self._with_the_pieces_behind(found[1])
        return found[0], ColumnBatch.concat(pieces)

    def _taken(self) -> tuple[int, Element] | None:
        """The first element of the next ready channel."""
        ready = self._ready
        while ready:
            channel = ready.popleft()
            queue = channel.queue
            if not queue:  # the producer has dropped its elements
                channel.ready = False
                continue
            element, segments = queue.popleft()
            if self._logs and channel.index in self._logs:
                self._logs[channel.index].add(element)
            if queue:
                ready.append(channel)
            else:
                channel.ready = False
            if segments:
                self._being_processed.append((channel, segments))
            elif type(element) is EndOfPartition:
                self._channel_finished(channel)
            elif type(element) is CheckpointBarrier:
                channel.barrier_taken(element.checkpoint_id)
            return channel.index, element
        return None

    def _with_the_pieces_behind(self, first: ColumnBatch) -> list[ColumnBatch]:
        """Takes the pieces that come next, as long as they fit into one batch."""
        pieces, rows = [first], len(first)
        ready = self._ready
        while ready and ready[0].queue:
            following = ready[0].queue[0][0]
            if type(following) is not ColumnBatch:
                break
            rows += len(following)
            if rows > self._most_rows or not first.is_like(following):
                break
            self._taken()
            pieces.append(following)
        return pieces

    # -- barriers ----------------------------------------------------------------------------------

    def block(self, channel: int) -> None:
        with self._lock:
            member = self.members[channel]
            member.blocked = True
            if member.ready:
                member.ready = False
                self._ready.remove(member)

    def unblock(self, channel: int) -> None:
        with self._lock:
            member = self.members[channel]
            member.blocked = False
            if member.queue and not member.ready:
                self.channel_ready(member)

    def set_barrier_listener(
        self, on_barrier: Callable[[CheckpointBarrier | EndOfPartition], None]
    ) -> None:
        self._on_barrier = on_barrier if self._reactor is None else self._reactor.bind(on_barrier)

    def barrier_arrived(self, barrier: CheckpointBarrier) -> None:
        """A barrier has come into a channel."""
        if barrier.options.alignment_timeout_ms is not None and self._on_barrier is not None:
            self._on_barrier(barrier)

    def end_arrived(self, channel: InputChannel) -> None:
        """The last element has come into a channel."""
        if channel.index in self._logs and self._on_barrier is not None:
            self._on_barrier(EndOfPartition())

    def overtake(
        self, channel: int, checkpoint_id: int
    ) -> tuple[CheckpointBarrier | EndOfPartition, list[Element]] | None:
        with self._lock:
            member = self.members[channel]
            elements = [element for element, _ in member.queue]
            for at, element in enumerate(elements):
                if type(element) is CheckpointBarrier and element.checkpoint_id == checkpoint_id:
                    del member.queue[at]
                    member.barrier_taken(checkpoint_id)
                    return element, elements[:at]
                if type(element) is EndOfPartition and member.owns_queue:
                    return element, elements[:at]
            return None

    def record(self, channel: int, log: ElementLog | None) -> None:
        with self._lock:
            if log is None:
                self._logs.pop(channel, None)
            else:
                self._logs[channel] = log

    def source_of(self, channel: int) -> ChannelKey:
        return self.members[channel].key

    # -- the channels' calls -----------------------------------------------------------------------

    def channel_ready(self, channel: InputChannel) -> None:
        """Puts a channel that has elements into the queue, unless it is in it already or
        blocked."""
        if channel.blocked or channel.ready:
            return
        channel.ready = True
        ready = self._ready
        ready.append(channel)
        if len(ready) == 1 and self._on_available is not None:
            self._on_available()

    def channel_lost(self, cause: BaseException) -> None:
        """Reports the first lost channel to the task."""
        on_error, self._on_error = self._on_error, None
        if on_error is not None:
            on_error(cause)

    def release_gate(self) -> None:
        """Releases all channels and tells their producers. May be called more than once."""
        self._on_error = self._on_available = self._on_barrier = None
        self._logs.clear()
        self._ready.clear()
        self._being_processed.clear()
        for channel in self.members:
            channel.release_channel()
        if self.pool is not None:
            self.pool.close_pool()

    def _channel_finished(self, channel: InputChannel) -> None:
        if not channel.finished:
            channel.finished = True
            self._unfinished -= 1
            channel.end_reached()

    def __repr__(self) -> str:
        return (
            f"SingleInputGate({self.name}: {self._unfinished} of {len(self.members)} channels "
            f"unfinished, {len(self._ready)} ready)"
        )
