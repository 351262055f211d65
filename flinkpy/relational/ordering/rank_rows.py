"""Rank of BATCH: the first rows of each partition by ROW_NUMBER, RANK or DENSE_RANK. Rows behind
the last wanted rank are dropped now and then, so no more are kept than a multiple of the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.relational.ordering.partitioned_rows import PartitionedRows, partitioned
from flinkpy.relational.relational_operator import (
    ROWS_AT_ONCE,
    BlockingOperator,
    one_record_batch,
    pieces,
)
from flinkpy.sql.rex.rex_nodes import SortKey

_WAITING_ROWS = 1 << 17
RANKS = {
    "ROW_NUMBER": PartitionedRows.row_numbers,
    "RANK": PartitionedRows.ranks,
    "DENSE_RANK": PartitionedRows.dense_ranks,
}


@dataclass(frozen=True)
class RankSpec:
    """Which ranks of which partitions are wanted, from 1."""

    function: str
    partition: tuple[int, ...]
    keys: tuple[SortKey, ...]
    first: int
    last: int
    gives_rank: bool = False


class RankOperator(BlockingOperator):
    """Gives these rows, each with its rank behind it if that is asked for. ``inputs`` is the schema
    of its input."""

    def __init__(self, spec: RankSpec, inputs: pa.Schema, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.spec = spec
        self.inputs = inputs
        if spec.function not in RANKS:
            raise ProgramError(f"rows have no rank by {spec.function}; there are {sorted(RANKS)}")

    def open(self) -> None:
        self._waiting: list[pa.RecordBatch] = []
        self._rows, self._limit = 0, _WAITING_ROWS

    def take(self, data: pa.RecordBatch) -> None:
        self._waiting.append(data)
        self._rows += data.num_rows
        if self._rows > self._limit:
            data, order, ranks = self._ranked()
            kept = np.sort(order[ranks <= self.spec.last])  # equal rows stay in their order
            self._waiting, self._rows = [data.take(pa.array(kept))], len(kept)
            self._limit = 2 * len(kept) + _WAITING_ROWS

    def _ranked(self) -> tuple[pa.RecordBatch, Any, Any]:
        """All rows; their positions by partition and rank; the rank of each of these."""
        data = one_record_batch(self._waiting, self.inputs)
        rows = partitioned(data, self.spec.partition, self.spec.keys)
        return data, rows.order, RANKS[self.spec.function](rows)

    def last_batches(self) -> Iterator[ColumnBatch]:
        if not self._waiting:
            return
        data, order, ranks = self._ranked()
        self._waiting = []
        wanted = (ranks >= self.spec.first) & (ranks <= self.spec.last)
        order, ranks = order[wanted], ranks[wanted]
        for start in range(0, len(order), ROWS_AT_ONCE):
            columns = data.take(pa.array(order[start : start + ROWS_AT_ONCE])).columns
            if self.spec.gives_rank:
                columns.append(pa.array(ranks[start : start + ROWS_AT_ONCE]))
            yield from pieces(pa.RecordBatch.from_arrays(columns, schema=self.schema))
