"""Outputs that join the results of many keys into larger batches, because one key alone gives few
results."""

from __future__ import annotations

from typing import Any

from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.operators.batch.batch_operator import WithoutWatermarks
from flinkpy.operators.context import Output
from flinkpy.operators.row_batches import rows


class Collector(WithoutWatermarks):
    """Collects rows into full batches."""

    def __init__(self, target: Output, limit: int) -> None:
        super().__init__(target)
        self._limit = limit
        self._values: list[Any] = []
        self._stamps: list[int] | None = None

    def emit(self, batch: Batch) -> None:
        if isinstance(batch, ColumnBatch):
            self.flush()
            self.target.emit(batch)
            return
        stamps = batch.timestamps
        if not self._values:
            self._stamps = None if stamps is None else []
        elif (stamps is None) != (self._stamps is None):
            self.flush()
            self._stamps = None if stamps is None else []
        self._values += batch.values
        if stamps is not None and self._stamps is not None:
            self._stamps += stamps
        if len(self._values) >= self._limit:
            self.flush()

    def flush(self) -> None:
        values, stamps = self._values, self._stamps
        if values:
            self._values, self._stamps = [], None
            self.target.emit(RowBatch(values, stamps))

    def end_key(self) -> None:
        """All results of the current key have been emitted."""


class LastResultCollector(Collector):
    """Collects only the last result of each key."""

    _last: RowBatch | None = None

    def emit(self, batch: Batch) -> None:
        if len(batch):
            self._last = rows(batch)

    def end_key(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            super().emit(
                RowBatch(
                    last.values[-1:], None if last.timestamps is None else last.timestamps[-1:]
                )
            )
