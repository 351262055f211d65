"""What the joins of STREAMING share that keep the rows of both inputs: rows of one key have one
number on both sides."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.base import TwoInputOperator
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.relational.joins.built_side import JoinKeys
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.joined_rows import JoinedRows
from flinkpy.relational.key_columns import key_names
from flinkpy.relational.relational_operator import CompilesCalcs, with_schema
from flinkpy.relational.state.row_memory import RowMemory


class UnendingJoin(CompilesCalcs, KeyedStateOperator, TwoInputOperator):
    """Keeps the rows of both inputs, whose schemas are ``left`` and ``right``. One subtask must see
    all rows of a key; without keys one sees all."""

    takes_changes = INSERT_ONLY
    emits_changes = INSERT_ONLY

    def __init__(
        self, spec: JoinSpec, left: pa.Schema, right: pa.Schema, schema: pa.Schema
    ) -> None:
        self.spec = spec
        self.left = left
        self.right = right
        self.schema = schema

    def output_schema(self, left: pa.Schema, right: pa.Schema) -> Any:
        return self.schema

    def open(self) -> None:
        spec = self.spec
        self._keys = (
            JoinKeys(spec.left_keys, spec.null_safe),
            JoinKeys(spec.right_keys, spec.null_safe),
        )
        self._columns = spec.left_keys, spec.right_keys
        self._schemas = self.left, self.right
        condition = self.compiled_if_any(spec.condition)
        self._joined = JoinedRows(self.left, self.right, self.schema, condition)
        self._memory = RowMemory.configured(self.context.configuration)
        names = key_names(len(spec.left_keys))
        self._index = KeyIndex(names, empty=self._memory.arrays.empty)

    # -- batches -----------------------------------------------------------------------------------

    @abstractmethod
    def take(self, batch: ColumnBatch, side: int) -> None:
        """Takes the rows of a batch, whose columns have the types of the plan."""

    def process_batch1(self, batch: Batch) -> None:
        self._process(batch, 0)

    def process_batch2(self, batch: Batch) -> None:
        self._process(batch, 1)

    def _process(self, batch: Batch, side: int) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            self.take(batch.with_columns(with_schema(batch.data, self._schemas[side])), side)

    # -- keys --------------------------------------------------------------------------------------

    def numbers(self, data: pa.RecordBatch, side: int) -> tuple[Any, Any]:
        """The key numbers of the rows that can meet others, and which rows these are (None:
        all)."""
        if not self._columns[side]:
            return np.zeros(data.num_rows, np.int64), None
        keys, mask = self._keys[side].of(data)
        if mask is not None:
            keys = keys.filter(mask)
        ids = self._index.numbers(keys).ids if keys.num_rows else np.empty(0, np.int64)
        return ids, mask

    def __getstate__(self) -> dict[str, Any]:
        """Only the operator's arguments travel to the workers."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
