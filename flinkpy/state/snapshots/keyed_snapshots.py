"""Keyed snapshots: bytes divided by key group, so a job can be rescaled by moving groups without
unpickling any of them.

::

    "FKS" | version (1 byte) | length of header (4 bytes) | header (msgpack) | pickles by key group

The header names the states (kind, type, whether they expire) and gives the length of each group. A
group is a dict from the state's name to its (key, value) pairs in a form that does not depend on
the backend: expiring values stand as ``(value, last touched in ms)``, list and map states as lists
and dicts of these."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from flinkpy.core.clock import Turns
from flinkpy.core.errors import ProgramError
from flinkpy.core.program import code

MAGIC, VERSION = b"FKS", 1
_PREFIX = len(MAGIC) + 1 + 4
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

    def chunks(self, turns: Turns) -> list[bytes]:
        """The bytes of the snapshot."""
        return KeyedSnapshot(
            self.max_parallelism, self.states, dump_groups(self.groups, turns)
        ).chunks()


@dataclass(frozen=True)
class KeyedSnapshot:
    """A snapshot with its groups still pickled."""

    max_parallelism: int
    states: Mapping[str, StateMeta]
    groups: Mapping[int, bytes]

    def to_bytes(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self) -> list[bytes]:
        """The bytes, without joining what may be much."""
        order = sorted(self.groups)
        import msgpack

        header = msgpack.packb(
            {
                "max_parallelism": self.max_parallelism,
                "states": {
                    name: [meta.kind, meta.type, meta.expires] for name, meta in self.states.items()
                },
                "groups": [[group, len(self.groups[group])] for group in order],
            }
        )
        return [
            MAGIC + bytes([VERSION]) + len(header).to_bytes(4, "big") + header,
            *(self.groups[group] for group in order),
        ]

    @staticmethod
    def from_bytes(data: bytes) -> KeyedSnapshot:
        """Raises ProgramError if the bytes are no snapshot, or one of an unknown version."""
        if len(data) < _PREFIX or data[: len(MAGIC)] != MAGIC:
            raise ProgramError(
                f"these {len(data)} bytes are no keyed state: they do not begin with {MAGIC!r}"
            )
        if data[len(MAGIC)] != VERSION:
            raise ProgramError(
                f"keyed state of version {data[len(MAGIC)]} cannot be read, only version "
                f"{VERSION}: use the flinkpy that wrote it"
            )
        import msgpack

        start = _PREFIX + int.from_bytes(data[len(MAGIC) + 1 : _PREFIX], "big")
        try:
            header = msgpack.unpackb(data[_PREFIX:start])
            lengths = header["groups"]
        except (ValueError, KeyError, TypeError, msgpack.UnpackException) as error:
            raise ProgramError(f"the header of keyed state is damaged: {error!r}") from error
        if start + sum(length for _, length in lengths) != len(data):
            raise ProgramError(
                f"keyed state is cut short or damaged: its {len(data)} bytes are not what its "
                "header says"
            )
        groups = {}
        for group, length in lengths:
            groups[group] = data[start : start + length]
            start += length
        states = {name: StateMeta(*meta) for name, meta in header["states"].items()}
        return KeyedSnapshot(header["max_parallelism"], states, groups)

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


def redistribute(snapshots: Iterable[bytes], groups: range) -> bytes:
    """The snapshot for a new subtask that owns ``groups``, made of those of all old subtasks.
    Nothing is unpickled."""
    opened = [KeyedSnapshot.from_bytes(snapshot).within(groups) for snapshot in snapshots]
    if not opened:
        raise ProgramError("there is no keyed state to share out")
    states: dict[str, StateMeta] = {}
    merged: dict[int, bytes] = {}
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
    return KeyedSnapshot(opened[0].max_parallelism, states, merged).to_bytes()


def dump_groups(groups: Iterable[tuple[int, Group]], turns: Turns) -> dict[int, bytes]:
    """Pickles each group, by its number; with cloudpickle if it holds classes that cannot be
    imported. Raises ProgramError for what cannot be saved. Gives way between parts of a large
    group."""
    dumped: dict[int, bytes] = {}
    by_name = True
    for number, pairs_of_states in groups:
        turns.give_way()
        group = {
            name: pairs if len(pairs) < _LARGE else _InTurns(pairs, turns)
            for name, pairs in pairs_of_states.items()
        }
        if by_name:
            try:
                dumped[number] = pickle.dumps(group, 5)
                continue
            except _PICKLE_TROUBLE:
                by_name = False
        dumped[number] = code.dumps_state(group, f"the state of {_names(list(group))}")
    return dumped


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


def load_group(data: bytes) -> Group:
    group: Group = pickle.loads(data)
    return group


def _names(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
