"""How operators run in a batch job, where all input has arrived before it is processed.

A keyed operator gets its records sorted by key and, within a key, by time
(``flinkpy.operators.batch.sorting``). It processes them as in a stream, and is told when a key has
ended. Then the key's timers fire (event time first, then processing time, as Flink does at the end
of time) and its state is dropped, so the operator holds the state of one key at a time. Running
reductions and aggregates emit only the last result of each key. A broadcast input is processed
before the other input. Joins, and windows that merge partial results, need no order: they run as in
a stream, except that processing time stands still until the end.

A batch job has only one watermark, the last one. It is emitted after everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby, repeat
from operator import length_hint
from typing import Any

from flinkpy.core.elements import MAX_TIMESTAMP, Batch, RowBatch, Watermark
from flinkpy.core.errors import EngineError
from flinkpy.core.keys import canonical_keys
from flinkpy.core.options.engine import SORT_MEMORY, spill_folders
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import StateBackendKind
from flinkpy.graph.partitioning import KeySpec
from flinkpy.metrics.definitions import SPILLED_BYTES
from flinkpy.operators.base import BatchForm, OneInputOperator, TwoInputOperator, Work
from flinkpy.operators.batch.batch_operator import BatchOperator
from flinkpy.operators.batch.collectors import Collector, LastResultCollector
from flinkpy.operators.batch.sorting import NO_TIME, KeyGroups
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.keyed_state import EndsKeys
from flinkpy.operators.row_batches import rows
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.operators.spilling.spills_in_batch import SpillsInBatch
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.wrapping_operator import bare
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend

RECORDS_PER_STEP = 4096
KEYS_PER_STEP = 512


def batch_form(operator: Any) -> Any:
    """The operator as it runs in a batch job: itself, or wrapped, as its ``batch_form`` says."""
    form = getattr(operator, "batch_form", None)
    two_inputs = isinstance(operator, TwoInputOperator)
    wrapped: Any = operator
    if form is BatchForm.BY_KEY:
        by_time = getattr(operator, "by_time", True)
        wrapped = (
            SortedInputs(operator, operator.keys)
            if two_inputs
            else SortedInput(operator, operator.key, by_time=by_time)
        )
    elif form is BatchForm.LAST_RESULT_OF_KEY:
        wrapped = SortedInput(operator, operator.key, only_last=True)
    elif form is BatchForm.BROADCAST_FIRST:
        wrapped = BroadcastFirst(operator, getattr(operator, "key", None))
    elif form is BatchForm.ONE_ROW_OF_KEY:
        from flinkpy.operators.batch.one_row_of_key import OneRowOfKey

        wrapped = OneRowOfKey(operator)
    elif form is BatchForm.AT_END_OF_TIME:
        wrapped = TimelessInputs(operator) if two_inputs else TimelessInput(operator)
    elif form is not BatchForm.AS_IN_STREAM:
        raise EngineError(
            f"{type(operator).__name__} does not say how it runs in a batch job: set its "
            "attribute batch_form to a BatchForm"
        )
    return wrapped


class BatchKeyed(BatchOperator):
    """Sorts its input by key, and lets the wrapped operator process one key after the other."""

    groups: KeyGroups
    _sorting = False
    tagged = False
    by_time = True
    only_last = False
    results: Collector

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        # the state of one key is in memory; what is sorted has its share
        self.memory_weights = {MemoryKind.OPERATOR: 1}

    def make_results(self) -> Collector:
        return (LastResultCollector if self.only_last else Collector)(
            self.output, self.context.batch_records
        )

    def backend_kind(self, context: OperatorContext) -> StateBackendKind:
        return StateBackendKind.HASHMAP  # enough, as it holds one key at a time

    def open(self) -> None:
        super().open()
        values = self.context.configuration
        self._sorting = True
        self._memory = OperatorMemory.of(self.context)
        self.groups = KeyGroups(
            self._bytes_to_sort_in(values),
            spill_folders(values),
            tagged=self.tagged,
            by_time=self.by_time,
        )

    def _bytes_to_sort_in(self, values: Mapping[str, Any]) -> int:
        """Its share of the managed memory, or less if the job says so."""
        share = self._memory.limit
        said: int = read(values, SORT_MEMORY)
        if share is None:
            return said
        return min(share, said) if SORT_MEMORY.key in values else share

    def measures(self, now_ms: int) -> dict[str, float]:
        spilled = self.groups.spilled if self._sorting else 0
        return {SPILLED_BYTES: spilled} if spilled else {}

    def free_memory(self) -> None:
        if self._sorting:
            self.groups.spill()
        super().free_memory()

    def close(self) -> None:
        if self._sorting:
            self.groups.close()
            self._memory.close()
        super().close()

    def take(self, batch: Batch, select: Callable[[Any], Any] | None, tag: int = 0) -> None:
        """Adds the records to those to be sorted."""
        batch = rows(batch)
        values = batch.values
        if select is None:
            self.groups.add(repeat(None), values, batch.timestamps, tag)
            return
        upcoming = iter(values)
        try:
            keys = [select(value) for value in upcoming]
        except BaseException as error:  # the iterator knows how far it got
            raise user_code_error(
                error, self.context, values[len(values) - length_hint(upcoming) - 1]
            ) from error
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
            yield from (
                self.process(
                    tag,
                    RowBatch(
                        [item[2] for item in part], None if untimed else [item[0] for item in part]
                    ),
                )
                or ()
            )

    def process(self, tag: int, batch: RowBatch) -> Work | None:
        """Gives the wrapped operator records of one key from one input."""
        work: Work | None = self.inner.process_batch(batch)
        return work

    def _end_key(self) -> Iterator[None]:
        inner = bare(self.inner)
        if isinstance(inner, EndsKeys):
            yield from inner.end_key() or ()
        self.results.end_key()
        backend = getattr(inner, "backend", None)
        if isinstance(backend, HeapKeyedStateBackend):
            backend.forget_all()

    def flush(self) -> None:
        self.results.flush()


class SortedInput(BatchKeyed, OneInputOperator):
    """Wraps a keyed operator with one input."""

    def __init__(
        self, inner: object, key: KeySpec, *, only_last: bool = False, by_time: bool = True
    ) -> None:
        super().__init__(inner)
        self.key = key
        self.only_last = only_last
        self.by_time = by_time

    def open(self) -> None:
        super().open()
        self._select = key_function(self.key)

    def process_batch(self, batch: Batch) -> None:
        self.take(batch, self._select)


class SortedInputs(BatchKeyed, TwoInputOperator):
    """Wraps a keyed operator with two inputs. The records of a key come in order of time; of
    records with equal times, or without times, those of the first input come first."""

    tagged = True

    def __init__(self, inner: object, keys: tuple[KeySpec, KeySpec]) -> None:
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
    """Wraps an operator of the broadcast pattern. Input 2 is processed as it arrives; then input 1,
    by key if the operator has one, else in order of arrival."""

    def __init__(self, inner: object, key: KeySpec | None) -> None:
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
    """Wraps joins, and windows that need no order: records are processed as they come, and time
    advances only at the end of the input."""

    _memory: OperatorMemory | None = None

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        operator = bare(inner)
        self._spills = operator if isinstance(operator, SpillsInBatch) else None
        if self._spills is not None:  # to files of its own, so it needs no backend that does
            self.memory_weights = {MemoryKind.OPERATOR: 1}

    def backend_kind(self, context: OperatorContext) -> StateBackendKind:
        if self._spills is None or not OperatorMemory.is_limited_in(context):
            return super().backend_kind(context)
        return StateBackendKind.HASHMAP

    def open(self) -> None:
        if self._spills is not None:
            self._memory = OperatorMemory.of(self.context)
            if self._memory.is_limited:
                self._spills.spill_to(self._memory)
        super().open()

    def measures(self, now_ms: int) -> dict[str, float]:
        told = super().measures(now_ms)
        spilled = 0 if self._memory is None else self._memory.spilled
        return told | {SPILLED_BYTES: spilled} if spilled else told

    def close(self) -> None:
        super().close()
        if self._memory is not None:
            self._memory.close()

    def process_watermark(self, watermark: Watermark) -> Work | None:
        super().process_watermark(watermark)
        # emitted by a source itself; it would make records late
        if watermark.timestamp != MAX_TIMESTAMP:
            return None
        work: Work | None = self.inner.process_watermark(watermark)
        return work

    def work(self) -> Iterator[None]:
        self.time.end()
        yield  # so that work parked by the timers is done before the inner operator finishes


class TimelessInput(Timeless, OneInputOperator):
    """Wraps an operator with one input."""

    def process_batch(self, batch: Batch) -> Work | None:
        work: Work | None = self.inner.process_batch(batch)
        return work


class TimelessInputs(Timeless, TwoInputOperator):
    """Wraps an operator with two inputs."""

    def process_batch1(self, batch: Batch) -> Work | None:
        work: Work | None = self.inner.process_batch1(batch)
        return work

    def process_batch2(self, batch: Batch) -> Work | None:
        work: Work | None = self.inner.process_batch2(batch)
        return work

    def end_input(self, input_index: int) -> None:
        self.inner.end_input(input_index)
