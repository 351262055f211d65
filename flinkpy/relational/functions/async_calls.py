"""Scalar functions that are coroutines: calls for the rows of several batches are under way at
once, and batches go out in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkpy.columns.sql.row_errors import row_error
from flinkpy.columns.sql.user_code import FailingValue
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.operators.async_io.async_functions import AsyncFunctionDescriptor
from flinkpy.operators.async_io.async_wait import AsyncWaitOperator
from flinkpy.operators.async_io.output_queues import Entry, Queued
from flinkpy.operators.base import Guarding
from flinkpy.operators.columnar.column_operators import columns
from flinkpy.operators.user_errors import user_code_error
from flinkpy.relational.functions.async_limits import AsyncLimits
from flinkpy.relational.functions.python_values import arguments_of, results_of
from flinkpy.relational.functions.scalar_code import ScalarCode


@dataclass(frozen=True)
class AsyncCall:
    """A call, where its arguments stand in the input, and how errors show it."""

    code: ScalarCode
    text: str
    columns: tuple[int, ...]
    arguments: tuple[LogicalType, ...]
    result: LogicalType


class AsyncCallsOperator(AsyncWaitOperator):
    """Appends a column for each call. ``schema`` is that of the results."""

    takes_changes = ALL_CHANGES
    guarding = Guarding.NONE
    takes_no_policy = "calls functions of SQL, whose retries are options of the session"

    def __init__(self, calls: Sequence[AsyncCall], limits: AsyncLimits, schema: pa.Schema) -> None:
        self.calls = tuple(calls)
        self.limits = limits
        self.schema = schema
        # a batch is one record of the queue: its rows wait for their turn inside
        super().__init__(AsyncFunctionDescriptor(self.answered, 0, limits.most_at_once))

    def output_schema(self, schema: pa.Schema) -> Any:
        return self.schema

    def open(self) -> None:
        for call in self.calls:
            call.code.open(self.context)
        self._turn = asyncio.Semaphore(self.limits.most_at_once)
        super().open()

    def close(self) -> None:
        try:
            super().close()
        finally:
            for call in self.calls:
                call.code.close()

    def process_batch(self, batch: Batch) -> None:
        super().process_batch(RowBatch([columns(batch, self.context, self.takes_changes)]))

    async def _invoke(self, value: object) -> list[ColumnBatch]:
        assert isinstance(value, ColumnBatch)  # its columns are nobody's to change
        return await self.answered(value)

    async def answered(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """The batch with the answers of all calls; runs in the thread of the event loop."""
        found = await asyncio.gather(*(self._column(call, batch.data) for call in self.calls))
        given = [*batch.data.columns, *found]
        data = pa.RecordBatch.from_arrays(given, schema=self.schema)
        return [batch.with_columns(data)]

    async def _column(self, call: AsyncCall, data: pa.RecordBatch) -> pa.Array:
        function = call.code.function_opened
        arguments = [
            arguments_of(data.column(at), kind, data.num_rows)
            for at, kind in zip(call.columns, call.arguments)
        ]
        rows = zip(*arguments) if arguments else [()] * data.num_rows
        answers = [self._answer(function, values) for values in rows]
        found = await asyncio.gather(*answers, return_exceptions=True)
        for place, each in enumerate(found):
            if isinstance(each, Exception):
                raise row_error(call.text, each, _row(data, place)) from each
            if isinstance(each, BaseException):
                raise each
        try:
            return results_of(found, call.result)
        except FailingValue as failure:
            place = failure.position or 0
            raise row_error(call.text, failure.cause, _row(data, place)) from failure.cause

    async def _answer(self, function: Any, values: Sequence[Any]) -> Any:
        async with self._turn:
            seconds = self.limits.timeout.total_seconds()
            try:
                return await asyncio.wait_for(self._tried(function, values), seconds)
            except asyncio.TimeoutError:
                raise TimeoutError(
                    f"it has not answered within {seconds:g} s (table.exec.async-scalar.timeout)"
                ) from None

    async def _tried(self, function: Any, values: Sequence[Any]) -> Any:
        for _ in range(self.limits.most_attempts - 1):
            try:
                return await function(*values)
            except Exception:
                await asyncio.sleep(self.limits.retry_delay.total_seconds())
        return await function(*values)

    def emit_finished(self, elements: Iterable[Queued]) -> None:
        for element in elements:
            if isinstance(element, Entry):
                for batch in element.results or ():
                    self.output.emit(batch)
            else:
                self.output.emit_control(element)

    def _diverted(self, entry: Entry, error: BaseException) -> list[Any]:
        raise user_code_error(error, self.context) from error


def _row(data: pa.RecordBatch, place: int) -> dict[str, Any]:
    [row] = data.slice(place, 1).to_pylist()
    return dict(row)
