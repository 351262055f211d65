"""Keyed snapshots: bytes divided by key group, so a job can be rescaled by moving groups without
unpickling any of them.

::

    "FKS" | version (1 byte) | length of header (4 bytes) | header (msgpack)
    key group (4 bytes) | length (8 bytes) | pickle                 of each key group
    END (4 bytes) | number of groups (8 bytes)

The header names the states (kind, type, whether they expire). A snapshot is written group by group,
and read so: all of it may be more than memory holds. (Those of version 1 had the lengths of groups
in their header.) A group is a dict from the state's name to its (key, value) pairs in a form that
does not depend on the backend: expiring values stand as ``(value, last touched in ms)``, list and
map states as lists and dicts of these."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from flinkpy.core.clock import Turns
from flinkpy.core.errors import ProgramError
from flinkpy.core.files.large_bytes import Data, gathered
from flinkpy.core.program import code

MAGIC, VERSION = b"FKS", 2
_PREFIX = len(MAGIC) + 1 + 4
_FRAME = struct.Struct(">IQ")  # a key group and its length
END = (1 << 32) - 1  # in place of a key group
_LARGE = 1 << 10  # pairs that are pickled in one go
_PICKLE_TROUBLE = (pickle.PicklingError, AttributeError, TypeError)

Group: TypeAlias = "dict[str, list[tuple[Any, Any]]]"  # state name -> (key, value) pairs


@dataclass(frozen=True)
class StateMeta:
    """Kind and type of a saved state."""

    kind: str
    type: str
    expires: bool

    def __str__(self) -> str:
        return f"{self.kind} of {self.type}{', expiring' if self.expires else ''}"


class KeyedEntries(NamedTuple):
    """All keyed state of one operator in one subtask: its states, and their entries by key group,
    in rising order, as they stand in a group."""

    max_parallelism: int
    states: Mapping[str, StateMeta]
    groups: Iterator[tuple[int, Group]]

    def to_bytes(self) -> bytes:
        """As a snapshot."""
        return b"".join(self.chunks(Turns()))

    def chunks(self, turns: Turns) -> Iterator[Data]:
        """The bytes of the snapshot, of one key group at a time."""
        return _framed(self.max_parallelism, self.states, _dumped(self.groups, turns))


@dataclass(frozen=True)
class KeyedSnapshot:
    """A snapshot with its groups still pickled."""

    max_parallelism: int
    states: Mapping[str, StateMeta]
    groups: Mapping[int, Data]

    def to_bytes(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[Data]:
        """The bytes, without joining what may be much."""
        groups = ((group, self.groups[group]) for group in sorted(self.groups))
        return _framed(self.max_parallelism, self.states, groups)

    @staticmethod
    def from_bytes(data: Data) -> KeyedSnapshot:
        """Raises ProgramError if the bytes are no snapshot, or one of an unknown version."""
        if len(data) < _PREFIX or data[: len(MAGIC)] != MAGIC:
            raise ProgramError(
                f"these {len(data)} bytes are no keyed state: they do not begin with {MAGIC!r}"
            )
        version = data[len(MAGIC)]
        if not 1 <= version <= VERSION:
            raise ProgramError(
                f"keyed state of version {version} cannot be read, only up to version "
                f"{VERSION}: use the flinkpy that wrote it"
            )
        import msgpack

        start = _PREFIX + int.from_bytes(data[len(MAGIC) + 1 : _PREFIX], "big")
        try:
            header = msgpack.unpackb(data[_PREFIX:start])
            states = {name: StateMeta(*meta) for name, meta in header["states"].items()}
            max_parallelism: int = header["max_parallelism"]
            lengths = header["groups"] if version == 1 else None
        except (ValueError, KeyError, TypeError, msgpack.UnpackException) as error:
            raise ProgramError(f"the header of keyed state is damaged: {error!r}") from error
        groups = _groups_in(data, start) if lengths is None else _cut(data, start, lengths)
        if groups is None:
            raise ProgramError(f"keyed state is cut short or damaged: it has {len(data)} bytes")
        return KeyedSnapshot(max_parallelism, states, groups)

    def entries(self) -> KeyedEntries:
        """What is in it, unpickled group by group."""
        return KeyedEntries(
            self.max_parallelism,
            self.states,
            ((number, load_group(data)) for number, data in sorted(self.groups.items())),
        )

    def within(self, groups: range) -> KeyedSnapshot:
        """The snapshot with only these groups."""
        return KeyedSnapshot(
            self.max_parallelism,
            self.states,
            {group: data for group, data in self.groups.items() if group in groups},
        )


def check_max_parallelism(saved: int, declared: int) -> None:
    """ProgramError if the state was saved with another max parallelism than the program has."""
    if saved != declared:
        raise ProgramError(
            f"the state was saved with max parallelism {saved}, the program has {declared}: "
            f"call set_max_parallelism({saved}), it cannot change"
        )


def _framed(
    max_parallelism: int, states: Mapping[str, StateMeta], groups: Iterable[tuple[int, Data]]
) -> Iterator[Data]:
    import msgpack

    header = msgpack.packb(
        {
            "max_parallelism": max_parallelism,
            "states": {name: [meta.kind, meta.type, meta.expires] for name, meta in states.items()},
        }
    )
    yield MAGIC + bytes([VERSION]) + len(header).to_bytes(4, "big") + header
    count = 0
    for number, data in groups:
        yield _FRAME.pack(number, len(data))
        yield data
        count += 1
    yield _FRAME.pack(END, count)


def _groups_in(data: Data, start: int) -> dict[int, Data] | None:
    """The groups whose frames begin there; None if that is not what was written."""
    groups: dict[int, Data] = {}
    while start + _FRAME.size <= len(data):
        number, length = _FRAME.unpack_from(data, start)
        start += _FRAME.size
        if number == END:
            return groups if length == len(groups) and start == len(data) else None
        groups[number] = data[start : start + length]
        start += length
    return None


def _cut(data: Data, start: int, lengths: Sequence[tuple[int, int]]) -> dict[int, Data] | None:
    """The groups of version 1."""
    if start + sum(length for _, length in lengths) != len(data):
        return None
    groups = {}
    for group, length in lengths:
        groups[group] = data[start : start + length]
        start += length
    return groups


def redistribute(snapshots: Iterable[Data], groups: range, folders: Sequence[str] = ()) -> Data:
    """The snapshot for a new subtask that owns ``groups``, made of those of all old subtasks.
    Nothing is unpickled. What is large lies in a file under ``folders``."""
    given = list(snapshots)
    opened = [KeyedSnapshot.from_bytes(snapshot) for snapshot in given]
    if len(opened) == 1 and all(group in groups for group in opened[0].groups):
        return given[0]
    opened = [each.within(groups) for each in opened]
    if not opened:
        raise ProgramError("there is no keyed state to share out")
    states: dict[str, StateMeta] = {}
    merged: dict[int, Data] = {}
    for part in opened:
        if part.max_parallelism != opened[0].max_parallelism:
            raise ProgramError(
                f"keyed state of max parallelism {part.max_parallelism} and of "
                f"{opened[0].max_parallelism} do not belong together"
            )
        for name, meta in part.states.items():
            if states.setdefault(name, meta) != meta:
                raise ProgramError(
                    f"state {name!r} is a {states[name]} in one subtask and a {meta} in another"
                )
        twice = merged.keys() & part.groups.keys()
        if twice:
            raise ProgramError(f"key group {min(twice)} is in two of the snapshots")
        merged.update(part.groups)
    return gathered(KeyedSnapshot(opened[0].max_parallelism, states, merged).chunks(), folders)


def dump_groups(groups: Iterable[tuple[int, Group]], turns: Turns) -> dict[int, bytes]:
    """Pickles each group, by its number; with cloudpickle if it holds classes that cannot be
    imported. Raises ProgramError for what cannot be saved. Gives way between parts of a large
    group."""
    return dict(_dumped(groups, turns))


def _dumped(groups: Iterable[tuple[int, Group]], turns: Turns) -> Iterator[tuple[int, bytes]]:
    by_name = True
    for number, pairs_of_states in groups:
        turns.give_way()
        group = {
            name: pairs if len(pairs) < _LARGE else _InTurns(pairs, turns)
            for name, pairs in pairs_of_states.items()
        }
        if by_name:
            try:
                yield number, pickle.dumps(group, 5)
                continue
            except _PICKLE_TROUBLE:
                by_name = False
        yield number, code.dumps_state(group, f"the state of {_names(list(group))}")


class _InTurns:
    """Is pickled as the list that it holds; other threads run in between."""

    def __init__(self, pairs: list[tuple[Any, Any]], turns: Turns) -> None:
        self._pairs, self._turns = pairs, turns

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (), None, self._items()

    def _items(self) -> Iterator[tuple[Any, Any]]:
        for start in range(0, len(self._pairs), _LARGE):
            yield from self._pairs[start : start + _LARGE]
            self._turns.give_way()


def load_group(data: Data) -> Group:
    group: Group = pickle.loads(data)
    return group


def _names(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
