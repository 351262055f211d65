"""The kinds of state as user functions see them, with PyFlink's names. Keyed state belongs to the
key of the current record or timer.

What a state returns is a private copy: changing it changes nothing in the state until it is written
back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from flinkpy.core.program.program_line import refuse

if TYPE_CHECKING:
    from flinkpy.state.descriptors import ListStateDescriptor, MapStateDescriptor

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Any state of the current key."""

    @abstractmethod
    def clear(self) -> None:
        """Removes the state of the current key."""


class ValueState(State, Generic[T]):
    """One value."""

    @abstractmethod
    def value(self) -> T | None:
        """The value, or None if none was set."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Sets it; None clears."""


class AppendingState(State, Generic[IN, OUT]):
    """Values are added, and something made of them is read."""

    @abstractmethod
    def get(self) -> OUT | None:
        """What was made of the values so far."""

    @abstractmethod
    def add(self, value: IN) -> None: ...


class MergingState(AppendingState[IN, OUT]):
    """Appending state that can be merged, as that of merging windows is."""


class ReducingState(MergingState[T, T]):
    """All values reduced to one; ``get`` gives None before the first."""


class AggregatingState(MergingState[IN, OUT]):
    """An accumulator of all values; ``get`` gives its result, None before the first."""


class ListState(MergingState[T, Iterable[T]]):
    """The values themselves, in the order they came."""

    @abstractmethod
    def get(self) -> list[T]: ...

    @abstractmethod
    def update(self, values: Iterable[T] | None) -> None:
        """Replaces all of them; None or an empty list clears."""

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None: ...

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ReadableMap(State, Generic[K, V]):
    """The methods that read a mapping."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool: ...

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]: ...

    @abstractmethod
    def keys(self) -> Iterable[K]: ...

    @abstractmethod
    def values(self) -> Iterable[V]: ...

    @abstractmethod
    def is_empty(self) -> bool: ...

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class WritableMap(ReadableMap[K, V]):
    """The methods that read and write a mapping."""

    @abstractmethod
    def put(self, key: K, value: V) -> None: ...

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Puts all of a dict, or of an iterable of pairs."""

    @abstractmethod
    def remove(self, key: K) -> None: ...

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class ReadOnlyBroadcastState(ReadableMap[K, V]):
    """Broadcast state, where it may only be read."""


class BroadcastState(WritableMap[K, V], ReadOnlyBroadcastState[K, V]):
    """A mapping that is the same in all subtasks. The broadcast side may write it."""


class MapState(WritableMap[K, V]):
    """A mapping for each key of the stream. The state may be changed while iterating over
    ``items``, ``keys`` or ``values``."""


class OperatorStateStore(ABC):
    """Gives access to state that belongs to no key. The same name gives the same state."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list of this subtask. Restored with another parallelism, the elements of all subtasks
        are divided anew among them.

        >>> saved = context.get_operator_state_store().get_list_state(
        ...     ListStateDescriptor("buffer", Types.STRING())
        ... )  # doctest: +SKIP
        """

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """The same, but when restored every subtask gets all elements of all subtasks, and picks
        its own."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A mapping that the program keeps the same in all subtasks, so any subtask can be restored
        from any other's."""


def pairs_of(entries: Mapping[K, V] | Iterable[tuple[K, V]]) -> Iterable[tuple[K, V]]:
    """The pairs that ``put_all`` was given. Refuses anything else.

    >>> list(pairs_of({"a": 1})), list(pairs_of([("a", 1)]))
    ([('a', 1)], [('a', 1)])
    """
    if isinstance(entries, Mapping):
        return entries.items()
    try:
        return [(key, value) for key, value in entries]
    except (TypeError, ValueError):
        raise refuse(
            f"put_all() takes a dict or pairs of key and value, this is {entries!r:.80}"
        ) from None
