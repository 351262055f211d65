"""Rows of a store, and what is kept beside them, as they were at a barrier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.tables_by_group import key_of_group
from flinkpy.relational.state.row_store import FrozenPart, FrozenRows
from flinkpy.relational.state.rows_by_group import groups_of_rows
from flinkpy.state.heap.frozen_numbers import FrozenArray
from flinkpy.state.snapshots.arrow_streams import write_stream
from flinkpy.state.snapshots.chunked_regions import FrozenChunk, FrozenChunks


class FrozenColumn(Protocol):
    """What was kept of each row beside its values."""

    def read(self, turns: Turns) -> Any:
        """It by number."""
        ...


class OfKeys:
    """A FrozenColumn: what was kept of the key of each row. ``keys`` has the keys of rows,
    ``values`` what is kept of keys."""

    def __init__(self, keys: FrozenArray, values: FrozenArray) -> None:
        self._keys = keys
        self._values = values

    def read(self, turns: Turns) -> Any:
        values = self._values.read(turns)
        return values[np.minimum(self._keys.read(turns), len(values) - 1)]


class RowsInChunks(FrozenChunks):
    """``columns`` are kept of each row beside its values, by number. ``key_columns`` decide about
    the key group of a row."""

    def __init__(
        self,
        rows: FrozenRows,
        columns: Mapping[str, FrozenColumn],
        key_columns: Sequence[int],
        max_parallelism: int,
    ) -> None:
        self._rows = rows
        self.folders = rows.folders
        self._columns = columns
        self._beside = pa.schema([pa.field(name, pa.int64()) for name in columns])
        self._key_columns = key_columns
        self._max_parallelism = max_parallelism
        self.keys = [key_of_group(group, max_parallelism) for group in range(max_parallelism)]

    def chunks(self, turns: Turns) -> Sequence[FrozenChunk]:
        read = self._read(turns)
        return [
            FrozenChunk(
                self._name(part, turns),
                partial(self._data, part),
                part.alive,
                partial(self._of_part, part, read),
            )
            for part in self._rows.parts
        ]

    def _name(self, part: FrozenPart, turns: Turns) -> str:
        """A digest of the chunk's rows, which is computed once."""
        if not part.chunk.digest:
            part.chunk.digest = digest_of(*self._data(part))
            turns.give_way()
        return part.chunk.digest

    def _data(self, part: FrozenPart) -> tuple[Any, pa.RecordBatch]:
        groups = groups_of_rows(part.data, self._key_columns, self._max_parallelism)
        return groups.astype(np.int32), part.data

    def _of_part(self, part: FrozenPart, read: Sequence[Any]) -> pa.RecordBatch:
        numbers = part.numbers if part.alive is None else part.numbers[part.alive]
        return self._of_rows(numbers, read)

    def _read(self, turns: Turns) -> list[Any]:
        return [each.read(turns) for each in self._columns.values()]

    def _of_rows(self, numbers: npt.NDArray[Any], read: Sequence[Any]) -> pa.RecordBatch:
        arrays = [pa.array(values[numbers].astype(np.int64)) for values in read]
        return pa.RecordBatch.from_arrays(arrays, schema=self._beside)


def digest_of(groups: Any, data: pa.RecordBatch) -> str:
    """The name of rows of these key groups."""
    digest = blake2b(groups.tobytes(), digest_size=16)
    write_stream(data, digest.update)
    return digest.hexdigest()
