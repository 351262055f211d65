"""What STREAMING makes of rows in time: joins of intervals, OVER, sorting and first rows; and what
it refuses, in Flink's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from flinkpy.sql.plans.physical_text import physical_text
from flinkpy.sql.sql_errors import ValidationError
from tests.sql.planning import Session, session_of

TABLES = Path(__file__).parents[2] / "examples" / "nexmark" / "sql" / "tables.sql"
JOIN = "SELECT a.id, b.price FROM auction a {} JOIN bid b ON a.id = b.auction AND {}"
OVER = "SELECT {} OVER (PARTITION BY auction ORDER BY {}) FROM bid"
FIRST = (
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY {}) AS n "
    "FROM (SELECT *, PROCTIME() AS p FROM bid)) WHERE n = 1"
)


@pytest.fixture(scope="module")
def session() -> Session:
    return session_of(TABLES.read_text())


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        (
            JOIN.format(
                "LEFT",
                "b.`dateTime` BETWEEN a.`dateTime` - INTERVAL '1' SECOND "
                "AND a.`dateTime` + INTERVAL '1' HOUR",
            ),
            "IntervalJoin(joinType=[LEFT], windowBounds=[isRowTime=true, "
            "leftLowerBound=-3600000, leftUpperBound=1000, ",
        ),
        (
            JOIN.format(
                "",
                "b.`dateTime` > a.`dateTime` AND a.`dateTime` > b.`dateTime` - INTERVAL '1' MINUTE",
            ),
            "IntervalJoin(joinType=[INNER], windowBounds=[isRowTime=true, "
            "leftLowerBound=-59999, leftUpperBound=-1, ",
        ),
        (
            JOIN.format("FULL", "a.`dateTime` = b.`dateTime` AND b.price > 5"),
            "leftLowerBound=0, leftUpperBound=0, leftTimeIndex=1, rightTimeIndex=2], "
            "where=[(id = auction) AND (dateTime = dateTime) AND (price > 5)]",
        ),
        (JOIN.format("", "b.`dateTime` > a.`dateTime`"), "Join(joinType=[InnerJoin], "),
        ("SELECT * FROM bid ORDER BY `dateTime`, price", "TemporalSort(orderBy=[dateTime ASC, "),
        (
            FIRST.format("`dateTime`"),
            "Deduplicate(keep=[FirstRow], key=[auction], order=[ROWTIME])",
        ),
        (FIRST.format("p"), "Deduplicate(keep=[FirstRow], key=[auction], order=[PROCTIME])"),
        (
            FIRST.format("`dateTime` DESC"),
            "Deduplicate(keep=[LastRow], key=[auction], order=[ROWTIME])",
        ),
        (JOIN.format("LEFT", "b.`dateTime` > a.`dateTime`"), "Join(joinType=[LeftOuterJoin], "),
        ("SELECT price FROM bid LIMIT 5", "Limit(fetch=[5])"),
    ],
)
def test_rows_in_time_have_operators_of_their_own(
    session: Session, statement: str, line: str
) -> None:
    assert line in physical_text(session.plan(statement).physical)


def test_windows_of_one_partition_follow_each_other_without_an_exchange(session: Session) -> None:
    shown = physical_text(
        session.plan(
            "SELECT SUM(price) OVER w, ROW_NUMBER() OVER w FROM bid "
            "WINDOW w AS (PARTITION BY auction ORDER BY `dateTime`)"
        ).physical
    )
    assert shown.count("OverAggregate") == 2
    assert shown.count("Exchange") == 1


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (OVER.format("LEAD(price)", "`dateTime`"), "LEAD is not supported in STREAMING"),
        (OVER.format("NTILE(2)", "`dateTime`"), "NTILE is not supported in STREAMING"),
        (
            OVER.format("SUM(price)", "`dateTime` ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING"),
            "OVER ROWS FOLLOWING windows are not supported",
        ),
        (OVER.format("SUM(price)", "`dateTime`, price"), "only be ordered by a single time column"),
        (OVER.format("SUM(price)", "price DESC"), "only be ordered in ASCENDING mode"),
        (
            OVER.format("SUM(price)", "price ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
            "Non-time attribute sort is not supported for bounded OVER window",
        ),
    ],
)
def test_what_needs_rows_that_are_not_there_yet_is_refused(
    session: Session, statement: str, message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as error:
        session.plan(statement)
    assert "execution.runtime-mode" in str(error.value)
