"""The port between operators and a keyed state backend.

An operator sets ``backend.current.key`` before every record and timer, which is all a record costs
here; each state reads the key from there. The key group of a key matters only when state moves, so
it is computed for snapshots and not before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.core.errors import EngineError
from flinkpy.core.files.large_bytes import Data
from flinkpy.state.api import State
from flinkpy.state.descriptors import StateDescriptor
from flinkpy.state.snapshots.frozen_tables import FrozenRegion
from flinkpy.state.snapshots.saved_state import FrozenKeyedState, PreparedPieces
from flinkpy.state.timed_entries import TimedEntries

if TYPE_CHECKING:  # it imports Arrow
    from flinkpy.state.snapshots.chunked_regions import FrozenChunks, SavedChunks

RegionEntries: TypeAlias = Callable[[], FrozenRegion]


class CurrentKey:
    """The key that keyed state and timers of an operator refer to.

    ``now_ns`` is the time of the current record if the operator's loop has read the clock for it;
    if it is None, state that expires reads the clock."""

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
        """The state of that name, made at the first call. Raises ProgramError if the name stands
        for another kind, type or time to live."""

    @abstractmethod
    def engine_values(self, name: str) -> MutableMapping[Any, Any]:
        """One value per key for the engine's own loops. Values are not copied and do not expire;
        they are part of snapshots."""

    def layer_engine_values(
        self, name: str, rebind: Callable[[dict[Any, Any]], None], copy: Callable[[Any], Any]
    ) -> None:
        """From now on a freeze copies none of these engine values, if ``engine_values`` gave a
        dict. ``rebind`` is called with the dict to read and write from then on: at a freeze, and in
        ``after_records``. Values are changed in place only after they were looked up there.
        ``copy`` gives a copy of a value that shares nothing changeable with it."""

    @abstractmethod
    def register_region(self, name: str, entries: RegionEntries) -> Mapping[Any, Any]:
        """Registers keyed state that the operator holds in a form of its own: timers, slices,
        columns. ``entries`` is called at each barrier and gives it as one value per key, which
        nobody changes afterwards; or it gives a function that is called when the state is written,
        in another thread. Returns what was restored under the name, in the same form."""

    @abstractmethod
    def register_chunks(self, name: str, entries: Callable[[], FrozenChunks]) -> Iterator[Any]:
        """The same of state that the operator holds as rows of columns in chunks. Gives the record
        batches that were restored, one at a time: together they may be more than memory holds."""

    @abstractmethod
    def held_values(
        self, name: str, rebind: Callable[[Any], None], copy: Callable[[Any], Any]
    ) -> None:
        """Engine values that are changed in place: ``rebind`` is called with the mapping to read
        and write, which has the methods of a dict for single keys and ``items``; and again at a
        freeze, and in ``after_records``. ``copy`` gives a copy of a value that shares nothing
        changeable with it."""

    def timed_entries(self, name: str) -> TimedEntries | None:
        """Where an operator lays what it has no room for in memory, by key and moment; None of a
        backend that has only memory: ``take_timed`` then gives what was saved of it."""
        return None

    def take_timed(self, name: str) -> Mapping[Any, Mapping[tuple[int, Any], Any]]:
        """What another backend saved of its ``timed_entries``: the values of each key, by moment
        and name. It belongs to the operator from now on."""
        return {}

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

    def between_batches(self) -> None:
        """Called between two batches, by whoever does not call ``after_records`` once per batch:
        some of what a freeze has left to do."""

    @abstractmethod
    def after_records(self, count: int) -> None:
        """Called once per batch, after ``count`` records: does what has to be done for each
        record."""

    @property
    @abstractmethod
    def has_states(self) -> bool:
        """Whether there is a state or a region, empty or not."""

    @abstractmethod
    def freeze(self, in_pieces: bool = False) -> FrozenKeyedState:
        """All state as it is now; with ``in_pieces`` in a form that can be written in pieces, if
        the backend has one. Raises ProgramError for a value that cannot be copied."""

    @abstractmethod
    def restore(self, snapshot: Data) -> None:
        """Loads the key groups of this subtask from the snapshot. Called before the first
        ``state``."""

    def restore_pieces(self, prepared: PreparedPieces) -> None:
        """Takes over what was made of saved pieces for this kind of backend. Called before
        ``restore``."""
        raise EngineError(f"{type(self).__name__} has no pieces, and got {prepared!r}")

    @abstractmethod
    def restore_chunks(self, saved: Sequence[SavedChunks]) -> None:
        """Keeps what was saved in chunks for whoever registers it."""

    @property
    @abstractmethod
    def statistics(self) -> StateStatistics: ...

    @abstractmethod
    def measures(self) -> dict[str, float]:
        """How large the state is, by the names of the table of metrics: what is known without
        reading it."""

    @abstractmethod
    def close(self) -> None:
        """Releases memory and files."""
