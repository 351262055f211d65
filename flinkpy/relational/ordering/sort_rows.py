"""Sort of BATCH: all rows in order, or with a limit only the first ones, of which no more are kept
than are needed. Without a limit all rows lie in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.relational_operator import (
    ROWS_AT_ONCE,
    BlockingOperator,
    one_record_batch,
    pieces,
)
from flinkpy.relational.sort_codes import codes_of, sorted_positions
from flinkpy.sql.rex.rex_nodes import SortKey

_WAITING_ROWS = 1 << 17  # before those behind the limit are dropped


class SortOperator(BlockingOperator):
    """Gives the rows in the order of ``keys``, from ``offset`` on, at most ``limit``. One subtask
    must see all rows."""

    def __init__(
        self, keys: Sequence[SortKey], schema: pa.Schema, offset: int = 0, limit: int | None = None
    ) -> None:
        super().__init__(schema)
        self.keys = tuple(keys)
        self.offset = offset
        self.limit = limit

    def open(self) -> None:
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def take(self, data: pa.RecordBatch) -> None:
        self._waiting.append(data)
        self._rows += data.num_rows
        if self.limit is not None and self._rows > 2 * (self.offset + self.limit) + _WAITING_ROWS:
            data, order = self._in_order()
            self._waiting = [data.take(pa.array(np.sort(order)))]  # equal rows stay in their order
            self._rows = len(order)

    def _in_order(self) -> tuple[pa.RecordBatch, Any]:
        """All rows, and the positions of those up to the limit in their order."""
        data = one_record_batch(self._waiting, self.schema)
        codes = codes_of(data.columns, self.keys)
        wanted = None if self.limit is None else self.offset + self.limit
        if wanted is None or not codes or wanted * 8 > data.num_rows:
            return data, sorted_positions(codes, data.num_rows)[:wanted]
        # Only rows that are not behind the last wanted value of the first key can be wanted
        first = codes[0]
        last = np.partition(first, wanted)[wanted]
        near = np.flatnonzero(first <= last)
        order = sorted_positions([code[near] for code in codes], len(near))
        return data, near[order[:wanted]]

    def last_batches(self) -> Iterator[ColumnBatch]:
        if not self._waiting:
            return
        data, order = self._in_order()
        self._waiting = []
        for start in range(self.offset, len(order), ROWS_AT_ONCE):
            yield from pieces(data.take(pa.array(order[start : start + ROWS_AT_ONCE])))
