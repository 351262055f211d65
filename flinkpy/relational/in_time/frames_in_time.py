"""Rows in time that are about to get their OVER results, beside what is known of earlier rows of
their partitions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.relational.joins.keyed_rows import KeyedRows
from flinkpy.relational.ordering.partitioned_rows import PartitionedRows
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.relational.sort_codes import new_values

EVER = 1 << 62


@dataclass(frozen=True)
class RowsOfNow:
    """Rows in the order of time, with the numbers of their partitions and their times."""

    data: pa.RecordBatch
    ids: Any
    times: Any

    @cached_property
    def partitions(self) -> Any:
        """The number of each partition, once."""
        return np.unique(self.ids)


@dataclass(frozen=True)
class EarlierRows:
    """What is kept of earlier rows of these partitions, the oldest first."""

    data: pa.RecordBatch
    ids: Any
    times: Any


def earlier_rows(
    kept: KeyedRows, schema: pa.Schema, now: RowsOfNow, since: int = -EVER
) -> EarlierRows:
    """The rows of the partitions of now from a time on, but for those that were ``forgotten``."""
    parts, ids, times = [], [], []
    for _, chunk, rows in kept.pairs(now.partitions, since, EVER):
        rows = rows[~chunk.met[rows]]
        parts.append(chunk.data.take(pa.array(rows)))
        ids.append(chunk.ids[rows])
        times.append(chunk.times[rows])
    if not parts:
        nothing = np.empty(0, np.int64)
        return EarlierRows(one_record_batch([], schema), nothing, nothing)
    return EarlierRows(one_record_batch(parts, schema), np.concatenate(ids), np.concatenate(times))


def forget(kept: KeyedRows, now: RowsOfNow) -> None:
    """What is kept of the partitions of now goes: a new version comes instead."""
    for _, chunk, rows in kept.pairs(now.partitions, -EVER, EVER):
        chunk.met[rows] = True
    kept.drop(lambda chunk: chunk.met)


def in_partitions(earlier: EarlierRows, now: RowsOfNow, *, apart: bool) -> PartitionedRows:
    """Earlier rows and those of now by partition; positions of the latter begin behind the former.
    ``apart``: no earlier row is a peer of one of now."""
    ids = np.concatenate((earlier.ids, now.ids))
    order = np.argsort(ids, kind="stable")
    times = np.concatenate((earlier.times, now.times))[order]
    codes = [times]
    if apart:
        codes.append(order >= len(earlier.ids))
    begins = new_values([ids[order]], len(order))
    return PartitionedRows(order, begins, begins | new_values(codes, len(order)))
