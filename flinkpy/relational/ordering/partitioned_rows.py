"""The rows of partitions, sorted by partition and within it: what ranks and OVER are computed
over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.sort_codes import codes_of, new_values, sorted_positions
from flinkpy.sql.rex.rex_nodes import SortKey


@dataclass(frozen=True)
class PartitionedRows:
    """``order`` has the positions of the rows by partition, and within it by the sort keys. All
    else is by place in this order: whether a partition or a group of peers (rows with equal sort
    keys) begins there."""

    order: Any
    begins: Any
    begins_peers: Any

    @cached_property
    def starts(self) -> Any:
        """For each place the first place of its partition."""
        return np.maximum.accumulate(np.where(self.begins, np.arange(len(self.order)), 0))

    @cached_property
    def ends(self) -> Any:
        """For each place the place behind its partition."""
        return _ends(self.begins)

    @cached_property
    def peer_starts(self) -> Any:
        """For each place the place of its first peer."""
        return np.maximum.accumulate(np.where(self.begins_peers, np.arange(len(self.order)), 0))

    @cached_property
    def peer_ends(self) -> Any:
        """For each place the place behind its last peer."""
        return _ends(self.begins_peers)

    @cached_property
    def numbers(self) -> Any:
        """The number of each place's partition, in their order."""
        return np.cumsum(self.begins) - 1

    def row_numbers(self) -> Any:
        """ROW_NUMBER, from 1."""
        return np.arange(len(self.order)) - self.starts + 1

    def ranks(self) -> Any:
        """RANK: peers have that of the first of them."""
        return self.peer_starts - self.starts + 1

    def dense_ranks(self) -> Any:
        """DENSE_RANK: the number of different sort keys so far."""
        groups = np.cumsum(self.begins_peers)
        return groups - groups[self.starts] + 1


def _ends(begins: Any) -> Any:
    places = np.append(np.flatnonzero(begins), len(begins))
    return np.repeat(places[1:], np.diff(places))


def partitioned(
    data: pa.RecordBatch, partition: Sequence[int], keys: Sequence[SortKey]
) -> PartitionedRows:
    """The rows of a batch by these partition columns and sort keys; equal rows stay in their
    order."""
    groups = [GroupNumbers(partition).of(data)] if partition else []
    codes = codes_of(data.columns, keys)
    order = sorted_positions([*groups, *codes], data.num_rows)
    begins = new_values([each[order] for each in groups], len(order))
    begins_peers = begins | new_values([each[order] for each in codes], len(order))
    return PartitionedRows(order, begins, begins_peers)
