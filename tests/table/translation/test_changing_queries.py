"""Queries over tables that change, in STREAMING, from SELECT to rows with their kinds: what is left
of the changes is what BATCH makes of the rows that are left of the tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from flinkpy.common.types import Row, RowKind
from flinkpy.table import EnvironmentSettings, ExplainDetail, TableEnvironment
from flinkpy.testing.tables import register_rows
from flinkpy.testing.tables import results as written_rows

INSERT, BEFORE, AFTER, DELETE = RowKind
ADDS = (INSERT, AFTER)
_NAMES = {INSERT: "I", BEFORE: "UB", AFTER: "UA", DELETE: "D"}
_MODE = re.compile(r"changelogMode=\[(.*?)\]")
_ = Row.of_kind
GROWING = [
    (1, "a", 5),
    (2, "b", 3),
    (3, "a", 7),
    (4, "a", 1),
    (5, "b", 9),
    (6, None, 9),
    (7, "a", 5),
]
CHANGING = [
    _(INSERT, 1, "a", 5),
    _(INSERT, 2, "b", 3),
    _(BEFORE, 1, "a", 5),
    _(AFTER, 1, "c", 8),
    _(INSERT, 3, "a", 7),
    _(DELETE, 2, "b", 3),
    _(INSERT, 4, "c", 1),
    _(INSERT, 5, None, None),
    _(BEFORE, 4, "c", 1),
    _(AFTER, 4, "a", 2),
]
UPSERTS = [
    _(INSERT, 1, "a", 5),
    _(AFTER, 1, "b", 6),
    _(INSERT, 2, "c", 3),
    _(INSERT, 9, "x", 1),
    _(DELETE, 9, None, None),
    _(AFTER, 2, "a", 4),
]
UPSERTED = [(1, "b", 6), (2, "a", 4)]

QUERIES = """\
SELECT * FROM changing
SELECT * FROM upserts
SELECT k FROM upserts WHERE n > 4
SELECT c.id, g.n FROM changing c LEFT JOIN growing g ON c.id = g.id
SELECT c.id, u.n FROM changing c JOIN upserts u ON c.k = u.k
SELECT c.id, u.n FROM changing c FULL JOIN upserts u ON c.id = u.id
SELECT c.id, u.n FROM changing c RIGHT JOIN upserts u ON c.k = u.k AND c.n > u.n
SELECT id FROM growing WHERE k IN (SELECT k FROM changing)
SELECT id FROM growing WHERE k NOT IN (SELECT k FROM upserts)
SELECT id FROM changing WHERE n NOT IN (SELECT n FROM upserts)
SELECT id FROM changing c WHERE NOT EXISTS (SELECT 1 FROM upserts u WHERE u.k = c.k AND u.n > c.n)
SELECT g.id, c.id FROM growing g, changing c WHERE g.n > c.n
SELECT k, n FROM growing INTERSECT ALL SELECT k, n FROM changing
SELECT k FROM growing EXCEPT ALL SELECT k FROM changing
SELECT k FROM changing EXCEPT ALL SELECT k FROM growing
SELECT id, k FROM changing ORDER BY n DESC, id LIMIT 2
SELECT id, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n DESC, id) AS r FROM changing) WHERE r <= 2
SELECT id, k FROM upserts UNION ALL SELECT id, k FROM changing
SELECT k, COUNT(*), SUM(n), MAX(n) FROM changing GROUP BY k
SELECT COUNT(*), AVG(n) FROM changing
SELECT DISTINCT k FROM changing
SELECT c, COUNT(*) FROM (SELECT k, COUNT(*) AS c FROM growing a GROUP BY k) GROUP BY c
SELECT k FROM growing a UNION SELECT k FROM changing
SELECT k FROM growing a INTERSECT SELECT k FROM changing
SELECT k FROM growing a EXCEPT SELECT k FROM changing
SELECT k, n, COUNT(*) FROM changing GROUP BY GROUPING SETS ((k), (n), ())
SELECT k, c FROM (SELECT k, COUNT(*) AS c FROM growing a GROUP BY k) ORDER BY c DESC, k LIMIT 1
SELECT a.k, x.c FROM growing a JOIN (SELECT k, COUNT(*) AS c FROM changing GROUP BY k) x ON a.k = x.k
SELECT id FROM growing a WHERE n = (SELECT MAX(n) FROM changing)
SELECT id, (SELECT COUNT(*) FROM changing ch WHERE ch.k = a.k) FROM growing a
SELECT k, MIN(n), COUNT(DISTINCT n) FROM changing GROUP BY k HAVING COUNT(*) > 1
SELECT k, SUM(n) FROM changing GROUP BY ROLLUP (k)
SELECT m, COUNT(*) FROM (SELECT k, MAX(n) AS m FROM changing GROUP BY k) GROUP BY m
SELECT x.k, y.c FROM (SELECT k, SUM(n) AS s FROM changing GROUP BY k) x FULL JOIN (SELECT k, COUNT(*) AS c FROM growing a GROUP BY k) y ON x.k = y.k
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY c DESC, k) AS r FROM (SELECT k, COUNT(*) AS c FROM growing a GROUP BY k)) WHERE r <= 2
SELECT k FROM changing WHERE n > (SELECT AVG(n) FROM upserts)
SELECT id FROM growing a WHERE n IN (SELECT MAX(n) FROM changing GROUP BY k)
""".splitlines()
A_FEW = QUERIES[3::7]
AGGREGATES = [each for each in QUERIES if "GROUP BY" in each or "AVG(" in each]
MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 h",
    "table.exec.mini-batch.size": "3",
}


def net(rows: Iterable[Any]) -> Counter[tuple[Any, ...]]:
    """What is left of changes."""
    left: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        left[tuple(row)] += 1 if row.get_row_kind() in ADDS else -1
        assert left[tuple(row)] >= 0, "what is taken back was there"
    return +left


def tables(settings: EnvironmentSettings, changing: Sequence[Any], upserts: Sequence[Any]) -> Any:
    """The three tables; without kinds in BATCH."""
    env = TableEnvironment.create(settings)
    is_batch = not settings.is_streaming_mode()
    for name, rows, mode in (
        ("growing", GROWING, "I"),
        ("changing", changing, "I" if is_batch else "I,UB,UA,D"),
        ("upserts", upserts, "I" if is_batch else "I,UA,D"),
    ):
        key = "" if name == "growing" else ", PRIMARY KEY (id) NOT ENFORCED"
        env.execute_sql(
            f"CREATE TABLE {name} (id INT, k STRING, n INT{key}) WITH ('connector' = 'values', "
            f"'data-id' = '{register_rows(rows)}', 'bounded' = 'true', 'rows-per-batch' = '2', "
            f"'changelog-mode' = '{mode}')"
        )
    moments = [_(each.get_row_kind(), *each, _at(each)) for each in _as_rows(changing)]
    env.execute_sql(
        "CREATE TABLE moments (id INT, k STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - "
        f"INTERVAL '1' HOUR) WITH ('connector' = 'values', 'data-id' = '{register_rows(moments)}', "
        "'bounded' = 'true', 'rows-per-batch' = '2', 'changelog-mode' = "
        f"'{'I' if is_batch else 'I,UB,UA,D'}')"
    )
    return env


def _as_rows(rows: Sequence[Any]) -> list[Row]:
    return [each if isinstance(each, Row) else _(INSERT, *each) for each in rows]


def _at(row: Row) -> datetime:
    """A time that the row tells."""
    return datetime(2024, 1, 1) + timedelta(seconds=3 * row[0])


def results(env: TableEnvironment, statement: str) -> Counter[tuple[Any, ...]]:
    with env.execute_sql(statement).collect() as rows:
        found = list(rows)
    kinds = {_NAMES[row.get_row_kind()] for row in found}
    assert kinds <= explained_kinds(env, statement), statement
    return net(found)


def explained_kinds(env: TableEnvironment, statement: str) -> set[str]:
    """What EXPLAIN says of the operator whose rows are collected."""
    text = env.explain_sql(statement, ExplainDetail.CHANGELOG_MODE)
    return set(_MODE.findall(text)[1].split(","))  # the first is the result itself


def check(
    statements: Sequence[str], parallelism: int, options: dict[str, str] | None = None
) -> None:
    left = list(net(CHANGING).elements())
    batch = tables(EnvironmentSettings.in_batch_mode(), left, UPSERTED)
    live = tables(EnvironmentSettings.in_streaming_mode(), CHANGING, UPSERTS)
    for key, value in {"parallelism.default": str(parallelism), **(options or {})}.items():
        live.get_config().set(key, value)
    different = [each for each in statements if results(live, each) != results(batch, each)]
    assert not different


def test_what_is_left_of_changes_is_the_result_of_batch() -> None:
    check(A_FEW, 2)


@pytest.mark.wide
@pytest.mark.parametrize("parallelism", [1, 3])
def test_that_holds_for_all_queries(parallelism: int) -> None:
    check(QUERIES, parallelism)


def test_two_phases_leave_the_same_result() -> None:
    check(AGGREGATES[:2], 2, MINI_BATCH)


@pytest.mark.wide
def test_that_holds_for_all_aggregates() -> None:
    check(AGGREGATES, 3, MINI_BATCH)


def test_distinct_values_that_are_counted_in_buckets_leave_the_same_result() -> None:
    split = {"table.optimizer.distinct-agg.split.enabled": "true"}
    counts = "COUNT(DISTINCT n), SUM(DISTINCT n) FILTER (WHERE id > 1), MAX(n), COUNT(*)"
    statements = [
        f"SELECT k, {counts} FROM changing GROUP BY k",
        f"SELECT COUNT(DISTINCT k), {counts} FILTER (WHERE n > 4) FROM changing",
    ]
    check(statements, 2, MINI_BATCH | split)


OVER_AND_WINDOWS = """\
SELECT id, SUM(n) OVER (PARTITION BY k ORDER BY n) FROM growing
SELECT id, SUM(n) OVER (PARTITION BY k ORDER BY n), MIN(id) OVER (ORDER BY id) FROM changing
SELECT id, COUNT(*) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM upserts
SELECT k, s, RANK() OVER (ORDER BY s) FROM (SELECT k, SUM(n) AS s FROM changing GROUP BY k)
SELECT window_start, COUNT(*), SUM(n), MAX(k) FROM TABLE(TUMBLE(TABLE moments, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
SELECT window_end, k, COUNT(DISTINCT n) FROM TABLE(HOP(TABLE moments, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end, k
SELECT window_end, k, AVG(n) FROM TABLE(CUMULATE(TABLE moments, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end, k
""".splitlines()


def test_over_by_other_columns_and_windows_of_changes_leave_the_result_of_batch() -> None:
    check(OVER_AND_WINDOWS[1::3], 2)


def test_a_row_that_was_taken_back_bounds_its_session_still() -> None:
    env = tables(EnvironmentSettings.in_streaming_mode(), CHANGING, UPSERTS)
    sessions = "TABLE(SESSION(TABLE moments PARTITION BY k, DESCRIPTOR(ts), INTERVAL '6' SECOND))"
    found = results(
        env,
        "SELECT k, EXTRACT(SECOND FROM window_start), EXTRACT(SECOND FROM window_end), COUNT(*) "
        f"FROM {sessions} GROUP BY window_start, window_end, k",
    )
    # of a, the row at 3 s went, and those at 9 and 12 s stay; of b nothing is left
    assert found == {("a", 3, 18, 2): 1, ("c", 3, 9, 1): 1, (None, 15, 21, 1): 1}


@pytest.mark.wide
def test_that_holds_for_all_of_over_and_windows() -> None:
    check(OVER_AND_WINDOWS, 3)


def test_the_best_row_moves_to_another_key_of_the_sink() -> None:
    """The rank replaces rows by k, and the sink by id: the row that is best no longer goes."""
    env = tables(EnvironmentSettings.in_streaming_mode(), CHANGING, UPSERTS)
    env.execute_sql(
        "CREATE TABLE best (id INT, k STRING, n INT, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'values', 'sink-insert-only' = 'false', "
        "'sink-changelog-mode-enforced' = 'I,UA,D')"
    )
    env.execute_sql(
        "INSERT INTO best SELECT id, k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k "
        "ORDER BY n DESC, id) AS r FROM changing) WHERE r = 1"
    ).wait()
    standing: dict[int, tuple[Any, ...]] = {}
    for row in written_rows("best"):
        if row.get_row_kind() in ADDS:
            standing[row[0]] = tuple(row)
        else:
            del standing[row[0]]
    assert standing == {3: (3, "a", 7), 1: (1, "c", 8), 5: (5, None, None)}


def test_rows_that_may_wait_for_an_hour_do_not_wait_where_no_more_come() -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in (MINI_BATCH | {"table.exec.mini-batch.size": "1000000"}).items():
        env.get_config().set(key, value)
    env.execute_sql(
        "CREATE TABLE endless (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')"
    )
    with env.execute_sql("SELECT COUNT(n) FROM endless").collect() as rows:
        assert next(rows)[0] > 0
