"""Operators over columns: expressions with Arrow kernels, functions of whole batches, and the
conversions between columns and rows.

Each prepares itself for a schema once, at the first batch, or while the program is built if the
schema is known then."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from flinkpy.columns.compiler import compile_expression, compile_selection
from flinkpy.columns.expression import Expression
from flinkpy.columns.kernels.operand_types import BeyondSigned, large_columns
from flinkpy.columns.values.arrow_types import arrow_schema
from flinkpy.columns.values.conversion import (
    batch_of_columns,
    batch_of_rows,
    conformed,
    kinds_of_rows,
    rows_of_batch,
    without_views,
)
from flinkpy.columns.values.inference import check_objects
from flinkpy.columns.values.pandas_frames import pandas_frame
from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.common.typeinfo import RowTypeInfo
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.operators.base import BatchForm, Guarding, OneInputOperator, Work
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.output.output_isolation import all_private
from flinkpy.operators.row_kinds import check_kinds
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.yielding import Moment, emit_results

IN_PANDAS = 'map_batches(batch_format="pandas")'


def columns(
    batch: Batch, context: OperatorContext, takes: ChangelogMode = INSERT_ONLY
) -> ColumnBatch:
    """The batch, which must be one of columns, with rows of the kinds that the operator takes. The
    graph inserts a conversion where an expression meets rows."""
    if type(batch) is not ColumnBatch:
        raise EngineError(
            f"a columnar operator got {batch!r}; RowsToColumnsOperator is missing in front of it"
        )
    check_kinds(batch, takes, context.name)
    return batch


@contextmanager
def explained(data: object, context: OperatorContext) -> Iterator[None]:
    """Adds the operator's name to errors raised while it processes ``data`` (None: the columns of
    several batches)."""
    try:
        yield
    except BeyondSigned as error:
        large = [] if data is None else large_columns(data)
        raise ProgramError(
            f"operator {context.name!r}: "
            f"{error.about(f'column {large[0]!r}' if large else 'a column')}"
        ) from None
    except ProgramError as error:
        raise ProgramError(f"operator {context.name!r}: {error}") from None
    except BaseException as error:
        raise user_code_error(error, context) from error


class ColumnOperator(OneInputOperator):
    """What operators over columns share: preparing for a schema, and error messages with the
    operator's name."""

    batch_form = BatchForm.AS_IN_STREAM
    keeps_timestamps = True
    # one that takes others too gives them on with its results, or works with them
    takes_changes = INSERT_ONLY
    _schema: Any = None

    @abstractmethod
    def prepare(self, schema: pa.Schema) -> None:
        """Chooses kernels for batches of this schema; raises ProgramError if the operator cannot
        work on it."""

    @abstractmethod
    def process_columns(self, batch: ColumnBatch) -> Batch | None:
        """The result for one batch; None or an empty batch means no output."""

    def output_schema(self, schema: pa.Schema) -> Any:
        """The schema of the results; None if only the results will show it. Called while the
        program is built."""
        return None

    def prepare_for(self, schema: pa.Schema) -> None:
        """Prepares for the schema, unless it is the same as before."""
        if self._schema is None or not self._schema.equals(schema):
            self.prepare(schema)
            self._schema = schema

    def process_batch(self, batch: Batch) -> Work | None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            self.prepare_for(batch.data.schema)
            result = self.process_columns(batch)
        if result is not None and len(result):
            self.output.emit(result)
        return None

    def __getstate__(self) -> dict[str, Any]:
        """Only the operator's arguments travel to the workers, nothing that was prepared."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}


class FilterColumnsOperator(ColumnOperator):
    """Keeps the records for which the expression is true; false and null drop a record."""

    guarding = Guarding.BY_ROW
    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    @property
    def pushed_filter(self) -> Expression:
        """What a source may know, in order to read less."""
        return self.expression

    def prepare(self, schema: pa.Schema) -> None:
        compiled = compile_expression(self.expression, schema)
        if not pa.types.is_boolean(compiled.type):
            raise ProgramError(
                f"filter() needs a truth value, {self.expression!r} gives {compiled.type}"
            )
        self._evaluate = compiled.evaluate

    def output_schema(self, schema: pa.Schema) -> Any:
        self.prepare(schema)
        return schema

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        mask = self._evaluate(batch.data)
        kept = mask.true_count
        if kept == len(mask):
            return batch
        if kept == 0:
            return None
        return batch.filter(mask)


class SelectColumnsOperator(ColumnOperator):
    """Makes new columns from expressions."""

    guarding = Guarding.BY_ROW
    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(self, expressions: Iterable[tuple[str, Expression]]) -> None:
        self.expressions = tuple(expressions)

    def chosen(self, schema: pa.Schema) -> Sequence[tuple[str, Expression]]:
        """The columns of the result for this schema. Raises ProgramError if there can be none."""
        return self.expressions

    def prepare(self, schema: pa.Schema) -> None:
        self._result, self._select = compile_selection(self.chosen(schema), schema)

    def output_schema(self, schema: pa.Schema) -> Any:
        self.prepare(schema)
        return self._result

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        return batch.with_columns(self._select(batch.data))


class NullableColumnsOperator(ColumnOperator):
    """Gives the columns a schema in which more of them may be null. Copies no values."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def prepare(self, schema: pa.Schema) -> None:
        pass

    def output_schema(self, schema: pa.Schema) -> Any:
        return self.schema

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        arrays = [array.cast(field.type) for array, field in zip(batch.data.columns, self.schema)]
        return batch.with_columns(pa.RecordBatch.from_arrays(arrays, schema=self.schema))


