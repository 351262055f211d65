"""State that an operator holds as rows in chunks which nobody changes. A checkpoint in pieces
writes a chunk once, and each time which of its rows are there, and what is kept beside them.

::

    chunk-REGION-NAME    an Arrow stream: the key group of each row, and the rows
    rows-REGION-DIGEST   msgpack: the chunks of now, and of each which rows are there (bits), and
                         the columns beside these rows (an Arrow stream)

A subtask that restores takes the rows of its key groups, chunk by chunk, as they may be more than
its memory holds. Snapshots in one piece have a table for each key group, as those of other regions,
and whoever wants one piece gets such tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.files.spool import Spool, Spooled, contents
from flinkpy.state.snapshots.arrow_streams import to_bytes, write_stream
from flinkpy.state.snapshots.frozen_tables import REGION, FrozenTable
from flinkpy.state.snapshots.keyed_snapshots import (
    KeyedSnapshot,
    StateMeta,
    dump_groups,
    load_group,
)

_CHUNK, _ROWS = "chunk-", "rows-"
_GROUP = "key_group"  # the first column of a chunk
_VERSION = 1
_TOGETHER = 1 << 15  # rows that an operator takes back together


@dataclass(frozen=True)
class FrozenChunk:
    """Rows as they were at a barrier. The ``name`` is that of these rows, dead or alive, and of no
    others ever. ``data`` gives the key group of each row, and the rows; ``alive`` says which are
    there, None: all. ``beside`` gives columns beside those that are there."""

    name: str
    data: Callable[[], tuple[Any, pa.RecordBatch]]
    alive: Any
    beside: Callable[[], pa.RecordBatch]


class FrozenChunks(ABC):
    """A region as it was. ``keys`` are those of all key groups, in their order; what has no room in
    memory while it is written lies in files under ``folders``."""

    keys: Sequence[int]
    folders: Sequence[str] = ()

    @abstractmethod
    def chunks(self, turns: Turns) -> Sequence[FrozenChunk]:
        """All rows that are there."""

    def in_one_piece(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a key group, with the columns beside them, as they stand in a snapshot in one
        piece."""
        return rows


class ChunkedTable(FrozenTable):
    """A region in chunks. It is asked for by key group where all is saved in one piece: then the
    chunks are cut by key group, one at a time."""

    def __init__(self, region: FrozenChunks) -> None:
        self.region = region
        self._parts: dict[int, list[Spooled]] | None = None  # by key group

    def pairs_of(self, group: int, turns: Turns) -> list[tuple[Any, Any]]:
        if self._parts is None:
            self._parts = self._cut(turns)
        parts = self._parts.pop(group, None)
        if parts is None:
            return []
        tables = [pa.ipc.open_stream(contents(part)).read_all() for part in parts]
        [rows] = pa.concat_tables(tables).combine_chunks().to_batches()
        rows = self.region.in_one_piece(rows)
        return [(self.region.keys[group], to_bytes(rows))] if rows.num_rows else []

    def _cut(self, turns: Turns) -> dict[int, list[Spooled]]:
        found: dict[int, list[Spooled]] = {}
        spool = Spool(self.region.folders)
        for chunk in self.region.chunks(turns):
            groups, data = chunk.data()
            if chunk.alive is not None:
                groups, data = groups[chunk.alive], data.filter(pa.array(chunk.alive))
            beside = chunk.beside()
            schema = pa.schema([*data.schema, *beside.schema])
            rows = pa.RecordBatch.from_arrays([*data.columns, *beside.columns], schema=schema)
            order = np.argsort(groups, kind="stable")
            rows, groups = rows.take(pa.array(order)), groups[order]
            there, starts, counts = np.unique(groups, return_index=True, return_counts=True)
            for group, start, count in zip(there.tolist(), starts.tolist(), counts.tolist()):
                part = spool.add(to_bytes(rows.slice(start, count)))
                found.setdefault(group, []).append(part)
            turns.give_way()
        return found


def pieces_of(
    regions: Mapping[str, FrozenChunks], turns: Turns
) -> Iterator[tuple[str, Callable[[], Iterable[bytes]]]]:
    """The names of all pieces, and what makes their bytes."""
    for region, frozen in sorted(regions.items()):
        told = []
        chunks = frozen.chunks(turns)
        for chunk in chunks:
            yield f"{_CHUNK}{region}-{chunk.name}", partial(_chunk_parts, chunk)
            beside = chunk.beside()
            told.append(
                {
                    "name": chunk.name,
                    "alive": None if chunk.alive is None else np.packbits(chunk.alive).tobytes(),
                    "beside": to_bytes(beside, "zstd") if beside.num_columns else None,
                }
            )
            turns.give_way()
        import msgpack

        rows: bytes = msgpack.packb(
            {"version": _VERSION, "region": region, "keys": list(frozen.keys), "chunks": told}
        )
        digest = blake2b(rows, digest_size=16).hexdigest()
        yield f"{_ROWS}{region}-{digest}", partial(list, [rows])


