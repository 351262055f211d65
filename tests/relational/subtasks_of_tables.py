"""Subtasks of an operator of tables that has state: fed with rows by key, stopped and started again
with another parallelism, from their snapshots alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from flinkpy.core.elements import Batch, ColumnBatch, ControlElement, Watermark
from flinkpy.core.keys import channel_of_key_group, key_group
from tests.operators.harness import do_all
from tests.operators.joining import MAX_PARALLELISM, Gathered, Subtasks

ROWS = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("t", pa.timestamp("ms"))])


class GatheredRows(Gathered):
    """The rows that came out, and the watermarks."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[Any, ...]] = []
        self.watermarks: list[int] = []

    def emit(self, batch: Batch) -> None:
        assert isinstance(batch, ColumnBatch)
        self.rows += zip(*(_plain(column) for column in batch.data.columns))

    def emit_control(self, element: ControlElement) -> None:
        if isinstance(element, Watermark):
            self.watermarks.append(element.timestamp)


def _plain(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


class SubtasksOfTables(Subtasks):
    """Rows have the columns k, n and t. ``by_key``: of a key to one subtask; else all to the
    first."""

    output: GatheredRows

    def __init__(self, make: Callable[[], Any], parallelism: int = 1, *, by_key: bool = True):
        self._by_key = by_key
        super().__init__(make, parallelism)

    def new_output(self) -> GatheredRows:
        return GatheredRows()

    def push(self, side: int, records: Sequence[Any]) -> None:
        shares: dict[int, list[Any]] = {}
        for (key, number), time in records:
            channel = 0
            if self._by_key:
                group = key_group(key, MAX_PARALLELISM)
                channel = channel_of_key_group(group, MAX_PARALLELISM, len(self.operators))
            shares.setdefault(channel, []).append((key, number, time))
        for channel, rows in shares.items():
            operator = self.operators[channel]
            columns = [pa.array(each, field.type) for each, field in zip(zip(*rows), ROWS)]
            batch = ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=ROWS))
            if hasattr(operator, "process_batch1"):
                do_all((operator.process_batch1, operator.process_batch2)[side](batch))
            else:
                do_all(operator.process_batch(batch))

    def run_rows(self, steps: Sequence[Any]) -> list[tuple[Any, ...]]:
        """What comes of steps as ``tests.operators.joining.disordered`` makes them; after a restart
        no watermark comes, so what is late must be in the state."""
        for step in steps:
            if isinstance(step, int):
                self.watermark(step)
            elif step[0] == "restart":
                self.restart(step[1] if self._by_key else 1)
            else:
                self.push(*step)
        return self.output.rows
