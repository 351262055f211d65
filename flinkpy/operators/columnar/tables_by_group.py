"""Columns in keyed state: one Arrow table per key group, which the backend keeps under a key of
that group. So the state moves by key group when a job is rescaled, without a Python object per key.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.keys import int64_hashes
from flinkpy.network.partitioning.column_hashes import key_hashes
from flinkpy.operators.columnar.column_operators import one_batch

INPUT = b"input"  # in the table's metadata: the schema of the input records


def group_numbers(data: object, keys: Sequence[str], max_parallelism: int) -> Any:
    """The key group of each row, by these key columns."""
    return (key_hashes(data, keys) % np.uint64(max_parallelism)).astype(np.int64)


def by_group(data: pa.RecordBatch, groups: Any) -> Iterator[tuple[int, Any]]:
    """Cuts a batch or table by the key groups of its rows; rows of one group stay in order."""
    order = np.argsort(groups, kind="stable")
    ordered = data.take(pa.array(order))
    found, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    for group, start, count in zip(found.tolist(), starts.tolist(), counts.tolist()):
        yield group, ordered.slice(start, count)


def key_of_group(group: int, max_parallelism: int) -> int:
    """The key under which a group's table is kept: an integer that falls into that group.

    >>> from flinkpy.core.keys import key_group
    >>> [key_group(key_of_group(group, 128), 128) for group in (0, 17, 127)]
    [0, 17, 127]
    """
    return _keys_of_groups(max_parallelism)[group]


@functools.lru_cache(maxsize=8)
def _keys_of_groups(max_parallelism: int) -> Mapping[int, int]:
    keys: dict[int, int] = {}
    begin, step = 0, 8 * max_parallelism
    while len(keys) < max_parallelism:
        numbers = np.arange(begin, begin + step)
        groups, firsts = np.unique(
            int64_hashes(numbers) % np.uint64(max_parallelism), return_index=True
        )
        for group, key in zip(groups.tolist(), numbers[firsts].tolist()):
            keys.setdefault(group, key)
        begin += step
    return keys


def from_bytes(data: bytes) -> Any:
    """The record batch that ``arrow_streams.to_bytes`` wrote."""
    return one_batch(pa.ipc.open_stream(data).read_all())


def with_input(schema: pa.Schema, input_schema: Any) -> Any:
    """The schema of a saved table, with the schema of its input records as metadata."""
    return schema.with_metadata({INPUT: input_schema.serialize().to_pybytes()})


def input_schema_of(schema: pa.Schema) -> Any:
    """The schema of the input records of a saved table."""
    return pa.ipc.read_schema(pa.BufferReader(schema.metadata[INPUT]))
