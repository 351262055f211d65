"""Aggregates of all records over columns: the operator of ``aggregate(...)`` on a stream without
keys.

Several senders accumulate each batch to one row before they send it, where that gives the same
results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.columns.aggregate_plan import AggregateCall
from flinkpy.columns.compiler import column_index, compile_expression
from flinkpy.columns.expression import Column, columns_of
from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.elements import ColumnBatch
from flinkpy.graph.operator_port import TwoPhases
from flinkpy.operators.columnar.column_operators import ColumnOperator, SelectColumnsOperator
from flinkpy.operators.columnar.key_index import KeyedBatch
from flinkpy.operators.keyed_columns.group_aggregate import Chosen, KeyedAggregatesOperator

_EVERYTHING = pa.field("(all records)", pa.int64())  # the key that all records have in common: 0


class AggregatesOfAllOperator(KeyedAggregatesOperator):
    """Aggregates per key with a single key. In a batch job there is a row even if no record comes,
    provided that the columns are known while the program is built (``schema``)."""

    has_many_keys = False
    merges = False  # whether its input comes from LocalAggregatesOperators; its state is the same

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        results: Chosen | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        super().__init__((_EVERYTHING.name,), calls, results)
        self.schema: Any = schema  # a pyarrow.Schema, or None

    def in_two_phases(self) -> TwoPhases | None:
        """Accumulators go to it, or, where sums are rounded or the columns are unknown, only the
        columns that it needs."""
        local = LocalAggregatesOperator(self.calls)
        if self.schema is not None and local.is_exact_for(self.schema):
            merging = AggregatesOfAllOperator(self.calls, self.results, self.schema)
            merging.merges = True
            return TwoPhases(local, merging, None, pays_within_process=True, in_batch=True)
        needed = sorted({name for call in self.calls for name in columns_of(call.expression)})
        if not needed:
            return None
        return TwoPhases(
            SelectColumnsOperator([(name, Column(name)) for name in needed]),
            self,
            None,
            pays_within_process=True,
            in_batch=True,
            is_partial=False,
        )

    def chosen(self) -> Chosen:
        return super().chosen()[1:]  # without the key

    def prepare_for(self, schema: pa.Schema) -> None:
        super().prepare_for((self.schema if self.merges else schema).append(_EVERYTHING))

    def output_schema(self, schema: pa.Schema) -> Any:
        for name in dict.fromkeys(
            name for call in self.calls for name in columns_of(call.expression)
        ):
            column_index(name, schema)  # an unknown one is told with the columns that there are
        return super().output_schema(schema.append(_EVERYTHING))

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        return super().process_columns(_of_one_key(batch))

    def take(self, batch: ColumnBatch) -> None:
        batch = _of_one_key(batch)
        if not self.merges:
            super().take(batch)
            return
        keyed = self._index.of(batch.data)
        self._firsts.add(self.first_columns(batch.data), keyed)
        self._merged(batch.data, keyed)
        if batch.timestamps is not None:
            self.stamp(self._stamps.reach(1), keyed.ids[keyed.codes], batch.timestamps)
            self._is_stamped = True

    def added(self, data: object, keyed: KeyedBatch) -> list[Any]:
        if not self.merges:
            return super().added(data, keyed)
        return [
            each.of.results(*merged)
            for each, merged in zip(self._accumulators, self._merged(data, keyed))
        ]

    def _merged(self, data: pa.RecordBatch, keyed: KeyedBatch) -> list[tuple[Any, Any]]:
        """Accumulates what the senders have accumulated; the counts and values so far."""
        found = []
        for at, each in enumerate(self._accumulators):
            values = (
                None if each.of.only_counts else each.of.accumulators_of(data.column(f"value {at}"))
            )
            found.append(each.merge(data.column(f"count {at}").to_numpy(), values, keyed, 1))
        return found

    def last_rows(self) -> ColumnBatch | None:
        last = super().last_rows()
        if last is not None or self.schema is None:
            return last
        self.prepare_for(self.schema)
        return ColumnBatch(
            self._result(
                [pa.array([0], pa.int64()), *(each.results(1) for each in self._accumulators)]
            )
        )


class LocalAggregatesOperator(ColumnOperator):
    """Before the exchange: makes one row of each batch, with the count and the accumulator of each
    aggregate."""

    takes_changes = INSERT_ONLY

    def __init__(self, calls: Sequence[AggregateCall]) -> None:
        self.calls = tuple(calls)

    def prepare(self, schema: pa.Schema) -> None:
        compiled = [compile_expression(call.expression, schema) for call in self.calls]
        self._evaluates = [each.evaluate for each in compiled]
        self._aggregates = [
            ColumnAggregate(call.kind, each.type, options=call.options)
            for call, each in zip(self.calls, compiled)
        ]

    def is_exact_for(self, schema: pa.Schema) -> bool:
        """Whether the results are the same wherever batches are cut and whoever accumulates
        them."""
        self.prepare(schema)
        return all(each.is_exact for each in self._aggregates)

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        row = {}
        for at, (aggregate, evaluate) in enumerate(zip(self._aggregates, self._evaluates)):
            column, _ = aggregate.few(evaluate(batch.data), np.zeros(len(batch), np.int64))
            counts, values = aggregate.values_of(column)
            count = aggregate.counted(counts, len(column), None, 1)
            row[f"count {at}"] = pa.array(count)
            if values is not None:
                row[f"value {at}"] = aggregate.accumulators(
                    count, aggregate.grouped(values, None, 1)
                )
        return ColumnBatch(
            pa.RecordBatch.from_pydict(row),
            None if batch.timestamps is None else batch.timestamps.max(keepdims=True),
        )


def _of_one_key(batch: ColumnBatch) -> ColumnBatch:
    key = pa.array(np.zeros(len(batch), np.int64))
    return batch.with_columns(batch.data.append_column(_EVERYTHING, key))
