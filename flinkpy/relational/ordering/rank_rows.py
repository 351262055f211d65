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
from flinkpy.operators.spilling.key_partitions import KeyPartitions, RowWeight
from flinkpy.operators.spilling.portions import portions
from flinkpy.relational.ordering.partitioned_rows import PartitionedRows, partitioned
from flinkpy.relational.relational_operator import (
    ROWS_AT_ONCE,
    BlockingOperator,
    one_record_batch,
    pieces,
)
from flinkpy.sql.rex.rex_nodes import SortKey

_WAITING_ROWS = 1 << 17
RANKED = RowWeight(copies=3, each=48)
"""The batches, one of all, and those in order; codes and places."""

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


class BestRows:
    """Rows of which those behind the last wanted rank are dropped now and then: when there are
    twice as many as were left the last time, or when they take more than ``limit`` bytes."""

    def __init__(self, spec: RankSpec, inputs: pa.Schema, limit: int | None) -> None:
        self._spec = spec
        self._inputs = inputs
        self._limit = limit
        self._most_rows = _WAITING_ROWS
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, data: pa.RecordBatch) -> pa.RecordBatch | None:
        """Takes rows. Where those that may be wanted are still too large, gives them away."""
        self._wait(data)
        is_large = self._limit is not None and self._bytes > self._limit
        if not is_large and self._rows <= self._most_rows:
            return None
        kept = self.given_away()
        self._wait(kept)
        if self._limit is not None and 2 * self._bytes > self._limit:
            self._forget()
            return kept
        self._most_rows = 2 * self._rows + _WAITING_ROWS
        return None

    def _forget(self) -> None:
        self._waiting, self._rows, self._bytes = [], 0, 0

    def _wait(self, data: pa.RecordBatch) -> None:
        self._waiting.append(data)
        self._rows += data.num_rows
        if self._limit is not None:
            self._bytes += RANKED.of(data.nbytes, data.num_rows)

    def given_away(self) -> pa.RecordBatch:
        """The rows that may be wanted when others have come; there are none here any more."""
        ranked = RankedRows.of(self._spec, one_record_batch(self._waiting, self._inputs))
        self._forget()
        return ranked.kept()

    def results(self, schema: pa.Schema) -> Iterator[ColumnBatch]:
        """The wanted rows."""
        if not self._waiting:
            return
        ranked = RankedRows.of(self._spec, one_record_batch(self._waiting, self._inputs))
        self._waiting = []
        for each in ranked.results(schema):
            yield from pieces(each)


class RankOperator(BlockingOperator):
    """Gives these rows, each with its rank behind it if that is asked for. ``inputs`` is the schema
    of its input. When the rows that may be wanted do not fit into its memory, they and later ones
    go to files by partition."""

    def __init__(self, spec: RankSpec, inputs: pa.Schema, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.spec = spec
        self.inputs = inputs

    def open(self) -> None:
        super().open()
        limit = self._memory.limit if self.spec.partition else None
        self._best = BestRows(self.spec, self.inputs, limit)
        self._spilled: KeyPartitions | None = None

    def take(self, data: pa.RecordBatch) -> None:
        kept = self._best.add(data)
        if kept is None:
            return
        if self._spilled is None:
            memory = self._memory
            self._spilled = KeyPartitions(
                self.spec.partition, memory, keeps=memory.kept, weight=RANKED
            )
        self._spilled.add(kept)

    def last_batches(self) -> Iterator[ColumnBatch]:
        if self._spilled is None:
            yield from self._best.results(self.schema)
            return
        rest = self._best.given_away()
        if rest.num_rows:
            self._spilled.add(rest)
        for rows in portions(self._spilled):
            best = BestRows(self.spec, self.inputs, None)
            for data in rows:
                best.add(data)
            yield from best.results(self.schema)
