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

    def __post_init__(self) -> None:
        if self.function not in RANKS:
            raise ProgramError(f"rows have no rank by {self.function}; there are {sorted(RANKS)}")


@dataclass(frozen=True)
class RankedRows:
    """Rows, their positions by partition and rank, and the rank of each of these."""

    spec: RankSpec
    data: pa.RecordBatch
    order: Any
    ranks: Any

    @staticmethod
    def of(spec: RankSpec, data: pa.RecordBatch) -> RankedRows:
        rows = partitioned(data, spec.partition, spec.keys)
        return RankedRows(spec, data, rows.order, RANKS[spec.function](rows))

    def kept(self) -> pa.RecordBatch:
        """The rows that may be wanted when others have come."""
        kept = np.sort(self.order[self.ranks <= self.spec.last])  # equal rows stay in their order
        return self.data.take(pa.array(kept))

    def results(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The wanted rows, in pieces of bounded size."""
        wanted = (self.ranks >= self.spec.first) & (self.ranks <= self.spec.last)
        order, ranks = self.order[wanted], self.ranks[wanted]
        for start in range(0, len(order), ROWS_AT_ONCE):
            columns = self.data.take(pa.array(order[start : start + ROWS_AT_ONCE])).columns
            if self.spec.gives_rank:
                columns.append(pa.array(ranks[start : start + ROWS_AT_ONCE]))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


class RankOperator(BlockingOperator):
    """Gives these rows, each with its rank behind it if that is asked for. ``inputs`` is the schema
    of its input."""

    def __init__(self, spec: RankSpec, inputs: pa.Schema, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.spec = spec
        self.inputs = inputs

    def open(self) -> None:
        self._waiting: list[pa.RecordBatch] = []
        self._rows, self._limit = 0, _WAITING_ROWS

    def take(self, data: pa.RecordBatch) -> None:
        self._waiting.append(data)
        self._rows += data.num_rows
        if self._rows > self._limit:
            kept = self._ranked().kept()
            self._waiting, self._rows = [kept], kept.num_rows
            self._limit = 2 * self._rows + _WAITING_ROWS

    def _ranked(self) -> RankedRows:
        return RankedRows.of(self.spec, one_record_batch(self._waiting, self.inputs))

    def last_batches(self) -> Iterator[ColumnBatch]:
        if not self._waiting:
            return
        ranked = self._ranked()
        self._waiting = []
        for each in ranked.results(self.schema):
            yield from pieces(each)
