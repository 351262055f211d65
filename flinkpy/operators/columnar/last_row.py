"""The batch form of running aggregates over columns: every record is accumulated once, and each key gives one row at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.options.state import StateBackendKind
from flinkpy.operators.base import OneInputOperator, OperatorContext
from flinkpy.operators.batch.batch_forms import BatchOperator
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.columnar.groups import Groups


class LastRows(BatchOperator, OneInputOperator):
    """``inner`` is a ``KeyedColumnsOperator``. The rows are in the order in which their keys came."""

    _groups: Groups | None = None
    _schema: Any = None

    def backend_kind(self, context: OperatorContext) -> StateBackendKind:
        return StateBackendKind.HASHMAP  # nothing is ever put there

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch)
        with explained(batch.data, self.inner.context):
            if self._groups is None:
                self._groups = self.inner.make_groups(batch.data.schema)
            elif not self._schema.equals(batch.data.schema):
                self.inner.prepare(batch.data.schema)
            self._schema = batch.data.schema
            self.inner.accumulate(batch, self._groups)

    def work(self) -> Iterator[None]:
        if self._groups is None:
            return
        with explained(None, self.inner.context):
            results, stamps = self._groups.results()
            rows = self.inner.rows_of_groups(results)
        step = self.context.batch_records
        for start in range(0, rows.num_rows, step):
            self.output.emit(ColumnBatch(rows.slice(start, step), None if stamps is None else stamps[start : start + step]))
            yield
