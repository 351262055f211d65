"""OVER by a column that is no time, over rows that come and go, against plain Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.relational.ordering.changing_over import ChangingOverOperator
from flinkpy.sql.rex.relational_terms import Frame, OverGroup
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from tests.relational.changing_subtasks import ChangingSubtasks, folded, shown
from tests.relational.drawn_changes import NAN, ROWS, SIZES, changelogs, inserts

CALLS = (
    AggregateCall("SUM", (3,), BigIntType()),
    AggregateCall("COUNT", (), BigIntType()),
    AggregateCall("RANK", (), BigIntType()),
)
SCHEMA = pa.schema([*ROWS, *(pa.field(f"r{at}", pa.int64()) for at in range(len(CALLS)))])


def operator(unit: str, ttl_ms: int = 0) -> ChangingOverOperator:
    group = OverGroup((0,), (SortKey(2),), Frame(unit), CALLS)
    return ChangingOverOperator(group, ROWS, SCHEMA, ALL_CHANGES, ttl_ms)


def _order(row: Any) -> Any:
    value = row[2]
    return (value is not None, value == "NaN", 0.0 if value in (None, "NaN") else value)


def over_in_python(rows: Counter[Any]) -> Counter[Any]:
    """With peers: which of equal rows comes first does not show in it."""
    found: Counter[Any] = Counter()
    for row in rows.elements():
        same = [other for other in rows.elements() if other[0] == row[0]]
        until = [other for other in same if _order(other) <= _order(row)]
        rank = 1 + sum(_order(other) < _order(row) for other in same)
        result = (*row, sum(other[3] for other in until), len(until), rank)
        found[result] += 1
    return found


@pytest.mark.wide
@settings(max_examples=20)
@given(st.data())
def test_what_is_left_is_over_of_the_rows_that_are_left(data: st.DataObject) -> None:
    changes = data.draw(st.one_of(changelogs(), inserts()))
    options = {CHECKPOINT_INCREMENTAL.key: data.draw(st.booleans())}
    subtasks = ChangingSubtasks(lambda: operator("RANGE"), ROWS, (0,), options)
    given_changes = subtasks.run_changes(changes, data.draw(SIZES))
    net: Counter[Any] = Counter()
    for change in changes:
        if not isinstance(change, str):
            net[tuple(map(shown, change[1]))] += 1 if change[0] in ("+I", "+U") else -1
    assert folded(given_changes) == over_in_python(+net)
    subtasks.close()


def test_a_row_changes_those_behind_it_and_rows_without_peers_nothing_before() -> None:
    subtasks = ChangingSubtasks(lambda: operator("ROWS"), ROWS, (0,))
    subtasks.take([("+I", (1, "a", 5.0, 5)), ("+I", (1, "b", NAN, 2))])
    assert subtasks.take([("+I", (1, "c", 5.0, 1))]) == [
        ("-U", (1, "b", "NaN", 2, 7, 2, 2)),
        ("+U", (1, "b", "NaN", 2, 8, 3, 3)),
        ("+I", (1, "c", 5.0, 1, 6, 2, 1)),
    ]
    assert subtasks.take([("-D", (1, "b", NAN, 2))]) == [("-D", (1, "b", "NaN", 2, 8, 3, 3))]
    assert subtasks.take([("-D", (1, "b", NAN, 2))]) == []
    subtasks.close()


def test_partitions_that_rest_are_forgotten() -> None:
    subtasks = ChangingSubtasks(lambda: operator("ROWS", 1000), ROWS, (0,))
    subtasks.take([("+I", (1, "a", 5.0, 5))])
    subtasks.timers.clock.advance(1)
    assert subtasks.take([("+I", (1, "c", 6.0, 1))]) == [("+I", (1, "c", 6.0, 1, 1, 1, 1))]
    subtasks.close()
