"""Cuts batches into pieces."""

from __future__ import annotations

from itertools import pairwise

from flinkpy.core.elements import Batch, RowBatch


def cut(batch: Batch, rows: int) -> tuple[Batch, Batch]:
    """The first ``rows`` records and the rest; columns are not copied."""
    if isinstance(batch, RowBatch):
        values, stamps = batch.values, batch.timestamps
        return (
            RowBatch(values[:rows], stamps[:rows] if stamps is not None else None),
            RowBatch(values[rows:], stamps[rows:] if stamps is not None else None),
        )
    return batch.slice(0, rows), batch.slice(rows)


def pieces(batch: Batch, count: int) -> list[Batch]:
    """The batch in ``count`` nearly equal pieces, in order; if it has fewer records, one piece per
    record."""
    total = len(batch)
    count = max(1, min(count, total))
    bounds = [total * i // count for i in range(count + 1)]
    if isinstance(batch, RowBatch):
        values, stamps = batch.values, batch.timestamps
        return [
            RowBatch(values[a:b], stamps[a:b] if stamps is not None else None)
            for a, b in pairwise(bounds)
        ]
    return [batch.slice(a, b - a) for a, b in pairwise(bounds)]