def is_of_chunks(piece: str) -> bool:
    """Whether a piece of this name is one of those above."""
    return piece.startswith((_CHUNK, _ROWS))


@dataclass(frozen=True)
class SavedChunks:
    """What a subtask saved of a region in chunks, as far as it is of these key groups. ``keys`` are
    those of all key groups. ``chunks`` has the stream of each chunk, bytes or a mapped file, and
    what is told of its rows. The rows of one chunk are in memory at a time."""

    region: str
    keys: Sequence[int]
    groups: range
    chunks: Sequence[tuple[Any, Mapping[str, Any]]]

    def within(self, groups: range) -> SavedChunks:
        """The same, as far as it is of these key groups too."""
        shared = range(max(self.groups.start, groups.start), min(self.groups.stop, groups.stop))
        return replace(self, groups=shared)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows that are there, with the columns beside them, some thousand at a time."""
        for _, rows in self._parts():
            yield from rows.to_batches(max_chunksize=_TOGETHER)

    def tables(self) -> list[tuple[int, tuple[int, bytes]]]:
        """All rows: a table for each key group, with its key."""
        found = list(self._parts())
        if not found:
            return []
        of_rows = np.concatenate([groups for groups, _ in found])
        whole = pa.concat_tables([rows for _, rows in found]).combine_chunks()
        order = np.argsort(of_rows, kind="stable")
        whole, of_rows = whole.take(pa.array(order)), of_rows[order]
        groups, starts, counts = np.unique(of_rows, return_index=True, return_counts=True)
        return [
            (group, (self.keys[group], to_bytes(whole.slice(start, count).combine_chunks())))
            for group, start, count in zip(groups.tolist(), starts.tolist(), counts.tolist())
        ]

    def _parts(self) -> Iterator[tuple[Any, pa.Table]]:
        """The key groups of rows, and the rows."""
        for stream, told in self.chunks:
            data = pa.ipc.open_stream(stream).read_all()
            if told["alive"] is not None:
                bits = np.frombuffer(told["alive"], np.uint8)
                alive = np.unpackbits(bits, count=len(data)).astype(np.bool_)
                data = data.filter(pa.array(alive))
            of_rows = data.column(0).to_numpy()
            columns = dict(zip(data.schema.names[1:], data.columns[1:]))
            if told["beside"] is not None:
                beside = pa.ipc.open_stream(told["beside"]).read_all()
                columns |= dict(zip(beside.schema.names, beside.columns))
            mine = (of_rows >= self.groups.start) & (of_rows < self.groups.stop)
            rows = pa.table(columns)
            yield (of_rows, rows) if mine.all() else (of_rows[mine], rows.filter(pa.array(mine)))


def saved_chunks(pieces: Mapping[str, Any], groups: range) -> list[SavedChunks]:
    """The regions of these pieces, which are bytes or mapped files. Raises CheckpointDamagedError
    if one is missing."""
    import msgpack

    found = []
    for piece in sorted(pieces):
        if not piece.startswith(_ROWS):
            continue
        told = msgpack.unpackb(pieces[piece])
        region, chunks = told["region"], []
        for chunk in told["chunks"]:
            name = f"{_CHUNK}{region}-{chunk['name']}"
            if name not in pieces:
                raise CheckpointDamagedError(f"piece {name}", "a chunk of rows", "no such piece")
            chunks.append((pieces[name], chunk))
        found.append(SavedChunks(region, told["keys"], groups, chunks))
    return found


def with_chunks(
    snapshot: KeyedSnapshot, pieces: Mapping[str, bytes], groups: range
) -> KeyedSnapshot:
    """The snapshot with the rows of these pieces, as far as they are of these key groups."""
    states: dict[str, StateMeta] = dict(snapshot.states)
    merged = dict(snapshot.groups)
    for saved in saved_chunks(pieces, groups):
        states[saved.region] = REGION
        both = {
            group: {**(load_group(merged[group]) if group in merged else {}), saved.region: [pair]}
            for group, pair in saved.tables()
        }
        merged |= dump_groups(both.items(), Turns())
    return KeyedSnapshot(snapshot.max_parallelism, states, merged)


def _chunk_parts(chunk: FrozenChunk) -> list[bytes]:
    groups, data = chunk.data()
    schema = pa.schema([pa.field(_GROUP, pa.int32()), *data.schema])
    columns = [pa.array(groups, pa.int32()), *data.columns]
    parts: list[bytes] = []
    write_stream(pa.RecordBatch.from_arrays(columns, schema=schema), parts.append)
    return parts
