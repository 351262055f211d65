"""Sort of BATCH: all rows in order, or with a limit only the first ones, of which no more are kept
than are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.ordering.sorted_runs import SortedRuns
from flinkpy.relational.relational_operator import BlockingOperator, pieces
from flinkpy.sql.rex.rex_nodes import SortKey


class SortOperator(BlockingOperator):
    """Gives the rows in the order of ``keys``, from ``offset`` on, at most ``limit``. One subtask
    must see all rows."""

    def __init__(
        self, keys: Sequence[SortKey], schema: pa.Schema, offset: int = 0, limit: int | None = None
    ) -> None:
        super().__init__(schema)
        self.keys = tuple(keys)
        self.offset = offset
        self.limit = limit

    def open(self) -> None:
        super().open()
        wanted = None if self.limit is None else self.offset + self.limit
        self._sorted = SortedRuns(self.keys, self.schema, self._memory, wanted)

    def take(self, data: pa.RecordBatch) -> None:
        self._sorted.add(data)

    def free_memory(self) -> None:
        self._sorted.spill()

    def last_batches(self) -> Iterator[ColumnBatch]:
        skipped = 0
        for data in self._sorted.batches():
            begin = min(self.offset - skipped, data.num_rows)
            skipped += begin
            yield from pieces(data.slice(begin))
