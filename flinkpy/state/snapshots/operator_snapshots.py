"""Operator snapshots: state that belongs to no key, divided into pieces, so a job can be rescaled
by moving pieces without unpickling any of them.

::

    "FOS" | version (1 byte) | length of header (4 bytes) | header (msgpack) | one pickle per piece

A piece is one element of a list, or all of a broadcast state. The header has the states, how each
is redistributed, and the length of each piece."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.program import code

MAGIC, VERSION = b"FOS", 1
_PREFIX = len(MAGIC) + 1 + 4
_PICKLE_TROUBLE = (pickle.PicklingError, AttributeError, TypeError)


class Sharing(Enum):
    """How a state is redistributed among the subtasks when the operator starts again."""

    SPLIT = "list state"  # with another parallelism: each element to one subtask, in equal shares
    UNION = "union list state"  # every element to every subtask
    BROADCAST = "broadcast state"  # the same in all subtasks


@dataclass(frozen=True)
class OperatorStateMeta:
    """Sharing and type of a saved state."""

    sharing: Sharing
    type: str

    def __str__(self) -> str:
        return f"{self.sharing.value} of {self.type}"


@dataclass(frozen=True)
class OperatorSnapshot:
    """A snapshot of one subtask, with its pieces still pickled."""

    states: Mapping[str, OperatorStateMeta]
    pieces: Mapping[str, Sequence[bytes]]

    def to_bytes(self) -> bytes:
        import msgpack

        header = msgpack.packb(
            [
                [name, meta.sharing.name, meta.type, list(map(len, self.pieces[name]))]
                for name, meta in self.states.items()
            ]
        )
        bodies = [piece for name in self.states for piece in self.pieces[name]]
        return b"".join([MAGIC, bytes([VERSION]), len(header).to_bytes(4, "big"), header, *bodies])

    @staticmethod
    def from_bytes(data: bytes) -> OperatorSnapshot:
        """Raises ProgramError if the bytes are no snapshot, or one of an unknown version."""
        if len(data) < _PREFIX or data[: len(MAGIC)] != MAGIC:
            raise ProgramError(
                f"these {len(data)} bytes are no operator state: they do not begin with {MAGIC!r}"
            )
        if data[len(MAGIC)] != VERSION:
            raise ProgramError(
                f"operator state of version {data[len(MAGIC)]} cannot be read, only version "
                f"{VERSION}: use the flinkpy that wrote it"
            )
        import msgpack

        start = _PREFIX + int.from_bytes(data[len(MAGIC) + 1 : _PREFIX], "big")
        try:
            header = msgpack.unpackb(data[_PREFIX:start])
            states = {
                name: OperatorStateMeta(Sharing[sharing], type_name)
                for name, sharing, type_name, _ in header
            }
            total = sum(sum(lengths) for _, _, _, lengths in header)
        except (ValueError, KeyError, TypeError, msgpack.UnpackException) as error:
            raise ProgramError(f"the header of operator state is damaged: {error!r}") from error
        if start + total != len(data):
            raise ProgramError(
                f"operator state is cut short or damaged: its {len(data)} bytes are not what "
                "its header says"
            )
        pieces: dict[str, list[bytes]] = {}
        for name, _, _, lengths in header:
            of_state = pieces[name] = []
            for length in lengths:
                of_state.append(data[start : start + length])
                start += length
        return OperatorSnapshot(states, pieces)


def nothing_saved() -> bytes:
    """The snapshot of a subtask without operator state. It counts all the same: with unchanged
    parallelism each list stays where it was."""
    return OperatorSnapshot({}, {}).to_bytes()


def redistribute_operator_state(snapshots: Iterable[bytes], new_parallelism: int) -> list[bytes]:
    """The snapshot of each new subtask, made of those of all old subtasks in their order. Nothing
    is unpickled.

    As in Flink: with unchanged parallelism lists stay where they were, else they are cut into
    shares that differ by one at most (the larger shares of one state go on where those of the last
    one ended); union lists go to all; broadcast state is taken from one subtask each, in turn."""
    before = [OperatorSnapshot.from_bytes(snapshot) for snapshot in snapshots]
    if not before:
        raise ProgramError("there is no operator state to share out")
    if new_parallelism < 1:
        raise ProgramError(f"operator state cannot be shared out to {new_parallelism} subtasks")
    states = _common_states(before)
    after: list[dict[str, Sequence[bytes]]] = [{} for _ in range(new_parallelism)]
    first_larger = 0
    for name, meta in states.items():
        of_subtasks = [list(snapshot.pieces.get(name, ())) for snapshot in before]
        if meta.sharing is Sharing.BROADCAST:
            known = [
                pieces for pieces, snapshot in zip(of_subtasks, before) if name in snapshot.states
            ]
            shares = [known[subtask % len(known)] for subtask in range(new_parallelism)]
        elif meta.sharing is Sharing.UNION:
            shares = [[piece for pieces in of_subtasks for piece in pieces]] * new_parallelism
        elif new_parallelism == len(before):
            shares = of_subtasks
        else:
            shares, first_larger = _split(
                [piece for pieces in of_subtasks for piece in pieces], new_parallelism, first_larger
            )
        for subtask, share in enumerate(shares):
            after[subtask][name] = share
    return [OperatorSnapshot(states, pieces).to_bytes() for pieces in after]


def _common_states(snapshots: Sequence[OperatorSnapshot]) -> dict[str, OperatorStateMeta]:
    states: dict[str, OperatorStateMeta] = {}
    for snapshot in snapshots:
        for name, meta in snapshot.states.items():
            if states.setdefault(name, meta) != meta:
                raise ProgramError(
                    f"state {name!r} is a {states[name]} in one subtask and a {meta} in another"
                )
    return states


def _split(pieces: list[bytes], shares: int, first_larger: int) -> tuple[list[list[bytes]], int]:
    """Divides into shares of equal size; those that are one larger begin at ``first_larger``. Also
    returns where the next ones should begin."""
    size, larger = divmod(len(pieces), shares)
    cut: list[list[bytes]] = []
    start = 0
    for share in range(shares):
        end = start + size + ((share - first_larger) % shares < larger)
        cut.append(pieces[start:end])
        start = end
    return cut, (first_larger + larger) % shares


def dump_pieces(name: str, values: Iterable[Any]) -> list[bytes]:
    """Pickles each value, with cloudpickle if it holds classes that cannot be imported. Raises
    ProgramError for what cannot be saved."""
    dumped: list[bytes] = []
    for value in values:
        try:
            dumped.append(pickle.dumps(value, 5))
        except _PICKLE_TROUBLE:
            dumped.append(code.dumps_state(value, f"the state of {name!r}"))
    return dumped


def load_piece(data: bytes) -> Any:
    return code.loads(data)
