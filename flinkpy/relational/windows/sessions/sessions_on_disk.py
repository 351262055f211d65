"""Open sessions that an operator has no room for in memory. All that is held of a key is one row
(``due_rows_on_disk``), with a list of what each table has of it, due when the first of its sessions
could end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.operators.columnar.due_rows_on_disk import DUE, DueRowsOnDisk
from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.groups.listed_parts import listed, unlisted
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.relational_operator import empty_batch
from flinkpy.relational.windows.sessions.open_sessions import OpenSessions, Tables
from flinkpy.state.backend import KeyedStateBackend


class SessionsOnDisk:
    """Those that leave ``memory``, or are taken back into it; ``name`` is that of the state."""

    def __init__(
        self, memory: OpenSessions[Any], backend: KeyedStateBackend, name: str, max_parallelism: int
    ) -> None:
        self._memory = memory
        self._width = len(memory.keys[0])
        nothing = [empty_batch(each) for each in memory.schemas]
        self._lists = [pa.list_(pa.struct(list(each))) for each in memory.schemas]
        self._schema = pa.schema(
            [
                *self._keys_in(nothing, 0).schema,
                pa.field(DUE, pa.int64()),
                *(pa.field(f"table {at}", kind) for at, kind in enumerate(self._lists)),
            ],
            metadata=memory.schemas[0].metadata,
        )
        self._disk = DueRowsOnDisk(backend, name, max_parallelism, self._keys_of)
        self._begin_anew()
        self._restored = self._disk.restored()

    def schemas_saved(self) -> list[pa.Schema]:
        """Of what was saved; with the metadata of the first table."""
        return [*self._disk.schemas, *(rows.schema for rows in self._restored)]

    def restore(self) -> None:
        """Has in memory what another backend had on disk, or this one on its way there."""
        for rows in self._restored:
            self._memory.put(self._tables_of(rows))
        self._restored = []

    def _begin_anew(self) -> None:
        # keys of which nothing is on disk, as they came since sessions have left
        self._known = KeyIndex(key_names(self._width), self._disk.places)

    @property
    def next_moment(self) -> int | None:
        """Before this no session ends; None: there is none."""
        return self._disk.next_moment

    @property
    def nbytes(self) -> int:
        """What is in memory of it: what finds keys."""
        return held_bytes(self._known)

    # -- into memory -------------------------------------------------------------------------------

    def bring_back(self, keys: list[pa.Array]) -> None:
        """Has in memory what there is of these keys."""
        if self._disk.holds:
            batch = key_batch(keys)
            for rows in self._disk.lacked(self._known, batch):
                self._memory.put(self._tables_of(rows))
            self._known.numbers(batch)

    def due(self, until: int) -> Iterator[OpenSessions[Any]]:
        """All sessions of the keys of which one ends until then, some keys at a time. They are the
        caller's: neither here nor in memory any more."""
        for rows in self._disk.due_rows(until):
            sessions = self._memory.empty()
            sessions.put(self._tables_of(rows))
            yield sessions

    # -- onto disk ---------------------------------------------------------------------------------

    def relieve(self, rows: int) -> None:
        """So many rows came into memory. Sessions beyond their share of it leave."""
        if not self._disk.has_disk or not self._disk.is_due(rows):
            return
        held = self._memory.rows
        if self._disk.is_too_much(held, held_bytes(self._memory, self._known)):
            tables, last_moments = self._memory.taken()
            self._begin_anew()
            self._leave(tables, last_moments)

    def _leave(self, tables: Tables, last_moments: Any) -> None:
        index = KeyIndex(key_names(self._width), self._disk.places)
        numbered = index.numbers(self._keys_in(tables, 0))
        numbers = [numbered.ids]
        numbers += [index.numbers(self._keys_in(tables, at)).ids for at in range(1, len(tables))]
        dues = np.full(index.size, MAX_TIMESTAMP)
        np.minimum.at(dues, numbered.ids, last_moments)
        lists = [
            listed(of, table.columns, kind, index.size)
            for of, table, kind in zip(numbers, tables, self._lists)
        ]
        keys = self._keys_in(tables, 0).take(pa.array(numbered.fresh))
        columns = [*keys.columns, pa.array(dues), *lists]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._disk.leave(index, np.arange(index.size), rows)

    # -- rows of keys ------------------------------------------------------------------------------

    def _keys_in(self, tables: Tables, at: int) -> pa.RecordBatch:
        return key_batch([tables[at].column(place) for place in self._memory.keys[at]])

    def _keys_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return key_batch(rows.columns[: self._width])

    def _tables_of(self, rows: pa.RecordBatch) -> Tables:
        lists = rows.columns[self._width + 1 :]
        nothing = np.zeros(rows.num_rows, np.int64)
        return [
            pa.RecordBatch.from_arrays(unlisted(each, nothing)[1], schema=schema)
            for each, schema in zip(lists, self._memory.schemas)
        ]
