"""``sum``, ``min`` and ``max`` of a column per key, with a result for every record: the columnar
form of KeyedAggregateOperator.

Records are sorted by key, keeping their order within a key; one cumulative operation then gives the
running values of all keys. Each result takes the place of its record. Where rounding depends on the
order (sums of floats), values are added one by one, exactly as in the row form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flinkpy.aggregates.builtin import OF_FIELDS
from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.columns.compiler import column_index
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.accumulators import KeyedAccumulators
from flinkpy.operators.columnar.key_index import look_alike
from flinkpy.operators.keyed_columns.state_tables import KeyedColumnsOperator

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class KeyedColumnAggregateOperator(KeyedColumnsOperator):
    """``position`` is a column's name or index. The other columns have the values of the key's
    first record, as in the row form. The aggregate ignores nulls; it is null until the key has a
    value."""

    replaces_results = True

    def __init__(self, kind: str, position: int | str, keys: Sequence[str]) -> None:
        if kind not in OF_FIELDS:
            raise ProgramError(f"{kind!r} is no running aggregate over columns")
        self.kind = kind
        self.position = position
        self.keys = tuple(keys)

    def prepare(self, schema: pa.Schema) -> None:
        super().prepare(schema)
        self._at = self._column(schema)
        field = schema.field(self._at)
        of = self._aggregate_of(field)
        if self._accumulators and self._accumulators[0].of.result_type != of.result_type:
            raise ProgramError("the type of the aggregated column changed while the job runs")
        self._result = schema.set(self._at, pa.field(field.name, of.result_type))
        self._as_first = [
            at
            for at, each in enumerate(schema)
            if at != self._at and not (each.name in self.keys and look_alike(each.type))
        ]
        self._kept = [at for at in range(len(schema)) if at != self._at]
        if field.name in self.keys:
            raise ProgramError(f"{self.kind}({field.name!r}): the column is part of the key")
        if not self._accumulators:
            self._accumulators = [KeyedAccumulators(of)]

    def _column(self, schema: pa.Schema) -> int:
        if isinstance(self.position, str):
            return column_index(self.position, schema)
        if not -len(schema) <= self.position < len(schema):
            raise ProgramError(f"{self.kind}({self.position}): there are {len(schema)} columns")
        return self.position % len(schema)

    def _aggregate_of(self, field: Any) -> ColumnAggregate:
        try:
            return ColumnAggregate(self.kind, field.type, keeps_type=True)
        except ProgramError as error:
            raise ProgramError(f"column {field.name!r}: {error}") from None

    def output_schema(self, schema: pa.Schema) -> Any:
        self.prepare(schema)
        return self._result

    def first_columns(self, data: pa.RecordBatch) -> Any:
        return data.select(self._kept)

    def values(self, data: pa.RecordBatch) -> list[Any]:
        return [data.column(self._at)]

    def value_names(self) -> list[str]:
        return [self._result.field(self._at).name]

    def stamp(self, stamps: Any, ids: npt.NDArray[np.int64], new: Any) -> None:
        stamps[ids] = new  # the last assignment wins

    def row_of_each_key(self, results: list[Any]) -> Any:
        firsts = self._firsts.all()
        arrays = [firsts.column(name) for name in firsts.schema.names]
        arrays.insert(self._at, results[0])
        return pa.RecordBatch.from_arrays(arrays, schema=self._result)

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        data = batch.data
        keyed = self._index.of(data)
        self._firsts.add(self.first_columns(data), keyed)
        arrays = list(data.columns)
        arrays[self._at] = self._accumulators[0].run(arrays[self._at], keyed, len(self._index))
        if self._as_first:
            others = self._firsts.take(
                keyed.ids[keyed.codes], [data.schema.names[at] for at in self._as_first]
            )
            for at, column in zip(self._as_first, others):
                arrays[at] = column
        return batch.with_columns(pa.RecordBatch.from_arrays(arrays, schema=self._result))
