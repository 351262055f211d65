"""The first record of each key over columns: the operators of ``distinct``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.compiler import column_index
from flinkpy.columns.values.conversion import python_values
from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import EngineError
from flinkpy.core.keys import canonical_key
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.column_operators import ColumnOperator
from flinkpy.operators.columnar.key_index import check_keys, encoded
from flinkpy.operators.keyed_columns.state_tables import KeyedColumnsOperator
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.ttl.config import StateTtlConfig

if TYPE_CHECKING:
    import numpy.typing as npt


class DistinctRowsOperator(KeyedColumnsOperator):
    """Passes on the first record of each key. Its state has the key columns of all records that it
    has passed on."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)

    def output_schema(self, schema: pa.Schema) -> Any:
        self.prepare(schema)
        return schema

    def first_columns(self, data: pa.RecordBatch) -> Any:
        return data.select([column_index(name, data.schema) for name in self.keys])

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        fresh = self._index.numbers(batch.data).fresh
        if len(fresh):
            self._firsts.add_new(self.first_columns(batch.data), fresh)
        return _only(batch, np.sort(fresh))

    def take(self, batch: ColumnBatch) -> ColumnBatch | None:
        return self.process_columns(batch)

    def last_rows(self) -> None:
        """None: they went out as they came."""

    def values(self, data: object) -> list[Any]:
        return []

    def value_names(self) -> list[str]:
        return []

    def row_of_each_key(self, results: list[Any]) -> Any:
        raise EngineError("distinct passes records on as they come")

    def stamp(self, stamps: Any, ids: npt.NDArray[np.int64], new: Any) -> None:
        raise EngineError("distinct passes records on as they come")


class ExpiringDistinctRowsOperator(KeyedStateOperator, ColumnOperator):
    """Passes on the first record of each key, and again one that comes when the key was forgotten.
    State with a time to live says which keys are known; a batch asks it once for each of its
    keys."""

    batch_form = BatchForm.AS_IN_STREAM
    takes_changes = INSERT_ONLY

    def __init__(self, keys: Sequence[str], ttl: StateTtlConfig) -> None:
        self.keys, self.ttl = tuple(keys), ttl

    def open(self) -> None:
        descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
        descriptor.enable_time_to_live(self.ttl)
        self._seen: Any = self.backend.state(descriptor)

    def prepare(self, schema: pa.Schema) -> None:
        check_keys(self.keys, schema)

    def output_schema(self, schema: pa.Schema) -> Any:
        self.prepare(schema)
        return schema

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        columns = [batch.data.column(column_index(name, batch.data.schema)) for name in self.keys]
        firsts = np.sort(encoded(columns).firsts)
        values = [python_values(column.take(pa.array(firsts))) for column in columns]
        current, seen, passed = self.backend.current, self._seen, []
        self.backend.after_records(len(firsts))
        for at, key in zip(firsts.tolist(), values[0] if len(values) == 1 else zip(*values)):
            current.key = canonical_key(key)
            if not seen.value():
                seen.update(True)
                passed.append(at)
        return _only(batch, np.array(passed, np.int64))


def _only(batch: ColumnBatch, at: Any) -> ColumnBatch:
    """The records at these positions, which ascend."""
    if len(at) == len(batch):
        return batch
    return batch.take(at)
