"""Engine values of which memory holds those that are in use, and a disk the others.

While all of them fit, the operator reads and writes a dict, as with the heap backend. Once they
take more than their share of memory the whole dict leaves it: the operator goes on with an empty
one, the entries of the old one are written with the next batches, and a key that is looked up comes
into memory again. What memory has of a key is valid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from itertools import islice
from typing import Any, ClassVar, Protocol

from flinkpy.core.clock import Turns
from flinkpy.core.memory import size_of
from flinkpy.state.layered_values import LayeredValues
from flinkpy.state.layers.overlay import at_most, looking_at, parts_of_entries
from flinkpy.state.snapshots.frozen_tables import FrozenEntries, FrozenTable, GroupsOfKeys
from flinkpy.state.stored_forms import same

_MISSING = object()
_MEASURED = 8  # values whose size is looked at
_MEASURE_EVERY = 16  # batches
_ENTRY = 104  # bytes that a dict takes for an entry beside its key and value


class ValuesOnDisk(Protocol):
    """One value for each key. What is read is the reader's own."""

    def memory(self) -> int:
        """How many bytes of values the operator may keep in memory, by estimate."""
        ...

    def is_empty(self) -> bool: ...

    def read(self, keys: list[Any]) -> dict[Any, Any]:
        """The values of those of the keys that are there."""
        ...

    def write(self, entries: Iterable[tuple[Any, Any]]) -> None: ...

    def remove(self, keys: list[Any]) -> None: ...

    def pairs(self) -> Iterator[tuple[Any, Any]]: ...

    def freeze(self) -> FrozenTable: ...


class HeldValues:
    """The values of one name. ``rebind`` is called with the mapping to read and write."""

    at_once: ClassVar[int] = 1 << 12  # entries that are written with a batch

    def __init__(
        self,
        name: str,
        disk: ValuesOnDisk,
        rebind: Callable[[Any], None],
        copy: Callable[[Any], Any],
        copied_at_once: int,
    ) -> None:
        self._name, self._disk, self._rebind_user, self._copy = name, disk, rebind, copy
        self._copied_at_once = copied_at_once
        self._is_on_disk = not disk.is_empty()
        self.gone: dict[Any, None] = {}  # removed, and perhaps on disk
        self._leaving: Any = {}
        self._unwritten: Iterator[tuple[list[Any], list[Any]]] = iter(())
        self._bytes, self._countdown = 0.0, 0
        self._begin()

    def _begin(self) -> None:
        self.entries: Any = {}
        self._layered = LayeredValues(
            self._name, self.entries, self._rebind, self._copy, self._copied_at_once
        )
        self._rebind(self.entries)

    def _rebind(self, entries: dict[Any, Any]) -> None:
        self.entries = entries
        self._rebind_user(_Reached(self) if self._is_on_disk else entries)

    def read(self, key: Any) -> Any:
        """The value of a key that is not in memory, which is the operator's own."""
        if key in self.gone:
            return _MISSING
        if self._leaving and key in self._leaving:
            return self._copy(looking_at(self._leaving)(key))
        return self._disk.read([key]).get(key, _MISSING)

    def others(self) -> Iterator[tuple[Any, Any]]:
        """All that is not in memory."""
        self._finish()
        self._remove()
        entries = self.entries
        return (pair for pair in self._disk.pairs() if pair[0] not in entries)

    def keys(self) -> list[Any]:
        """All keys."""
        return [*self.entries, *(key for key, _ in self.others())]

    # -- memory ------------------------------------------------------------------------------------

    def after_batch(self) -> None:
        self._layered.after_batch()
        if self._leaving:
            self._write_some()
        elif self._is_too_large():
            self._remove()
            self._is_on_disk = True
            self._leaving = self.entries
            self._unwritten = parts_of_entries(self._leaving, self.at_once)
            self._begin()
        elif len(self.gone) >= self.at_once:
            self._remove()

    def _is_too_large(self) -> bool:
        count = at_most(self.entries)
        if self._countdown:
            self._countdown -= 1
        elif sample := list(islice(dict.items(self.entries), _MEASURED)):
            self._countdown = _MEASURE_EVERY
            sizes = [size_of(key) + size_of(value) for key, value in sample]
            self._bytes = _ENTRY + sum(sizes) / len(sizes)
        return count * self._bytes > self._disk.memory()

    def _write_some(self) -> None:
        keys, values = next(self._unwritten, ((), ()))
        if not keys:
            self._leaving = {}
        gone = self.gone
        self._disk.write(pair for pair in zip(keys, values) if pair[0] not in gone)

    def _finish(self) -> None:
        while self._leaving:
            self._write_some()

    def _remove(self) -> None:
        """Nothing leaves, or what leaves is not written without a look at these keys."""
        if self.gone:
            self._disk.remove(list(self.gone))
            if not self._leaving:
                self.gone = {}

    # -- checkpoints -------------------------------------------------------------------------------

    def freeze(self, groups_of_keys: GroupsOfKeys, shares_keys: bool) -> FrozenTable:
        """All values as they are now."""
        others = self.freeze_disk()
        return FrozenTogether([others, *self.freeze_memory(groups_of_keys, shares_keys)])

    def freeze_disk(self) -> FrozenTable:
        self._remove()
        return self._disk.freeze()

    def freeze_memory(self, groups_of_keys: GroupsOfKeys, shares_keys: bool) -> list[FrozenTable]:
        """Those that are not on disk, or not as they are now. Removals are on disk from now on."""
        self._remove()
        here = self._layered.freeze(groups_of_keys, shares_keys)
        if not self._leaving:
            return [here]
        gone, leaving = dict(self.gone), self._leaving

        def left(turns: Turns) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for keys, values in parts_of_entries(leaving, self.at_once):
                found.update(pair for pair in zip(keys, values) if pair[0] not in gone)
                turns.give_way()
            return found

        return [FrozenEntries(left, None, same, groups_of_keys, shares_keys), here]


class _Reached(MutableMapping[Any, Any]):
    """What the operator reads and writes when some values are on disk."""

    __slots__ = ("_entries", "_get", "_held")

    def __init__(self, held: HeldValues) -> None:
        self._held, self._entries = held, held.entries
        self._get = held.entries.get

    def get(self, key: object, default: object = None) -> Any:
        found = self._get(key, _MISSING)
        if found is _MISSING:
            found = self._held.read(key)
            if found is _MISSING:
                return default
            self._entries[key] = found
        return found

    def __getitem__(self, key: object) -> Any:
        found = self.get(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __setitem__(self, key: object, value: object) -> None:
        self._entries[key] = value

    def __delitem__(self, key: object) -> None:
        self[key]
        del self._entries[key]
        self._held.gone[key] = None

    def __contains__(self, key: object) -> bool:
        return self.get(key, _MISSING) is not _MISSING

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held.keys())

    def __len__(self) -> int:
        return len(self._held.keys())

    def items(self) -> Any:
        yield from list(self._entries.items())
        yield from self._held.others()


class FrozenTogether(FrozenTable):
    """Several parts of one state: where two have a key, the later one is valid."""

    def __init__(self, parts: list[FrozenTable]) -> None:
        self._parts = parts

    def pairs_of(self, group: int, turns: Turns) -> list[tuple[Any, Any]]:
        found: dict[Any, Any] = {}
        for part in self._parts:
            found.update(part.pairs_of(group, turns))
        return list(found.items())
