"""Writes what an operator of a subtask saves in the canonical form: for each state a file, one key
group after the other."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from flinkpy.core.ids import OperatorId
from flinkpy.graph.checkpoints import OperatorSubtaskState, StateTable
from flinkpy.state.canonical.state_file import StateFile
from flinkpy.state.checkpoints.state_writer import CountedFile, StateWriter
from flinkpy.state.snapshots.keyed_snapshots import KeyedEntries
from flinkpy.state.snapshots.operator_snapshots import OperatorSnapshot, Sharing, load_piece
from flinkpy.state.snapshots.saved_state import FrozenState

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Place:
    """Whose state it is. ``part`` tells what an attempt of a subtask writes from what any other
    does: ``"3-0"``."""

    operator_id: OperatorId
    operator: str
    part: str


def write_canonical(writer: StateWriter, frozen: FrozenState, place: Place) -> OperatorSubtaskState:
    """Writes the state of one operator of a subtask. May be called in another thread. Raises what
    the store raises, and ProgramError for values that cannot be saved; the caller aborts the writer
    then."""
    tables: list[StateTable] = []
    if frozen.keyed is not None:
        tables += _write_keyed(writer, frozen.keyed.entries(), place)
    if frozen.operator is not None:
        tables += _write_operator_state(writer, OperatorSnapshot.from_bytes(frozen.operator), place)
    return OperatorSubtaskState(tables=tuple(tables))


def _write_keyed(writer: StateWriter, entries: KeyedEntries, place: Place) -> Iterator[StateTable]:
    files = {
        name: _file(
            writer,
            StateTable(name, True, meta.kind, meta.type, meta.expires),
            place,
            entries.max_parallelism,
        )
        for name, meta in entries.states.items()
    }
    for number, group in entries.groups:
        for name, pairs in group.items():
            add = files[name].add
            for key, value in pairs:
                add(key, value, number)
    return (file.close() for file in files.values())


def _write_operator_state(
    writer: StateWriter, snapshot: OperatorSnapshot, place: Place
) -> Iterator[StateTable]:
    for name, meta in snapshot.states.items():
        file = _file(
            writer, StateTable(name, False, meta.sharing.name, meta.type, False), place, None
        )
        for piece in snapshot.pieces[name]:
            value = load_piece(piece)
            if meta.sharing is Sharing.BROADCAST:
                for key, each in value.items():
                    file.add(key, each)
            else:
                file.add(None, value)
        yield file.close()


def _file(
    writer: StateWriter, table: StateTable, place: Place, max_parallelism: int | None
) -> StateFile:
    name = file_name(table, place)
    description = {
        "operator": place.operator,
        "operator_id": place.operator_id,
        "max_parallelism": max_parallelism,
    }

    def create() -> CountedFile:
        return writer.create_file(name)

    return StateFile(table, create, description)


def file_name(table: StateTable, place: Place) -> str:
    """The name of the state's file, which no other state of the savepoint has."""
    state = _plain(table.name) if table.keyed else f"{_plain(table.name)}.{table.kind.lower()}"
    operator = _NOT_IN_NAMES.sub("_", place.operator)[:60]
    return f"{operator}-{place.operator_id[:8]}.{state}.{place.part}.parquet"


def _plain(name: str) -> str:
    """For the name of a file, which people read and patterns find. Names that differ stay
    different."""
    plain = _NOT_IN_NAMES.sub("_", name)[:60]
    return (
        plain
        if plain == name
        else f"{plain}-{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"
    )
