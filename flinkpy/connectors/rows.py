"""Batches as rows, for sinks that write values one by one."""

from __future__ import annotations

from typing import Any

from flinkpy.core.elements import Batch, RowBatch


def rows_of(batch: Batch) -> list[Any]:
    """The batch's values; for a column batch a Row for each of its rows."""
    if isinstance(batch, RowBatch):
        return batch.values
    # only programs with columns load Arrow
    from flinkpy.columns.values.conversion import rows_of_batch

    return list(rows_of_batch(batch.data, batch.kinds))
