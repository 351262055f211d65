"""Columns of a window join as pieces of a file (``spilled_slices``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

import pyarrow as pa

from flinkpy.operators.columnar.column_operators import one_batch
from flinkpy.operators.columnar.tables_by_group import by_group, from_bytes, group_numbers
from flinkpy.operators.spilling.spilled_slices import PieceForm
from flinkpy.state.snapshots.arrow_streams import to_bytes

_COPIES = 2  # of the data of rows that are joined: one is their window's
_ROW = 64  # bytes of a row's number and its place by key


class OneSide(NamedTuple):
    """Rows of one side."""

    side: int
    data: pa.RecordBatch


class ColumnsForm(PieceForm[OneSide]):
    """Arrow streams, compressed. ``keys`` has the key columns of each side."""

    at_once: ClassVar[int] = 1 << 14  # rows of a piece

    def __init__(self, keys: Sequence[Sequence[str]]) -> None:
        self._keys = keys

    def size(self, piece: OneSide) -> int:
        nbytes: int = piece.data.nbytes
        rows: int = piece.data.num_rows
        return _COPIES * nbytes + _ROW * rows

    def dumps(self, piece: OneSide) -> bytes:
        return bytes([piece.side]) + to_bytes(piece.data, compression="lz4")

    def loads(self, data: bytes) -> OneSide:
        return OneSide(data[0], from_bytes(data[1:]))

    def by_key(self, piece: OneSide, parts: int) -> Iterator[tuple[int, OneSide]]:
        numbers = group_numbers(piece.data, self._keys[piece.side], parts)
        for number, data in by_group(piece.data, numbers):
            yield number, OneSide(piece.side, data)

    def together(self, pieces: list[OneSide]) -> Iterator[OneSide]:
        for side in range(len(self._keys)):
            yield from self.cut(side, [piece.data for piece in pieces if piece.side == side])

    def cut(self, side: int, batches: Iterable[pa.RecordBatch]) -> Iterator[OneSide]:
        """The rows in pieces."""
        batches = list(batches)
        if not batches:
            return
        data = one_batch(pa.Table.from_batches(batches))
        for begin in range(0, data.num_rows, self.at_once):
            yield OneSide(side, data.slice(begin, self.at_once))
