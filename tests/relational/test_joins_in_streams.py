"""Joins of STREAMING against a plain loop over pairs, with rows that come late and restarts with
another parallelism."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.relational.joins.interval_rows_join import IntervalRowsJoinOperator
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.keyed_rows import Chunk, KeyedRows
from flinkpy.sql.rex.relational_terms import Interval, JoinKind
from tests.operators.joining import disordered
from tests.relational.subtasks_of_tables import ROWS, SubtasksOfTables

BOTH = pa.schema([*ROWS, *(field.with_name(f"{field.name}0") for field in ROWS)])
NOTHING = (None, None, None)


def joined_in_time(
    steps: list[Any], lower: int, upper: int, kind: JoinKind
) -> Counter[tuple[Any, ...]]:
    """Row by row; a row is met as long as one in time could meet it."""
    now = MIN_TIMESTAMP
    kept: tuple[list[Any], list[Any]] = ([], [])
    found: list[tuple[Any, ...]] = []
    reach = (upper, -lower)
    keeps = (kind in (JoinKind.LEFT, JoinKind.FULL), kind in (JoinKind.RIGHT, JoinKind.FULL))

    def let_go(side: int, row: tuple[Any, ...]) -> None:
        if keeps[side]:
            found.append((*NOTHING, *row) if side else (*row, *NOTHING))

    for step in steps:
        if isinstance(step, int):
            now = step
            for side in (0, 1):
                over = [each for each in kept[side] if each[0][2] + reach[side] <= now]
                kept[side][:] = [each for each in kept[side] if each not in over]
                for row, met in over:
                    if not met:
                        let_go(side, row)
        elif step[0] != "restart":
            side = step[0]
            for value, time in step[1]:
                mine: list[Any] = [(*value, time), False]
                for other in kept[1 - side]:
                    left, right = (other, mine) if side else (mine, other)
                    distance = right[0][2] - left[0][2]
                    if left[0][0] == right[0][0] and lower <= distance <= upper:
                        mine[1] = other[1] = True
                        found.append((*left[0], *right[0]))
                if time + reach[side] > now:
                    kept[side].append(mine)
                elif not mine[1]:
                    let_go(side, mine[0])
    return Counter(found)


KINDS = st.sampled_from([JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL])


@settings(max_examples=20)
@given(disordered(), st.integers(-8, 4), st.integers(0, 8), KINDS)
def test_rows_near_in_time_are_joined_and_the_others_go_out_alone(
    steps: list[Any], lower: int, width: int, kind: JoinKind
) -> None:
    interval = Interval(2, 2, lower, lower + width)
    spec = JoinSpec(kind, (0,), (0,))
    of = SubtasksOfTables(lambda: IntervalRowsJoinOperator(spec, interval, ROWS, ROWS, BOTH))
    found = of.run_rows(steps)
    assert Counter(found) == joined_in_time(steps, lower, lower + width, kind)
    assert all(each.entries_held() == 0 for each in of.operators)


def test_a_watermark_waits_for_the_results_that_are_older_than_it() -> None:
    of = SubtasksOfTables(
        lambda: IntervalRowsJoinOperator(
            JoinSpec(JoinKind.LEFT, (0,), (0,)), Interval(2, 2, -5, 20), ROWS, ROWS, BOTH
        )
    )
    of.push(0, [((None, 1), 100), ((1, 2), 100)])
    assert of.output.rows == [(None, 1, 100, None, None, None)]  # meets nothing, whatever comes
    of.watermark(119)
    assert len(of.output.rows) == 1
    of.watermark(120)
    of.watermark(MAX_TIMESTAMP)
    assert of.output.rows[1:] == [(1, 2, 100, None, None, None)]
    assert of.output.watermarks == [99, 100, MAX_TIMESTAMP]


@pytest.mark.parametrize("times", [[5, 7, 6], [-(1 << 61), 1 << 61, 6]])
def test_rows_are_found_by_key_and_time_however_far_times_are_apart(times: list[int]) -> None:
    import numpy as np

    rows = KeyedRows(pa.schema([("n", pa.int64())]))
    data = pa.record_batch({"n": [0, 1, 2]})
    rows.add(data, np.array([3, 3, 4]), np.array(times))
    [(at, chunk, found)] = rows.pairs(np.array([4, 3]), times[1], 1 << 62)
    assert at.tolist() == [1]
    assert isinstance(chunk, Chunk)
    assert chunk.data.take(pa.array(found)).column(0).to_pylist() == [1]
