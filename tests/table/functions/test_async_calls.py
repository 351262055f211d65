"""Coroutine functions in STREAMING: calls of several batches are under way at once."""

from __future__ import annotations

import asyncio

import pytest

from flinkpy.core.errors import FlinkpyError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.table.udf import udf
from flinkpy.testing.tables import register_rows

ROWS = 6
met: dict[str, int] = {}
attempts: dict[int, int] = {}


@udf(result_type="BIGINT")
async def met_by_all(number: int) -> int:
    """Answers when calls of all rows, each in a batch of its own, are under way, and no others."""
    met["now"] += 1
    assert met["now"] <= ROWS
    while met["now"] < ROWS:
        await asyncio.sleep(0)
    return number * 2


@udf(result_type="BIGINT")
async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


@udf(result_type="BIGINT")
async def answers_later(number: int) -> int:
    attempts[number] = attempts.get(number, 0) + 1
    if attempts[number] < 3:
        raise ConnectionError("not yet")
    return number


def tables_of(**options: str) -> TableEnvironment:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in options.items():
        tables.get_config().set(f"table.exec.async-scalar.{key.replace('_', '-')}", value)
    rows = register_rows([(number,) for number in range(ROWS)])
    tables.execute_sql(
        "CREATE TABLE t (n BIGINT) WITH ('connector' = 'values', 'bounded' = 'true', "
        f"'data-id' = '{rows}', 'rows-per-batch' = '1')"
    )
    tables.create_temporary_function("met_by_all", met_by_all)
    tables.create_temporary_function("doubled", doubled)
    tables.create_temporary_function("answers_later", answers_later)
    return tables


def test_calls_for_rows_of_several_batches_are_under_way_at_once_and_order_is_kept() -> None:
    met["now"] = 0
    tables = tables_of(max_concurrent_operations=str(ROWS), timeout="20 s")
    found = tables.execute_sql("SELECT n, met_by_all(n + 1) + 1 AS m FROM t WHERE n >= 0")
    assert [tuple(row) for row in found.collect()] == [
        (number, (number + 1) * 2 + 1) for number in range(ROWS)
    ]


def test_calls_of_a_condition_are_made_for_the_rows_that_pass_those_before_it() -> None:
    met["now"] = 1  # one row is left out
    tables = tables_of(max_concurrent_operations=str(ROWS), timeout="20 s")
    found = tables.execute_sql(
        "SELECT n, met_by_all(n) + 1 AS m FROM t WHERE n > 0 AND met_by_all(n) > 2 AND n <> 3"
    )
    assert [tuple(row) for row in found.collect()] == [(2, 5), (4, 9), (5, 11)]


# an expression, for how many of the rows 0 to 5 the function is asked, and the values
SOMETIMES = [
    ("CASE WHEN n = 0 THEN 0 WHEN 6 / n > 1 THEN met_by_all(6 / n) END", 3, [0, 12, 6, 4, None]),
    ("COALESCE(NULLIF(n, 5), met_by_all(n))", 1, [0, 1, 2, 3, 4, 10]),
    ("IF(n < 2, met_by_all(n), CASE WHEN n > 3 THEN met_by_all(n) END)", 4, [0, 2, None, 8, 10]),
    ("n > 2 OR met_by_all(n) = 4", 3, [False, True]),
]


def test_calls_that_some_rows_need_are_under_way_at_once_for_these_rows() -> None:
    tables = tables_of(max_concurrent_operations=str(ROWS), timeout="20 s")
    for expression, asked, wanted in SOMETIMES:
        met["now"] = ROWS - asked  # waits for as many calls, each in a batch of its own
        found = tables.execute_sql(f"SELECT {expression} FROM t").collect()
        assert list(dict.fromkeys(row[0] for row in found)) == wanted, expression


def test_a_call_whose_row_or_argument_another_call_decides_is_made_behind_it() -> None:
    tables = tables_of()
    found = tables.execute_sql(
        "SELECT CASE WHEN doubled(n) > 4 THEN doubled(doubled(n) + 1) ELSE n END FROM t "
        "WHERE n = 1 OR doubled(n) > 2 AND doubled(n + 10) < 30"
    )
    assert [row[0] for row in found.collect()] == [1, 2, 14, 18]


def test_a_call_that_fails_is_tried_again_as_the_options_say() -> None:
    attempts.clear()
    tables = tables_of(retry_delay="1 ms")
    found = tables.execute_sql("SELECT answers_later(n) FROM t WHERE n < 2").collect()
    assert [row[0] for row in found] == [0, 1]
    attempts.clear()
    tables = tables_of(retry_strategy="NO_RETRY")
    with pytest.raises(FlinkpyError, match=r"answers_later\(.*\): not yet, in the row \(n=0"):
        list(tables.execute_sql("SELECT answers_later(n) FROM t").collect())
