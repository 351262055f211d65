"""Running aggregates of keys over columns, one updated row per key and batch: what ``key_by(...).aggregate(...)`` runs.

The aggregates of all keys are arrays indexed by the key's number. Those of a batch's keys and the batch's values are grouped together, so that
results do not depend on where batches are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.columns.compiler import column_index, compile_expression
from flinkpy.columns.expressions import AggregateCall
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.groups import Groups
from flinkpy.operators.columnar.key_index import Grown, KeyedBatch, look_alike
from flinkpy.operators.columnar.state_tables import KeyedColumnsOperator


class RunningAggregate:
    """One aggregate of all keys: how many values it took, and what it made of them."""

    def __init__(self, kind: str, input_type: Any) -> None:
        self.of = ColumnAggregate(kind, input_type)
        self._counts, self._values = Grown(np.int64, 0), Grown(self.of.dtype, self.of.identity)

    def add(self, column: Any, keyed: KeyedBatch, keys: int) -> Any:
        """Takes a batch's values, and gives the aggregate of each of the batch's keys as an Arrow array."""
        ids, size, codes = keyed.ids, len(keyed.ids), keyed.codes
        column, codes = self.of.few(column, codes)
        counts, values = self.of.values_of(column)
        total = self._counts.reach(keys)[ids] + self.of.counted(counts, len(column), codes, size)
        if values is None:
            self.put(ids, total, None, keys)
            return self.of.results(total, None)
        held = self._values.reach(keys)[ids]
        joint = np.concatenate((held, values)), np.concatenate((np.arange(size), codes))  # in their order, those before first
        result = self.of.grouped(*joint, size)
        self.put(ids, total, result, keys)
        return self.of.results(total, result)

    def put(self, ids: Any, counts: Any, values: Any, keys: int) -> None:
        """These are the aggregates of these keys."""
        self._counts.reach(keys)[ids] = counts
        if values is not None:
            if values.dtype == object:
                self._values.values = self._values.values.astype(object)
            self._values.reach(keys)[ids] = values

    def saved(self, keys: int) -> tuple[Any, Any]:
        """Counts and values as Arrow arrays, by key number; no values where there is only the count."""
        counts = self._counts.reach(keys)[:keys]
        return pa.array(counts), None if self.of.only_counts else self.of.accumulators(counts, self._values.reach(keys)[:keys])


class KeyedAggregatesOperator(KeyedColumnsOperator):
    """For each batch the updated row of every key in it: the key's columns, then the aggregates."""

    emits_updates = True
    _aggregates: list[RunningAggregate] | None = None
    _types: list[Any]

    def __init__(self, keys: Sequence[str], calls: Sequence[AggregateCall]) -> None:
        self.keys, self.calls = tuple(keys), tuple(calls)
        doubled = sorted(set(self.keys) & {call.name for call in self.calls})
        if doubled:
            raise ProgramError(f"aggregate(): a key and an aggregate would both be called {doubled[0]!r}; rename one with .alias(\"name\")")

    def prepare(self, schema: Any) -> None:
        super().prepare(schema)
        compiled = [compile_expression(call.expression, schema) for call in self.calls]
        types = [each.type for each in compiled]
        if self._aggregates is not None and types != self._types:
            raise ProgramError("the types of the aggregated columns changed while the job runs")
        key_fields = [schema.field(column_index(name, schema)) for name in self.keys]
        self._evaluates, self._types = [each.evaluate for each in compiled], types
        self._as_first = list(dict.fromkeys(field.name for field in key_fields if not look_alike(field.type)))
        if self._aggregates is None:
            self._aggregates = [RunningAggregate(call.kind, each.type) for call, each in zip(self.calls, compiled)]
        self._result = pa.schema([*key_fields, *[pa.field(call.name, each.of.result_type) for call, each in zip(self.calls, self._aggregates)]])

    def output_schema(self, schema: Any) -> Any:
        self.prepare(schema)
        return self._result

    def open_aggregates(self) -> None:
        self._aggregates = None

    def first_columns(self, data: Any) -> Any:
        return data.select([column_index(name, data.schema) for name in dict.fromkeys(self.keys)])

    def saved_columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for at, aggregate in enumerate(self._aggregates or ()):
            columns[f"count {at}"], values = aggregate.saved(len(self._index))
            if values is not None:
                columns[f"value {at}"] = values
        return columns

    def take_back(self, ids: Any, saved: Any) -> None:
        for at, aggregate in enumerate(self._aggregates or ()):
            values = None if aggregate.of.only_counts else aggregate.of.values_of(saved.column(f"value {at}"))[1]
            aggregate.put(ids, saved.column(f"count {at}").to_numpy(), values, len(self._index))

    def make_groups(self, schema: Any) -> Groups:
        self.prepare(schema)
        return Groups([each.of for each in self._aggregates or ()], np.maximum.at)

    def values(self, data: Any) -> list[Any]:
        return [evaluate(data) for evaluate in self._evaluates]

    def rows_of_groups(self, results: list[Any]) -> Any:
        firsts = self._firsts.all()
        return pa.RecordBatch.from_arrays([*(firsts.column(name) for name in self.keys), *results], schema=self._result)

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        data = batch.data
        keyed = self._index.of(data)
        key_columns = self.first_columns(data)
        self._firsts.add(key_columns, keyed)
        shown = key_columns.take(pa.array(keyed.firsts))
        keys = dict(zip(shown.schema.names, shown.columns))
        if self._as_first:
            keys |= zip(self._as_first, self._firsts.take(keyed.ids, self._as_first))
        aggregates = [aggregate.add(column, keyed, len(self._index)) for aggregate, column in zip(self._aggregates or (), self.values(data))]
        stamps = batch.timestamps
        if stamps is not None:
            latest = stamps[keyed.firsts]
            np.maximum.at(latest, keyed.codes, stamps)
            stamps = latest
        return ColumnBatch(pa.RecordBatch.from_arrays([*(keys[name] for name in self.keys), *aggregates], schema=self._result), stamps)
