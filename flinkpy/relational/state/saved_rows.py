"""Rows of operators with a TTL in a snapshot: behind their columns stands when they were last
written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.tables_by_group import from_bytes, key_of_group
from flinkpy.relational.relational_operator import one_record_batch, with_schema
from flinkpy.relational.state.rows_by_group import rows_by_group

WRITTEN = "$written"  # no column of a table begins like this unless somebody insists on it
_MOMENT = pa.timestamp("ms", "UTC")


class SavedRows:
    """Rows of this schema, by these key columns."""

    def __init__(self, schema: pa.Schema, keys: Sequence[int], max_parallelism: int) -> None:
        self._schema = schema
        self._keys = tuple(keys)
        self._max_parallelism = max_parallelism

    def frozen(
        self, rows: Callable[[], tuple[pa.RecordBatch, Any]]
    ) -> Callable[[Turns], dict[int, bytes]]:
        """What gives the tables of a region. ``rows`` gives the rows and when each was written to,
        or None without TTL; it is called in the background."""

        def saved(turns: Turns) -> dict[int, bytes]:
            data = self.beside(*rows())
            found = rows_by_group([data], data.schema, self._keys, self._max_parallelism, turns)
            return {
                key_of_group(group, self._max_parallelism): each for group, each in found.items()
            }

        return saved

    def restored(self, tables: Iterable[bytes], now_ms: int) -> tuple[pa.RecordBatch, Any]:
        """The rows of such tables, and when each was written to: now, if they do not say it."""
        found = [self.apart(from_bytes(table), now_ms) for table in tables]
        if not found:
            return one_record_batch([], self._schema), np.empty(0, np.int64)
        times = np.concatenate([written for _, written in found])
        return one_record_batch([data for data, _ in found], self._schema), times

    def beside(self, data: pa.RecordBatch, written: Any) -> pa.RecordBatch:
        """Rows, and behind their columns when each was written to (None: without TTL)."""
        if written is None:
            return data
        schema = self._schema.append(pa.field(WRITTEN, _MOMENT))
        column = pa.array(written, pa.int64()).view(pa.timestamp("ms")).cast(_MOMENT)
        return pa.RecordBatch.from_arrays([*data.columns, column], schema=schema)

    def apart(self, saved: pa.RecordBatch, now_ms: int) -> tuple[pa.RecordBatch, Any]:
        """The rows of what ``beside`` gave, and when each was written to: now, if it does not say
        it."""
        width, written = len(self._schema), np.full(saved.num_rows, now_ms)
        if WRITTEN in saved.schema.names[width:]:
            written = saved.column(width).cast(pa.int64()).to_numpy()
            saved = saved.select(range(width))
        return with_schema(saved, self._schema), written
