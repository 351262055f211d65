"""Rows of an operator in a snapshot: one Arrow table for each key group, under a key of the group.
The columns have the types of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.core.keys import key_group
from flinkpy.operators.columnar.tables_by_group import by_group, group_numbers
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.state.snapshots.arrow_streams import to_bytes


def groups_of_rows(data: pa.RecordBatch, keys: Sequence[int], max_parallelism: int) -> Any:
    """The key group of each row by these key columns; without keys all rows are in one group."""
    if not keys:
        return np.full(data.num_rows, key_group(None, max_parallelism))
    return group_numbers(data, [data.schema.names[at] for at in keys], max_parallelism)


def rows_by_group(
    parts: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    keys: Sequence[int],
    max_parallelism: int,
    turns: Turns,
) -> dict[int, bytes]:
    """The rows of each key group that has some, as an Arrow stream."""
    data = one_record_batch(parts, schema)
    found = {}
    if data.num_rows:
        for group, part in by_group(data, groups_of_rows(data, keys, max_parallelism)):
            found[group] = to_bytes(part)
            turns.give_way()
    return found
