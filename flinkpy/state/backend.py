"""The port between operators and a keyed state backend.

An operator sets ``backend.current.key`` before every record and timer, which is all a record costs here; each state reads the key from there. The key
group of a key matters only when state moves, so it is computed for snapshots and not before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from flinkpy.state.api import State
from flinkpy.state.descriptors import StateDescriptor
from flinkpy.state.saved_state import FrozenKeyedState


class CurrentKey:
    """The key that keyed state and timers of an operator refer to.

    ``now_ns`` is the time of the current record if the operator's loop has read the clock for it; if it is None, state that expires reads the clock.
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
        """The state of that name, made at the first call. Raises ProgramError if the name stands for another kind, type or time to live."""

    @abstractmethod
    def engine_values(self, name: str) -> MutableMapping[Any, Any]:
        """One value per key for the engine's own loops. Values are not copied and do not expire; they are part of snapshots."""

    @abstractmethod
    def register_region(self, name: str, entries: Callable[[], Mapping[Any, Any]]) -> Mapping[Any, Any]:
        """Registers keyed state that the operator holds in a form of its own: timers, slices, columns. ``entries`` is called at each barrier
        and gives it as one value per key, which nobody changes afterwards. Returns what was restored under the name, in the same form."""

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
        """Called once per batch, after ``count`` records: does what has to be done for each record."""

    @property
    @abstractmethod
    def has_states(self) -> bool:
        """Whether there is a state or a region, empty or not."""

    @abstractmethod
    def freeze(self) -> FrozenKeyedState:
        """All state as it is now. Raises ProgramError for a value that cannot be copied."""

    @abstractmethod
    def restore(self, snapshot: bytes) -> None:
        """Loads the key groups of this subtask from the snapshot. Called before the first ``state``."""

    @property
    @abstractmethod
    def statistics(self) -> StateStatistics: ...

    @abstractmethod
    def close(self) -> None:
        """Releases memory and files."""
