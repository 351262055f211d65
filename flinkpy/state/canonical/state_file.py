"""Writes the entries of one state of one subtask to a Parquet file, a bounded part at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flinkpy.core.memory import size_of
from flinkpy.graph.checkpoints import StateHandle, StateTable
from flinkpy.state.canonical.state_columns import Entries, StateColumns
from flinkpy.state.canonical.table_rows import TableRows, weight_of
from flinkpy.state.checkpoints.state_writer import CountedFile

_PART = 20_000  # entries, or elements of lists and maps in them, that are written together
_PART_BYTES = 8 << 20  # the same in bytes, by estimate
_MEASURED = 32  # one of so many entries is measured


class StateFile:
    """``create`` makes the file when there is a first entry: a state without entries has none."""

    def __init__(
        self, table: StateTable, create: Callable[[], CountedFile], description: Mapping[str, Any]
    ) -> None:
        self._table = table
        self._create = create
        self._description = description
        self._columns: StateColumns | TableRows | None = None
        self._file: CountedFile | None = None
        self._writer: Any = None
        self._groups: list[int] = []
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self._weight = self._bytes = self._rows = 0

    def add(self, key: object, value: Any, group: int = 0) -> None:
        """One entry. Groups come in rising order."""
        self._groups.append(group)
        self._keys.append(key)
        self._values.append(value)
        self._weight += 1 + (len(value) if type(value) in (list, dict) else weight_of(value))
        if len(self._values) % _MEASURED == 1:
            self._bytes += _MEASURED * size_of(value)
        if self._weight >= _PART or self._bytes >= _PART_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._columns is None:
            first = self._table, self._keys[0], self._values[0], self._description
            self._columns = TableRows.fitting(*first) or StateColumns.of(*first)
            self._file = self._create()
            self._writer = pq.ParquetWriter(
                pa.PythonFile(self._file, mode="w"), self._columns.schema, compression="zstd"
            )
        keyed = self._table.keyed
        batch = self._columns.batch(
            Entries(self._groups if keyed else None, self._keys, self._values)
        )
        self._writer.write_table(batch, row_group_size=max(1, len(batch)))
        self._rows += len(batch)
        self._groups = []
        self._keys = []
        self._values = []
        self._weight = self._bytes = 0

    def close(self) -> StateTable:
        """The state with its file, which appears when the writer of the subtask's state is
        closed."""
        if self._values:
            self._flush()
        handle = None
        if self._file is not None:
            self._writer.close()
            handle = StateHandle(self._file.length, self._file.checksum, path=self._file.name)
        return StateTable(
            self._table.name,
            self._table.keyed,
            self._table.kind,
            self._table.type,
            self._table.expires,
            self._rows,
            handle,
        )
