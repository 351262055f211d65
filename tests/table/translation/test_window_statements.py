"""Statements over windows give in STREAMING what they give in BATCH. All of a mode run as one job
over the same random rows, of which none is late."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.testing.tables import clear_results, register_rows, results

Rows = list[tuple[Any, ...]]

TUMBLE = "TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
HOP = "HOP(TABLE {}, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND)"
CUMULATE = "CUMULATE(TABLE {}, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)"
SESSION = "SESSION(TABLE {} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '3' SECOND)"
WINDOWS = {"tumble": TUMBLE, "hop": HOP, "cumulate": CUMULATE, "session": SESSION}
JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}
SAME = "L.window_start = R.window_start AND L.window_end = R.window_end"
BY_WINDOW = "GROUP BY window_start, window_end"


def forms(window: str) -> dict[str, str]:
    """The statements over one kind of windows, by what they show."""
    # sessions of two tables are seldom equal
    a, b = window.format("a"), window.format("a" if window == SESSION else "b")
    joins = {
        name: f"SELECT L.k, L.n, L.window_time, R.n AS other, R.window_end FROM (SELECT * FROM {a}) L "
        f"{join} (SELECT * FROM {b}) R ON {SAME} AND L.k = R.k AND L.n <> R.n"
        for name, join in JOINS.items()
    }
    return {
        **joins,
        "semi": f"SELECT * FROM {a} L WHERE EXISTS (SELECT * FROM (SELECT * FROM {b}) R "
        f"WHERE {SAME} AND L.k = R.k)",
        "anti": f"SELECT * FROM {a} L WHERE NOT EXISTS (SELECT * FROM (SELECT * FROM {b}) R "
        f"WHERE {SAME} AND L.k = R.k)",
        "in": f"SELECT n, window_start FROM {a} L WHERE n IN (SELECT n FROM (SELECT * FROM {b}) R "
        f"WHERE {SAME})",
        "windows alone": f"SELECT L.window_start, n FROM (SELECT * FROM {a}) L JOIN "
        f"(SELECT window_start, window_end FROM {b} {BY_WINDOW}) R ON {SAME}",
        "ranked": "SELECT k, x, n, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, "
        f"window_end, k ORDER BY x DESC, n) AS rn FROM {a}) WHERE rn <= 2",
        "ranked groups": "SELECT k, c, window_end, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION "
        "BY window_start, window_end ORDER BY c DESC, k) AS rn FROM (SELECT k, COUNT(*) AS c, "
        f"window_start, window_end FROM {a} {BY_WINDOW}, k)) WHERE rn BETWEEN 2 AND 3",
        "last row": "SELECT k, n, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, "
        f"window_end, k ORDER BY ts DESC) AS rn FROM {a}) WHERE rn = 1",
        "aggregates": "SELECT k, window_start, window_end, window_time, COUNT(*) AS c, SUM(n) AS s, "
        f"MAX(x) AS m, SUM(n) FILTER (WHERE n > 3) AS f FROM {a} {BY_WINDOW}, window_time, k",
        "held": "SELECT window_end, COUNT(DISTINCT k) AS d, COUNT(*) AS c, SUM(DISTINCT n) "
        f"FILTER (WHERE n > 2) AS s, MIN(x) AS m FROM {a} {BY_WINDOW}",
        "sets": "SELECT k, n, window_start, COUNT(*) AS c, GROUPING_ID(k, n) AS g, MAX(n) AS m "
        f"FROM {a} {BY_WINDOW}, CUBE (k, n)",
        "groups of groups": "SELECT window_start, MAX(c) AS m FROM (SELECT k, window_start, "
        f"window_end, COUNT(*) AS c FROM {a} {BY_WINDOW}, k) {BY_WINDOW}",
        "windows of windows": "SELECT window_start, SUM(c) AS s FROM TUMBLE((SELECT window_time AS "
        f"rt, COUNT(*) AS c FROM {a} {BY_WINDOW}, window_time), DESCRIPTOR(rt), "
        f"INTERVAL '30' SECOND) {BY_WINDOW}",
        "joined groups": f"SELECT L.k, L.c, R.m FROM (SELECT k, COUNT(*) AS c, window_start, "
        f"window_end FROM {a} {BY_WINDOW}, k) L JOIN (SELECT MAX(n) AS m, window_start, window_end "
        f"FROM {b} {BY_WINDOW}) R ON {SAME} AND L.c <= R.m",
        "filtered": f"SELECT k, window_end, COUNT(*) AS c FROM {a} WHERE n > 2 {BY_WINDOW}, k",
        "rows": f"SELECT * FROM {a} WHERE n < 4",
    }


STATEMENTS = {
    f"{kind}: {what}": text
    for kind, window in WINDOWS.items()
    for what, text in forms(window).items()
} | {
    "old tumble": "SELECT k, TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, TUMBLE_ROWTIME(ts, "
    "INTERVAL '10' SECOND) AS t, COUNT(DISTINCT n) AS c FROM a GROUP BY k, TUMBLE(ts, INTERVAL '10' "
    "SECOND)",
    "old hop": "SELECT HOP_END(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) AS e, SUM(n) AS s "
    "FROM a GROUP BY HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
    "old session": "SELECT k, SESSION_START(ts, INTERVAL '3' SECOND) AS s, SESSION_END(ts, "
    "INTERVAL '3' SECOND) AS e, COUNT(*) AS c FROM a GROUP BY k, SESSION(ts, INTERVAL '3' SECOND)",
    "one session": "SELECT * FROM SESSION(TABLE b, DESCRIPTOR(ts), INTERVAL '2' SECOND)",
}
TABLE = "CREATE TABLE {} (k STRING, x DOUBLE, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)"


def random_rows(seed: int) -> Rows:
    """In time, but for at most five seconds."""
    drawn = random.Random(seed)
    start = datetime.datetime(2024, 1, 1)
    times = sorted(
        (drawn.uniform(0, 60) for _ in range(50)), key=lambda at: at + drawn.uniform(0, 4)
    )
    return [
        (
            drawn.choice(["a", "b", "c", None]),
            drawn.choice([None, float("nan"), -1.5, 0.0, 2.5]),
            drawn.choice([None, 1, 2, 3, 4, 5]),
            start + datetime.timedelta(milliseconds=int(at * 1000)),
        )
        for at in times
    ]


def answers(
    statements: dict[str, str],
    tables: dict[str, Rows],
    mode: str,
    parallelism: int,
    at_once: int,
    options: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Counter[Any]]:
    """What each statement gives; all of them run as one job."""
    clear_results()
    settings = {
        "BATCH": EnvironmentSettings.in_batch_mode,
        "STREAMING": EnvironmentSettings.in_streaming_mode,
    }
    env = TableEnvironment.create(settings[mode]())
    for name, value in {**options, "parallelism.default": str(parallelism)}.items():
        env.get_config().set(name, value)
    for name, rows in tables.items():
        env.execute_sql(
            f"{TABLE.format(name)} WITH ('connector' = 'values', 'bounded' = 'true', "
            f"'data-id' = '{register_rows(rows)}', 'rows-per-batch' = '{at_once}')"
        )
    together = env.create_statement_set()
    for number, text in enumerate(statements.values()):
        env.execute_sql(f"CREATE VIEW v{number} AS {text}")
        described = env.execute_sql(f"DESCRIBE v{number}").to_arrow().to_pylist()
        columns = ", ".join(
            f"c{at} {each['type'].split(' *')[0]}" for at, each in enumerate(described)
        )
        env.execute_sql(f"CREATE TABLE s{number} ({columns}) WITH ('connector' = 'values')")
        together.add_insert_sql(f"INSERT INTO s{number} SELECT * FROM v{number}")
    together.execute().wait()
    return {
        name: Counter(map(repr, results(f"s{number}"))) for number, name in enumerate(statements)
    }


def check(
    names: Sequence[str],
    seed: int,
    parallelism: int,
    at_once: int,
    options: Mapping[str, str] = MappingProxyType({}),
) -> None:
    tables = {"a": random_rows(seed), "b": random_rows(-seed - 1)}
    statements = {name: STATEMENTS[name] for name in names}
    of_batch = answers(statements, tables, "BATCH", 1, 100)
    of_stream = answers(statements, tables, "STREAMING", parallelism, at_once, options)
    # a session has rows of one key
    assert {name for name, rows in of_batch.items() if not rows} <= {"session: ranked groups"}
    assert {name for name in names if of_stream[name] != of_batch[name]} == set()


def test_statements_over_windows_give_in_streaming_what_they_give_in_batch() -> None:
    check(("tumble: full", "hop: ranked groups", "old session"), 1, 2, 7)


def test_sessions_that_have_no_room_in_memory_give_in_streaming_what_they_give_in_batch() -> None:
    pytest.importorskip("rocksdict")
    options = {"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.objects": "0 b"}
    of_rows = ("session: rows", "session: ranked", "session: filtered", "session: sets")
    check((*of_rows, "session: aggregates", "old session", "one session"), 3, 2, 7, options)


@pytest.mark.wide
@pytest.mark.parametrize("kind", [*WINDOWS, "o"])
def test_all_of_them_do_so(kind: str) -> None:
    number = len(kind)
    check([name for name in STATEMENTS if name.startswith(kind)], number, number % 3 + 1, 1)


def test_windows_over_instants_lie_in_the_local_time_of_the_session() -> None:
    """Over the day of 25 hours in New York: its windows of six hours, of which the first has seven,
    and whose times are instants."""
    clear_results()
    zone = ZoneInfo("America/New_York")
    midnight = datetime.datetime(2024, 11, 3, tzinfo=zone).timestamp()
    instants = [int(midnight + 1800 * number) * 1000 for number in range(52)]
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.execute_sql("SET 'table.local-time-zone' = 'America/New_York'")
    env.execute_sql(
        "CREATE TABLE e (ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts) WITH "
        f"('connector' = 'values', 'data-id' = '{register_rows([(ms,) for ms in instants])}', "
        "'bounded' = 'true', 'rows-per-batch' = '1')"
    )
    found = env.execute_sql(
        "SELECT window_start, window_time, COUNT(*), COUNT(DISTINCT ms), MIN(ms) FROM "
        "TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '6' HOUR) "
        "GROUP BY window_start, window_end, window_time"
    )
    expected: dict[datetime.datetime, list[int]] = {}
    for ms in instants:
        shown = datetime.datetime.fromtimestamp(ms / 1000, zone).replace(tzinfo=None)
        start = shown.replace(hour=shown.hour // 6 * 6, minute=0)
        expected.setdefault(start, []).append(ms)
    assert [(row[0], *row[2:]) for row in found.collect()] == [
        (start, len(held), len(held), held[0]) for start, held in expected.items()
    ]
    assert [len(held) for held in expected.values()] == [14, 12, 12, 12, 2]
