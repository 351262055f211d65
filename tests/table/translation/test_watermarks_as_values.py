"""CURRENT_WATERMARK(ts): the watermark of the operator, as a value of its rows."""

from __future__ import annotations

import datetime

from tests.sql.planning import session_of
from tests.table.translation.statements_by_hand import StatementByHand

TABLE = (
    "CREATE TABLE t (n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) "
    "WITH ('connector' = 'values')"
)


def test_a_row_finds_the_watermark_that_came_before_it_or_null() -> None:
    text = (
        "SELECT n, CURRENT_WATERMARK(ts) AS w FROM t WHERE n > 1 OR CURRENT_WATERMARK(ts) IS NULL"
    )
    statement = StatementByHand(session_of(TABLE), text)
    for number, second in enumerate([5, 9, 3]):
        moment = datetime.datetime(1970, 1, 1, 0, 0, second)
        statement.push(n=[number], ts=[moment])
    assert statement.given == [(0, None), (2, 7_000)]
