"""The best ten rows of partitions as they change, in the three strategies of a rank of STREAMING;
beside one sort of each batch by partition and value."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import Comparison, compare, quick
from benchmarks.region_pauses import opened
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.ordering.rank_rows import RankSpec
from flinkpy.relational.ranks.changing_rank import ChangingRankOperator, ChangingRankSpec
from flinkpy.sql.physical.physical_nodes import RankStrategy
from flinkpy.sql.rex.rex_nodes import SortKey

BATCH = 8192
SCHEMA = pa.schema([("k", pa.int64()), ("id", pa.int64()), ("v", pa.int64()), ("t", pa.string())])
RANKED = SCHEMA.append(pa.field("rn", pa.int64()))
TEXTS = pa.array([f"text number {number}" for number in range(1000)])


def batch_of(partitions: int, ids: np.ndarray, values: np.ndarray, kinds: Any) -> ColumnBatch:
    """Rows of ids; an id has one partition."""
    columns = [pa.array(ids * 2654435761 % partitions), pa.array(ids), pa.array(values)]
    columns.append(TEXTS.take(pa.array(ids % 1000)))
    return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), None, kinds)


def added(partitions: int, rows: int) -> list[ColumnBatch]:
    """Rows that are only added."""
    rng = np.random.default_rng(1)
    return [
        batch_of(partitions, np.arange(at, at + BATCH), rng.integers(0, 1 << 40, BATCH), None)
        for at in range(0, rows, BATCH)
    ]


def rising(partitions: int, rows: int) -> list[ColumnBatch]:
    """A hundred ids a partition, whose counts rise; some more often than others."""
    rng = np.random.default_rng(2)
    counts = np.zeros(100 * partitions, np.int64)
    found = []
    for _ in range(0, rows, BATCH):
        ids = (len(counts) * rng.random(BATCH) ** 2).astype(np.int64)
        ids = np.unique(ids)
        counts[ids] += 1
        found.append(batch_of(partitions, ids, counts[ids], np.full(len(ids), 2, np.int8)))
    return found


def changing(partitions: int, rows: int) -> list[ColumnBatch]:
    """A hundred ids a partition, whose values change both ways."""
    rng = np.random.default_rng(3)
    values = np.full(100 * partitions, -1, np.int64)
    found = []
    for _ in range(0, rows, BATCH):
        ids = np.unique(rng.integers(0, len(values), BATCH // 2))
        old, new = values[ids], rng.integers(0, 1 << 40, len(ids))
        values[ids] = new
        both = np.stack([old, new], axis=1).ravel()
        kinds = np.where(old < 0, 0, 2)
        kinds = np.stack([np.ones(len(ids)), kinds], axis=1).ravel().astype(np.int8)
        there = both >= 0
        found.append(batch_of(partitions, np.repeat(ids, 2)[there], both[there], kinds[there]))
    return found


INPUTS = {
    RankStrategy.APPEND: added,
    RankStrategy.UPDATE_FAST: rising,
    RankStrategy.RETRACT: changing,
}


def ranked(
    strategy: RankStrategy, batches: Sequence[ColumnBatch], *, gives_rank: bool
) -> Callable[[], float]:
    """Rows a second of processor time."""
    rank = RankSpec("ROW_NUMBER", (0,), (SortKey(2, True, False),), 1, 10, gives_rank)
    spec = ChangingRankSpec(rank, strategy, ALL_CHANGES, (0, 1))
    schema = RANKED if gives_rank else SCHEMA

    def run() -> float:
        process = opened(ChangingRankOperator(spec, SCHEMA, schema))
        started = time.process_time()
        for batch in batches:
            process(batch)
        return sum(map(len, batches)) / (time.process_time() - started)

    return run


def sorted_alone(batches: Sequence[ColumnBatch]) -> Callable[[], float]:
    """The bare loop: each batch is sorted, and nothing kept."""

    def run() -> float:
        started = time.process_time()
        for batch in batches:
            key, value = batch.data.column(0).to_numpy(), batch.data.column(2).to_numpy()
            batch.data.take(pa.array(np.lexsort((~value, key))))
        return sum(map(len, batches)) / (time.process_time() - started)

    return run


def main() -> list[Comparison]:
    """Each strategy, with few and many partitions."""
    rows = 1 << 16 if quick() else 1 << 20
    results = []
    for strategy, made in INPUTS.items():
        for partitions in (100, 10_000):
            batches = made(partitions, rows)
            for gives_rank in (False, True):
                name = f"{strategy.value}, {partitions:,} partitions"
                name += ", with ranks" if gives_rank else ""
                run = ranked(strategy, batches, gives_rank=gives_rank)
                results.append(compare(name, run, sorted_alone(batches), rounds=3))
    return results
