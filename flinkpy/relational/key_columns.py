"""Key columns as a batch of their own, which key numbers are given for."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.relational.relational_operator import plain


def key_names(count: int) -> tuple[str, ...]:
    """The names of so many key columns."""
    return tuple(f"key {number}" for number in range(count))


def key_batch(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """These columns under the names of keys. Refuses maps, as Flink does."""
    for column in columns:
        kind = column.type
        if pa.types.is_map(kind) or pa.types.is_union(kind):
            raise ProgramError(
                f"rows cannot be grouped or joined by values of the type {kind}; choose a part of "
                "them, or cast them to STRING"
            )
    return pa.RecordBatch.from_arrays(
        [plain(column) for column in columns], names=list(key_names(len(columns)))
    )
