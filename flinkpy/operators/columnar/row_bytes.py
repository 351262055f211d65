"""Rows of columns as bytes, one value for each row, for a database that holds them by key.

Values of a fixed width stand side by side in a matrix, so that rows are cut by numpy; text and
bytes stand behind them. Values that have neither form, such as lists, are written as Arrow writes
them, row by row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

DIGEST = 8  # bytes in front of each row that say of which schema it is
_LENGTH = 4  # bytes of the length of a value of any width


class RowBytes:
    """Rows of one schema.

    >>> rows = pa.record_batch({"a": [1, None], "b": ["x", "yz"], "c": [[1], []]})
    >>> of = RowBytes(rows.schema)
    >>> of.decoded(of.encoded(rows)).equals(rows)
    True
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.serialized: bytes = schema.serialize().to_pybytes()
        self.digest = hashlib.blake2b(self.serialized, digest_size=DIGEST).digest()
        self._widths = [_width(field.type) for field in schema]
        # whether the value is there, and the value or its length
        sizes = [1 + (_LENGTH if width is None else width) for width in self._widths]
        self._starts = [DIGEST + sum(sizes[:at]) for at in range(len(sizes))]
        self._size = DIGEST + sum(sizes)

    def encoded(self, data: pa.RecordBatch) -> list[bytes]:
        """The bytes of each row."""
        count = data.num_rows
        matrix = np.zeros((count, self._size), np.uint8)
        matrix[:, :DIGEST] = np.frombuffer(self.digest, np.uint8)
        behind: list[list[bytes]] = []
        for column, width, start in zip(data.columns, self._widths, self._starts):
            matrix[:, start] = column.is_valid().to_numpy(zero_copy_only=False)
            begin = start + 1
            if width is not None:
                matrix[:, begin : begin + width] = _cells(_stored(column), width)
                continue
            values = _pieces(_stored(column))
            lengths = np.fromiter(map(len, values), np.uint32, count)
            matrix[:, begin : begin + _LENGTH] = lengths.view(np.uint8).reshape(-1, _LENGTH)
            behind.append(values)
        rows: list[bytes] = matrix.view(f"V{self._size}").ravel().tolist()
        return list(map(b"".join, zip(rows, *behind))) if behind else rows

    def decoded(self, rows: Sequence[bytes]) -> pa.RecordBatch:
        """The rows with these bytes."""
        size, count = self._size, len(rows)
        heads = rows if all(width is not None for width in self._widths) else _cut(rows, size)
        matrix = np.frombuffer(b"".join(heads), np.uint8).reshape(count, size)
        begins = np.full(count, size)
        columns = []
        for field, width, start in zip(self.schema, self._widths, self._starts):
            there, begin = matrix[:, start].astype(np.bool_), start + 1
            if width is not None:
                cells = np.ascontiguousarray(matrix[:, begin : begin + width])
                columns.append(_of_cells(field.type, cells, there))
                continue
            told = np.ascontiguousarray(matrix[:, begin : begin + _LENGTH])
            lengths = told.view(np.uint32).ravel().astype(np.int64)
            ends = begins + lengths
            pieces = [row[a:b] for row, a, b in zip(rows, begins.tolist(), ends.tolist())]
            columns.append(_of_pieces(field.type, pieces, lengths, there))
            begins = ends
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class Forms:
    """The schemas of rows that lie on disk, by their digests. That of an aggregate changes when a
    sum leaves 64 bits."""

    def __init__(self) -> None:
        self._by_digest: dict[bytes, RowBytes] = {}
        self._last: RowBytes | None = None

    def of(self, schema: pa.Schema) -> RowBytes:
        """The form of rows of this schema."""
        if self._last is None or not self._last.schema.equals(schema, check_metadata=True):
            self._last = self._add(RowBytes(schema))
        return self._last

    def restore(self, saved: Iterable[bytes]) -> None:
        for each in saved:
            self._add(RowBytes(pa.ipc.read_schema(pa.py_buffer(each))))

    def saved(self) -> list[bytes]:
        return [each.serialized for each in self._by_digest.values()]

    @property
    def schemas(self) -> list[pa.Schema]:
        return [each.schema for each in self._by_digest.values()]

    def decoded(self, rows: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
        """The rows of each schema."""
        by_form: dict[bytes, list[bytes]] = {}
        for row in rows:
            by_form.setdefault(row[:DIGEST], []).append(row)
        return (self._by_digest[digest].decoded(some) for digest, some in by_form.items())

    def _add(self, form: RowBytes) -> RowBytes:
        return self._by_digest.setdefault(form.digest, form)


def _width(kind: pa.DataType) -> int | None:
    """How many bytes each value takes; None if they differ."""
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    if pa.types.is_boolean(kind):
        return 1
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_interval(kind):
        return int(kind.bit_width) // 8
    return int(kind.byte_width) if pa.types.is_fixed_size_binary(kind) else None


def _stored(column: pa.Array) -> Any:
    return _stored(column.storage) if isinstance(column.type, pa.BaseExtensionType) else column


def _cells(column: pa.Array, width: int) -> Any:
    """The bytes of values of a fixed width, a row for each."""
    if pa.types.is_boolean(column.type):
        return column.fill_null(False).to_numpy(zero_copy_only=False).reshape(-1, 1)
    cells = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    return cells[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)


def _of_cells(kind: pa.DataType, cells: Any, there: Any) -> Any:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _of_cells(kind.storage_type, cells, there))
    if pa.types.is_boolean(kind):
        return pa.array(cells.ravel().astype(np.bool_), kind, mask=~there)
    return pa.Array.from_buffers(kind, len(there), [_bitmap(there), pa.py_buffer(cells)])


def _pieces(column: pa.Array) -> list[bytes]:
    """The bytes of each value; of one that is missing, none."""
    kind = column.type
    if _offsets(kind) is not None:
        plain = pa.large_binary() if _offsets(kind) is np.int64 else pa.binary()
        return [value or b"" for value in column.view(plain).to_pylist()]
    whole = pa.RecordBatch.from_arrays([column], ["value"])
    return [whole.slice(at, 1).serialize().to_pybytes() for at in range(len(column))]


def _of_pieces(kind: pa.DataType, pieces: list[bytes], lengths: Any, there: Any) -> Any:
    if isinstance(kind, pa.BaseExtensionType):
        stored = _of_pieces(kind.storage_type, pieces, lengths, there)
        return pa.ExtensionArray.from_storage(kind, stored)
    if (wide := _offsets(kind)) is not None:
        offsets = np.append(0, np.cumsum(lengths)).astype(wide)
        data = [_bitmap(there), pa.py_buffer(offsets), pa.py_buffer(b"".join(pieces))]
        return pa.Array.from_buffers(kind, len(there), data)
    schema = pa.schema([pa.field("value", kind)])
    parts = [pa.ipc.read_record_batch(pa.py_buffer(each), schema).column(0) for each in pieces]
    return pa.concat_arrays(parts) if parts else pa.array([], kind)


def _offsets(kind: pa.DataType) -> Any:
    """The type of the offsets of text and bytes; None of another type."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return np.int32
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return np.int64
    return None


def _bitmap(there: Any) -> Any:
    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


def _cut(rows: Sequence[bytes], size: int) -> list[bytes]:
    return [row[:size] for row in rows]
