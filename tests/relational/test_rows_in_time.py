"""OVER, sorting and first rows of STREAMING against a plain loop over the rows that are in time,
with rows that come late and restarts with another parallelism."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.relational.in_time.first_rows import FirstRowsOperator
from flinkpy.relational.in_time.over_in_time import OverInTimeOperator
from flinkpy.relational.in_time.temporal_sort import TemporalSortOperator
from flinkpy.sql.rex.relational_terms import Frame, OverGroup
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from tests.operators.joining import disordered
from tests.relational.changing_subtasks import ChangingSubtasks
from tests.relational.drawn_changes import ROWS as ANY_ROWS
from tests.relational.subtasks_of_tables import ROWS, SubtasksOfTables

ANY = BigIntType()
KINDS = {"SUM": pa.int64(), "AVG": pa.int64(), "VAR_POP": pa.float64()}
CALLS = (
    AggregateCall("COUNT", (), ANY),
    AggregateCall("SUM", (1,), ANY),
    AggregateCall("AVG", (1,), ANY),
    AggregateCall("MIN", (1,), ANY),
    AggregateCall("LAST_VALUE", (1,), ANY),
    AggregateCall("COUNT", (1,), ANY, distinct=True),
)
OF_PLACES = (
    AggregateCall("ROW_NUMBER", (), ANY),
    AggregateCall("RANK", (), ANY),
    AggregateCall("DENSE_RANK", (), ANY),
    AggregateCall("LAG", (1, 1), ANY, constants=((1, 2),)),
)
FRAMES = {
    Frame("RANGE", None, 0): CALLS,
    Frame("ROWS", None, 0): (*CALLS, *OF_PLACES[:3], AggregateCall("LAG", (1,), ANY)),
    Frame("ROWS", -2, 0): CALLS,
    Frame("RANGE", -4, 0): CALLS,
}


def in_time(steps: list[Any]) -> list[tuple[Any, ...]]:
    """The rows that are not late, as they come. Both sides are one input here."""
    now, found = MIN_TIMESTAMP, []
    for step in steps:
        if isinstance(step, int):
            now = step
        elif step[0] != "restart":
            found += [(*value, time) for value, time in step[1] if time > now]
    return found


def expected_over(
    rows: list[tuple[Any, ...]], frame: Frame, calls: tuple[AggregateCall, ...]
) -> Counter[tuple[Any, ...]]:
    found = []
    for key in {row[0] for row in rows}:
        mine = sorted((row for row in rows if row[0] == key), key=lambda row: row[2])
        for place, row in enumerate(mine):
            first, behind = 0, place + 1
            if frame.unit == "RANGE":
                behind = sum(other[2] <= row[2] for other in mine)
            if isinstance(frame.lower, int):
                first = max(0, place + frame.lower)
                if frame.unit == "RANGE":
                    first = sum(other[2] < row[2] + frame.lower for other in mine)
            results = [_result(call, mine, place, mine[first:behind]) for call in calls]
            found.append((*row, *results))
    return Counter(found)


def _result(call: AggregateCall, mine: list[Any], place: int, frame: list[Any]) -> Any:
    values = [row[1] for row in frame]
    time = mine[place][2]
    if call.function == "LAG":
        return mine[place - 1][1] if place else None
    return {
        "COUNT": len(values),
        "SUM": sum(values),
        "AVG": sum(values) // len(values),
        "MIN": min(values),
        "LAST_VALUE": values[-1],
        "ROW_NUMBER": place + 1,
        "RANK": 1 + sum(row[2] < time for row in mine),
        "DENSE_RANK": 1 + len({row[2] for row in mine if row[2] < time}),
    }[call.function]


@settings(max_examples=20)
@given(disordered(), st.sampled_from(list(FRAMES)))
def test_over_is_computed_in_time(steps: list[Any], frame: Frame) -> None:
    calls = FRAMES[frame]
    group = OverGroup((0,), (SortKey(2),), frame, calls)
    added = [pa.field(f"w{at}", pa.int64()) for at in range(len(calls))]
    schema = pa.schema([*ROWS, *added])
    of = SubtasksOfTables(lambda: OverInTimeOperator(group, ROWS, schema, is_rowtime=True))
    assert Counter(of.run_rows(steps)) == expected_over(in_time(steps), frame, calls)


@settings(max_examples=20)
@given(disordered())
def test_over_by_the_order_in_which_rows_come_waits_for_nothing(steps: list[Any]) -> None:
    calls = (*CALLS[:2], OF_PLACES[0])
    group = OverGroup((0,), (SortKey(2),), Frame("RANGE", None, 0), calls)
    schema = pa.schema([*ROWS, *(pa.field(f"w{at}", pa.int64()) for at in range(3))])
    of = SubtasksOfTables(lambda: OverInTimeOperator(group, ROWS, schema, is_rowtime=False))
    expected: list[tuple[Any, ...]] = []
    for step in steps:
        if isinstance(step, int) or step[0] == "restart":
            continue
        for (key, number), time in step[1]:
            values = [row[1] for row in expected if row[0] == key] + [number]
            expected.append((key, number, time, len(values), sum(values), len(values)))
    without_time = [step for step in steps if not isinstance(step, int)]
    assert Counter(of.run_rows(without_time)) == Counter(expected)


@settings(max_examples=20)
@given(disordered(), st.booleans())
def test_the_first_row_of_a_key_goes_out_once(steps: list[Any], by_time: bool) -> None:
    schema = ROWS.append(pa.field("rank", pa.int64()))
    of = SubtasksOfTables(
        lambda: FirstRowsOperator(ROWS, 2 if by_time else None, (0,), schema, gives_rank=True)
    )
    rows = in_time(steps if by_time else [step for step in steps if not isinstance(step, int)])
    firsts: dict[int, tuple[Any, ...]] = {}
    for row in sorted(rows, key=lambda row: row[2]) if by_time else rows:
        firsts.setdefault(row[0], (*row, 1))
    assert sorted(of.run_rows(steps)) == sorted(firsts.values())


@settings(max_examples=20)
@given(disordered(), st.booleans())
def test_rows_are_sorted_by_time(steps: list[Any], by_number: bool) -> None:
    keys = (SortKey(2), SortKey(1, descending=True)) if by_number else (SortKey(2),)
    of = SubtasksOfTables(lambda: TemporalSortOperator(keys, ROWS), by_key=False)
    expected = sorted(in_time(steps), key=lambda row: (row[2], -row[1] if by_number else 0))
    assert of.run_rows(steps) == expected


def test_a_first_row_that_went_out_long_ago_is_forgotten() -> None:
    subtasks = ChangingSubtasks(
        lambda: FirstRowsOperator(ANY_ROWS, None, (0,), ANY_ROWS, ttl_ms=1000), ANY_ROWS, (0,)
    )
    row = ("+I", (1, "a", 0.0, 0))
    assert subtasks.take([row, row]) == [row]
    subtasks.timers.clock.advance(0.5)
    subtasks.restart(3)
    assert subtasks.take([row]) == []  # what comes later does not keep it
    subtasks.timers.clock.advance(0.5)
    assert subtasks.take([row]) == [row]
    subtasks.close()
