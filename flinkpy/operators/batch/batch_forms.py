"""The forms operators take in a batch job, where all input is there before it is looked at.

A keyed operator gets its input by key and, within a key, by time (``flinkpy.operators.batch.sorting``), works as it does in a stream, and is told
when a key ends: then its timers fire, those on event time first, those on processing time behind them (as the end of time has come, in Flink's
terms), and its state goes. So it holds the state of one key. Running reductions and aggregates give their last result only. A broadcast input is
processed before the other one begins. What needs no order (joins, and windows that merge partial results) is left as it is, but that processing time
stands still until the end.

The watermark passes when everything was emitted: in a batch there is only the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, repeat
from operator import length_hint
from typing import Any

from flinkpy.core.elements import MAX_TIMESTAMP, Batch, ColumnBatch, RowBatch, Watermark
from flinkpy.core.keys import canonical_keys
from flinkpy.core.options.engine import SORT_MEMORY, spill_folders
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import StateBackendKind
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator, OperatorContext, Output, TwoInputOperator, Work
from flinkpy.operators.batch.batch_operator import BatchOperator, WithoutTime
from flinkpy.operators.batch.sorting import NO_TIME, KeyGroups
from flinkpy.operators.keyed_state import EndsKeys, KeyedStateOperator
from flinkpy.operators.process.broadcast import BroadcastProcessOperator, KeyedBroadcastProcessOperator
from flinkpy.operators.process.process_operators import CoFunctionOperator, KeyedCoProcessOperator
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator, key_function
from flinkpy.operators.rows.keyed_stages import KeyedStageOperator
from flinkpy.operators.rows.stateless import rows
from flinkpy.operators.user_errors import user_code_error
from flinkpy.state.heap.backend import HeapKeyedStateBackend

RECORDS_PER_STEP = 4096
KEYS_PER_STEP = 512


def batch_form(operator: Any) -> Any:
    """The operator as it runs in a batch job: itself, or wrapped."""
    if isinstance(operator, (KeyedReduceOperator, KeyedAggregateOperator)):
        return SortedInput(operator, operator.key, only_last=True)
    if isinstance(operator, (KeyedCoProcessOperator, CoFunctionOperator)):
        return operator if operator.keys is None else SortedInputs(operator, operator.keys)
    if isinstance(operator, KeyedBroadcastProcessOperator):
        return BroadcastFirst(operator, operator.key)
    if isinstance(operator, (KeyedStageOperator, EndsKeys)):
        return SortedInput(operator, operator.key)
    if isinstance(operator, BroadcastProcessOperator):
        return BroadcastFirst(operator, None)
    if operator.gives_running_rows:
        from flinkpy.operators.columnar.last_row import LastRows

        return LastRows(operator)
    if isinstance(operator, KeyedStateOperator):
        return TimelessInputs(operator) if isinstance(operator, TwoInputOperator) else TimelessInput(operator)
    return operator


class Gathered(WithoutTime):
    """Gathers rows into batches: one key gives few."""

    def __init__(self, target: Output, limit: int) -> None:
        super().__init__(target)
        self._limit = limit
        self._values: list[Any] = []
        self._stamps: list[int] | None = None

    def emit(self, batch: Batch) -> None:
        if isinstance(batch, ColumnBatch):
            self.flush()
            self.target.emit(batch)
            return
        stamps = batch.timestamps
        if not self._values:
            self._stamps = None if stamps is None else []
        elif (stamps is None) != (self._stamps is None):
            self.flush()
            self._stamps = None if stamps is None else []
        self._values += batch.values
        if stamps is not None and self._stamps is not None:
            self._stamps += stamps
        if len(self._values) >= self._limit:
            self.flush()

    def flush(self) -> None:
        values, stamps = self._values, self._stamps
        if values:
            self._values, self._stamps = [], None
            self.target.emit(RowBatch(values, stamps))

    def end_key(self) -> None:
        """The key's results are all there."""


