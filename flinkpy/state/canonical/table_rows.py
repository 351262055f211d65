"""State that operators keep as Arrow tables, under keys of their key groups: rows, groups, lists of
rows. In the canonical form its columns are columns of the file.

::

    key_group | $key | the columns of the tables       a row a row

``$key`` is the key under which the row's table is kept, a number that says nothing. Values that
stand beside a row (how often it is there, when it was written to) are columns whose names begin
with ``$``, too."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flinkpy.graph.checkpoints import StateTable
from flinkpy.state.canonical.state_columns import FORMAT, KEY_GROUP, METADATA_KEY, VERSION, Entries
from flinkpy.state.descriptors import StateKind

LAYOUT, ROWS = "layout", "rows"  # in the description of a file
KEY = "$key"
_STREAM = b"\xff\xff\xff\xff"  # how an Arrow stream begins


class TableRows:
    """The columns of one state's file. ``schema`` is that of its tables."""

    def __init__(self, schema: pa.Schema, description: Mapping[str, Any]) -> None:
        self._tables = schema
        self.description = description
        fields = [
            pa.field(KEY_GROUP, pa.int32(), nullable=False),
            pa.field(KEY, pa.int64(), nullable=False),
        ]
        self.schema = pa.schema([*fields, *schema], {METADATA_KEY: json.dumps(description)})

    @staticmethod
    def fitting(
        table: StateTable, key: object, value: object, description: Mapping[str, Any]
    ) -> TableRows | None:
        """For a state with this first entry; None if its values are no tables, or Parquet has no
        type for a column."""
        if table.kind != StateKind.REGION.value or type(key) is not int or not _is_table(value):
            return None
        schema = _opened(value).schema
        if not len(schema) or {KEY_GROUP, KEY} & set(schema.names):
            return None
        try:
            pq.write_table(schema.empty_table(), pa.BufferOutputStream())
        except pa.ArrowNotImplementedError:
            return None
        told = {
            "format": FORMAT,
            "version": VERSION,
            "name": table.name,
            "kind": table.kind,
            "type": table.type,
            "expires": table.expires,
            **description,
            LAYOUT: ROWS,
            "schema": base64.b64encode(schema.serialize().to_pybytes()).decode(),
        }
        return TableRows(schema, told)

    @staticmethod
    def of_schema(schema: pa.Schema) -> TableRows | None:
        """As the file's schema says; None if it is of another layout."""
        told = json.loads((schema.metadata or {}).get(METADATA_KEY, b"{}"))
        if told.get(LAYOUT) != ROWS or told["version"] != VERSION:
            return None
        tables = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(told["schema"])))
        return TableRows(tables, told)

    def batch(self, entries: Entries) -> Any:
        """The rows of these tables as a record batch."""
        tables = [_opened(each).read_all() for each in entries.values]
        counts = [len(each) for each in tables]
        rows = pa.concat_tables([each.cast(self._tables) for each in tables])
        groups, keys = (
            pa.array(np.repeat(np.array(each, np.int64), counts))
            for each in (entries.groups, entries.keys)
        )
        columns = [groups.cast(pa.int32()), keys, *rows.columns]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def entries(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Entries]:
        """The tables of all rows, one by one."""
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            keys = batch.column(1).to_numpy()
            starts = np.append(0, np.flatnonzero(np.diff(keys)) + 1) if len(keys) else keys
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(keys)]):
                part = batch.slice(start, end - start)
                if waiting and waiting[-1].column(1)[0] != part.column(1)[0]:
                    yield self._entry(waiting)
                    waiting = []
                waiting.append(part)
        if waiting:
            yield self._entry(waiting)

    def _entry(self, parts: Sequence[pa.RecordBatch]) -> Entries:
        group, key = (parts[0].column(at)[0].as_py() for at in (0, 1))
        rows = pa.Table.from_batches(parts).select(range(2, 2 + len(self._tables)))
        rows = rows.cast(self._tables).combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._tables) as writer:
            writer.write_table(rows)
        return Entries([group], [key], [sink.getvalue().to_pybytes()])


def weight_of(value: object) -> int:
    """How much there is to write, in numbers; 0 of what is no table."""
    return len(value) // 64 if isinstance(value, bytes) and _is_table(value) else 0


def _is_table(value: object) -> bool:
    return isinstance(value, bytes) and value.startswith(_STREAM)


def _opened(value: Any) -> Any:
    return pa.ipc.open_stream(value)
