"""Running aggregates per key over columns, with one updated row per key and batch: the operator of
``key_by(...).aggregate(...)``.

The aggregates of all keys are arrays indexed by key number. Each batch's values are grouped
together with the current aggregates of their keys, so results do not depend on where batches are
cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.columns.aggregate_plan import AggregateCall
from flinkpy.columns.compiler import column_index, compile_expression, compile_selection
from flinkpy.columns.expression import Column, Expression
from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.accumulators import KeyedAccumulators
from flinkpy.operators.columnar.key_index import KeyedBatch, look_alike
from flinkpy.operators.keyed_columns.state_tables import KeyedColumnsOperator

if TYPE_CHECKING:
    import numpy.typing as npt

Chosen = tuple[tuple[str, Expression], ...]


class KeyedAggregatesOperator(KeyedColumnsOperator):
    """Emits for each batch the updated row of every key in it: the key's columns, then the
    aggregates, or the ``results`` that are computed from keys and aggregates."""

    emits_changes = ChangelogMode.of(RowKind.INSERT, RowKind.UPDATE_AFTER)
    replaces_results = True
    _types: list[Any]

    def __init__(
        self, keys: Sequence[str], calls: Sequence[AggregateCall], results: Chosen | None = None
    ) -> None:
        self.keys = tuple(keys)
        self.calls = tuple(calls)
        self.results = results
        doubled = sorted(set(self.keys) & {call.name for call in self.calls})
        if doubled:
            raise ProgramError(
                f"aggregate(): a key and an aggregate would both be called {doubled[0]!r}; "
                'rename one with .alias("name")'
            )

    def prepare(self, schema: pa.Schema) -> None:
        super().prepare(schema)
        compiled = [compile_expression(call.expression, schema) for call in self.calls]
        types = [each.type for each in compiled]
        if self._accumulators and types != self._types:
            raise ProgramError("the types of the aggregated columns changed while the job runs")
        key_fields = [schema.field(column_index(name, schema)) for name in self.keys]
        self._evaluates, self._types = [each.evaluate for each in compiled], types
        self._as_first = list(
            dict.fromkeys(field.name for field in key_fields if not look_alike(field.type))
        )
        if not self._accumulators:
            self._accumulators = [
                KeyedAccumulators(ColumnAggregate(call.kind, each.type, options=call.options))
                for call, each in zip(self.calls, compiled)
            ]
        self._row = pa.schema(
            [
                *key_fields,
                *[
                    pa.field(call.name, each.of.result_type)
                    for call, each in zip(self.calls, self._accumulators)
                ],
            ]
        )
        self._shown = compile_selection(self.chosen(), self._row)

    def chosen(self) -> Chosen:
        """The columns of the results, made of keys and aggregates."""
        return (
            *((name, Column(name)) for name in self.keys),
            *(self.results or ((call.name, Column(call.name)) for call in self.calls)),
        )

    def output_schema(self, schema: pa.Schema) -> Any:
        self.prepare(schema)
        return self._shown[0]

    def first_columns(self, data: pa.RecordBatch) -> Any:
        return data.select([column_index(name, data.schema) for name in dict.fromkeys(self.keys)])

    def values(self, data: object) -> list[Any]:
        return [evaluate(data) for evaluate in self._evaluates]

    def value_names(self) -> list[str]:
        return [
            call.expression.name if isinstance(call.expression, Column) else call.name
            for call in self.calls
        ]

    def stamp(self, stamps: Any, ids: npt.NDArray[np.int64], new: Any) -> None:
        np.maximum.at(stamps, ids, new)

    def row_of_each_key(self, results: list[Any]) -> Any:
        firsts = self._firsts.all()
        return self._result([*(firsts.column(name) for name in self.keys), *results])

    def _result(self, columns: list[Any]) -> Any:
        return self._shown[1](pa.RecordBatch.from_arrays(columns, schema=self._row))

    def added(self, data: object, keyed: KeyedBatch) -> list[Any]:
        """Accumulates the records; the aggregates of the batch's keys."""
        return [
            aggregate.add(column, keyed, len(self._index))
            for aggregate, column in zip(self._accumulators, self.values(data))
        ]

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        data = batch.data
        keyed = self._index.of(data)
        key_columns = self.first_columns(data)
        self._firsts.add(key_columns, keyed)
        shown = key_columns.take(pa.array(keyed.firsts))
        keys = dict(zip(shown.schema.names, shown.columns))
        if self._as_first:
            keys |= zip(self._as_first, self._firsts.take(keyed.ids, self._as_first))
        aggregates = self.added(data, keyed)
        stamps = batch.timestamps
        if stamps is not None:
            latest = stamps[keyed.firsts]
            np.maximum.at(latest, keyed.codes, stamps)
            stamps = latest
        return ColumnBatch(self._result([*(keys[name] for name in self.keys), *aggregates]), stamps)
