"""Scalar functions that are coroutines: calls for the rows of several batches are under way at
once, and batches go out in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.row_errors import row_error
from flinkpy.columns.sql.user_code import FailingValue
from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.functions.async_limits import AsyncLimits
from flinkpy.relational.functions.awaited_batches import AwaitedBatchesOperator
from flinkpy.relational.functions.python_values import arguments_of, results_of
from flinkpy.relational.functions.scalar_code import ScalarCode


@dataclass(frozen=True)
class AsyncCall:
    """A call, where its arguments stand in the input, and how errors show it. ``asked`` is where it
    stands for which rows it is made; None: for all."""

    code: ScalarCode
    text: str
    columns: tuple[int, ...]
    arguments: tuple[LogicalType, ...]
    result: LogicalType
    asked: int | None = None


class AsyncCallsOperator(AwaitedBatchesOperator):
    """Appends a column for each call. ``schema`` is that of the results."""

    takes_no_policy = "calls functions of SQL, whose retries are options of the session"

    def __init__(self, calls: Sequence[AsyncCall], limits: AsyncLimits, schema: pa.Schema) -> None:
        self.calls = tuple(calls)
        super().__init__(limits, schema)

    def open(self) -> None:
        for call in self.calls:
            call.code.open(self.context)
        super().open()

    def close(self) -> None:
        try:
            super().close()
        finally:
            for call in self.calls:
                call.code.close()

    async def answered(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """The batch with the answers of all calls."""
        found = await asyncio.gather(*(self._column(call, batch.data) for call in self.calls))
        given = [*batch.data.columns, *found]
        data = pa.RecordBatch.from_arrays(given, schema=self.schema)
        return [batch.with_columns(data)]

    async def _column(self, call: AsyncCall, data: pa.RecordBatch) -> pa.Array:
        if call.asked is None:
            return await self._of_all(call, data)
        asked = pc.fill_null(data.column(call.asked), False)
        answers = await self._of_all(call, data.filter(asked))
        places = pc.if_else(asked, np.cumsum(asked.to_numpy(zero_copy_only=False)) - 1, None)
        return answers.take(places)

    async def _of_all(self, call: AsyncCall, data: pa.RecordBatch) -> pa.Array:
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
        async with self.turn:
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


def _row(data: pa.RecordBatch, place: int) -> dict[str, Any]:
    [row] = data.slice(place, 1).to_pylist()
    return dict(row)
