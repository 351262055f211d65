"""Running aggregates of keys over columns, one updated row per key and batch: what ``key_by(...).aggregate(...)`` runs.

A batch is grouped by Arrow, and the groups' partial results are merged into arrays indexed by the key's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar import ColumnOperator
from flinkpy.operators.columnar_keys import Grown, KeyedBatch, KeyIndex
from flinkpy.table.aggregates import adding, computed_in
from flinkpy.table.compiler import column_index, compile_expression
from flinkpy.table.expressions import AggregateCall

_LIMIT = 1 << 63


class Accumulator:
    """One aggregate of all keys: how many values it took, and what it made of them."""

    def __init__(self, kind: str, input_type: Any) -> None:
        self.kind = kind
        self.input_type = input_type if kind == "count" else computed_in(kind, input_type)
        self.result_type = {"count": pa.int64(), "avg": pa.float64()}.get(kind, self.input_type)
        self._count = Grown(np.int64, 0)
        self._is_number = self.input_type in (pa.int64(), pa.float64())
        self._value = Grown(self.input_type.to_pandas_dtype() if self._is_number else object, 0 if self._is_number else None)
        self._grouped = ["count"] if kind == "count" else ["count", "sum" if kind == "avg" else kind]

    def add(self, values: Any, keyed: KeyedBatch, keys: int) -> Any:
        """Takes a batch's values, and gives the aggregate of each of the batch's keys as an Arrow array."""
        if values.type != self.input_type:
            values = values.cast(self.input_type)
        counts, total = self._count.reach(keys), self._value.reach(keys)
        grouped = pa.table([pa.array(keyed.codes), values], names=["code", "value"]).group_by("code", use_threads=False).aggregate(
            [("value", function) for function in self._grouped])
        order = grouped.column("code").to_numpy()
        ids = keyed.ids[order]
        fresh = grouped.column("value_count").to_numpy()
        if len(self._grouped) > 1:
            self._merge(total, ids, counts[ids] > 0, fresh > 0, grouped.column(f"value_{self._grouped[1]}"), values)
        counts[ids] += fresh
        return self._results(keyed.ids)

    def _merge(self, total: Any, ids: Any, had: Any, has: Any, partial: Any, values: Any) -> None:
        if not self._is_number:
            self._merge_objects(total, ids, had, has, partial.to_pylist())
            return
        new = (partial.fill_null(0) if partial.null_count else partial).to_numpy()
        old = total[ids]
        if self.kind in ("sum", "avg"):
            if self.input_type == pa.int64():
                _refuse_overflow(old, new, values)
            total[ids] = old + new
            return
        choose = np.fmin if self.kind == "min" else np.fmax
        total[ids] = np.where(had & has, choose(old, new), np.where(has, new, old))

    def _merge_objects(self, total: Any, ids: Any, had: Any, has: Any, partial: list[Any]) -> None:
        combine: Callable[[Any, Any], Any] = {"min": min, "max": max}.get(self.kind, adding(self.input_type))
        for at, (key, value) in enumerate(zip(ids.tolist(), partial)):
            if has[at]:
                total[key] = combine(total[key], value) if had[at] else value

    def _results(self, ids: Any) -> Any:
        counts = self._count.values[ids]
        if self.kind == "count":
            return pa.array(counts)
        values, missing = self._value.values[ids], counts == 0
        if self.kind == "avg":
            if not self._is_number:
                return pa.array([None if count == 0 else float(value / count) for value, count in zip(values, counts.tolist())], pa.float64())
            return pa.array(values / np.maximum(counts, 1), mask=missing)
        if not self._is_number:
            return pa.array(values.tolist(), self.result_type)
        return pa.array(values, self.result_type, mask=missing)


def _refuse_overflow(old: Any, new: Any, values: Any) -> None:
    """OverflowError where a sum leaves 64 bits. The bounds are looked at first; only where they could leave is it computed exactly."""
    bounds = pc.min_max(values).as_py()
    if bounds["min"] is None:
        return
    reach = max(abs(bounds["min"]), abs(bounds["max"])) * len(values)
    if reach + max(abs(int(old.min())), abs(int(old.max()))) < _LIMIT:
        return
    if reach >= _LIMIT or any(not -_LIMIT <= one + other < _LIMIT for one, other in zip(old.tolist(), new.tolist())):
        raise OverflowError("a sum leaves 64 bits; cast the column to DataTypes.DOUBLE()")


class KeyedAggregatesOperator(ColumnOperator):
    """For each batch the updated row of every key in it: the key's columns, then the aggregates."""

    _accumulators: list[Accumulator] | None = None
    _types: list[Any]

    def __init__(self, keys: Sequence[str], calls: Sequence[AggregateCall]) -> None:
        self.keys, self.calls = tuple(keys), tuple(calls)
        doubled = sorted(set(self.keys) & {call.name for call in self.calls})
        if doubled:
            raise ProgramError(f"aggregate(): a key and an aggregate would both be called {doubled[0]!r}; rename one with .alias(\"name\")")

    def prepare(self, schema: Any) -> None:
        compiled = [compile_expression(call.expression, schema) for call in self.calls]
        types = [each.type for each in compiled]
        if self._accumulators is not None and types != self._types:
            raise ProgramError("the types of the aggregated columns changed while the job runs")
        key_fields = [schema.field(column_index(name, schema)) for name in self.keys]
        self._evaluates, self._types = [each.evaluate for each in compiled], types
        if self._accumulators is None:
            self._index = KeyIndex(self.keys)
            self._accumulators = [Accumulator(call.kind, each.type) for call, each in zip(self.calls, compiled)]
        self._result = pa.schema([*key_fields, *[pa.field(call.name, each.result_type) for call, each in zip(self.calls, self._accumulators)]])

    def output_schema(self, schema: Any) -> Any:
        self.prepare(schema)
        return self._result

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        data = batch.data
        keyed = self._index.of(data)
        firsts = pa.array(keyed.firsts)
        keys = [data.column(column_index(name, data.schema)).take(firsts) for name in self.keys]
        aggregates = [accumulator.add(evaluate(data), keyed, len(self._index))
                      for accumulator, evaluate in zip(self._accumulators or (), self._evaluates)]
        stamps = batch.timestamps
        if stamps is not None:
            latest = stamps[keyed.firsts]
            np.maximum.at(latest, keyed.codes, stamps)
            stamps = latest
        return ColumnBatch(pa.RecordBatch.from_arrays([*keys, *aggregates], schema=self._result), stamps)
