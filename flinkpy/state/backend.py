"""The port between operators and a keyed state backend.

An operator sets ``backend.current.key`` before every record and timer; that is all a record costs here. Each state the user asked for reads it from
there. Which key group a key belongs to matters only when state moves, so it is computed for snapshots and not before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from flinkpy.state.api import State
from flinkpy.state.descriptors import StateDescriptor


class CurrentKey:
    """The key all keyed state and timers of an operator refer to right now.

    ``now_ns`` is the time of the record at hand, where the operator's loop has read the clock for it; else state that expires reads it itself.
    """

    __slots__ = ("key", "now_ns")

    def __init__(self) -> None:
        self.key: Any = None
        self.now_ns: int | None = None

    def __repr__(self) -> str:
        return f"CurrentKey({self.key!r:.80})"


@dataclass(frozen=True)
class StateStatistics:
    """How many keys each state holds, and which key groups are this subtask's."""

    keys: Mapping[str, int]
    groups: range


class KeyedStateBackend(ABC):
    """Keyed state of one operator in one subtask."""

    current: CurrentKey

    @abstractmethod
    def state(self, descriptor: StateDescriptor) -> State:
        """The state of that name, made at the first call. Raises ProgramError where the name stands for another kind, type or time to live."""

    @abstractmethod
    def engine_values(self, name: str) -> MutableMapping[Any, Any]:
        """One plain value per key for the engine's own loops: neither copied nor expiring, but part of snapshots."""

    @abstractmethod
    def keys(self, name: str) -> Iterator[Any]:
        """The keys for which the state holds something, as of the call."""

    @property
    @abstractmethod
    def expires(self) -> bool:
        """Whether any state has a time to live."""

    @property
    @abstractmethod
    def counts_records(self) -> bool:
        """Whether ``after_records`` has anything to do."""

    @abstractmethod
    def after_records(self, count: int) -> None:
        """So many records were processed: what has to be done for each of them is done now, once per batch."""

    @abstractmethod
    def snapshot(self) -> bytes:
        """All state, by key group (``flinkpy.state.keyed_snapshots``)."""

    @abstractmethod
    def restore(self, snapshot: bytes) -> None:
        """Takes the key groups of this subtask out of the snapshot. Before the first ``state``."""

    @property
    @abstractmethod
    def statistics(self) -> StateStatistics: ...

    @abstractmethod
    def close(self) -> None:
        """Lets go of everything."""
