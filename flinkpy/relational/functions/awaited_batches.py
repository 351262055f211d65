"""Coroutines for the rows of several batches are under way at once, and batches go out in their
order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.operators.async_io.async_functions import AsyncFunctionDescriptor
from flinkpy.operators.async_io.async_wait import AsyncWaitOperator
from flinkpy.operators.async_io.output_queues import Entry, Queued
from flinkpy.operators.base import Guarding
from flinkpy.operators.columnar.column_operators import columns
from flinkpy.operators.user_errors import user_code_error
from flinkpy.relational.functions.async_limits import AsyncLimits


class AwaitedBatchesOperator(AsyncWaitOperator):
    """Each batch is one record of the queue, and has one call under way, ``answered``; the rows of
    all batches wait for their ``turn`` inside. ``schema`` is that of the results."""

    takes_changes = ALL_CHANGES
    guarding = Guarding.NONE

    def __init__(self, limits: AsyncLimits, schema: pa.Schema) -> None:
        self.limits = limits
        self.schema = schema
        super().__init__(AsyncFunctionDescriptor(self.answered, 0, limits.most_at_once))

    async def answered(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """What goes out for the batch; runs in the thread of the event loop."""
        raise NotImplementedError(type(self).__name__)

    def output_schema(self, schema: pa.Schema) -> Any:
        return self.schema

    def open(self) -> None:
        self.turn = asyncio.Semaphore(self.limits.most_at_once)
        super().open()

    def process_batch(self, batch: Batch) -> None:
        super().process_batch(RowBatch([columns(batch, self.context, self.takes_changes)]))

    async def _invoke(self, value: object) -> list[ColumnBatch]:
        assert isinstance(value, ColumnBatch)  # its columns are nobody's to change
        return await self.answered(value)

    def emit_finished(self, elements: Iterable[Queued]) -> None:
        for element in elements:
            if isinstance(element, Entry):
                for batch in element.results or ():
                    self.output.emit(batch)
            else:
                self.output.emit_control(element)

    def _diverted(self, entry: Entry, error: BaseException) -> list[Any]:
        raise user_code_error(error, self.context) from error
