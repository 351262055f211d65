"""Keyed state in pieces by key group, of which a checkpoint writes only those that have changed.

A piece is the snapshot of one key group, or of some neighbouring ones where there are many, and its
name has a digest of its bytes. So whether a group has changed is seen when it has been pickled,
whatever has changed it: nothing is noted while records are processed, and a value that was changed
in place cannot be missed. Pieces that an earlier checkpoint has are referred to where they are; the
others are written together into one file.

State that an operator holds in chunks has pieces of its own (``chunked_regions``), which are not
made again to see whether they have changed.

A file stays while any checkpoint refers to a piece in it. So that little of much is not kept for
long, a checkpoint refers to few earlier files: what it has in others is written anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any

from flinkpy.core.clock import Turns
from flinkpy.core.files.large_bytes import Data
from flinkpy.core.files.spill_file import SpillFile
from flinkpy.graph.checkpoints import KeyedPieces, OperatorSubtaskState, StateHandle
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.checkpoints.state_writer import StateWriter
from flinkpy.state.snapshots.chunked_regions import (
    ChunkedTable,
    SavedChunks,
    is_of_chunks,
    pieces_of,
    saved_chunks,
    with_chunks,
)
from flinkpy.state.snapshots.frozen_tables import FrozenTables
from flinkpy.state.snapshots.keyed_snapshots import (
    KeyedEntries,
    KeyedSnapshot,
    dump_groups,
    redistribute,
)
from flinkpy.state.snapshots.saved_state import FrozenInPieces

FORM = "key groups"  # of these pieces
_MOST_PIECES = 128  # of all subtasks of an operator; more would make manifests long
_WORTH_A_FILE = 1 << 16  # bytes of a chunk
_MOST_FILES = 4  # earlier ones that a subtask's checkpoint refers to


class FrozenGroups(FrozenInPieces):
    """Keyed state as it was at a barrier, of a backend that knows nothing of pieces."""

    def __init__(self, frozen: FrozenTables) -> None:
        self._frozen = frozen

    def write(self) -> bytes:
        return self._frozen.write()

    def chunks(self) -> Iterable[Data]:
        return self._frozen.chunks()

    def entries(self) -> KeyedEntries:
        return self._frozen.entries()

    def write_pieces(
        self, base: KeyedPieces | None, writer: StateWriter
    ) -> tuple[bytes, KeyedPieces]:
        turns = Turns()
        chunked, others = self._frozen.without(ChunkedTable)
        entries = others.entries(turns)
        snapshot = KeyedSnapshot(
            entries.max_parallelism, entries.states, dump_groups(entries.groups, turns)
        )
        made: dict[str, Iterable[Data]] = {
            _name(first, chunks): chunks for first, chunks in _pieces(snapshot)
        }
        regions = {name: table.region for name, table in chunked.items()}
        made |= {name: _OnDemand(make) for name, make in pieces_of(regions, turns)}
        kept = _kept(base.pieces if base is not None and base.form == FORM else {}, made)
        new = [name for name in made if name not in kept]
        written = dict(zip(new, writer.share([made[name] for name in new]))) if new else {}
        without_groups = KeyedSnapshot(snapshot.max_parallelism, snapshot.states, {})
        return without_groups.to_bytes(), KeyedPieces(FORM, {**kept, **written})


class _OnDemand(Iterable[bytes]):
    """The bytes of a piece, made when they are written: most pieces are there already."""

    def __init__(self, make: Callable[[], Iterable[bytes]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._make())


def read_keyed(
    state: OperatorSubtaskState,
    reader: StateReader,
    max_parallelism: int,
    groups: range,
    folders: Sequence[str] = (),
) -> Data | None:
    """What the subtask saved of the keyed state of these groups, or of more, without what stands in
    chunks; None if that is nothing, or if only its backend can read it. What is large lies in files
    under ``folders``."""
    if not groups or state.keyed is None:
        return None
    keyed = reader.view(state.keyed)
    if not is_by_groups(state.pieces):
        return keyed
    assert state.pieces is not None
    length = _length(max_parallelism)
    pieces = [
        reader.read(handle)
        for name, handle in sorted(state.pieces.pieces.items())
        if not is_of_chunks(name)
        and (first := _first_group(name)) < groups.stop
        and groups.start < first + length
    ]
    return redistribute([keyed, *pieces], groups, folders)


def read_all_keyed(
    state: OperatorSubtaskState, reader: StateReader, max_parallelism: int, groups: range
) -> Data | None:
    """The same, with what stands in chunks."""
    found = read_keyed(state, reader, max_parallelism, groups)
    chunks = {name: reader.read(handle) for name, handle in _chunk_pieces(state).items()}
    if found is None or not chunks:
        return found
    return with_chunks(KeyedSnapshot.from_bytes(found), chunks, groups).to_bytes()


def read_chunks(
    state: OperatorSubtaskState, reader: StateReader, groups: range, folders: Sequence[str]
) -> Sequence[SavedChunks]:
    """What the subtask saved of these groups in chunks. They are read one at a time, into files
    under ``folders`` that go with what is given."""
    found: dict[str, Any] = {}
    for name, handle in _chunk_pieces(state).items() if groups else ():
        found[name] = data = reader.view(handle)
        if isinstance(data, bytes) and len(data) >= _WORTH_A_FILE:
            file = SpillFile(folders)
            file.append([data])
            found[name] = file.mapped()
    return tuple(saved_chunks(found, groups))


def _chunk_pieces(state: OperatorSubtaskState) -> dict[str, StateHandle]:
    pieces = state.pieces
    if pieces is None or not is_by_groups(pieces):
        return {}
    return {name: handle for name, handle in pieces.pieces.items() if is_of_chunks(name)}


def is_by_groups(pieces: KeyedPieces | None) -> bool:
    """Whether the pieces are of this form."""
    return pieces is not None and pieces.form == FORM


def _pieces(snapshot: KeyedSnapshot) -> Iterator[tuple[int, list[Data]]]:
    """The first group that each piece is for, and its bytes."""
    length = _length(snapshot.max_parallelism)
    for number, groups in groupby(sorted(snapshot.groups), lambda group: group // length):
        piece = KeyedSnapshot(
            snapshot.max_parallelism,
            snapshot.states,
            {group: snapshot.groups[group] for group in groups},
        )
        yield number * length, list(piece.chunks())


def _length(max_parallelism: int) -> int:
    """How many groups a piece is for."""
    return -(-max_parallelism // _MOST_PIECES)


def _name(first_group: int, chunks: Iterable[Data]) -> str:
    digest = blake2b(digest_size=16)
    for chunk in chunks:
        digest.update(chunk)
    return f"{first_group}-{digest.hexdigest()}"


def _first_group(name: str) -> int:
    return int(name.partition("-")[0])


def _kept(known: Mapping[str, StateHandle], wanted: Iterable[str]) -> dict[str, StateHandle]:
    """Those of the known pieces that are wanted still, without those in files which have few of
    them."""
    found = {name: known[name] for name in wanted if name in known}
    used = Counter[str]()
    for handle in found.values():
        used[handle.shared_file or ""] += handle.length
    files = {"", *[file for file, _ in used.most_common() if file][:_MOST_FILES]}
    return {name: handle for name, handle in found.items() if (handle.shared_file or "") in files}
