"""Windows over PROCTIME(): the operators of statements, under a clock that the test moves."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.common.types import RowKind
from flinkpy.relational.windows.changes.changing_aggregates import ChangingAggregatesOperator
from flinkpy.sql.catalog.catalog_port import CatalogTable, ObjectPath, SourceAbilities
from flinkpy.sql.parsing import parse_statement
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.statements import Insert
from tests.sql.planning import Session, session_of
from tests.table.translation.statements_by_hand import StatementByHand

NEXMARK = Path(__file__).parents[3] / "examples" / "nexmark" / "sql"
TABLE = "CREATE TABLE t (k STRING, n BIGINT, p AS PROCTIME()) WITH ('connector' = 'values')"
WINDOWS = {
    "tumble": "TUMBLE(TABLE t, DESCRIPTOR(p), INTERVAL '4' SECOND)",
    "hop": "HOP(TABLE t, DESCRIPTOR(p), INTERVAL '2' SECOND, INTERVAL '4' SECOND)",
    "cumulate": "CUMULATE(TABLE t, DESCRIPTOR(p), INTERVAL '2' SECOND, INTERVAL '4' SECOND)",
    "session": "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(p), INTERVAL '2' SECOND)",
}
GROUPED = "GROUP BY k, window_start, window_end"


@pytest.fixture(scope="module")
def session() -> Session:
    return session_of(TABLE)


def begun(session: Session, text: str, zone: str = "UTC") -> StatementByHand:
    """The statement, at a moment at which windows of 4 seconds begin."""
    statement = StatementByHand(session, text, zone)
    statement.wait((-statement.now % 4000) / 1000)
    return statement


AGGREGATES = {"slices": "SUM(n)", "values": "COUNT(DISTINCT n)", "rows": "ARRAY_AGG(n ORDER BY n)"}
# when the rows of a step come, which they are, and what goes out then: key, start, end, values
STEPS: dict[str, list[tuple[float, list[Any], list[Any]]]] = {
    "tumble": [
        (0, [("a", 1), ("a", 2)], []),
        (3.9, [("b", 3)], []),
        (4.0, [], [("a", 0, 4, [1, 2]), ("b", 0, 4, [3])]),
        (4.0, [("a", 4)], []),
    ],
    "hop": [
        (1.0, [("a", 1)], []),
        (2.0, [], [("a", -2, 2, [1])]),
        (2.5, [("a", 2)], []),
        (4.0, [], [("a", 0, 4, [1, 2])]),
        (6.0, [("a", 4)], [("a", 2, 6, [2])]),
        (8.0, [], [("a", 4, 8, [4])]),
    ],
    "cumulate": [
        (1.0, [("a", 1)], []),
        (2.0, [("a", 2)], [("a", 0, 2, [1])]),
        (4.0, [], [("a", 0, 4, [1, 2])]),
        (4.5, [("a", 4)], []),
        (6.0, [], [("a", 4, 6, [4])]),
    ],
    "session": [
        (0.5, [("a", 1), ("b", 3)], []),
        (2.0, [("a", 2)], []),
        (2.5, [], [("b", 0.5, 2.5, [3])]),
        (3.5, [("a", 2)], []),
        (5.5, [("a", 4)], [("a", 0.5, 5.5, [1, 2, 2])]),
    ],
}
AT_END: dict[str, list[Any]] = {
    "tumble": [("a", 4, 8, [4])],
    "hop": [("a", 6, 10, [4])],
    "cumulate": [("a", 4, 8, [4])],
    "session": [("a", 5.5, 7.5, [4])],
}
RESULTS: dict[str, Callable[[list[int]], Any]] = {
    "slices": sum,
    "values": lambda values: len({*values}),
    "rows": sorted,
}


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_close_by_the_clock_and_at_the_end_of_the_input(
    session: Session, kind: str, aggregate: str
) -> None:
    select = f"SELECT k, window_start, window_end, {AGGREGATES[aggregate]} AS r"
    text = f"{select} FROM {WINDOWS[kind]} {GROUPED}"
    assert session.plan(text).physical.changes.is_insert_only
    statement = begun(session, text)
    first = statement.now
    result = RESULTS[aggregate]

    def expected(rows: list[Any]) -> list[Any]:
        return [
            (key, first + int(start * 1000), first + int(end * 1000), result(values))
            for key, start, end, values in rows
        ]

    for when, rows, given in STEPS[kind]:
        statement.wait(when - (statement.now - first) / 1000)
        assert sorted(statement.given) == expected(given), when
        if rows:
            keys, numbers = zip(*rows)
            statement.push(k=[*keys], n=[*numbers])
    statement.end()
    assert statement.given == expected(AT_END[kind])


@pytest.mark.parametrize(
    ("kind", "aggregate"), [("tumble", "slices"), ("hop", "values"), ("cumulate", "rows")]
)
def test_grouping_sets_of_windows_close_by_the_clock(
    session: Session, kind: str, aggregate: str
) -> None:
    select = f"SELECT k, window_start, window_end, {AGGREGATES[aggregate]} AS r, GROUPING(k)"
    text = f"{select} FROM {WINDOWS[kind]} GROUP BY window_start, window_end, ROLLUP (k)"
    assert session.plan(text).physical.changes.is_insert_only
    statement = begun(session, text)
    first, result = statement.now, RESULTS[aggregate]
    statement.wait(1)
    statement.push(k=["a", "b", "a"], n=[1, 3, 2])
    statement.wait(3)
    windows = {"tumble": [(0, 4)], "hop": [(-2, 2), (0, 4)], "cumulate": [(0, 2), (0, 4)]}[kind]
    given = statement.given
    found = {(row[1] - first, row[2] - first, row[0], str(row[3]), row[4]) for row in given}
    assert found == {
        (start * 1000, end * 1000, key, str(result(values)), grouping)
        for start, end in windows
        for key, values, grouping in [("a", [1, 2], 0), (None, [1, 2, 3], 1), ("b", [3], 0)]
    }


@pytest.mark.parametrize("kind", WINDOWS)
def test_the_window_function_alone_gives_rows_with_windows_of_now(
    session: Session, kind: str
) -> None:
    statement = begun(
        session,
        f"SELECT n, window_start, window_end, window_time FROM {WINDOWS[kind]}",
        "Asia/Kolkata",
    )
    first, ahead = statement.now, (5 * 60 + 30) * 60_000
    statement.wait(1)
    statement.push(k=["a"], n=[1])
    if kind == "session":
        assert statement.given == []
        statement.wait(2)
        start, end = first + 1000 + ahead, first + 3000 + ahead
        assert statement.given == [(1, start, end, first + 3000)]
        return
    bounds = {"hop": [(-2, 2), (0, 4)], "cumulate": [(0, 2), (0, 4)]}.get(kind, [(0, 4)])
    assert statement.given == [
        (1, first + start * 1000 + ahead, first + end * 1000 + ahead, first + 1000)
        for start, end in bounds
    ]


def test_bids_of_ten_seconds_are_counted_by_the_clock() -> None:
    """q12 of Nexmark."""
    nexmark = session_of((NEXMARK / "tables.sql").read_text())
    text = (NEXMARK / "q12.sql").read_text()
    assert isinstance(parse_statement(text), Insert)
    statement = StatementByHand(nexmark, text[text.index("SELECT bidder") :])
    statement.wait((-statement.now % 10_000) / 1000)
    first = statement.now

    def come(*bidders: int) -> None:
        moment = datetime.datetime(2020, 1, 1)  # event time does not count
        bids = [{"bidder": each, "dateTime": moment} for each in bidders]
        statement.push(bid=bids, event_type=[2] * len(bids))

    come(7, 8, 7)
    statement.wait(9.999)
    come(7)
    assert statement.given == []
    statement.wait(0.001)
    assert sorted(statement.given) == [(7, 3, first, first + 10_000), (8, 1, first, first + 10_000)]
    come(8)
    statement.wait(30)
    assert statement.given == [(8, 1, first + 10_000, first + 20_000)]


# what comes in a window, and what live Flink 2.3 gives of it: COUNT(*), COUNT(n), SUM, MAX, MIN,
# AVG and COUNT(DISTINCT n) of each key
CHANGES: list[tuple[str, dict[str, tuple[int | None, ...]]]] = [
    (
        "+a5 +a7 +b1 +c4 +d6 +d9 -d9 +e3 -e3 +n",
        {
            "a": (2, 2, 12, 7, 5, 6, 2),
            "b": (1, 1, 1, 1, 1, 1, 1),
            "c": (1, 1, 4, 4, 4, 4, 1),
            "d": (1, 1, 6, 6, 6, 6, 1),
            "n": (1, 0, None, None, None, None, 0),
        },
    ),
    ("-d6 +d7 -m5 +m5 +m9", {"m": (1, 1, 9, 9, 9, 9, 1)}),
    (
        "-a8 -a7 +b1 -b1 +f2 -f1 +f4 -f4 +f5 +f6 -g1 -g1 -h3 +h4 +h4",
        {
            "a": (-2, -2, -15, None, None, 7, 0),
            "g": (-2, -2, -2, None, None, 1, 0),
            "f": (2, 2, 12, 6, 2, 6, 3),
            "h": (1, 1, 5, 4, 4, 5, 1),
        },
    ),
]


class Changing(Session):
    """A session whose table gives all kinds of changes."""

    def source_abilities(self, path: ObjectPath, table: CatalogTable) -> SourceAbilities:
        return replace(super().source_abilities(path, table), changes=ALL_CHANGES)


@pytest.fixture(scope="module")
def changing(session: Session) -> Session:
    return Changing(session.tables, is_batch=False)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("kind", ["tumble", "session"])
def test_a_row_that_is_taken_back_in_another_window_is_subtracted_there(
    changing: Session, kind: str, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChangingAggregatesOperator, "most", 3)
    statement = begun(
        changing,
        "SELECT k, COUNT(*), COUNT(n), SUM(n), MAX(n), MIN(n), AVG(n), COUNT(DISTINCT n), "
        f"AVG(CAST(n AS DECIMAL(8, 2))) FROM {WINDOWS[kind]} {GROUPED}",
    )
    for text, expected in CHANGES:
        changes = text.split()
        kinds = [RowKind.INSERT if each[0] == "+" else RowKind.DELETE for each in changes]
        keys = [each[1] for each in changes]
        numbers = [int(each[2:]) if each[2:] else None for each in changes]
        for part in [slice(None)] if at_once else [slice(at, at + 1) for at in range(len(keys))]:
            statement.push(kinds[part], k=keys[part], n=numbers[part])
        statement.wait(4)
        given = statement.given
        assert {row[0]: row[1:-1] for row in given} == expected
        assert len(given) == len(expected)
        assert all(
            row[-1] is None if row[2] == 0 else abs(float(row[-1]) - row[3] / row[2]) < 1e-5
            for row in given
        )


def test_windows_of_changes_in_processing_time_have_their_grouping_sets(changing: Session) -> None:
    text = f"SELECT k, window_start, SUM(n) FROM {WINDOWS['tumble']} "
    statement = begun(changing, text + "GROUP BY window_start, window_end, ROLLUP (k)")
    first = statement.now
    statement.push(k=["a", "b", "a"], n=[1, 2, 3])
    statement.wait(4)
    assert {*statement.given} == {("a", first, 4), ("b", first, 2), (None, first, 6)}
    statement.push([RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER], k=["a", "b"], n=[3, 5])
    statement.wait(4)
    # of all keys as many rows came as went
    assert {*statement.given} == {("a", first + 4000, -3), ("b", first + 4000, 5)}


BY_WINDOW = "PARTITION BY window_start, window_end, k ORDER BY"
REFUSED = {
    "Join": f"SELECT L.n FROM (SELECT * FROM {WINDOWS['tumble']}) L JOIN "
    f"(SELECT * FROM {WINDOWS['tumble']}) R ON L.k = R.k "
    "AND L.window_start = R.window_start AND L.window_end = R.window_end",
    "TopN": f"SELECT n FROM (SELECT n, ROW_NUMBER() OVER ({BY_WINDOW} n) AS r "
    f"FROM {WINDOWS['hop']}) WHERE r < 3",
    "Deduplication": f"SELECT n FROM (SELECT n, ROW_NUMBER() OVER ({BY_WINDOW} p) AS r "
    f"FROM {WINDOWS['tumble']}) WHERE r = 1",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_flink_refuses_in_processing_time_is_refused_in_its_words(
    session: Session, what: str
) -> None:
    with pytest.raises(
        ValidationError, match=f"Processing time Window {what} is not supported yet"
    ):
        session.plan(REFUSED[what])


def test_an_aggregate_that_reads_its_window_is_one_of_rows_that_change(session: Session) -> None:
    """As in Flink: a row may come behind the end of its window."""
    late = f"SELECT k, SUM(n) AS s FROM {WINDOWS['tumble']} WHERE window_end > TIMESTAMP "
    late += f"'2020-01-01 00:00:00' {GROUPED}"
    again = "SELECT MAX(s) AS m FROM (SELECT k, window_start, window_end, SUM(n) AS s FROM "
    again += f"{WINDOWS['hop']} {GROUPED}) GROUP BY window_start, window_end"
    sessions = f"SELECT k, SUM(n) FROM {WINDOWS['session']} "
    sessions += "GROUP BY window_start, window_end, ROLLUP (k)"
    for text in (late, again, sessions):
        assert not session.plan(text).physical.changes.is_insert_only
