"""Batches of rows, as row operators take them: one that must be of rows, its records, and a batch
of one record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import EngineError


def rows(batch: Batch) -> RowBatch:
    """The batch, which must be one of rows. The graph inserts a conversion where a columnar stream
    meets a row function."""
    if type(batch) is not RowBatch:
        raise EngineError(
            f"a row operator got {batch!r}; ColumnsToRowsOperator is missing in front of it"
        )
    return batch


def each_record(batch: RowBatch) -> Iterator[tuple[Any, int | None]]:
    """The records of a batch, each with its timestamp, or None."""
    return zip(batch.values, batch.timestamps or repeat(None))


def single_row(record: object, timestamp: int | None) -> RowBatch:
    """A batch of this record."""
    return RowBatch([record], None if timestamp is None else [timestamp])
