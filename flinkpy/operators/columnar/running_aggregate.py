"""``sum``, ``min`` and ``max`` of a column per key, with a result for every record: the columnar form of KeyedAggregateOperator.

Records are sorted by key, keeping their order within one; then the running value of all keys is one cumulative operation. Results stand where
their records stood. Where rounding depends on the order (sums of floats), values are added one by one, exactly as the row form does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.algebra import Runs
from flinkpy.aggregates.builtin import BUILT_IN, OF_FIELDS
from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.columns.compiler import column_index
from flinkpy.columns.conversion import python_values
from flinkpy.columns.exact_arrays import array_of
from flinkpy.columns.kinds import as_computed, counted_in
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.groups import Groups
from flinkpy.operators.columnar.key_index import Grown, KeyedBatch, look_alike
from flinkpy.operators.columnar.state_tables import KeyedColumnsOperator


class KeyedColumnAggregateOperator(KeyedColumnsOperator):
    """``position`` is a column's name or index. The other columns have the values of the key's first record, as in the row form; nulls are
    left out of the aggregate (it is null until there is a value)."""

    _state: RunningState | None = None

    def __init__(self, kind: str, position: int | str, keys: Sequence[str]) -> None:
        if kind not in OF_FIELDS:
            raise ProgramError(f"{kind!r} is no running aggregate over columns")
        self.kind, self.position, self.keys = kind, position, tuple(keys)

    def prepare(self, schema: Any) -> None:
        super().prepare(schema)
        self._at = self._column(schema)
        field = schema.field(self._at)
        self._type = self._result_type(field)
        if self._state is not None and self._state.type != self._type:
            raise ProgramError("the type of the aggregated column changed while the job runs")
        self._result = schema.set(self._at, pa.field(field.name, self._type))
        self._as_first = [at for at, each in enumerate(schema) if at != self._at and not (each.name in self.keys and look_alike(each.type))]
        self._kept = [at for at in range(len(schema)) if at != self._at]
        if field.name in self.keys:
            raise ProgramError(f"{self.kind}({field.name!r}): the column is part of the key")
        if self._state is None:
            self._state = RunningState(self.kind, self._type)

    def _column(self, schema: Any) -> int:
        if isinstance(self.position, str):
            return column_index(self.position, schema)
        if not -len(schema) <= self.position < len(schema):
            raise ProgramError(f"{self.kind}({self.position}): there are {len(schema)} columns")
        return self.position % len(schema)

    def _result_type(self, field: Any) -> Any:
        aggregate = BUILT_IN[self.kind]
        try:
            return field.type if aggregate.selects else aggregate.computed_in(field.type)
        except ProgramError as error:
            raise ProgramError(f"column {field.name!r}: {error}") from None

    def output_schema(self, schema: Any) -> Any:
        self.prepare(schema)
        return self._result

    def open_aggregates(self) -> None:
        self._state = None

    def saved_columns(self) -> dict[str, Any]:
        return {"value": self._running().saved(len(self._index))}

    def take_back(self, ids: Any, saved: Any) -> None:
        self._running().restore(ids, saved.column("value"), len(self._index))

    def _running(self) -> RunningState:
        assert self._state is not None, "prepared before"
        return self._state

    def first_columns(self, data: Any) -> Any:
        return data.select(self._kept)

    def make_groups(self, schema: Any) -> Groups:
        self.prepare(schema)
        return Groups([ColumnAggregate(self.kind, schema.field(self._at).type, keeps_type=True)], _last_at)

    def values(self, data: Any) -> list[Any]:
        return [data.column(self._at)]

    def rows_of_groups(self, results: list[Any]) -> Any:
        firsts = self._firsts.all()
        arrays = [firsts.column(name) for name in firsts.schema.names]
        arrays.insert(self._at, results[0])
        return pa.RecordBatch.from_arrays(arrays, schema=self._result)

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        data = batch.data
        keyed = self._index.of(data)
        self._firsts.add(self.first_columns(data), keyed)
        values = data.column(self._at)
        arrays = list(data.columns)
        arrays[self._at] = self._running().add(as_computed(values, self._type), keyed, len(self._index))
        if self._as_first:
            others = self._firsts.take(keyed.ids[keyed.codes], [data.schema.names[at] for at in self._as_first])
            for at, column in zip(self._as_first, others):
                arrays[at] = column
        return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=self._result), batch.timestamps)


class RunningState:
    """The accumulator of every key so far."""

    def __init__(self, kind: str, value_type: Any) -> None:
        self._of, self.type = BUILT_IN[kind], value_type
        self._kept_in = counted_in(value_type) or value_type
        self._is_number = pa.types.is_floating(self._kept_in) or pa.types.is_integer(self._kept_in)
        self._values = Grown(self._kept_in.to_pandas_dtype() if self._is_number else object, 0 if self._is_number else None)
        self._has = Grown(np.bool_, False)

    def add(self, values: Any, keyed: KeyedBatch, keys: int) -> Any:
        """The running value at each record."""
        return self._shown(self._add(values if self._kept_in == self.type else values.view(self._kept_in), keyed, keys))

    def _shown(self, values: Any) -> Any:
        return values if self._kept_in == self.type else values.view(self.type)

    def _add(self, values: Any, keyed: KeyedBatch, keys: int) -> Any:
        state, has = self._values.reach(keys), self._has.reach(keys)
        if not self._is_number or values.null_count:
            return self._one_by_one(values, keyed.ids[keyed.codes], state, has)
        order, starts = _by_key(keyed)
        ids = keyed.ids[keyed.codes[order[starts]]]
        runs = Runs(values.to_numpy(zero_copy_only=False)[order], starts, state[ids], has[ids])
        if not self._of.is_exact_in_any_order(runs):
            return self._one_by_one(values, keyed.ids[keyed.codes], state, has)
        running = self._of.running(runs)
        state[ids], has[ids] = running[starts + runs.lengths - 1], True
        results = np.empty_like(running)
        results[order] = running
        return pa.array(results, self._kept_in)

    def saved(self, keys: int) -> Any:
        """The values as an Arrow array, by key number; null where there is none."""
        values, has = self._values.reach(keys)[:keys], self._has.reach(keys)[:keys]
        return self._shown(pa.array(values, self._kept_in, mask=~has)) if self._is_number else array_of(values.tolist(), self.type)

    def restore(self, ids: Any, values: Any, keys: int) -> None:
        """What ``saved`` gave, for keys that have these numbers now."""
        state, has = self._values.reach(keys), self._has.reach(keys)
        has[ids] = values.is_valid().to_numpy(zero_copy_only=False)
        for key, value in zip(ids.tolist(), python_values(values.view(self._kept_in))):
            if value is not None:
                state[key] = value

    def _one_by_one(self, values: Any, ids: Any, state: Any, has: Any) -> Any:
        """Where order, nulls or Python values matter: the row form's own steps."""
        touched = np.unique(ids)
        before = zip(touched.tolist(), state[touched].tolist(), has[touched].tolist())
        current: dict[int, Any] = {key: value if known else None for key, value, known in before}
        results: list[Any] = []
        append, add = results.append, self._of.adding(self.type)
        for key, value in zip(ids.tolist(), python_values(values)):
            old = current[key]
            if value is not None:
                old = current[key] = value if old is None else add(old, value)
            append(old)
        if self.type == pa.int64():
            self._of.check(value for value in results if value is not None)
        for key, value in current.items():
            if value is not None:
                state[key], has[key] = value, True
        return array_of(results, self._kept_in)


def _last_at(stamps: Any, ids: Any, new: Any) -> None:
    stamps[ids] = new  # the last assignment counts


def _by_key(keyed: KeyedBatch) -> tuple[Any, Any]:
    """Positions sorted by key, records of one key in their order; and where each key's begin."""
    codes = keyed.codes
    if len(keyed.ids) <= 1 << 16:
        codes = codes.astype(np.uint16)  # numpy sorts these by radix
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(keyed.codes, minlength=len(keyed.ids))
    return order, np.concatenate(([0], np.cumsum(counts[:-1])))
