"""TemporalSort of STREAMING: all rows in the order of event time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flinkpy.relational.in_time.rows_in_time import RowsInTime
from flinkpy.relational.sort_codes import codes_of, sorted_positions
from flinkpy.sql.rex.rex_nodes import SortKey


class TemporalSortOperator(RowsInTime):
    """The first of ``keys`` is the time. One subtask must see all rows."""

    def __init__(self, keys: Sequence[SortKey], schema: pa.Schema) -> None:
        super().__init__(schema, keys[0].index, (), schema)
        self.sort_keys = tuple(keys)

    def take_in_time(self, data: pa.RecordBatch) -> pa.RecordBatch:
        if len(self.sort_keys) == 1:
            return data
        order = sorted_positions(codes_of(data.columns, self.sort_keys), data.num_rows)
        return data.take(pa.array(order))
