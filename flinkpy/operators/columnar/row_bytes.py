"""Rows of columns as bytes, one value for each row, for a database that holds them by key.

Values of a fixed width stand side by side in a matrix, so that rows are cut by numpy; text and
bytes stand behind them, and lists, whose elements have the same form. Other values, such as maps,
are written as Arrow writes them, row by row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

DIGEST = 8  # bytes in front of each row that say of which schema it is
_LENGTH = 4  # bytes of the length of a value of any width


class _Cells:
    """Values of these types, some for each row. Those of a fixed width, and the lengths of others,
    are columns of a matrix, from ``start`` on. ``as_arrow``: lists are written as Arrow does."""

    def __init__(self, kinds: Sequence[pa.DataType], start: int, *, as_arrow: bool) -> None:
        self._kinds, self._start = kinds, start
        self._widths = list(map(_width, kinds))
        lists = [None if as_arrow or not pa.types.is_list(kind) else _Lists(kind) for kind in kinds]
        self._lists = lists
        # whether the value is there, and the value or its length
        sizes = [1 + (_LENGTH if width is None else width) for width in self._widths]
        self._starts = [start + sum(sizes[:at]) for at in range(len(sizes))]
        self.size = start + sum(sizes)
        self.have_one_size = None not in self._widths

    def encoded(self, columns: Sequence[pa.Array], count: int) -> tuple[Any, list[list[bytes]]]:
        """The matrix, and the bytes of each column that stands behind it."""
        matrix = np.zeros((count, self.size), np.uint8)
        behind: list[list[bytes]] = []
        for column, width, start, lists in zip(columns, self._widths, self._starts, self._lists):
            matrix[:, start] = column.is_valid().to_numpy(zero_copy_only=False)
            begin = start + 1
            if width is not None:
                matrix[:, begin : begin + width] = _cells(_stored(column), width)
                continue
            values = _pieces(_stored(column)) if lists is None else lists.encoded(column)
            lengths = np.fromiter(map(len, values), np.uint32, count)
            matrix[:, begin : begin + _LENGTH] = lengths.view(np.uint8).reshape(-1, _LENGTH)
            behind.append(values)
        return matrix, behind

    def decoded(
        self, matrix: Any, begins: Any, cut: Callable[[Any, Any], list[bytes]]
    ) -> list[pa.Array]:
        """``cut`` gives the bytes behind the matrix from some places to others; those of each row
        begin at ``begins``."""
        columns = []
        for kind, width, start, lists in zip(self._kinds, self._widths, self._starts, self._lists):
            there, begin = matrix[:, start].astype(np.bool_), start + 1
            if width is not None:
                cells = np.ascontiguousarray(matrix[:, begin : begin + width])
                columns.append(_of_cells(kind, cells, there))
                continue
            lengths = _numbers(matrix[:, begin : begin + _LENGTH])
            pieces = cut(begins, begins + lengths)
            if lists is None:
                columns.append(_of_pieces(kind, pieces, lengths, there))
            else:
                columns.append(lists.decoded(pieces, there))
            begins = begins + lengths
        return columns

    def lengths(self, matrix: Any) -> Any:
        """How many bytes each row has behind the matrix."""
        found = np.zeros(len(matrix), np.int64)
        for width, start in zip(self._widths, self._starts):
            if width is None:
                found += _numbers(matrix[:, start + 1 : start + 1 + _LENGTH])
        return found


class _Lists:
    """Lists of one type. Each is the number of its elements, their cells, and what stands behind
    these."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind, element = kind, kind.value_type
        self._is_struct = pa.types.is_struct(element)
        # whether an element is there stands in front of its fields
        kinds = [pa.bool_(), *(each.type for each in element)] if self._is_struct else [element]
        self._cells = _Cells(kinds, 0, as_arrow=False)

    def encoded(self, column: pa.Array) -> list[bytes]:
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        elements = column.flatten()
        columns = [elements]
        if self._is_struct:
            columns = [elements.is_valid(), *elements.flatten()]
        matrix, behind = self._cells.encoded(columns, len(elements))
        ends = np.cumsum(lengths)
        spans = list(zip((ends - lengths).tolist(), ends.tolist()))
        size, cells = self._cells.size, matrix.tobytes()
        heads = [cells[size * begin : size * end] for begin, end in spans]
        counts = lengths.astype(np.uint32).view(f"V{_LENGTH}").tolist()
        if not behind:
            return list(map(b"".join, zip(counts, heads)))
        tails = list(map(b"".join, zip(*behind)))
        rests = [b"".join(tails[begin:end]) for begin, end in spans]
        return list(map(b"".join, zip(counts, heads, rests)))

    def decoded(self, pieces: list[bytes], there: Any) -> pa.Array:
        joined = b"".join(piece[:_LENGTH] for piece in pieces)
        counts = np.frombuffer(joined, np.uint32).astype(np.int64)
        ends = _LENGTH + self._cells.size * counts
        heads = b"".join([piece[_LENGTH:end] for piece, end in zip(pieces, ends.tolist())])
        matrix = np.frombuffer(heads, np.uint8).reshape(int(counts.sum()), self._cells.size)
        behind = b"".join([piece[end:] for piece, end in zip(pieces, ends.tolist())])
        lengths = self._cells.lengths(matrix)

        def cut(begins: Any, ends: Any) -> list[bytes]:
            return [behind[a:b] for a, b in zip(begins.tolist(), ends.tolist())]

        columns = self._cells.decoded(matrix, np.cumsum(lengths) - lengths, cut)
        element = self._kind.value_type
        elements = columns[0]
        if self._is_struct:
            bitmap = _bitmap(columns[0].to_numpy(zero_copy_only=False))
            elements = pa.Array.from_buffers(element, len(matrix), [bitmap], children=columns[1:])
        offsets = pa.py_buffer(np.append(0, np.cumsum(counts)).astype(np.int32))
        buffers = [_bitmap(there), offsets]
        return pa.Array.from_buffers(self._kind, len(there), buffers, children=[elements])


