"""``sum``, ``min`` and ``max`` of a column per key, with a result for every record: the columnar form of KeyedAggregateOperator.

Records are sorted by key, keeping their order within one; then the running value of all keys is one cumulative operation. Results stand where
their records stood. Where rounding depends on the order (sums of floats), values are added one by one, exactly as the row form does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar import ColumnOperator, one_batch
from flinkpy.operators.columnar_keys import Grown, KeyedBatch, KeyIndex
from flinkpy.table.aggregates import adding, summed
from flinkpy.table.compiler import column_index
from flinkpy.table.conversion import python_values

_LIMIT = 1 << 63


class KeyedColumnAggregateOperator(ColumnOperator):
    """``position`` is a column's name or index. The other columns have the values of the key's first record, as in the row form; nulls are
    left out of the aggregate (it is null until there is a value)."""

    def __init__(self, kind: str, position: int | str, keys: Sequence[str]) -> None:
        if kind not in ("sum", "min", "max"):
            raise ProgramError(f"{kind!r} is no running aggregate over columns")
        self.kind, self.position, self.keys = kind, position, tuple(keys)

    def prepare(self, schema: Any) -> None:
        self._at = self._column(schema)
        field = schema.field(self._at)
        self._type = self._result_type(field.type)
        self._input_schema = schema
        self._result = schema.set(self._at, pa.field(field.name, self._type))
        self._others = [at for at, name in enumerate(schema.names) if at != self._at and name not in self.keys]
        if field.name in self.keys:
            raise ProgramError(f"{self.kind}({field.name!r}): the column is part of the key")
        if getattr(self, "_index", None) is None:
            self._index = KeyIndex(self.keys)
            self._firsts = FirstRecords()
            self._state = RunningState(self.kind, self._type)

    def _column(self, schema: Any) -> int:
        if isinstance(self.position, str):
            return column_index(self.position, schema)
        if not -len(schema) <= self.position < len(schema):
            raise ProgramError(f"{self.kind}({self.position}): there are {len(schema)} columns")
        return self.position % len(schema)

    def _result_type(self, kind: Any) -> Any:
        if self.kind != "sum":
            return kind
        return summed(f"sum({self.position!r})", kind)

    def output_schema(self, schema: Any) -> Any:
        self.prepare(schema)
        return self._result

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        data = batch.data
        keyed = self._index.of(data)
        values = data.column(self._at)
        arrays = list(data.columns)
        arrays[self._at] = self._state.add(values if values.type == self._type else values.cast(self._type), keyed, len(self._index))
        if self._others:
            others = self._firsts.of([data.column(at) for at in self._others], keyed)
            for at, column in zip(self._others, others):
                arrays[at] = column
        return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=self._result), batch.timestamps)


class FirstRecords:
    """The first record of every key, in chunks that are merged as they grow, so that there are few and each is copied seldom."""

    def __init__(self) -> None:
        self._chunks: list[Any] = []

    def of(self, columns: list[Any], keyed: KeyedBatch) -> list[Any]:
        """For each record of the batch, these columns of its key's first record."""
        if keyed.is_new.any():
            new = keyed.firsts[keyed.is_new][np.argsort(keyed.ids[keyed.is_new])]
            self._chunks.append(pa.table([column.take(pa.array(new)) for column in columns], names=list(map(str, range(len(columns))))))
            while len(self._chunks) > 1 and self._chunks[-2].num_rows <= 2 * self._chunks[-1].num_rows:
                self._chunks[-2:] = [pa.concat_tables(self._chunks[-2:]).combine_chunks()]
        found = pa.concat_tables(self._chunks).take(pa.array(keyed.ids[keyed.codes]))
        return list(one_batch(found).columns)


