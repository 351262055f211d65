"""A query means one thing: in BATCH and in STREAMING, in one subtask and in three, row by row and
in large batches, in one phase and in two, with the rules of the optimizer and without; and DuckDB
says the same, where its dialect allows."""

from __future__ import annotations

from datetime import datetime
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.table.generated.drawn_queries import Case, drawn_case, either
from tests.table.generated.query_runs import (
    CHANGING_WAYS,
    PLAIN,
    WAYS,
    Way,
    comparable,
    judged,
    run,
    ways_of,
)
from tests.table.generated.savepoint_runs import run_over_savepoint

ROWS = [
    (1, 10, "a", 0.5, None, True),
    (1, 20, "b", None, None, None),
    (2, 5, None, 1.0, None, False),
]
EVENTS = [
    (datetime(1970, 1, 1, 0, 0, at), at % 4, "ab"[at % 2], 1.0, None) for at in (1, 5, 9, 10, 31)
]
KEPT = {
    "a grouping set that is named twice has its groups twice": (
        "SELECT a, COUNT(*), SUM(b), GROUPING(a) FROM t GROUP BY GROUPING SETS ((a), (), (a), ())"
    ),
    "a condition on the side that may have no partner stays above an outer join": (
        "SELECT o.a, o.s, i.s AS other FROM t AS o LEFT JOIN e AS i ON o.a = i.a WHERE i.s IS NULL"
    ),
    "a column that is never null may be null behind an outer join": (
        "SELECT o.a, r.x, r.y IS NULL FROM t AS o FULL JOIN (VALUES (1, 2)) AS r(x, y) ON o.a = r.x "
        "WHERE r.x IS NOT NULL"
    ),
    "those without a partner are found by such a column": (
        "SELECT o.a, o.s FROM t AS o LEFT JOIN (VALUES (1, 2)) AS r(x, y) ON o.a = r.x "
        "WHERE r.y IS NULL"
    ),
    "a column of USING has the value of the side that is there": (
        "SELECT x, COUNT(*) FROM (VALUES (1), (2)) AS l(x) FULL JOIN (VALUES (2), (3)) AS r(x) "
        "USING (x) GROUP BY x"
    ),
    "a null key meets nothing, and parts of groups are put together": (
        "SELECT o.d, COUNT(*), AVG(o.d), COUNT(i.s) FILTER (WHERE i.f) FROM t AS o FULL JOIN t AS i "
        "ON o.d = i.d GROUP BY o.d"
    ),
    "tables without rows have a place in the order of joins": (
        "SELECT o.a, x.a, y.a FROM t AS o JOIN u AS x ON o.a = x.a JOIN u AS y ON x.a = y.a"
    ),
    "event times of two tables in one are event times": (
        "SELECT s, window_start, COUNT(*) FROM "
        + either(
            "TUMBLE((", "(SELECT *, time_bucket(INTERVAL 10 SECONDS, ts) AS window_start FROM ("
        )
        + "SELECT ts, s FROM e WHERE a > 1 UNION ALL SELECT ts, s FROM e"
        + either("), DESCRIPTOR(ts), INTERVAL '10' SECOND)", "))")
        + f" GROUP BY s, window_start{either(', window_end', '')}"
    ),
}


@pytest.mark.parametrize("query", KEPT.values(), ids=KEPT.keys())
def test_a_query_that_must_stay_right_gives_the_same_rows_in_every_way(query: str) -> None:
    carried = check(Case(query, {"t": ROWS, "u": [], "e": EVENTS}))
    if "window_start" in query:
        assert {*WAYS} < carried, "STREAMING refuses it"


def check(case: Case) -> set[Way]:
    """Runs the query in every way, and gives those that carry it."""
    carried = {PLAIN}
    rows = run(case, PLAIN)
    assert rows is not None
    wanted = comparable(rows, case.ordered)
    for way in ways_of(case):
        found = run(case, way) if way.is_batch or case.streams else None
        if found is not None:
            carried.add(way)
            ordered = case.ordered and way.is_batch  # the changes of a result have no order
            expected = wanted if ordered else comparable(rows, ordered=False)
            assert comparable(found, ordered) == expected, f"{way.name}: {case.flink}"
    if case.judged:
        told = judged(case)
        if told is not None:
            assert comparable(told, case.ordered) == wanted, f"DuckDB: {case.duckdb}"
    return carried


@settings(max_examples=48)
@given(st.integers(0, 2**48))
def test_a_drawn_query_gives_the_same_rows_in_every_way(seed: int) -> None:
    check(drawn_case(seed))


@pytest.mark.wide
@settings(max_examples=16)
@given(st.integers(0, 2**48))
@example(272229180399777)  # its result has an event time
@example(60917)  # and this one's an empty text
def test_a_drawn_query_over_changes_goes_on_from_a_savepoint_with_another_parallelism(
    seed: int,
) -> None:
    check_over_savepoint(seed)


def check_over_savepoint(seed: int) -> bool:
    """Whether the query could be run so."""
    random = Random(seed)
    case = drawn_case(seed)
    half = len(CHANGING_WAYS) // 2
    first, second = random.choice(CHANGING_WAYS[:half]), random.choice(CHANGING_WAYS[half:])
    if random.random() < 0.5:
        first, second = second, first
    found = run_over_savepoint(case, first, second, random) if case.streams else None
    if found is None:
        return False
    wanted = run(case, PLAIN)
    assert wanted is not None
    assert comparable(found, ordered=False) == comparable(wanted, ordered=False), (
        f"{first.name}, then {second.name}: {case.flink}"
    )
    return True


@pytest.mark.wide
def test_many_drawn_queries_can_be_run_so() -> None:
    assert sum(map(check_over_savepoint, range(8))) > 1