class RowBytes:
    """Rows of one schema. ``as_arrow``: with lists as Arrow writes them, as in older savepoints.

    >>> rows = pa.record_batch({"a": [1, None], "b": ["x", "yz"], "c": [[1], []]})
    >>> of = RowBytes(rows.schema)
    >>> of.decoded(of.encoded(rows)).equals(rows)
    True
    """

    def __init__(self, schema: pa.Schema, *, as_arrow: bool = False) -> None:
        self.schema = schema
        self.serialized: bytes = schema.serialize().to_pybytes()
        form = b"" if as_arrow or not _has_lists(schema) else b"lists"
        digest = hashlib.blake2b(self.serialized, digest_size=DIGEST, person=form)
        self.digest = digest.digest()
        self._cells = _Cells([field.type for field in schema], DIGEST, as_arrow=as_arrow)

    def encoded(self, data: pa.RecordBatch) -> list[bytes]:
        """The bytes of each row."""
        matrix, behind = self._cells.encoded(data.columns, data.num_rows)
        matrix[:, :DIGEST] = np.frombuffer(self.digest, np.uint8)
        rows: list[bytes] = matrix.view(f"V{self._cells.size}").ravel().tolist()
        return list(map(b"".join, zip(rows, *behind))) if behind else rows

    def decoded(self, rows: Sequence[bytes]) -> pa.RecordBatch:
        """The rows with these bytes."""
        size, count = self._cells.size, len(rows)
        heads = rows if self._cells.have_one_size else [row[:size] for row in rows]
        matrix = np.frombuffer(b"".join(heads), np.uint8).reshape(count, size)

        def cut(begins: Any, ends: Any) -> list[bytes]:
            return [row[a:b] for row, a, b in zip(rows, begins.tolist(), ends.tolist())]

        columns = self._cells.decoded(matrix, np.full(count, size), cut)
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
            schema = pa.ipc.read_schema(pa.py_buffer(each))
            self._add(RowBytes(schema))
            self._add(RowBytes(schema, as_arrow=True))

    def saved(self) -> list[bytes]:
        return list(dict.fromkeys(each.serialized for each in self._by_digest.values()))

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


def _has_lists(schema: pa.Schema) -> bool:
    return any(pa.types.is_list(kind) for kind in schema.types)


def _numbers(cells: Any) -> Any:
    found = np.ascontiguousarray(cells).view(np.uint32).ravel()
    return found.astype(np.int64)


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
