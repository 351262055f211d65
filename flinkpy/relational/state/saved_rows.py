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
            data, written = rows()
            schema = self._schema
            if written is not None:
                schema = schema.append(pa.field(WRITTEN, _MOMENT))
                column = pa.array(written, pa.int64()).view(pa.timestamp("ms")).cast(_MOMENT)
                data = pa.RecordBatch.from_arrays([*data.columns, column], schema=schema)
            found = rows_by_group([data], schema, self._keys, self._max_parallelism, turns)
            return {
                key_of_group(group, self._max_parallelism): each for group, each in found.items()
            }

        return saved

    def restored(self, tables: Iterable[bytes], now_ms: int) -> tuple[pa.RecordBatch, Any]:
        """The rows of such tables, and when each was written to: now, if they do not say it."""
        parts, times = [], []
        for table in tables:
            data = from_bytes(table)
            written = np.full(data.num_rows, now_ms)
            if WRITTEN in data.schema.names[len(self._schema) :]:
                written = data.column(len(self._schema)).cast(pa.int64()).to_numpy()
                data = data.select(range(len(self._schema)))
            parts.append(with_schema(data, self._schema))
            times.append(written)
        if not parts:
            return one_record_batch([], self._schema), np.empty(0, np.int64)
        return one_record_batch(parts, self._schema), np.concatenate(times)
