"""Broadcast state, and the same where it may only be read.

Reading is one look into a dict; what could be changed in place was copied when it was put, and is
copied again when it is given out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_key
from flinkpy.state.api import BroadcastState, ReadableMap, ReadOnlyBroadcastState, pairs_of
from flinkpy.state.state_isolation import protect, release


class _Reading(ReadableMap[Any, Any]):
    """What reading and writing views share."""

    __slots__ = ("_entries",)

    def __init__(self, entries: dict[Any, Any]) -> None:
        self._entries = entries

    def get(self, key: object) -> Any:
        return release(self._entries.get(canonical_key(key)))

    def contains(self, key: object) -> bool:
        return canonical_key(key) in self._entries

    def items(self) -> list[tuple[Any, Any]]:
        return [(key, release(stored)) for key, stored in self._entries.items()]

    def keys(self) -> list[Any]:
        return list(self._entries)

    def values(self) -> list[Any]:
        return [release(stored) for stored in self._entries.values()]

    def is_empty(self) -> bool:
        return not self._entries

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self._entries)} entries>"


class HeapBroadcastState(_Reading, BroadcastState[Any, Any]):
    """Broadcast state for the broadcast side, which may write it."""

    __slots__ = ()

    def put(self, key: object, value: object) -> None:
        self._entries[canonical_key(key)] = protect(value)

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in pairs_of(dict_value):
            self.put(key, value)

    def remove(self, key: object) -> None:
        self._entries.pop(canonical_key(key), None)

    def clear(self) -> None:
        self._entries.clear()

    def read_only(self, name: str) -> HeapReadOnlyBroadcastState:
        """A view of this state that cannot be written."""
        return HeapReadOnlyBroadcastState(name, self._entries)


class HeapReadOnlyBroadcastState(_Reading, ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state for the elements' side and for timers. They differ between subtasks, so what
    they wrote would not be the same in all."""

    __slots__ = ("_name",)

    def __init__(self, name: str, entries: dict[Any, Any]) -> None:
        super().__init__(entries)
        self._name = name

    def _refuse(self, *arguments: Any) -> NoReturn:
        raise ProgramError(
            f"broadcast state {self._name!r} is read-only here: it is written in "
            "process_broadcast_element(), so that it is the same in all subtasks"
        )

    put = put_all = remove = clear = __setitem__ = __delitem__ = _refuse
