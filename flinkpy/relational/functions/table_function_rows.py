"""Table functions of users: each row with each row that the function makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.columns.sql.row_errors import row_error
from flinkpy.columns.sql.user_code import FailingValue
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.common.logical_types.logical_type import LogicalType, RowType
from flinkpy.common.types import Row
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import BadRecordError
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.relational.functions.python_values import arguments_of, results_of
from flinkpy.relational.functions.scalar_code import closed, opened
from flinkpy.relational.relational_operator import ROWS_AT_ONCE, RelationalOperator
from flinkpy.relational.row_by_row.unnest_rows import with_columns

_NOTHING = object()  # stands for the nulls of a row for which nothing comes
# what is one row; any other collection is several
_ONE_ROW = (tuple, Row, str, bytes, dict)


class TableCode:
    """A table function of a plan: a callable, or an object with ``eval``, and its types."""

    def __init__(self, function: Any, arguments: tuple[LogicalType, ...], result: RowType) -> None:
        self.function = function
        self.arguments = arguments
        self.result = result

    @property
    def name(self) -> str:
        """The function as errors show it."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))


class TableFunctionOperator(RelationalOperator):
    """``arguments`` is a program that gives the function's arguments. What it gives stands behind
    the row's columns ``kept`` (None: all). ``keeps_left``: a row for which nothing comes is there
    once, with nulls."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(
        self,
        arguments: CalcProgram,
        code: TableCode,
        schema: pa.Schema,
        *,
        keeps_left: bool = False,
        kept: Sequence[int] | None = None,
    ) -> None:
        super().__init__(schema)
        self.arguments = arguments
        self.code = code
        self.keeps_left = keeps_left
        self.kept = None if kept is None else list(kept)

    def open(self) -> None:
        names = [f"argument {at}" for at in range(len(self.arguments.outputs))]
        self._arguments = self.compiled(self.arguments, names)
        self._function: Any = None
        with explained(None, self.context):
            self._function = opened(self.code.function, self.context)

    def close(self) -> None:
        super().close()
        closed(getattr(self, "_function", None))

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            self._correlate(batch)

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits the results in pieces")

    def _correlate(self, batch: ColumnBatch) -> None:
        left = with_columns(batch, self.kept)
        parents: list[int] = []
        rows: list[Any] = []
        for parent, made in enumerate(self._calls(batch)):
            count = len(rows)
            try:
                for row in made:
                    rows.append(row)
                    parents.append(parent)
                    if len(rows) >= ROWS_AT_ONCE:
                        self._emit(batch, left, parents, rows)
                        count, parents, rows = -1, [], []
            except BadRecordError:
                raise
            except Exception as error:
                raise self._failure(error, batch, parent) from error
            if self.keeps_left and count == len(rows):
                rows.append(_NOTHING)
                parents.append(parent)
        if rows:
            self._emit(batch, left, parents, rows)

    def _calls(self, batch: ColumnBatch) -> Iterator[Iterable[Any]]:
        """What the function gives for each row."""
        computed = self._arguments(batch.data).columns
        call = getattr(self._function, "eval", self._function)
        values = [
            arguments_of(column, kind, len(batch))
            for column, kind in zip(computed, self.code.arguments)
        ]
        for parent, given in enumerate(zip(*values) if values else [()] * len(batch)):
            try:
                found = call(*given)
            except Exception as error:
                raise self._failure(error, batch, parent) from error
            if found is None:
                yield ()
            else:
                is_one = isinstance(found, _ONE_ROW) or not isinstance(found, Iterable)
                yield (found,) if is_one else found

    def _emit(
        self, batch: ColumnBatch, left: ColumnBatch, parents: list[int], rows: list[Any]
    ) -> None:
        taken = left.take(np.array(parents, np.int64))
        made = self._columns(batch, parents, rows)
        arrays = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip([*taken.data.columns, *made], self.schema)
        ]
        self.output.emit(taken.with_columns(pa.RecordBatch.from_arrays(arrays, schema=self.schema)))

    def _columns(self, batch: ColumnBatch, parents: list[int], rows: list[Any]) -> list[Any]:
        width = len(self.code.result.fields)
        nothing = [None] * width
        found: list[Sequence[Any]] = []
        for parent, row in zip(parents, rows):
            if row is _NOTHING:
                values: Sequence[Any] = nothing
            else:
                values = row if isinstance(row, (tuple, Row, list)) else (row,)  # type: ignore[assignment]
            if len(values) != width:
                raise self._failure(
                    TypeError(f"it gave {row!r:.60}, and its rows have {width} columns"),
                    batch,
                    parent,
                )
            found.append(values)
        made = []
        for at, field in enumerate(self.code.result):
            kind = field.type.with_nullable(True) if self.keeps_left else field.type
            try:
                made.append(results_of([values[at] for values in found], kind))
            except FailingValue as failure:
                cause, place = failure.cause, parents[failure.position or 0]
                raise self._failure(cause, batch, place) from cause
        return made

    def _failure(self, error: Exception, batch: ColumnBatch, parent: int) -> Exception:
        [row] = batch.data.slice(parent, 1).to_pylist()
        return row_error(f"{self.code.name}(...)", error, row)
