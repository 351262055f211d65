"""What a simulated process and its network need of each other, so that neither module imports the
other."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from flinkpy.actors.rpc.base_service import Watch
from flinkpy.actors.rpc.delivery.asks import PendingAsks
from flinkpy.actors.rpc.delivery.envelope import Message
from flinkpy.actors.rpc.service import Cancellable, HostedEndpoint
from flinkpy.actors.rpc.simulated.event_queue import Simulation


class SimulatedProcess(Protocol):
    """One process, as the network sees it."""

    alive: bool
    asks: PendingAsks
    watches: list[Watch]

    @property
    def process(self) -> str:
        """Its name in addresses."""
        ...

    def arrive(self, sender: str, message: Message) -> None:
        """Takes a message of the process ``sender``."""
        ...

    def escaped(self, error: Exception) -> bool:
        """Whether the process handles an error that escaped from one of its events."""
        ...


class ProcessNetwork(Simulation, ABC):
    """The event queue with processes on it, as one process sees it."""

    request_ids: itertools.count[int]

    @abstractmethod
    def send(self, source: SimulatedProcess, process: str, message: Message) -> None:
        """Sends the message to the process of that name; it may never arrive, or arrive twice."""

    @abstractmethod
    def background_delay(self) -> float:
        """Returns how long, in virtual seconds, the next function run in the background takes."""

    @abstractmethod
    def watch(
        self, caller: HostedEndpoint, process: str, on_death: Callable[[str], object]
    ) -> Cancellable:
        """Calls ``on_death(reason)`` in the caller's main thread when the process is known to be
        dead."""

    @abstractmethod
    def leave(self, process: SimulatedProcess) -> None:
        """The process has stopped normally."""