class MapBatchesOperator(ColumnOperator):
    """Calls the user's function with each whole batch; the function may yield rows. Event times are
    kept if the number of records stays the same; otherwise the results have none. So are the rows'
    kinds; otherwise they are refused, as the function does not see them."""

    parks = True
    keeps_nothing = True
    takes_changes = ALL_CHANGES
    takes_no_policy = (
        "gets whole batches, so nobody knows which record is at fault: catch the exception in "
        "the function"
    )

    def __init__(
        self,
        function: Callable[[Any], Any],
        batch_format: str = "arrow",
        output: str = "columns",
        schema: pa.Schema | None = None,
    ) -> None:
        self.function = function
        self.batch_format = batch_format
        self.output_kind = output
        self.declared = schema

    def prepare(self, schema: pa.Schema) -> None:
        """Does nothing: the function handles schemas itself."""

    def output_schema(self, schema: pa.Schema) -> Any:
        return self.declared

    def process_batch(self, batch: Batch) -> Work | None:
        if self.output_kind == "rows":
            return self._rows(columns(batch, self.context))
        return super().process_batch(batch)

    def process_columns(self, batch: ColumnBatch) -> Batch | None:
        data = as_record_batch(self._given(batch))
        data = (
            None
            if data is None
            else without_views(data)
            if self.declared is None
            else conformed(data, self.declared)
        )
        if data is not None and data.num_rows == len(batch):
            return batch.with_columns(data)
        check_kinds(batch, INSERT_ONLY, self.context.name)
        return None if data is None else ColumnBatch(data)

    def _given(self, batch: ColumnBatch) -> Any:
        given = self.function(
            pandas_frame(batch.data, IN_PANDAS) if self.batch_format == "pandas" else batch.data
        )
        if given is None:
            wanted = (
                "a list of records, [] for none"
                if self.output_kind == "rows"
                else "a batch, a frame or a dict of columns; for no records one without rows, such "
                "as batch.slice(0, 0)"
            )
            error = TypeError(f"map_batches(): the function returned None: return {wanted}")
            error.function_at_fault = self.function  # type: ignore[attr-defined]
            raise error
        return given

    def _rows(self, batch: ColumnBatch) -> Work:
        """Emits the records that the function yields, possibly without end. Once there are more
        than the batch has, they are emitted while the function yields more."""
        try:
            result = self._given(batch)
            rest = iter(result)
            first = list(islice(rest, len(batch) + 1))
        except BaseException as error:
            raise user_code_error(error, self.context) from error
        if len(first) > len(batch):
            yield from emit_results(
                lambda record, at: chain(first, rest),
                (None,),
                None,
                Moment(),
                self,
                names_record=False,
            )
        elif first:
            stamps = (
                batch.timestamps.tolist()
                if batch.timestamps is not None and len(first) == len(batch)
                else None
            )
            self.output.emit(
                RowBatch(first if self.context.object_reuse else list(all_private(first)), stamps)
            )


def as_record_batch(result: object) -> Any:
    """The return value of a batch function as one record batch; raises TypeError if it is none of
    the allowed types."""
    if result is None or isinstance(result, pa.RecordBatch):
        return result
    if isinstance(result, dict):
        return batch_of_columns(result)
    if isinstance(result, pa.Table):
        return one_batch(result)
    if type(result).__module__.partition(".")[0] == "pandas" and hasattr(result, "columns"):
        check_objects(result)
        return pa.RecordBatch.from_pandas(result, preserve_index=False)
    if hasattr(result, "__arrow_c_stream__"):  # a frame of Polars
        return one_batch(pa.table(result))
    raise TypeError(
        "a batch function must return a RecordBatch, a Table, a DataFrame, a dict of columns "
        "or None; "
        f"this one returned a {type(result).__name__}"
    )


def one_batch(table: Any) -> Any:
    """A table as one record batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


class ColumnsToRowsOperator(OneInputOperator):
    """Turns every record into a Row with the columns' names."""

    batch_form = BatchForm.AS_IN_STREAM
    keeps_timestamps = keeps_nothing = True

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        stamps = batch.timestamps
        rows = rows_of_batch(batch.data, batch.kinds)
        self.output.emit(RowBatch(rows, None if stamps is None else stamps.tolist()))


class RowsToColumnsOperator(OneInputOperator):
    """Makes columns from rows, tuples or dicts of a declared row type, or of a schema. Column
    batches pass unchanged. Rows without a declared type raise EngineError."""

    batch_form = BatchForm.AS_IN_STREAM
    keeps_timestamps = keeps_nothing = True

    def __init__(self, schema: RowTypeInfo | pa.Schema | None) -> None:
        self.row_type = schema

    def output_schema(self, schema: pa.Schema | None = None) -> Any:
        """The columns' schema, from the declared row type; None without one."""
        declared = self.row_type
        return arrow_schema(declared) if isinstance(declared, RowTypeInfo) else declared

    def open(self) -> None:
        self._schema = self.output_schema()

    def process_batch(self, batch: Batch) -> None:
        if isinstance(batch, ColumnBatch):
            self.output.emit(batch)
            return
        if self._schema is None:
            raise EngineError(f"operator {self.context.name!r} got rows of no declared type")
        import numpy as np

        try:
            data = batch_of_rows(batch.values, self._schema)
        except ValueError as error:
            raise user_code_error(error, self.context) from error
        stamps = batch.timestamps
        times = None if stamps is None else np.array(stamps, dtype=np.int64)
        self.output.emit(ColumnBatch(data, times, kinds_of_rows(batch.values)))
