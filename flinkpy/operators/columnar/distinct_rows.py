"""The first record of each key over columns: the operator of ``distinct``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.compiler import column_index
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import EngineError
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.state_tables import KeyedColumnsOperator


class DistinctRowsOperator(KeyedColumnsOperator):
    """Passes on the first record of each key. Its state has the key columns of all records that it has passed on."""

    batch_form = BatchForm.AS_IN_STREAM

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)

    def output_schema(self, schema: Any) -> Any:
        self.prepare(schema)
        return schema

    def first_columns(self, data: Any) -> Any:
        return data.select([column_index(name, data.schema) for name in self.keys])

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        keyed = self._index.of(batch.data)
        self._firsts.add(self.first_columns(batch.data), keyed)
        at = np.sort(keyed.firsts[keyed.is_new])
        if len(at) == len(batch):
            return batch
        return ColumnBatch(batch.data.take(pa.array(at)), None if batch.timestamps is None else batch.timestamps[at])

    def values(self, data: Any) -> list[Any]:
        return []

    def row_of_each_key(self, results: list[Any]) -> Any:
        raise EngineError("distinct passes records on as they come")

    def stamp(self, stamps: Any, ids: Any, new: Any) -> None:
        raise EngineError("distinct passes records on as they come")
