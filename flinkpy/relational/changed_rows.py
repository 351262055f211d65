"""Rows with their kinds: what operators of STREAMING make of a batch of changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.types import RowKind
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.columnar.key_index import encoded
from flinkpy.relational.relational_operator import ROWS_AT_ONCE, one_record_batch

INSERT, BEFORE, AFTER, DELETE = (np.int8(kind.value) for kind in RowKind)


def are_added(batch: ColumnBatch) -> Any:
    """Which rows of a batch are there from now on; the others were, and are no more."""
    if batch.kinds is None:
        return np.ones(len(batch), np.bool_)
    return (batch.kinds == INSERT) | (batch.kinds == AFTER)


def rounds(batch: ColumnBatch, keys: Sequence[int]) -> Iterator[ColumnBatch]:
    """The rows of a batch in several, in each of which a key has one row: the first rows of all
    keys, then the second ones."""
    codes = encoded([batch.data.column(at) for at in keys]).codes if keys else np.zeros(len(batch))
    order = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.append(True, codes[order][1:] != codes[order][:-1]))
    sizes = np.diff(np.append(begins, len(order)))
    nth = np.empty(len(order), np.int64)
    nth[order] = np.arange(len(order)) - np.repeat(begins, sizes)
    if not nth.any():
        yield batch
        return
    by_round = np.argsort(nth, kind="stable")
    ends = np.cumsum(np.bincount(nth))
    for start, end in zip(np.append(0, ends[:-1]), ends):
        yield batch.take(by_round[start:end])


def changed_pieces(data: pa.RecordBatch, kinds: Any) -> Iterator[ColumnBatch]:
    """The rows as batches of bounded size."""
    for start in range(0, data.num_rows, ROWS_AT_ONCE):
        end = start + ROWS_AT_ONCE
        yield ColumnBatch(data.slice(start, ROWS_AT_ONCE), None, kinds[start:end])


def updates(
    before: pa.RecordBatch, after: pa.RecordBatch, had: Any, *, gives_before: bool
) -> tuple[pa.RecordBatch, Any]:
    """The change of each row ``after``: an insert, or, of those that ``had`` one, an update of the
    next row ``before``. ``gives_before``: with the row before it."""
    kinds = np.where(had, AFTER, INSERT)
    if not gives_before or not had.any():
        return after, kinds
    rows = np.arange(after.num_rows)
    places = rows + np.cumsum(had)  # of the rows after, among all that go out
    taken = np.empty(after.num_rows + before.num_rows, np.int64)
    taken[places] = before.num_rows + rows
    taken[places[had] - 1] = np.arange(before.num_rows)
    all_kinds = np.full(len(taken), BEFORE)
    all_kinds[places] = kinds
    both = one_record_batch([before, after], after.schema)
    return both.take(pa.array(taken)), all_kinds


def equal_rows(one: pa.RecordBatch, other: pa.RecordBatch) -> Any:
    """Which rows of two batches of the same columns are equal, place by place. Null equals null,
    and NaN equals NaN."""
    found = np.ones(one.num_rows, np.bool_)
    if not one.num_rows:
        return found
    for left, right in zip(one.columns, other.columns):
        codes = encoded([pa.concat_arrays([left, right])]).codes
        found &= codes[: len(left)] == codes[len(left) :]
    return found
