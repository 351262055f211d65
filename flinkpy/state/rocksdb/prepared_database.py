"""Makes a database of the files of a checkpoint, for the key groups of one subtask. No entry is
decoded on the way.

With the parallelism of before, the files are the database. With another one, the database with most
of the subtask's key groups is the beginning: what is not the subtask's is deleted by ranges, and
the ranges that others have of its groups are taken in, each as one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flinkpy.core.errors import CheckpointDamagedError, ProgramError
from flinkpy.graph.checkpoints import KeyedPieces
from flinkpy.state.checkpoints.own_folder import OwnFolder
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.rocksdb.database import RocksDBConfig, RocksDBStore
from flinkpy.state.rocksdb.frozen_database import CONTENTS, Contents, SavedTable
from flinkpy.state.rocksdb.layout import GROUP, STATE
from flinkpy.state.snapshots.keyed_snapshots import check_max_parallelism
from flinkpy.state.snapshots.saved_state import PreparedPieces


@dataclass(frozen=True)
class PreparedDatabase(PreparedPieces):
    """An open database with these states. ``is_as_saved``: its files are those of the checkpoint,
    so later checkpoints may build on it."""

    store: RocksDBStore
    tables: dict[str, SavedTable]
    is_as_saved: bool


def prepare_database(
    reader: StateReader,
    saved: Sequence[KeyedPieces],
    max_parallelism: int,
    groups: range,
    config: RocksDBConfig,
) -> PreparedDatabase:
    """The database of these key groups, from what the subtasks saved that had some of them. Raises
    what the reader raises, and ProgramError if states do not fit together."""
    found = [_read_back(reader, pieces, config) for pieces in saved]
    for _, contents in found:
        check_max_parallelism(contents.max_parallelism, max_parallelism)
    found.sort(key=lambda each: _common(each[1].groups, groups), reverse=True)
    (folder, contents), *others = found
    definitions = {name: each for _, part in found for name, each in part.definitions.items()}
    prepared = open_database(folder, contents, config, definitions)
    try:
        _clip(prepared.store, prepared.tables.values(), contents.groups, groups)
        for folder, contents in others:
            other = open_database(folder, contents, config)
            try:
                _take_in(prepared, other, groups)
            finally:
                other.store.close()
    except BaseException:
        prepared.store.close()
        raise
    return replace(prepared, is_as_saved=not others and contents.groups == groups)


def open_database(
    folder: OwnFolder,
    contents: Contents,
    config: RocksDBConfig,
    definitions: dict[str, bytes] | None = None,
) -> PreparedDatabase:
    """The database in the folder, which goes with it."""
    store = RocksDBStore(
        config, folder, contents.definitions if definitions is None else definitions
    )
    return PreparedDatabase(store, dict(contents.tables), True)


def _read_back(
    reader: StateReader, pieces: KeyedPieces, config: RocksDBConfig
) -> tuple[OwnFolder, Contents]:
    if CONTENTS not in pieces.pieces:
        raise CheckpointDamagedError(
            "RocksDB state",
            "files with a table of contents",
            f"files {sorted(pieces.pieces)}"[:200],
        )
    folder = OwnFolder(config.directory)
    try:
        database = Path(folder.database)
        database.mkdir()
        reader.fetch(
            {
                str(database / name): handle
                for name, handle in pieces.pieces.items()
                if name != CONTENTS
            }
        )
        return folder, Contents.from_bytes(reader.read(pieces.pieces[CONTENTS]))
    except BaseException:
        folder.remove()
        raise


def _common(one: range, other: range) -> int:
    return min(one.stop, other.stop) - max(one.start, other.start)


def _place(number: int, group: int) -> bytes:
    """Where the entries of the group begin, in the state of that number."""
    return number.to_bytes(STATE, "big") + group.to_bytes(GROUP, "big")


def _clip(store: RocksDBStore, tables: Iterable[SavedTable], held: range, groups: range) -> None:
    """Deletes what is not in the groups."""
    for table in tables:
        if held.start < groups.start:
            store.delete_range(_place(table.number, held.start), _place(table.number, groups.start))
        if groups.stop < held.stop:
            store.delete_range(_place(table.number, groups.stop), _place(table.number, held.stop))


def _take_in(prepared: PreparedDatabase, other: PreparedDatabase, groups: range) -> None:
    """What the other database has of the groups. Each has its own numbers for the states."""
    tables = prepared.tables
    for name, theirs in other.tables.items():
        ours = tables.get(name)
        if ours is None:
            number = max((table.number for table in tables.values()), default=0) + 1
            ours = replace(theirs, number=number)
        elif ours.meta != theirs.meta:
            raise ProgramError(
                f"state {name!r} is a {ours.meta} in one subtask and a {theirs.meta} in another"
            )
        tables[name] = replace(
            ours,
            next_number=max(ours.next_number, theirs.next_number),
            forms_differ=ours.forms_differ or theirs.forms_differ,
        )
        begin, end = _place(theirs.number, groups.start), _place(theirs.number, groups.stop)
        prepared.store.ingest(_renumbered(other.store.scan_range(begin, end), ours.number))


def _renumbered(
    entries: Iterable[tuple[bytes, bytes]], number: int
) -> Iterator[tuple[bytes, bytes]]:
    prefix = number.to_bytes(STATE, "big")
    return ((prefix + key[STATE:], data) for key, data in entries)
