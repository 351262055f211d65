"""Reads the canonical form, and gives what a task restores from: the same bytes by key group and
piece as in any other checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from flinkpy.core.clock import Turns
from flinkpy.core.errors import CheckpointDamagedError
from flinkpy.core.files.large_bytes import Data, gathered
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

ReadBytes: TypeAlias = Callable[[StateHandle], Data]

_PART = 20_000  # rows that become values at a time


def read_canonical(
    tables: Sequence[StateTable],
    read: ReadBytes,
    max_parallelism: int,
    groups: range,
    folders: Sequence[str] = (),
) -> SavedState:
    """What the operator of one old subtask saved, of keyed state only these key groups. ``read``
    gives the bytes of a handle, or CheckpointDamagedError. What is large lies in files under
    ``folders``."""
    keyed = [table for table in tables if table.keyed] if groups else []
    listed = [table for table in tables if not table.keyed]
    entries = _keyed_entries(keyed, read, max_parallelism, groups) if keyed else None
    return SavedState(
        None if entries is None else gathered(entries.chunks(Turns()), folders),
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
    # what was written together is read together: rows may be large
    groups = range(file.metadata.num_row_groups)
    batches = chain.from_iterable(file.iter_batches(_PART, row_groups=[each]) for each in groups)
    if isinstance(columns, TableRows):
        yield from columns.entries(batches)
        return
    for batch in batches:
        yield columns.entries(batch, loads)


def _opened(handle: StateHandle, read: ReadBytes) -> Any:
    try:
        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(read(handle))))
    except pa.ArrowException as error:
        raise CheckpointDamagedError(
            str(handle.path), "a Parquet file", f"{type(error).__name__}: {error}"
        ) from error


def _keyed_entries(
    tables: Sequence[StateTable], read: ReadBytes, max_parallelism: int, groups: range
) -> KeyedEntries:
    """Each file has its key groups in order, so all are read side by side."""
    metas = {table.name: StateMeta(table.kind, table.type, table.expires) for table in tables}
    by_group = merge(*(_pairs_of(table, read, groups) for table in tables), key=itemgetter(0))
    return KeyedEntries(max_parallelism, metas, _together(by_group))


def _together(
    found: Iterable[tuple[int, str, list[tuple[Any, Any]]]],
) -> Iterator[tuple[int, Group]]:
    for group, parts in groupby(found, key=itemgetter(0)):
        pairs: Group = {}
        for _, name, some in parts:
            pairs.setdefault(name, []).extend(some)
        yield group, pairs


def _pairs_of(
    table: StateTable, read: ReadBytes, groups: range
) -> Iterator[tuple[int, str, list[tuple[Any, Any]]]]:
    """The pairs of a state in parts, of one key group each."""
    last = -1
    for entries in entries_of(table, read):
        rows = zip(entries.groups or (), entries.keys or (), entries.values)
        for group, some in groupby(rows, key=itemgetter(0)):
            if group < last:
                raise CheckpointDamagedError(
                    str(table.handle and table.handle.path), "key groups in order", f"{group}"
                )
            last = group
            if group in groups:
                yield group, table.name, [(key, value) for _, key, value in some]


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
