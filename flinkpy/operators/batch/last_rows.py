"""The batch form of running aggregates over columns: each record is accumulated once, and each key
emits one row at the end."""

from __future__ import annotations

from collections.abc import Iterator

from flinkpy.core.elements import Batch
from flinkpy.core.options.state import StateBackendKind
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.batch.batch_operator import BatchOperator
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.context import OperatorContext


class LastRows(BatchOperator, OneInputOperator):
    """Runs ``inner``, a ``KeyedColumnsOperator``. Emits the rows in the order in which their keys
    first came."""

    chains_by_key = True

    def backend_kind(self, context: OperatorContext) -> StateBackendKind:
        return StateBackendKind.HASHMAP  # the state stays empty

    def process_batch(self, batch: Batch) -> None:
        batch = columns(batch, self.inner.context)
        with explained(batch.data, self.inner.context):
            self.inner.prepare_for(batch.data.schema)
            self.inner.take(batch)

    def work(self) -> Iterator[None]:
        for batch in self.inner.last_results():
            self.output.emit(batch)
            yield
