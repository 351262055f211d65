"""Reads the canonical form, and gives what a task restores from: the same bytes by key group and
piece as in any other checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.program import code
from flinkpy.graph.checkpoints import StateHandle, StateTable
from flinkpy.state.canonical.exact_column import Loads
from flinkpy.state.canonical.state_columns import Entries, StateColumns
from flinkpy.state.canonical.table_rows import TableRows
from flinkpy.state.snapshots.keyed_snapshots import Group, KeyedEntries, StateMeta
from flinkpy.state.snapshots.operator_snapshots import (
    OperatorSnapshot,
    OperatorStateMeta,
    Sharing,
    dump_pieces,
)
from flinkpy.state.snapshots.saved_state import SavedState

ReadBytes: TypeAlias = Callable[[StateHandle], bytes]

_PART = 20_000  # rows that become values at a time


def read_canonical(
    tables: Sequence[StateTable], read: ReadBytes, max_parallelism: int, groups: range
) -> SavedState:
    """What the operator of one old subtask saved, of keyed state only these key groups. ``read``
    gives the bytes of a handle, or CheckpointDamagedError."""
    keyed = [table for table in tables if table.keyed] if groups else []
    listed = [table for table in tables if not table.keyed]
    return SavedState(
        _keyed_entries(keyed, read, max_parallelism, groups).to_bytes() if keyed else None,
        _operator_snapshot(listed, read).to_bytes() if listed else None,
    )


def entries_of(table: StateTable, read: ReadBytes, loads: Loads = code.loads) -> Iterator[Entries]:
    """The entries of one state, a bounded part at a time; ``loads`` unpickles what has no type."""
    if table.handle is None:
        return
    file = _opened(table.handle, read)
    where = str(table.handle.path)
    columns = TableRows.of_schema(file.schema_arrow) or StateColumns.of_schema(
        file.schema_arrow, where
    )
    if file.metadata.num_rows != table.rows:
        raise CheckpointDamagedError(
            str(table.handle.path), f"{table.rows} rows", f"{file.metadata.num_rows}"
        )
    if isinstance(columns, TableRows):
        yield from columns.entries(file.iter_batches(_PART))
        return
    for batch in file.iter_batches(_PART):
        yield columns.entries(batch, loads)


def _opened(handle: StateHandle, read: ReadBytes) -> Any:
    try:
        return pq.ParquetFile(pa.BufferReader(read(handle)))
    except pa.ArrowException as error:
        raise CheckpointDamagedError(
            str(handle.path), "a Parquet file", f"{type(error).__name__}: {error}"
        ) from error


def _keyed_entries(
    tables: Sequence[StateTable], read: ReadBytes, max_parallelism: int, groups: range
) -> KeyedEntries:
    found: dict[int, Group] = {}
    for table in tables:
        for entries in entries_of(table, read):
            for group, key, value in zip(entries.groups or (), entries.keys or (), entries.values):
                if group in groups:
                    found.setdefault(group, {}).setdefault(table.name, []).append((key, value))
    metas = {table.name: StateMeta(table.kind, table.type, table.expires) for table in tables}
    return KeyedEntries(max_parallelism, metas, iter(sorted(found.items())))


def _operator_snapshot(tables: Sequence[StateTable], read: ReadBytes) -> OperatorSnapshot:
    pieces = {}
    for table in tables:
        values: list[Any] = []
        for entries in entries_of(table, read):
            values += entries.values if entries.keys is None else zip(entries.keys, entries.values)
        is_broadcast = table.kind == Sharing.BROADCAST.name
        pieces[table.name] = dump_pieces(table.name, [dict(values)] if is_broadcast else values)
    return OperatorSnapshot(
        {table.name: OperatorStateMeta(Sharing[table.kind], table.type) for table in tables}, pieces
    )
