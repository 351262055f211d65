"""Keyed snapshots: bytes divided by key group, so a job can be rescaled by moving groups without unpickling any of them.

::

    "FKS" | version (1 byte) | length of header (4 bytes) | header (msgpack) | one pickle per key group, back to back

The header names the states (kind, type, whether they expire) and gives the length of each group. A group is a dict from the state's name to its
(key, value) pairs in a form that does not depend on the backend: expiring values stand as ``(value, last touched in ms)``, list and map states as
lists and dicts of these.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from flinkpy.core.errors import ProgramError
from flinkpy.core.program import code

MAGIC, VERSION = b"FKS", 1
_PREFIX = len(MAGIC) + 1 + 4
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


@dataclass(frozen=True)
class KeyedSnapshot:
    """A snapshot with its groups still pickled."""

    max_parallelism: int
    states: Mapping[str, StateMeta]
    groups: Mapping[int, bytes]

    def to_bytes(self) -> bytes:
        order = sorted(self.groups)
        import msgpack

        header = msgpack.packb({
            "max_parallelism": self.max_parallelism,
            "states": {name: [meta.kind, meta.type, meta.expires] for name, meta in self.states.items()},
            "groups": [[group, len(self.groups[group])] for group in order],
        })
        return b"".join([MAGIC, bytes([VERSION]), len(header).to_bytes(4, "big"), header, *(self.groups[group] for group in order)])

    @staticmethod
    def from_bytes(data: bytes) -> KeyedSnapshot:
        """Raises ProgramError if the bytes are no snapshot, or one of an unknown version."""
        if len(data) < _PREFIX or data[: len(MAGIC)] != MAGIC:
            raise ProgramError(f"these {len(data)} bytes are no keyed state: they do not begin with {MAGIC!r}")
        if data[len(MAGIC)] != VERSION:
            raise ProgramError(f"keyed state of version {data[len(MAGIC)]} cannot be read, only version {VERSION}: use the flinkpy that wrote it")
        import msgpack

        start = _PREFIX + int.from_bytes(data[len(MAGIC) + 1 : _PREFIX], "big")
        try:
            header = msgpack.unpackb(data[_PREFIX:start])
            lengths = header["groups"]
        except (ValueError, KeyError, TypeError, msgpack.UnpackException) as error:
            raise ProgramError(f"the header of keyed state is damaged: {error!r}") from error
        if start + sum(length for _, length in lengths) != len(data):
            raise ProgramError(f"keyed state is cut short or damaged: its {len(data)} bytes are not what its header says")
        groups = {}
        for group, length in lengths:
            groups[group] = data[start : start + length]
            start += length
        states = {name: StateMeta(*meta) for name, meta in header["states"].items()}
        return KeyedSnapshot(header["max_parallelism"], states, groups)

    def within(self, groups: range) -> KeyedSnapshot:
        """The snapshot with only these groups."""
        return KeyedSnapshot(self.max_parallelism, self.states, {group: data for group, data in self.groups.items() if group in groups})


def redistribute(snapshots: Iterable[bytes], groups: range) -> bytes:
    """The snapshot for a new subtask that owns ``groups``, made of those of all old subtasks. Nothing is unpickled."""
    opened = [KeyedSnapshot.from_bytes(snapshot).within(groups) for snapshot in snapshots]
    if not opened:
        raise ProgramError("there is no keyed state to share out")
    states: dict[str, StateMeta] = {}
    merged: dict[int, bytes] = {}
    for part in opened:
        if part.max_parallelism != opened[0].max_parallelism:
            raise ProgramError(f"keyed state of max parallelism {part.max_parallelism} and of {opened[0].max_parallelism} do not belong together")
        for name, meta in part.states.items():
            if states.setdefault(name, meta) != meta:
                raise ProgramError(f"state {name!r} is a {states[name]} in one subtask and a {meta} in another")
        twice = merged.keys() & part.groups.keys()
        if twice:
            raise ProgramError(f"key group {min(twice)} is in two of the snapshots")
        merged.update(part.groups)
    return KeyedSnapshot(opened[0].max_parallelism, states, merged).to_bytes()


def dump_groups(groups: Iterable[tuple[int, Group]]) -> dict[int, bytes]:
    """Pickles each group, by its number; with cloudpickle if it holds classes that cannot be imported. Raises ProgramError for what cannot be
    saved."""
    dumped: dict[int, bytes] = {}
    by_name = True
    for number, group in groups:
        if by_name:
            try:
                dumped[number] = pickle.dumps(group, 5)
                continue
            except _PICKLE_TROUBLE:
                by_name = False
        dumped[number] = code.dumps(group, f"the state of {_names(list(group))}")
    return dumped


def load_group(data: bytes) -> Group:
    group: Group = pickle.loads(data)
    return group


def _names(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
