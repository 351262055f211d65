"""State that an operator holds as rows in chunks which nobody changes. A checkpoint in pieces
writes a chunk once, and each time which of its rows are there, and what is kept beside them.

::

    chunk-REGION-NAME    an Arrow stream: the key group of each row, and the rows
    rows-REGION-DIGEST   msgpack: the chunks of now, and of each which rows are there (bits), and
                         the columns beside these rows (an Arrow stream)

A subtask that restores takes the rows of its key groups. Snapshots in one piece have a table for
each key group, as those of other regions, and pieces become such tables when they are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.state.snapshots.arrow_streams import to_bytes
from flinkpy.state.snapshots.frozen_tables import REGION, FrozenEntries, FrozenTable
from flinkpy.state.snapshots.keyed_snapshots import (
    KeyedSnapshot,
    StateMeta,
    dump_groups,
    load_group,
)

_CHUNK, _ROWS = "chunk-", "rows-"
_GROUP = "key_group"  # the first column of a chunk
_VERSION = 1


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
    """A FrozenRegion: called, it gives the tables of key groups, under ``keys``: the key of each
    key group, in their order."""

    keys: Sequence[int]

    @abstractmethod
    def __call__(self, turns: Turns) -> Mapping[int, bytes]:
        """All rows that are there."""

    @abstractmethod
    def chunks(self, turns: Turns) -> Sequence[FrozenChunk]:
        """The same, in place of a call."""


class ChunkedTable(FrozenTable):
    """A region in chunks. It is asked for by key group where all is saved in one piece."""

    def __init__(self, region: FrozenChunks, entries: FrozenEntries) -> None:
        self.region = region
        self._entries = entries

    def pairs_of(self, group: int, turns: Turns) -> list[tuple[Any, Any]]:
        return self._entries.pairs_of(group, turns)


def pieces_of(
    regions: Mapping[str, FrozenChunks], turns: Turns
) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The names of all pieces, and what makes their bytes."""
    for region, frozen in sorted(regions.items()):
        told = []
        chunks = frozen.chunks(turns)
        for chunk in chunks:
            yield f"{_CHUNK}{region}-{chunk.name}", partial(_chunk_bytes, chunk)
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
        yield f"{_ROWS}{region}-{digest}", partial(bytes, rows)


def is_of_chunks(piece: str) -> bool:
    """Whether a piece of this name is one of those above."""
    return piece.startswith((_CHUNK, _ROWS))


def with_chunks(
    snapshot: KeyedSnapshot, pieces: Mapping[str, bytes], groups: range
) -> KeyedSnapshot:
    """The snapshot with the rows of these pieces, as far as they are of these key groups."""
    states: dict[str, StateMeta] = dict(snapshot.states)
    merged = dict(snapshot.groups)
    for piece in sorted(pieces):
        if not piece.startswith(_ROWS):
            continue
        region, tables = _tables(pieces[piece], pieces, groups)
        states[region] = REGION
        both = {
            group: {**(load_group(merged[group]) if group in merged else {}), region: [pair]}
            for group, pair in tables
        }
        merged |= dump_groups(both.items(), Turns())
    return KeyedSnapshot(snapshot.max_parallelism, states, merged)


def _tables(
    rows: bytes, pieces: Mapping[str, bytes], groups: range
) -> tuple[str, Iterable[tuple[int, tuple[int, bytes]]]]:
    """The name of a region, and a table for each key group with its key."""
    import msgpack

    told = msgpack.unpackb(rows)
    region, keys = told["region"], told["keys"]
    parts, groups_of_parts = [], []
    for chunk in told["chunks"]:
        name = f"{_CHUNK}{region}-{chunk['name']}"
        if name not in pieces:
            raise CheckpointDamagedError(f"piece {name}", "a chunk of rows", "no such piece")
        data = pa.ipc.open_stream(pieces[name]).read_all()
        alive = np.ones(len(data), np.bool_)
        if chunk["alive"] is not None:
            bits = np.frombuffer(chunk["alive"], np.uint8)
            alive = np.unpackbits(bits, count=len(data)).astype(np.bool_)
            data = data.filter(pa.array(alive))
        of_rows = data.column(0).to_numpy()
        columns = dict(zip(data.schema.names[1:], data.columns[1:]))
        if chunk["beside"] is not None:
            beside = pa.ipc.open_stream(chunk["beside"]).read_all()
            columns |= dict(zip(beside.schema.names, beside.columns))
        mine = (of_rows >= groups.start) & (of_rows < groups.stop)
        parts.append(pa.table(columns).filter(pa.array(mine)))
        groups_of_parts.append(of_rows[mine])
    if not parts:
        return region, ()
    whole = pa.concat_tables(parts).combine_chunks()
    of_rows = np.concatenate(groups_of_parts)
    order = np.argsort(of_rows, kind="stable")
    whole, of_rows = whole.take(pa.array(order)), of_rows[order]
    found, starts, counts = np.unique(of_rows, return_index=True, return_counts=True)
    return region, [
        (group, (keys[group], to_bytes(whole.slice(start, count).combine_chunks())))
        for group, start, count in zip(found.tolist(), starts.tolist(), counts.tolist())
    ]


def _chunk_bytes(chunk: FrozenChunk) -> bytes:
    groups, data = chunk.data()
    schema = pa.schema([pa.field(_GROUP, pa.int32()), *data.schema])
    columns = [pa.array(groups, pa.int32()), *data.columns]
    return to_bytes(pa.RecordBatch.from_arrays(columns, schema=schema))