class RunningState:
    """The value of every key so far."""

    def __init__(self, kind: str, value_type: Any) -> None:
        self._kind, self._type = kind, value_type
        self._is_number = pa.types.is_integer(value_type) or pa.types.is_floating(value_type)
        self._values = Grown(value_type.to_pandas_dtype() if self._is_number else object, 0 if self._is_number else None)
        self._has = Grown(np.bool_, False)

    def add(self, values: Any, keyed: KeyedBatch, keys: int) -> Any:
        """The running value at each record."""
        state, has = self._values.reach(keys), self._has.reach(keys)
        if not self._is_number or values.null_count or (pa.types.is_floating(self._type) and self._depends_on_order(values, state[keyed.ids])):
            return self._one_by_one(values, keyed.ids[keyed.codes], state, has)
        if self._kind == "sum" and not self._fits(values, state, keyed):
            return self._one_by_one(values, keyed.ids[keyed.codes], state, has)
        order, starts = _by_key(keyed)
        ids = keyed.ids[keyed.codes[order[starts]]]
        run = _running_sum if self._kind == "sum" else _running_min if self._kind == "min" else _running_max
        numbers = values.to_numpy(zero_copy_only=False)[order]
        ends = np.append(starts[1:], len(order)) - 1
        running = run(numbers, starts, ends, state[ids], has[ids])
        state[ids], has[ids] = running[ends], True
        results = np.empty_like(running)
        results[order] = running
        return pa.array(results, self._type)

    def _depends_on_order(self, values: Any, before: Any) -> bool:
        """Sums of floats are rounded; nothing is less or greater than a not-a-number, so what it does hangs on when it comes."""
        return self._kind == "sum" or bool(pc.any(pc.is_nan(values)).as_py() or np.isnan(before).any())

    def _fits(self, values: Any, state: Any, keyed: KeyedBatch) -> bool:
        bounds = pc.min_max(values).as_py()
        before = state[keyed.ids]
        reach: int = max(abs(bounds["min"]), abs(bounds["max"])) * len(values)
        return reach + max(abs(int(before.min())), abs(int(before.max()))) < _LIMIT

    def _one_by_one(self, values: Any, ids: Any, state: Any, has: Any) -> Any:
        """Where order, nulls, not-a-numbers or Python values matter: the row form's own steps."""
        touched = np.unique(ids)
        before = zip(touched.tolist(), state[touched].tolist(), has[touched].tolist())
        current: dict[int, Any] = {key: value if known else None for key, value, known in before}
        results: list[Any] = []
        append = results.append
        kind = self._kind
        plus = adding(self._type)
        for key, value in zip(ids.tolist(), python_values(values)):
            old = current[key]
            if value is not None and (old is None or kind == "sum" or (value < old if kind == "min" else value > old)):
                old = current[key] = value if old is None or kind != "sum" else plus(old, value)
            append(old)
        if self._kind == "sum" and self._type == pa.int64() and any(value is not None and not -_LIMIT <= value < _LIMIT for value in results):
            raise OverflowError("a sum leaves 64 bits; cast the column to DataTypes.DOUBLE()")
        for key, value in current.items():
            if value is not None:
                state[key], has[key] = value, True
        return pa.array(results, self._type)


def _by_key(keyed: KeyedBatch) -> tuple[Any, Any]:
    """Positions sorted by key, records of one key in their order; and where each key's begin."""
    codes = keyed.codes
    if len(keyed.ids) <= 1 << 16:
        codes = codes.astype(np.uint16)  # numpy sorts these by radix
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(keyed.codes, minlength=len(keyed.ids))
    return order, np.concatenate(([0], np.cumsum(counts[:-1])))


def _running_sum(numbers: Any, starts: Any, ends: Any, state: Any, has: Any) -> Any:
    """Of integers: one cumulative sum, and each key's start taken off again (exact, as 64-bit numbers wrap around both ways)."""
    lengths = ends - starts + 1
    with np.errstate(over="ignore"):
        total = np.cumsum(numbers)
        offset = state - (total[starts] - numbers[starts])
        return total + np.repeat(offset, lengths)


def _running_min(numbers: Any, starts: Any, ends: Any, state: Any, has: Any) -> Any:
    return _running_extreme(numbers, starts, ends, state, has, np.minimum, -1)


def _running_max(numbers: Any, starts: Any, ends: Any, state: Any, has: Any) -> Any:
    return _running_extreme(numbers, starts, ends, state, has, np.maximum, 1)


def _running_extreme(numbers: Any, starts: Any, ends: Any, state: Any, has: Any, extreme: Any, direction: int) -> Any:
    """Ranks instead of values, each key's shifted out of the reach of the one before: then one accumulation serves all keys."""
    numbers = numbers.copy()
    numbers[starts] = np.where(has, extreme(numbers[starts], state), numbers[starts])
    distinct, ranks = np.unique(numbers, return_inverse=True)
    shifts = direction * np.repeat(np.arange(len(starts)), ends - starts + 1) * len(distinct)
    return distinct[extreme.accumulate(ranks + shifts) - shifts]
