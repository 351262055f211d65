"""What a task sees of the network: writers for its outputs, gates for its inputs, and the
environment that creates and releases both.

Writers and gates belong to the thread of their task, which is that of the slot loop
(``flinkpy.core.reactor``) or one of its own. What stands between them is shared, under one lock
(``flinkpy.network.data_plane_reactor``); listeners are called in their task's thread. Nothing
blocks: a writer without room says so through ``available``, and calls its listener when it has room
again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from typing import Any, Protocol

from flinkpy.core.elements import Batch, CheckpointBarrier, ControlElement, Element, EndOfPartition
from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.core.reactor import Reactor
from flinkpy.graph.checkpoints import ChannelKey
from flinkpy.graph.deployment import InputGateDescriptor, ResultPartitionDescriptor
from flinkpy.network.channel_state import ElementLog


@dataclass(frozen=True)
class Traffic:
    """What has passed one network input or output so far, and what it holds now. ``local`` is what
    stays in the process, ``remote`` what comes from another one; an output does not know, and
    counts all as local. Bytes of rows in memory are an estimate."""

    local_bytes: int = 0
    local_batches: int = 0
    remote_bytes: int = 0
    remote_batches: int = 0
    queued: int = 0  # batches and control elements
    segments_in_use: int = 0
    segments: int = 0  # that it may use

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(one + another for one, another in zip(astuple(self), astuple(other))))


class RecordWriter(Protocol):
    """One network output: splits batches over its channels, gathers small parts, and passes batches
    on. ``records`` counts the records emitted."""

    records: int

    def traffic(self) -> Traffic:
        """May be called from any thread."""
        ...

    @property
    def available(self) -> bool:
        """Whether the task may process more input: every batch so far found room."""
        ...

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Sets what to call when ``available`` becomes true again."""
        ...

    def emit(self, batch: Batch) -> None:
        """Always accepts the batch. Full parts are passed on; the rest waits for more records or
        for ``flush``."""
        ...

    def emit_control(self, element: ControlElement) -> None:
        """Sends the element to every channel, after everything emitted before."""
        ...

    def flush(self) -> None:
        """Passes on what is gathered, as far as there is room; the rest follows automatically."""
        ...

    def overtake(self, checkpoint_id: int) -> list[list[Element]]:
        """Puts the checkpoint's barrier in front of all that was not read, for each channel that
        still has it; returns what it has overtaken there, for each channel."""
        ...

    def holds_barrier(self, checkpoint_id: int) -> bool:
        """Whether a channel still has the checkpoint's barrier."""
        ...

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """While it is held, no channel takes anything."""
        ...

    @property
    def holds_ends(self) -> bool:
        """Whether the end was written, and all channels still have it: only then a barrier can come
        before it everywhere."""
        ...

    def set_barrier_listener(self, on_barrier_left: Callable[[int], None]) -> None:
        """Sets what to call with a checkpoint whose barrier has left the last channel."""
        ...

    def key_of(self, channel: int) -> ChannelKey:
        """The channel, named so that it is found again after a restart."""
        ...

    def restore(self, channel: int | None, element: Element) -> None:
        """Sends an element that was overtaken before the job failed: to that channel. With None a
        batch goes where the partitioning sends it now, and a control element nowhere."""
        ...

    @property
    def consumed(self) -> bool:
        """Whether the end was written, and every consumer has read everything or has been released;
        the listener is also called when that becomes true. For a blocking result, which outlives
        its task, its end is enough."""
        ...


class InputGate(Protocol):
    """One network input: a channel per producer."""

    @property
    def channels(self) -> int: ...

    def traffic(self) -> Traffic:
        """May be called from any thread."""
        ...

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Sets what to call when an element arrives in an empty gate."""
        ...

    def poll(self) -> tuple[int, Element] | None:
        """The next element and its channel, taken fairly from all channels; None when there is none
        now.

        A channel's last element is EndOfPartition.
        """
        ...

    def block(self, channel: int) -> None:
        """Returns no elements of that channel until it is unblocked (barrier alignment)."""
        ...

    def unblock(self, channel: int) -> None: ...

    def set_barrier_listener(
        self, on_barrier: Callable[[CheckpointBarrier | EndOfPartition], None]
    ) -> None:
        """Sets what to call when a barrier that may overtake has come into a channel, and when the
        end of a channel has come that is recorded. Called at any moment, so the listener only takes
        note of it."""
        ...

    def overtake(
        self, channel: int, checkpoint_id: int
    ) -> tuple[CheckpointBarrier | EndOfPartition, list[Element]] | None:
        """Takes the checkpoint's barrier out of the channel, and returns it with the elements
        before it, which stay. The end of a channel whose producer has gone counts as a barrier, but
        is not taken out. None if neither has come."""
        ...

    def record(self, channel: int, log: ElementLog | None) -> None:
        """From now on adds to the log what ``poll`` returns of the channel; no more with None."""
        ...

    def source_of(self, channel: int) -> ChannelKey:
        """What the channel reads, named so that the same channel is found after a restart."""
        ...

    @property
    def finished(self) -> bool:
        """Whether every channel has delivered its EndOfPartition."""
        ...


@dataclass(frozen=True)
class ShuffleStatistics:
    """Counters of a TaskExecutor's shuffle environment."""

    segments_total: int
    segments_in_use: int
    partitions: int
    gates: int
    connections: int
    bytes_sent: int = 0
    bytes_received: int = 0


class ShuffleEnvironment(Protocol):
    """Owns the segment pool, the partitions, the gates and the data port of one TaskExecutor."""

    @property
    def data_address(self) -> tuple[str, int]: ...

    def start(self, reactor: Reactor, acceptor: Reactor) -> None:
        """Starts sending and receiving records on ``reactor``, whose thread also runs user code.
        Connections are accepted and made on ``acceptor``, whose thread runs no user code, so they
        never wait for it."""
        ...

    def create_writers(
        self,
        owner: ExecutionAttemptId,
        descriptors: Sequence[ResultPartitionDescriptor],
        partitioners: Sequence[Any],
        buffer_timeouts_ms: Sequence[int],
        on_error: Callable[[BaseException], None],
        reactor: Reactor | None = None,
    ) -> list[RecordWriter]:
        """Registers the partitions of an attempt; returns a writer for each. ``partitioners``
        (``Partitioning`` objects) are in the same order. ``reactor`` is the task's; without one the
        task runs in the slot loop's thread. ``on_error`` may be called in any thread."""
        ...

    def create_gates(
        self,
        owner: ExecutionAttemptId,
        descriptors: Sequence[InputGateDescriptor],
        on_error: Callable[[BaseException], None],
        reactor: Reactor | None = None,
    ) -> list[InputGate]:
        """Registers the gates of an attempt and requests the producers' partitions. ``on_error`` is
        called, in any thread, when a producer is lost. ``reactor`` is the task's, as for
        writers."""
        ...

    def finish_partitions(self, owner: ExecutionAttemptId) -> None:
        """Called when the producer has ended well. Ends its channels, if the task has not done so,
        and releases its gates. Its partitions stay until their consumers have read them, even after
        a ``release`` without a cause; blocking ones stay until ``release_partitions``."""
        ...

    def release(self, owner: ExecutionAttemptId, cause: BaseException | None = None) -> None:
        """Releases all partitions and gates of the attempt; consumers get the ``cause``. May be
        called more than once."""
        ...

    def release_partitions(self, owner: ExecutionAttemptId) -> None:
        """Releases the blocking results of an attempt that has ended; unknown attempts are
        ignored."""
        ...

    def statistics(self) -> ShuffleStatistics: ...

    def stop(self) -> None: ...
