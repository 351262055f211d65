"""What operators of tables share. The plan gives each the schema of its results; results go out in
pieces of bounded size, however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.calc_compiler import CompiledCalc
from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.core.elements import MAX_TIMESTAMP, Batch, ColumnBatch, Watermark
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.metrics.definitions import SPILLED_BYTES
from flinkpy.operators.base import BatchForm, StreamOperator, TwoInputOperator, Work
from flinkpy.operators.columnar.column_operators import ColumnOperator, columns, explained
from flinkpy.operators.spilling.operator_memory import OperatorMemory

ROWS_AT_ONCE = 1 << 15  # of a batch of results


def pieces(data: pa.RecordBatch | pa.Table) -> Iterator[ColumnBatch]:
    """The rows as batches of bounded size. They are inserts: what comes from operators that take
    nothing else."""
    if isinstance(data, pa.Table):
        for part in data.to_batches(max_chunksize=ROWS_AT_ONCE):
            yield ColumnBatch(part)
        return
    for start in range(0, data.num_rows, ROWS_AT_ONCE):
        yield ColumnBatch(data.slice(start, ROWS_AT_ONCE))


def one_record_batch(parts: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All rows in one batch. Columns that are dictionaries in some batches become plain, as
    ``schema`` says."""
    conformed = [with_schema(part, schema) for part in parts]
    if len(conformed) == 1:
        return conformed[0]
    return pa.concat_batches(conformed) if conformed else empty_batch(schema)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)


def with_schema(data: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with these names and types; only the encoding of columns may differ."""
    if data.schema.equals(schema):
        return data
    if not len(schema):
        return data
    arrays = [
        column if column.type == each.type else plain(column).cast(each.type)
        for column, each in zip(data.columns, schema)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def without_columns(rows: int) -> pa.RecordBatch:
    """A batch of so many rows that have no columns."""
    nothing = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(nothing)


def plain(column: pa.Array) -> pa.Array:
    """The column without dictionary encoding."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


class CompilesCalcs(StreamOperator):
    """An operator with programs of expressions, whose functions it opens and closes."""

    _compiled: tuple[CompiledCalc, ...] = ()

    def compiled(self, program: CalcProgram, names: Sequence[str]) -> CompiledCalc:
        """The program, which gives columns of these names; called from ``open``."""
        with explained(None, self.context):
            calc = CompiledCalc(program, names, self.context)
        self._compiled = (*self._compiled, calc)
        return calc

    def compiled_if_any(self, program: CalcProgram | None) -> CompiledCalc | None:
        """A condition that may not be there."""
        return None if program is None else self.compiled(program, [])

    def close(self) -> None:
        for calc in self._compiled:
            calc.close()
        super().close()


class RelationalOperator(CompilesCalcs, ColumnOperator):
    """An operator over the columns of one input, whose results have this schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def prepare(self, schema: pa.Schema) -> None:
        """The plan has said all."""

    def output_schema(self, schema: pa.Schema) -> Any:
        return self.schema


class GivesAtEnd(StreamOperator):
    """An operator of a batch job that gives its results, or the rest of them, when its input has
    ended. Its last watermark goes out behind them, as in ``flinkpy.operators.batch``."""

    batch_form = BatchForm.AS_IN_STREAM
    memory_weights = MappingProxyType({MemoryKind.OPERATOR: 1})
    _rest: Iterator[ColumnBatch] | None = None
    _end_of_time: Watermark | None = None
    _memory: OperatorMemory

    def open(self) -> None:
        super().open()
        self._memory = OperatorMemory.of(self.context)

    def close(self) -> None:
        if hasattr(self, "_memory"):
            self._memory.close()
        super().close()

    def measures(self, now_ms: int) -> dict[str, float]:
        found = super().measures(now_ms)
        spilled = self._memory.spilled
        return {**found, SPILLED_BYTES: spilled} if spilled else found

    def last_batches(self) -> Iterator[ColumnBatch]:
        """The results that are left; each step does a bounded part of the work if it can."""
        raise NotImplementedError(type(self).__name__)

    def process_watermark(self, watermark: Watermark) -> Work | None:
        if watermark.timestamp == MAX_TIMESTAMP:
            self._end_of_time = watermark
        return None

    def finish(self) -> None:
        self._rest = self.last_batches()

    @property
    def has_rest(self) -> bool:
        return self._rest is not None

    def emit_rest(self) -> None:
        if self._rest is None:
            return
        with explained(None, self.context):
            batch = next(self._rest, None)
        if batch is not None:
            if len(batch):
                self.output.emit(batch)
            return
        self._rest = None
        if self._end_of_time is not None:
            self.output.emit_control(self._end_of_time)


class BlockingOperator(GivesAtEnd, RelationalOperator):
    """Takes all rows of its input before it gives the first result."""

    def take(self, data: pa.RecordBatch) -> None:
        """Takes the rows of a batch."""
        raise NotImplementedError(type(self).__name__)

    def process_columns(self, batch: ColumnBatch) -> Batch | None:
        self.take(batch.data)
        return None


class RelationalJoin(GivesAtEnd, CompilesCalcs, TwoInputOperator):
    """An operator over the columns of two inputs, whose results have this schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def output_schema(self, left: pa.Schema, right: pa.Schema) -> Any:
        return self.schema

    def take(self, data: pa.RecordBatch, is_right: bool) -> Iterator[pa.RecordBatch]:
        """Takes the rows of a batch, and gives those results that it can give already."""
        raise NotImplementedError(type(self).__name__)

    def process_batch1(self, batch: Batch) -> None:
        self._process(batch, is_right=False)

    def process_batch2(self, batch: Batch) -> None:
        self._process(batch, is_right=True)

    def _process(self, batch: Batch, is_right: bool) -> None:
        data = columns(batch, self.context).data
        with explained(data, self.context):
            for given in self.take(data, is_right):
                for each in pieces(given):
                    self.output.emit(each)

    def __getstate__(self) -> dict[str, Any]:
        """Only the operator's arguments travel to the workers."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
