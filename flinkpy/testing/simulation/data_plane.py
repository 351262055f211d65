"""What simulated tasks send each other: each channel keeps its order, and every element takes a
random while."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from flinkpy.actors.rpc.simulated.event_queue import Simulation
from flinkpy.core.elements import CheckpointBarrier, EndOfPartition
from flinkpy.core.ids import ResultPartitionId


class Record(NamedTuple):
    """``key`` is the same on every way that a record takes. ``hops`` says who passed it on, and as
    which of all that it has seen."""

    key: str
    hops: tuple[tuple[str, int], ...] = ()


Element: TypeAlias = Record | CheckpointBarrier | EndOfPartition


class ChannelId(NamedTuple):
    """One consumer's part of what one attempt produces."""

    partition: ResultPartitionId
    subpartition: int


@dataclass
class _Channel:
    arrived: deque[Element] = field(default_factory=deque)
    last_arrival: float = 0.0
    on_arrival: Callable[[], None] | None = None
    on_end_taken: Callable[[], None] | None = None


class DataPlane:
    """All channels of a simulated cluster. Nothing is lost here: when a task dies, its whole region
    starts anew with channels of its own."""

    def __init__(self, simulation: Simulation, delay_s: float = 0.2) -> None:
        self._simulation, self._delay_s = simulation, delay_s
        self._channels: dict[ChannelId, _Channel] = {}

    def _channel(self, channel_id: ChannelId) -> _Channel:
        return self._channels.setdefault(channel_id, _Channel())

    def send(self, channel_id: ChannelId, element: Element) -> None:
        """The producer's end. What comes before the consumer listens waits for it."""
        channel = self._channel(channel_id)

        def arrive() -> None:
            channel.arrived.append(element)
            if channel.on_arrival is not None:
                channel.on_arrival()

        channel.last_arrival = max(
            channel.last_arrival,
            self._simulation.now + self._delay_s * self._simulation.random.random(),
        )
        self._simulation.schedule_at(channel.last_arrival, arrive, "data")

    def when_end_is_taken(self, channel_id: ChannelId, action: Callable[[], None]) -> None:
        """Calls the action when the consumer has read all to the end."""
        self._channel(channel_id).on_end_taken = action

    def listen(self, channel_id: ChannelId, on_arrival: Callable[[], None]) -> None:
        """The consumer's end."""
        self._channel(channel_id).on_arrival = on_arrival

    def take(self, channel_id: ChannelId) -> Element | None:
        """The next element, if it is there."""
        channel = self._channel(channel_id)
        if not channel.arrived:
            return None
        element = channel.arrived.popleft()
        if isinstance(element, EndOfPartition) and channel.on_end_taken is not None:
            channel.on_end_taken()
        return element

    def forget(self, channel_id: ChannelId) -> None:
        """Its producer has ended; nobody needs it any more."""
        self._channels.pop(channel_id, None)
