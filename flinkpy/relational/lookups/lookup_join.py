"""Lookup joins: each row goes on with the rows that a table has for its keys at that moment. No
state is kept: what is in a cache is looked up again after a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.table_join import JoinedTable, LoadedIndex
from flinkpy.operators.context import OperatorContext
from flinkpy.relational.functions.async_limits import AsyncLimits
from flinkpy.relational.functions.awaited_batches import AwaitedBatchesOperator
from flinkpy.relational.lookups.asked_rows import AskedRows
from flinkpy.relational.lookups.lookup_port import AskedTable, Found, Lookups
from flinkpy.relational.lookups.rows_beside import LookupSpec, RowsBeside
from flinkpy.relational.relational_operator import CompilesCalcs, RelationalOperator


class HeldRows:
    """The lookups of a table that the subtask holds."""

    def __init__(self, table: JoinedTable, keys: tuple[str, ...], context: OperatorContext) -> None:
        self._loaded = LoadedIndex(table, keys, context)

    def find(self, keys: pa.RecordBatch) -> Found:
        """The rows of these keys."""
        index = self._loaded.now
        at, rows = index.pairs(keys.columns, keeps_all=False)
        return Found(at, index.rows.take(pa.array(rows)))

    def close(self) -> None:
        self._loaded.close()


class LookupJoinOperator(RelationalOperator):
    """Waits for the answers to the keys of each batch. ``keys`` are the table's columns that are
    asked for."""

    keeps_nothing = True
    takes_changes = ALL_CHANGES

    def __init__(
        self,
        spec: LookupSpec,
        table: JoinedTable | AskedTable,
        keys: tuple[str, ...],
        schema: pa.Schema,
    ) -> None:
        super().__init__(schema)
        self.spec = spec
        self.table = table
        self.keys = keys

    def open(self) -> None:
        self._beside = RowsBeside(self.spec, self.schema, self)
        self._lookups: Lookups | None = None
        with explained(None, self.context):
            if isinstance(self.table, AskedTable):
                self._lookups = AskedRows(self.table, self.context)
            else:
                self._lookups = HeldRows(self.table, self.keys, self.context)

    def free_memory(self) -> None:
        if isinstance(self._lookups, AskedRows):
            self._lookups.free_memory()

    def close(self) -> None:
        super().close()
        lookups = getattr(self, "_lookups", None)
        if lookups is not None:
            lookups.close()

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        assert self._lookups is not None
        with explained(batch.data, self.context):
            asked = self._beside.keys(batch)
            found = self._lookups.find(asked.keys)
            for given in self._beside.joined(batch, asked, found):
                self.output.emit(given)

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits the results in pieces")


class AsyncLookupJoinOperator(CompilesCalcs, AwaitedBatchesOperator):
    """Asks a coroutine function for the keys of each batch."""

    takes_no_policy = "asks a table, whose retries are options of the table"

    def __init__(
        self, spec: LookupSpec, table: AskedTable, limits: AsyncLimits, schema: pa.Schema
    ) -> None:
        self.spec = spec
        self.table = table
        super().__init__(limits, schema)

    def open(self) -> None:
        self._beside = RowsBeside(self.spec, self.schema, self)
        self._asked: AskedRows | None = None
        with explained(None, self.context):
            self._asked = AskedRows(self.table, self.context)
        super().open()

    def free_memory(self) -> None:
        if self._asked is not None:
            self._asked.free_memory()

    def close(self) -> None:
        try:
            super().close()
        finally:
            asked = getattr(self, "_asked", None)
            if asked is not None:
                asked.close()

    async def answered(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """The batch beside what was found."""
        assert self._asked is not None
        asked = self._beside.keys(batch)
        seconds = self.limits.timeout.total_seconds()
        try:
            found = await asyncio.wait_for(
                self._asked.find_together(asked.keys, self.turn), seconds
            )
        except asyncio.TimeoutError:
            raise TimeoutError(
                f"the rows of {asked.keys.num_rows} keys have not come within {seconds:g} s "
                "(table.exec.async-lookup.timeout)"
            ) from None
        return list(self._beside.joined(batch, asked, found))
