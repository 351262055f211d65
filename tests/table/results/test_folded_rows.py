"""The rows that are left of a changelog: columns and rows agree, and so does a bag of rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.types import Row, RowKind
from flinkpy.core.elements import ColumnBatch
from flinkpy.table.results.folded_rows import folded, folded_columns

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string()), ("l", pa.list_(pa.int8()))])
ROWS = st.tuples(
    st.none() | st.integers(0, 2), st.sampled_from([None, "a"]), st.sampled_from([None, (), (1,)])
)


@st.composite
def changelogs(draw: Any) -> list[tuple[RowKind, tuple[Any, ...]]]:
    """Changes that take back only what is there."""
    left: list[tuple[Any, ...]] = []
    changes = []
    for _ in range(draw(st.integers(0, 12))):
        if left and draw(st.booleans()):
            row = left.pop(draw(st.integers(0, len(left) - 1)))
            kind = draw(st.sampled_from([RowKind.UPDATE_BEFORE, RowKind.DELETE]))
        else:
            row = draw(ROWS)
            left.append(row)
            kind = draw(st.sampled_from([RowKind.INSERT, RowKind.UPDATE_AFTER]))
        changes.append((kind, row))
    return changes


def batch(changes: list[tuple[RowKind, tuple[Any, ...]]]) -> ColumnBatch:
    columns = list(zip(*(row for _, row in changes)))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA)]
    kinds = np.array([kind.value for kind, _ in changes], np.int8)
    return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), None, kinds)


@settings(max_examples=60, deadline=None)
@given(changelogs(), st.integers(1, 5))
def test_what_is_left_of_changes_is_what_was_added_and_not_taken_back(
    changes: list[tuple[RowKind, tuple[Any, ...]]], size: int
) -> None:
    left: Counter[tuple[Any, ...]] = Counter()
    for kind, row in changes:
        left[row] += 1 if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
    pieces = [batch(changes[at : at + size]) for at in range(0, len(changes), size)]
    table = folded_columns(pieces, SCHEMA)
    found = [(r["k"], r["s"], None if r["l"] is None else tuple(r["l"])) for r in table.to_pylist()]
    assert Counter(found) == +left
    as_rows = [Row.of_kind(kind, *row) for kind, row in changes]
    by_rows = folded(as_rows)
    assert Counter(map(tuple, by_rows)) == +left
    assert {row.get_row_kind() for row in by_rows} <= {RowKind.INSERT}
    assert [row.get_row_kind() for row in as_rows] == [kind for kind, _ in changes]


def test_rows_stand_in_the_order_in_which_they_came_last() -> None:
    plus, minus = RowKind.UPDATE_AFTER, RowKind.UPDATE_BEFORE
    first, second = (1, "a", None), (2, None, ())
    changes = [(plus, first), (plus, second), (minus, first), (plus, first)]
    assert folded_columns([batch(changes)], SCHEMA).column("k").to_pylist() == [2, 1]
    assert [row[0] for row in folded([Row.of_kind(kind, *row) for kind, row in changes])] == [2, 1]


def test_a_row_within_a_row_may_have_an_array_and_a_map() -> None:
    row = (Row([1], {"k": True}), 5)
    changes = [Row(*row), Row(*row), Row.of_kind(RowKind.DELETE, *row)]
    assert folded(changes) == [Row(*row)]
