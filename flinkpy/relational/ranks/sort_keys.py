"""What rows are sorted by, kept beside their numbers: where the codes of values are the same in
every batch, the rows themselves are not looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.relational_operator import one_record_batch, plain
from flinkpy.relational.sort_codes import ascending_codes, codes_of
from flinkpy.relational.state.row_store import RowStore
from flinkpy.sql.rex.rex_nodes import SortKey

Numbers = npt.NDArray[np.int64]


def is_absolute(kind: pa.DataType) -> bool:
    """Whether the codes of a column are the same in every batch, as numbers of 64 bits."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_floating(kind)
    ) and not pa.types.is_uint64(kind)


def absolute_codes(data: pa.RecordBatch, key: SortKey) -> tuple[Any, Any]:
    """The codes of a key in this direction, and which rows have null (None: none has); these have
    any code."""
    column = plain(data.column(key.index))
    codes = ascending_codes(column)[0].astype(np.int64, copy=False)
    if key.descending:
        codes = ~codes
    if not column.null_count:
        return codes, None
    return codes, column.is_null().to_numpy(zero_copy_only=False)


class SortKeys:
    """The sort keys of the rows of a store."""

    def __init__(self, keys: Sequence[SortKey], store: RowStore, empty: Empty) -> None:
        """``empty`` gives arrays."""
        self._keys = tuple(keys)
        self._store = store
        self._kept = None
        if all(is_absolute(store.schema.field(key.index).type) for key in self._keys):
            self._kept = [_KeptCodes(key, empty) for key in self._keys]

    def of(self, data: pa.RecordBatch) -> list[Any]:
        """The arrays by which new rows are sorted, to be given to ``beside`` and ``put``."""
        if self._kept is None:
            return [data]
        return [code for each in self._kept for code in each.of(data)]

    def beside(self, rows: Numbers, new: list[Any]) -> list[Any]:
        """The arrays by which rows of the store are sorted, and new ones behind them."""
        if self._kept is None:
            [data] = new
            both = one_record_batch([self._store.take(rows), data], self._store.schema)
            return codes_of(both.columns, self._keys)
        kept = [code for each in self._kept for code in each.taken(rows)]
        both = [np.concatenate(pair) for pair in zip(kept, new)]
        # a mark that is the same everywhere decides nothing
        return [each for each in both if each.dtype != np.int8 or (each != each[:1]).any()]

    def put(self, rows: Numbers, new: list[Any]) -> None:
        """The new rows are these ones of the store."""
        if self._kept is not None:
            for number, each in enumerate(self._kept):
                each.put(rows, new[2 * number], new[2 * number + 1], self._store.size)


class _KeptCodes:
    """The codes of a key by the number of a row, and marks of nulls, which sort before them."""

    def __init__(self, key: SortKey, empty: Empty) -> None:
        self._key = key
        self._present = np.int8(1 if key.nulls_first else 0)
        self._codes = Grown(np.int64, 0, empty)
        self._marks = Grown(np.int8, self._present, empty)

    def of(self, data: pa.RecordBatch) -> tuple[Any, Any]:
        codes, is_null = absolute_codes(data, self._key)
        marks = np.full(len(codes), self._present)
        if is_null is not None:
            marks[is_null] = 1 - self._present
            codes = np.where(is_null, 0, codes)
        return marks, codes

    def taken(self, rows: Numbers) -> tuple[Any, Any]:
        return self._marks.values.take(rows), self._codes.values.take(rows)

    def put(self, rows: Numbers, marks: Any, codes: Any, size: int) -> None:
        self._marks.reach(size)[rows] = marks
        self._codes.reach(size)[rows] = codes
