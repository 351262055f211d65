"""JOIN ... FOR SYSTEM_TIME AS OF a time of events, in statements: each order meets the rate that was
valid at its time, whatever form the table of rates has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from flinkpy.common.types import Row, RowKind
from flinkpy.core.errors import FlinkpyError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.testing.tables import clear_results, register_rows, results

INSERT, BEFORE, AFTER, DELETE = RowKind
_ = Row.of_kind
START = datetime(2024, 1, 1)


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


# of each currency: the rates, and when they came; None: it is not quoted any more
QUOTED = [
    *[("EUR", 4, 2), ("USD", 1, 5), ("EUR", 7, 10), ("EUR", 1, 12), ("USD", 3, 14), ("EUR", 2, 20)],
    *[("CHF", 5, 1), ("CHF", 5, 8), ("CHF", None, 8), ("USD", 6, 20), ("USD", 6, 21)],
]
ORDERS = [
    *[(1, "EUR", 1), (2, "EUR", 2), (3, "USD", 11), (4, "EUR", 11), (5, "EUR", 30), (6, None, 9)],
    *[(7, "CHF", 7), (8, "CHF", 9), (9, "USD", 4), (10, "EUR", 13), (11, "USD", 22), (12, "X", 5)],
]
LEFT_CHANGES = [
    *[_(INSERT, 1, "EUR", at(3)), _(INSERT, 2, "USD", at(6)), _(BEFORE, 1, "EUR", at(3))],
    *[_(AFTER, 1, "EUR", at(11)), _(DELETE, 2, "USD", at(6)), _(INSERT, 3, "CHF", at(9))],
]


def upserts() -> list[Row]:
    """A row that goes has its key alone."""
    return [
        _(DELETE, each, None, None) if rate is None else _(AFTER, each, rate, at(time))
        for each, rate, time in QUOTED
    ]


def changelog() -> list[Row]:
    """The same with the row before each update, which has a time of its own."""
    there: dict[str, Row] = {}
    found = []
    for each, rate, time in QUOTED:
        before = there.pop(each, None)
        if rate is None:
            assert before is not None
            found.append(_(DELETE, *before))
            continue
        there[each] = _(INSERT if before is None else AFTER, each, rate, at(time))
        found += [there[each]] if before is None else [_(BEFORE, *before), there[each]]
    return found


def rate_at(currency: str | None, time: int) -> int | None:
    """As QUOTED says."""
    known = [(rate, since) for each, rate, since in QUOTED if each == currency and since <= time]
    return known[-1][0] if known else None


def joined(least: int, *, keeps_left: bool) -> list[tuple[Any, ...]]:
    """Each order with its rate, if that is at least this."""
    pairs = [(id, rate_at(currency, time)) for id, currency, time in ORDERS]
    found = [(id, rate if rate is not None and rate >= least else None) for id, rate in pairs]
    return [each for each in found if keeps_left or each[1] is not None]


def tables_of(parallelism: int, rows_per_batch: int) -> TableEnvironment:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", str(parallelism))
    orders = [_(INSERT, id, currency, at(time)) for id, currency, time in ORDERS]
    late = "WATERMARK FOR t AS t - INTERVAL '1' HOUR"
    key = ", PRIMARY KEY (currency) NOT ENFORCED"
    quotes = [_(INSERT, each, rate or 0, at(time)) for each, rate, time in QUOTED]
    for name, columns, rows, mode in (
        ("orders", "id INT, currency STRING", orders, "I"),
        ("corrected", "id INT, currency STRING", LEFT_CHANGES, "I,UB,UA,D"),
        ("rates", "currency STRING, rate INT", upserts(), "I,UA,D"),
        ("changes", "currency STRING, rate INT", changelog(), "I,UB,UA,D"),
        ("quotes", "currency STRING, rate INT", quotes, "I"),
    ):
        tables.execute_sql(
            f"CREATE TABLE {name} ({columns}, t TIMESTAMP(3), {late}"
            f"{key if name in ('rates', 'changes') else ''}) WITH ('connector' = 'values', "
            f"'data-id' = '{register_rows(rows)}', 'rows-per-batch' = '{rows_per_batch}', "
            f"'changelog-mode' = '{mode}', 'bounded' = 'true')"
        )
    tables.execute_sql(
        "CREATE VIEW last AS SELECT currency, rate * 10 AS tenfold, t FROM (SELECT *, ROW_NUMBER() "
        "OVER (PARTITION BY currency ORDER BY t DESC) AS n FROM quotes) WHERE n = 1 AND rate > 0"
    )
    tables.execute_sql("CREATE VIEW high AS SELECT rate, currency, t FROM rates WHERE rate >= 4")
    tables.execute_sql("CREATE VIEW high_changes AS SELECT * FROM changes WHERE rate >= 4")
    return tables


JOIN = "FROM orders AS o {kind} {table} FOR SYSTEM_TIME AS OF o.t AS r ON o.currency = r.currency"
STATEMENTS = {
    f"SELECT o.id, r.rate {JOIN}": ("rates changes", 0),
    f"SELECT o.id, r.rate {JOIN} AND r.rate >= 4": ("rates changes", 4),
    f"SELECT id, rate {JOIN}": ("high high_changes", 4),
    f"SELECT id, r.tenfold / 10 {JOIN}": ("last", 1),
}
ALL_AT_ONCE = (
    "INSERT INTO found SELECT * FROM ("
    + " UNION ALL ".join(
        f"SELECT {number}, s.* FROM ({statement.format(kind=kind, table=table)}) AS s"
        for number, (statement, kind, table) in enumerate(
            (statement, kind, table)
            for statement, (names, _least) in STATEMENTS.items()
            for kind in ("JOIN", "LEFT JOIN")
            for table in names.split()
        )
    )
    + ")"
)


@pytest.fixture(autouse=True)
def _no_results() -> Iterator[None]:
    yield
    clear_results()


@pytest.mark.wide(but=("2-3]",))
@pytest.mark.parametrize(("parallelism", "rows_per_batch"), [(1, 1), (2, 3), (3, 7), (1, 1000)])
def test_each_order_meets_the_rate_of_its_time(parallelism: int, rows_per_batch: int) -> None:
    tables = tables_of(parallelism, rows_per_batch)
    tables.execute_sql("CREATE TABLE found (s INT, id INT, rate INT) WITH ('connector' = 'values')")
    tables.execute_sql(ALL_AT_ONCE).wait()
    found = [tuple(each) for each in results("found")]
    expected: list[tuple[Any, ...]] = []
    number = 0
    for names, least in STATEMENTS.values():
        for keeps_left in (False, True):
            for _table in names.split():
                expected += [(number, *each) for each in joined(least, keeps_left=keeps_left)]
                number += 1
    assert Counter(found) == Counter(expected)


def kinds_and_rows(tables: TableEnvironment, statement: str) -> list[tuple[Any, ...]]:
    with tables.execute_sql(statement).collect() as rows:
        return [(row.get_row_kind(), *row) for row in rows]


def test_rows_that_change_keep_their_kinds_and_their_time() -> None:
    tables = tables_of(1, 1)
    found = kinds_and_rows(
        tables,
        "SELECT o.id, r.rate FROM corrected AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.t AS r "
        "ON o.currency = r.currency",
    )
    assert found == [
        *[(INSERT, 1, 4), (INSERT, 2, 1), (BEFORE, 1, 4), (AFTER, 1, 7), (DELETE, 2, 1)],
        (INSERT, 3, None),
    ]
    more_than_the_key = (
        "SELECT o.id, r.rate FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.t AS r "
        "ON r.rate = o.id - 2 AND o.currency = r.currency"
    )
    assert kinds_and_rows(tables, more_than_the_key) == [(INSERT, 3, 1), (INSERT, 7, 5)]
    windows = (
        "SELECT window_start, COUNT(*), SUM(rate) FROM TABLE(TUMBLE(TABLE joined, DESCRIPTOR(t), "
        "INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    )
    tables.execute_sql(
        f"CREATE VIEW joined AS SELECT o.id, r.rate, o.t {JOIN}".format(kind="JOIN", table="rates")
    )
    assert kinds_and_rows(tables, windows) == [
        *[(INSERT, at(0), 2, 9), (INSERT, at(10), 3, 9), (INSERT, at(20), 1, 6)],
        (INSERT, at(30), 1, 2),
    ]


def test_explain_shows_the_join_in_flinks_words() -> None:
    tables = tables_of(1, 1)
    plan = tables.explain_sql(f"SELECT o.id, r.rate {JOIN}".format(kind="JOIN", table="rates"))
    assert (
        "TemporalJoin(joinType=[InnerJoin], where=[(currency = currency) AND "
        "__TEMPORAL_JOIN_CONDITION(t, t, __TEMPORAL_JOIN_CONDITION_PRIMARY_KEY(currency), "
        "__TEMPORAL_JOIN_LEFT_KEY(currency), __TEMPORAL_JOIN_RIGHT_KEY(currency))], "
        "select=[id, currency, t, currency0, rate, t0])"
    ) in plan


WRONG = {
    f"SELECT 1 {JOIN}".format(kind="JOIN", table="quotes"): (
        "Temporal Table Join requires primary key in versioned table, but no primary key can be "
        "found"
    ),
    "SELECT 1 FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.t AS r ON o.id = r.rate": (
        "Temporal Table Join requires primary key in versioned table, but no primary key can be "
        "found"
    ),
    "SELECT 1 FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.t AS r ON TRUE": (
        "Currently the join key in Temporal Table Join can not be empty"
    ),
    "SELECT 1 FROM orders AS o JOIN (SELECT currency, rate FROM rates) AS r ON TRUE "
    "JOIN rates FOR SYSTEM_TIME AS OF o.t AS x ON o.currency = x.currency": (
        "Rowtime attributes must not be in the input rows of a regular join"
    ),
    f"SELECT 1 {JOIN}".format(kind="JOIN", table="timeless"): (
        "Event-Time Temporal Table Join requires both primary key and row time attribute in "
        "versioned table, but no row time attribute can be found"
    ),
    f"SELECT 1 {JOIN}".format(kind="JOIN", table="zoned"): (
        "Event-Time Temporal Table Join requires same rowtime type in left table and versioned "
        r"table, but the rowtime types are TIMESTAMP\(3\) \*ROWTIME\* and TIMESTAMP_LTZ\(3\) "
        r"\*ROWTIME\*"
    ),
}


def test_what_has_no_versions_is_refused_in_flinks_words() -> None:
    tables = tables_of(1, 1)
    for name, time in (("timeless", "TIMESTAMP(3)"), ("zoned", "TIMESTAMP_LTZ(3)")):
        watermark = ", WATERMARK FOR t AS t" if name == "zoned" else ""
        tables.execute_sql(
            f"CREATE TABLE {name} (currency STRING, rate INT, t {time}{watermark}, "
            "PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'values')"
        )
    for statement, reason in WRONG.items():
        with pytest.raises(FlinkpyError, match=reason):
            tables.explain_sql(statement)
