"""Nulls on their way into columns that are NOT NULL."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.row_errors import row_error
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.relational_operator import RelationalOperator


class NotNullEnforcer(RelationalOperator):
    """Rows whose columns of these places have values. A row with a null there fails, or is dropped
    if the user wants that."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(self, places: Sequence[int], schema: pa.Schema, *, drops: bool) -> None:
        super().__init__(schema)
        self.places = tuple(places)
        self.drops = drops

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        with_nulls = [at for at in self.places if batch.data.column(at).null_count]
        if not with_nulls:
            return batch
        if not self.drops:
            self._fail(batch.data, with_nulls[0])
        for at in with_nulls:
            batch = batch.filter(pc.is_valid(batch.data.column(at)))
        return batch if len(batch) else None

    def _fail(self, data: pa.RecordBatch, place: int) -> None:
        row = pc.index(data.column(place).is_null(), True).as_py()
        raise row_error(
            f"column '{self.schema.names[place]}' of the table",
            ValueError(
                "it is NOT NULL, and a null is written into it; leave such rows out with WHERE, or "
                "SET 'table.exec.sink.not-null-enforcer' = 'drop'"
            ),
            data.slice(row, 1).to_pylist()[0],
        )