class LastGathered(Gathered):
    """Keeps the last result of each key."""

    _last: RowBatch | None = None

    def emit(self, batch: Batch) -> None:
        if len(batch):
            self._last = rows(batch)

    def end_key(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            super().emit(RowBatch(last.values[-1:], None if last.timestamps is None else last.timestamps[-1:]))


class BatchKeyed(BatchOperator):
    """Gathers its input by key, and lets the wrapped operator process one key after the other."""

    tagged = False
    by_time = True
    only_last = False
    results: Gathered

    def make_results(self) -> Gathered:
        return (LastGathered if self.only_last else Gathered)(self.output, self.context.batch_records)

    def backend_kind(self, context: OperatorContext) -> StateBackendKind:
        return StateBackendKind.HASHMAP  # it holds one key

    def open(self) -> None:
        super().open()
        values = self.context.configuration
        self.groups = KeyGroups(read(values, SORT_MEMORY), spill_folders(values), tagged=self.tagged, by_time=self.by_time)

    def close(self) -> None:
        if hasattr(self, "groups"):
            self.groups.close()
        super().close()

    def take(self, batch: Batch, select: Callable[[Any], Any] | None, tag: int = 0) -> None:
        """Keeps the records for later."""
        batch = rows(batch)
        values = batch.values
        if select is None:
            self.groups.add(repeat(None), values, batch.timestamps, tag)
            return
        upcoming = iter(values)
        try:
            keys = list(map(select, upcoming))
        except Exception as error:  # the iterator knows how far it got
            raise user_code_error(error, self.context, values[len(values) - length_hint(upcoming) - 1]) from error
        self.groups.add(canonical_keys(keys), values, batch.timestamps, tag)

    def work(self) -> Iterator[None]:
        records = 0
        for number, (_, chunks) in enumerate(self.groups.groups(), 1):
            for chunk in chunks:
                yield from self.process_chunk(chunk)
                records += len(chunk)
                if records >= RECORDS_PER_STEP:
                    records = 0
                    yield
            yield from self._end_key()
            if number % KEYS_PER_STEP == 0:
                yield

    def process_chunk(self, chunk: list[Any]) -> Iterator[None]:
        if not self.groups.full:
            yield from self.process(0, RowBatch(chunk)) or ()
            return
        for (tag, untimed), items in groupby(chunk, key=lambda item: (item[1], item[0] == NO_TIME)):
            part = list(items)
            yield from self.process(tag, RowBatch([item[2] for item in part], None if untimed else [item[0] for item in part])) or ()

    def process(self, tag: int, batch: RowBatch) -> Work | None:
        """Records of one key from one input."""
        work: Work | None = self.inner.process_batch(batch)
        return work

    def _end_key(self) -> Iterator[None]:
        inner = self.inner
        if isinstance(inner, EndsKeys):
            yield from inner.end_key() or ()
        self.results.end_key()
        backend = getattr(inner, "backend", None)
        if isinstance(backend, HeapKeyedStateBackend):
            backend.forget_all()

    def flush(self) -> None:
        self.results.flush()


class SortedInput(BatchKeyed, OneInputOperator):
    """A keyed operator with one input."""

    def __init__(self, inner: Any, key: KeySpec, *, only_last: bool = False) -> None:
        super().__init__(inner)
        self.key, self.only_last = key, only_last

    def open(self) -> None:
        super().open()
        self._select = key_function(self.key)

    def process_batch(self, batch: Batch) -> None:
        self.take(batch, self._select)


class SortedInputs(BatchKeyed, TwoInputOperator):
    """A keyed operator with two inputs: of one key, the records of both by time; those of one time, or of none, from the first input first."""

    tagged = True

    def __init__(self, inner: Any, keys: tuple[KeySpec, KeySpec]) -> None:
        super().__init__(inner)
        self.keys = keys

    def open(self) -> None:
        super().open()
        self._selects = key_function(self.keys[0]), key_function(self.keys[1])

    def process_batch1(self, batch: Batch) -> None:
        self.take(batch, self._selects[0], 0)

    def process_batch2(self, batch: Batch) -> None:
        self.take(batch, self._selects[1], 1)

    def process(self, tag: int, batch: RowBatch) -> Work | None:
        work: Work | None = (self.inner.process_batch2 if tag else self.inner.process_batch1)(batch)
        return work


class BroadcastFirst(BatchKeyed, TwoInputOperator):
    """The broadcast pattern: input 2 is processed as it comes, input 1 afterwards; by key where it has one, else in its order."""

    def __init__(self, inner: Any, key: KeySpec | None) -> None:
        super().__init__(inner)
        self.key = key
        self.by_time = key is not None

    def open(self) -> None:
        super().open()
        self._select = None if self.key is None else key_function(self.key)

    def process_batch1(self, batch: Batch) -> None:
        self.take(batch, self._select)

    def process_batch2(self, batch: Batch) -> Work | None:
        work: Work | None = self.inner.process_batch2(batch)
        return work

    def process(self, tag: int, batch: RowBatch) -> Work | None:
        work: Work | None = self.inner.process_batch1(batch)
        return work


class Timeless(BatchOperator):
    """Joins, and windows that need no order: their input as it comes, time at its end."""

    def process_watermark(self, watermark: Watermark) -> Work | None:
        super().process_watermark(watermark)
        if watermark.timestamp != MAX_TIMESTAMP:  # of a source that makes its own: it would have records be late
            return None
        work: Work | None = self.inner.process_watermark(watermark)
        return work

    def work(self) -> Iterator[None]:
        self.time.end()
        yield  # what that parked goes first


class TimelessInput(Timeless, OneInputOperator):
    """With one input."""

    def process_batch(self, batch: Batch) -> Work | None:
        work: Work | None = self.inner.process_batch(batch)
        return work


class TimelessInputs(Timeless, TwoInputOperator):
    """With two inputs."""

    def process_batch1(self, batch: Batch) -> Work | None:
        work: Work | None = self.inner.process_batch1(batch)
        return work

    def process_batch2(self, batch: Batch) -> Work | None:
        work: Work | None = self.inner.process_batch2(batch)
        return work

    def end_input(self, input_index: int) -> None:
        self.inner.end_input(input_index)
