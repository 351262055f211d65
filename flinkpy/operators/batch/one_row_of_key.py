"""The batch form of operators over columns that give one row of each key: running aggregates, whose
last row goes out at the end, and ``distinct``, whose rows go out as they come.

Keys are taken into memory until it is used up. From then on their rows still count, and rows of
other keys wait in files, by the hash of their key. In the end each file is an input of its own.
Where what is kept of a key grows with its rows, all rows wait."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from flinkpy.columns.compiler import column_index
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, ColumnBatch
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.core.options.state import StateBackendKind
from flinkpy.metrics.definitions import SPILLED_BYTES
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.batch.batch_operator import BatchOperator
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.keyed_columns.state_tables import KeyedColumnsOperator
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.operators.spilling.key_partitions import KeyPartitions, RowWeight
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.operators.spilling.portions import portions

_TIME = "(timestamp)"  # a column of rows that wait
_MEASURED_ROWS = 1 << 14  # or more come between two looks at what the keys take
_WAITING = 3  # times: rows that wait for the keys, one batch of them, rows to be split
_TWICE = RowWeight(copies=2)  # the rows, and what is made of them


class OneRowOfKey(BatchOperator, OneInputOperator):
    """Runs ``inner``. Emits the rows in the order in which their keys first came, as long as all
    fit into memory."""

    chains_by_key = True
    _keys: BoundedKeys | WaitingKeys | None = None

    def __init__(self, inner: KeyedColumnsOperator) -> None:
        super().__init__(inner)
        self.memory_weights = {MemoryKind.OPERATOR: 1}

    def backend_kind(self, context: OperatorContext) -> StateBackendKind:
        return StateBackendKind.HASHMAP  # the state stays empty

    def open(self) -> None:
        self._memory = OperatorMemory.of(self.context)
        super().open()
        if self._memory.is_limited:
            self.inner.limit_memory(self._memory.waiting)

    def close(self) -> None:
        if hasattr(self, "_memory"):
            self._memory.close()
        super().close()

    def measures(self, now_ms: int) -> dict[str, float]:
        spilled = self._memory.spilled
        return {SPILLED_BYTES: spilled} if spilled else {}

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.inner.context)
        with explained(batch.data, self.inner.context):
            self.inner.prepare_for(batch.data.schema)
            if self._keys is None:
                self._keys = _keys_of(self.inner, self._memory)
            results = self._keys.take(batch)
        if results is not None:
            self.output.emit(results)

    def work(self) -> Iterator[None]:
        results = self.inner.last_results() if self._keys is None else self._keys.results()
        while True:
            with explained(None, self.inner.context):
                batch = next(results, None)
            if batch is None:
                return
            self.output.emit(batch)
            yield


def _keys_of(inner: KeyedColumnsOperator, memory: OperatorMemory) -> BoundedKeys | WaitingKeys:
    if memory.is_limited and inner.has_many_keys and inner.grows:
        return WaitingKeys(inner, memory)
    return BoundedKeys(inner, memory)


class BoundedKeys:
    """Keys in memory, and the rows of those that came too late for it."""

    def __init__(
        self,
        inner: KeyedColumnsOperator,
        memory: OperatorMemory,
        level: int = 0,
        *,
        is_bounded: bool = True,
    ) -> None:
        self._inner = inner
        self._memory = memory
        self._level = level
        self._is_bounded = is_bounded and memory.is_limited and inner.has_many_keys
        self._others: KeyPartitions | None = None
        self._nbytes = self._unmeasured = 0

    def take(self, batch: ColumnBatch) -> ColumnBatch | None:
        """Takes records of any keys; gives those results that it can give already."""
        if self._others is None:
            if self._has_room(len(batch)):
                return self._taken(batch)
            self._others = KeyPartitions(_positions(self._inner), self._memory, self._level)
        is_known = self._inner.is_known(batch.data)
        if not is_known.all():
            self._others.add(_waiting(batch.take(np.flatnonzero(~is_known))))
            batch = batch.take(np.flatnonzero(is_known))
        return self._inner.take(batch) if len(batch) else None

    def _has_room(self, rows: int) -> bool:
        if not self._is_bounded or not self._inner.entries_held():
            return True
        takes = self._nbytes * 3 // 2 + self._inner.growth(rows)  # results are computed beside it
        return self._memory.fits(takes + _WAITING * self._memory.waiting)

    def _taken(self, batch: ColumnBatch) -> ColumnBatch | None:
        results = self._inner.take(batch)
        self._unmeasured += len(batch)
        if self._is_bounded and (self._unmeasured >= _MEASURED_ROWS or not self._nbytes):
            self._nbytes = held_bytes(*self._inner.kept_parts())
            self._unmeasured = 0
        return results

    def results(self) -> Iterator[ColumnBatch]:
        """The row of each key, unless it was given before."""
        yield from self._inner.last_results()
        others = self._others
        if others is None:
            return
        self._inner.begin_anew()
        self._memory.freed(self._nbytes)
        others.write()
        for rows in others.spilled.values():
            deeper = BoundedKeys(
                self._inner, self._memory, self._level + 1, is_bounded=others.splits_further
            )
            for data in rows:
                results = deeper.take(_as_before(data, self._inner.input_schema))
                if results is not None:
                    yield results
            yield from deeper.results()
            self._inner.begin_anew()
        others.drop()


class WaitingKeys:
    """The rows of all keys, until all have come."""

    def __init__(self, inner: KeyedColumnsOperator, memory: OperatorMemory) -> None:
        self._inner = inner
        self._rows = KeyPartitions(_positions(inner), memory, keeps=memory.kept, weight=_TWICE)

    def take(self, batch: ColumnBatch) -> None:
        """Takes records of any keys."""
        self._rows.add(_waiting(batch))

    def results(self) -> Iterator[ColumnBatch]:
        """The row of each key."""
        for rows in portions(self._rows):
            for data in rows:
                self._inner.take(_as_before(data, self._inner.input_schema))
            yield from self._inner.last_results()
            self._inner.begin_anew()


def _positions(inner: KeyedColumnsOperator) -> list[int]:
    """Where the key columns stand."""
    return [column_index(name, inner.input_schema) for name in inner.keys]


def _waiting(batch: ColumnBatch) -> pa.RecordBatch:
    """The records with their timestamps, without dictionaries, which files do not have."""
    data = batch.data
    arrays = [
        each.dictionary_decode() if pa.types.is_dictionary(each.type) else each
        for each in data.columns
    ]
    stamps = np.full(len(batch), MIN_TIMESTAMP) if batch.timestamps is None else batch.timestamps
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.array(stamps)], names=[*data.schema.names, _TIME]
    )


def _as_before(data: pa.RecordBatch, schema: pa.Schema) -> ColumnBatch:
    """The records as they came."""
    *arrays, stamps = data.columns
    arrays = [
        array if array.type == field.type else array.dictionary_encode().cast(field.type)
        for array, field in zip(arrays, schema)
    ]
    times = stamps.to_numpy()
    is_timed = bool((times != MIN_TIMESTAMP).any())
    data = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return ColumnBatch(data, times if is_timed else None, kinds=None)  # all are inserts
