"""What a task sees of the network: writers for its outputs, gates for its inputs, and the environment that makes and takes back both.

Everything here belongs to the thread of one slot loop (``flinkpy.core.reactor``), but for the making of connections. Nothing blocks: who has no room
says so through ``available`` and calls its listener when that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flinkpy.core.elements import Batch, ControlElement, Element
from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.core.reactor import Reactor
from flinkpy.graph.deployment import InputGateDescriptor, ResultPartitionDescriptor


class RecordWriter(Protocol):
    """One network output: splits batches over its channels, gathers them, hands them on. ``records`` counts what it took."""

    records: int

    @property
    def available(self) -> bool:
        """Whether the task may process more input: no channel holds more than it can get rid of."""
        ...

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Called when ``available`` turns true again."""
        ...

    def emit(self, batch: Batch) -> None:
        """Takes a batch, always; full parts are handed on, the rest waits for more or for ``flush``."""
        ...

    def emit_control(self, element: ControlElement) -> None:
        """Behind all that was emitted before, to every channel."""
        ...

    def flush(self) -> None:
        """Hands on what is gathered, as far as there is room (the rest follows by itself)."""
        ...

    @property
    def consumed(self) -> bool:
        """Whether the end was written, and every consumer has taken all there was or wants no more; then too the listener is called.
        A blocking result stays without its task, so for it the end is enough."""
        ...


class InputGate(Protocol):
    """One network input: a channel per producer."""

    @property
    def channels(self) -> int: ...

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Called when something arrives in a gate that had nothing to give."""
        ...

    def poll(self) -> tuple[int, Element] | None:
        """The next element and its channel, fairly over channels; None when there is nothing now.

        A channel's last element is EndOfPartition.
        """
        ...

    def block(self, channel: int) -> None:
        """Gives out nothing of that channel until unblocked (barrier alignment)."""
        ...

    def unblock(self, channel: int) -> None: ...

    @property
    def finished(self) -> bool:
        """Whether every channel gave its EndOfPartition."""
        ...


@dataclass(frozen=True)
class ShuffleStatistics:
    """What the shuffle environment of a TaskExecutor holds."""

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
        """Records come and go on ``reactor``, beside user code. Connections are accepted and made on ``acceptor``, whose thread runs none and keeps
        nobody waiting."""
        ...

    def create_writers(
        self, owner: ExecutionAttemptId, descriptors: Sequence[ResultPartitionDescriptor], partitioners: Sequence[Any],
        buffer_timeouts_ms: Sequence[int], on_error: Callable[[BaseException], None],
    ) -> list[RecordWriter]:
        """Registers the partitions of an attempt and gives a writer for each; ``partitioners`` (``Partitioning`` objects) in the same order."""
        ...

    def create_gates(
        self, owner: ExecutionAttemptId, descriptors: Sequence[InputGateDescriptor], on_error: Callable[[BaseException], None],
    ) -> list[InputGate]:
        """Registers the gates of an attempt and asks the producers for their partitions; a lost producer is told through ``on_error``."""
        ...

    def finish_partitions(self, owner: ExecutionAttemptId) -> None:
        """The producer has ended well: its channels are ended (if the task has not done so), its partitions stay until their consumers have
        read them and then go by themselves, also past a ``release`` without a cause; blocking ones stay until ``release_partitions``; its gates
        are given back."""
        ...

    def release(self, owner: ExecutionAttemptId, cause: BaseException | None = None) -> None:
        """Gives back all partitions and gates of the attempt, told to the peers with ``cause``; may be called again."""
        ...

    def release_partitions(self, owner: ExecutionAttemptId) -> None:
        """The blocking results of an attempt that has ended are not needed any more; unknown ones are ignored."""
        ...

    def statistics(self) -> ShuffleStatistics: ...

    def stop(self) -> None: ...
