"""In a batch job, the last row of every key out of an operator that gives running rows: what a key's aggregate comes to.

The rows of all keys seen so far are kept, one each; newer ones are gathered and merged in now and then, so that a row is copied seldom.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import Batch, ColumnBatch, ControlElement, Watermark
from flinkpy.core.options.state import StateBackendKind
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.batch.batch_operator import BatchOperator
from flinkpy.operators.columnar.column_operators import columns, one_batch
from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.operators.context import OperatorContext, Output

_PENDING_ROWS = 65_536


class LastRows(BatchOperator, OneInputOperator):
    """``inner`` names its key columns ``keys``."""

    results: LastOfKeys

    def make_results(self) -> Output:
        return LastOfKeys(tuple(self.inner.keys))

    def backend_kind(self, context: OperatorContext) -> StateBackendKind:
        return StateBackendKind.HASHMAP  # nothing is ever put there

    def process_batch(self, batch: Batch) -> None:
        self.inner.process_batch(batch)

    def work(self) -> Iterator[None]:
        last = self.results.merged()
        if last is None:
            return
        step = self.context.batch_records
        for start in range(0, len(last), step):
            stamps = last.timestamps
            self.output.emit(ColumnBatch(last.data.slice(start, step), None if stamps is None else stamps[start : start + step]))
            yield


class LastOfKeys(Output):
    """Keeps the last row of each key that comes."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = list(keys)
        self._parts: list[ColumnBatch] = []
        self._rows = self._merged_rows = 0

    def emit(self, batch: Batch) -> None:
        self._parts.append(columns(batch))
        self._rows += len(batch)
        if self._rows > _PENDING_ROWS + 2 * self._merged_rows:
            self.merged()

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        """Nobody asks for one."""

    def emit_control(self, element: ControlElement) -> None:
        assert isinstance(element, Watermark)

    def merged(self) -> ColumnBatch | None:
        """The last row of every key, in the order in which these rows came; None where nothing came."""
        if not self._parts:
            return None
        table = pa.Table.from_batches([part.data for part in self._parts])
        everything = one_batch(table)
        keyed = KeyIndex(self._keys).of(everything)  # whose keys are those of the inner operator: zeros of both signs are one
        last = np.empty(len(keyed.ids), dtype=np.int64)
        last[keyed.codes] = np.arange(len(table))  # the last assignment counts
        last.sort()
        data = everything.take(pa.array(last))
        stamps = [part.timestamps for part in self._parts if part.timestamps is not None]
        merged = ColumnBatch(data, np.concatenate(stamps)[last] if stamps else None)
        self._parts, self._rows, self._merged_rows = [merged], len(merged), len(merged)
        return merged
