"""Statements that were tried as a user would try them, over tables that change: what was expected
from the documentation is what is left of their changes."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common.types import Row, RowKind
from flinkpy.core.errors import FlinkpyError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.testing.tables import register_rows

INSERT, BEFORE, AFTER, DELETE = RowKind
_ = Row.of_kind
ALL = "I,UB,UA,D"


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, 0, 0, second)


TABLES: dict[str, tuple[str, str, list[Any]]] = {
    "o": (
        "id INT, cust STRING, amt INT, pt AS PROCTIME()",
        "I",
        [(1, "a", 10), (2, "b", 20), (3, "a", 30), (4, "c", 5), (5, None, 7)],
    ),
    "pay": (
        "oid INT, paid INT",
        ALL,
        [
            *[_(INSERT, 1, 10), _(INSERT, 2, 15), _(BEFORE, 2, 15), _(AFTER, 2, 20)],
            *[_(INSERT, 4, 5), _(DELETE, 4, 5)],
        ],
    ),
    "cu": (
        "id STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED",
        "I,UA,D",
        [
            *[_(INSERT, "a", "Oslo"), _(INSERT, "b", "Rome"), _(AFTER, "a", "Bergen")],
            *[_(INSERT, "c", "Paris"), _(DELETE, "c", None)],
        ],
    ),
    "e": (
        "k STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND",
        "I",
        [("x", 1, at(1)), ("y", 2, at(3)), ("x", 3, at(12)), ("x", 4, at(14)), ("y", 5, at(25))],
    ),
    "ce": (
        "k STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' HOUR",
        ALL,
        [
            *[_(INSERT, "x", 1, at(1)), _(INSERT, "y", 2, at(3)), _(BEFORE, "x", 1, at(1))],
            *[_(AFTER, "x", 9, at(1)), _(DELETE, "y", 2, at(3)), _(INSERT, "x", 3, at(12))],
            _(INSERT, "y", 5, at(25)),
        ],
    ),
}
STATEMENTS = Path(__file__).parent / "statements_over_changes.tsv"


@cache
def tables_of(options: str) -> TableEnvironment:
    """``options`` are ``key=value``, with semicolons between them."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    for name, (columns, changes, rows) in TABLES.items():
        tables.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'values', 'bounded' = 'true', "
            f"'rows-per-batch' = '1', 'changelog-mode' = '{changes}', "
            f"'data-id' = '{register_rows(rows)}')"
        )
    for option in filter(None, options.split(";")):
        key, _, value = option.partition("=")
        tables.get_config().set(key, value)
    return tables


def left_of(statement: str, options: str) -> str:
    """The rows that stand at the end; or ``!`` and the error."""
    left: Counter[str] = Counter()
    try:
        with tables_of(options).execute_sql(statement).collect() as rows:
            for row in rows:
                adds = row.get_row_kind() in (INSERT, AFTER)
                left[",".join(map(shown, row))] += 1 if adds else -1
    except FlinkpyError as error:
        return f"! {error}"
    return ";".join(sorted((+left).elements()))


def shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"{value:%M:%S}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def statements() -> list[list[str]]:
    """Statement, options, and what is expected."""
    with STATEMENTS.open() as lines:
        _, *found = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return found


def check(chosen: list[list[str]]) -> None:
    for statement, options, expected in chosen:
        found = left_of(statement, options)
        is_error = expected.startswith("! ")
        assert found.startswith("! ") == is_error, (statement, found)
        if is_error:
            assert expected.removeprefix("! ") in found, (statement, found)
        else:
            assert found == expected, (statement, options)


def test_a_table_is_declared_whatever_the_options_of_queries_say() -> None:
    """The error of mini-batches without a latency is that of the query."""
    check([each for each in statements() if "MiniBatch Latency" in each[2]])
    tables_of("table.exec.mini-batch.enabled=true").execute_sql(
        "CREATE TABLE other (a INT) WITH ('connector' = 'values')"
    )


@pytest.mark.wide
def test_what_is_left_of_each_statement_was_expected() -> None:
    found = statements()
    assert len(found) >= 117
    check(found)
