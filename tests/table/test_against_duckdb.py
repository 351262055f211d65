"""Expressions and aggregates against the same in DuckDB's SQL, over generated tables. (Zones need
an extension that DuckDB would download.) docs/columns.md lists where the two differ."""

from __future__ import annotations

import datetime
import functools
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.columns.compiler import compile_expression
from flinkpy.columns.expression import Expression
from flinkpy.common import Types
from flinkpy.table.expressions import (
    coalesce,
    col,
    date_format,
    greatest,
    least,
    lit,
    timestamp_diff,
    to_date,
    to_timestamp,
)

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")

TEXTS = st.none() | st.text(alphabet="aAbB, -1.é漢", max_size=6)
MOMENTS = (
    st.none()
    | st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2099, 12, 31))
    | st.sampled_from(
        [datetime.datetime(2024, 2, 29), datetime.datetime(2024, 1, 31, 23, 59, 59, 999_999)]
    )
)
SMALL = st.none() | st.integers(-9, 9)
FLOATS = st.none() | st.floats(-1e6, 1e6) | st.sampled_from([0.0, 2.5, -2.5])
LISTS = st.none() | st.lists(st.none() | st.integers(-3, 3), max_size=4)
SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("t", pa.string()),
        ("ts", pa.timestamp("us")),
        ("later", pa.timestamp("us")),
        ("day", pa.date32()),
        ("l", pa.list_(pa.int64())),
        ("p", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": SMALL,
            "j": SMALL,
            "x": FLOATS,
            "s": TEXTS,
            "t": TEXTS,
            "ts": MOMENTS,
            "later": MOMENTS,
            "l": LISTS,
            "day": st.none() | st.dates(datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)),
            "p": st.none() | st.fixed_dictionaries({"a": SMALL, "b": TEXTS}),
        }
    ),
    min_size=1,
    max_size=8,
)

at, s, i, j, x = col("ts"), col("s"), col("i"), col("j"), col("x")
SAME: dict[str, Expression] = {
    "i + j * 2": i + j * 2,
    "i - 1 > j": i - 1 > j,
    "i is null or j = 3": i.is_null | (j == 3),
    "coalesce(i, j, 0)": coalesce(i, j, 0),
    "case when i is null or j is null then null else greatest(i, j) end": greatest(i, j),
    "case when i is null or j is null then null else least(i, j) end": least(i, j),
    "abs(x)": x.abs,
    "floor(x)": x.floor(),
    "ceil(x)": x.ceil(),
    "i in (1, 2, 3)": i.in_(1, 2, 3),
    "i between -2 and 5": i.between(-2, 5),
    "pow(i, 2)": i**2,
    "pow(x, i)": x**i,
    "isnan(x / i)": (x / i).is_nan,
    "round(abs(x), -400)": x.abs.round(-400),
    "round(i, -1)::bigint": i.round(-1),
    "try_cast(t as boolean)": col("t").try_cast(Types.BOOLEAN()),
    "strftime(ts, '%d.%m.%y')": date_format(at, "dd.MM.yy"),
    "try_strptime(strftime(ts, '%d.%m.%y'), '%d.%m.%y')::date": to_date(
        date_format(at, "%d.%m.%y"), "%d.%m.%y"
    ),
    "upper(s)": s.upper_case,
    "length(s)": s.char_length,
    "reverse(s)": s.reverse,
    "s like 'a%'": s.like("a%"),
    "substring(s, 2, 3)": s.substring(2, 3),
    "left(s, 2)": s.left(2),
    "right(s, 2)": s.right(2),
    "lpad(s, 4, 'xy')": s.lpad(4, "xy"),
    "rpad(s, 4, 'xy')": s.rpad(4, "xy"),
    "repeat(s, 2)": s.repeat(2),
    "trim(s, 'a ')": s.trim("a "),
    "contains(s, 'a')": s.contains("a"),
    "replace(s, 'a', 'zz')": s.replace("a", "zz"),
    "strpos(s, t)": col("t").position(s),
    "string_split(s, ',')": s.split(","),
    "string_split(s, ',')[2]": s.split(",").at(2),
    "regexp_matches(s, '[ab]+')": s.regexp("[ab]+"),
    "regexp_replace(s, '([aA])(b?)', '<\\2\\1>', 'g')": s.regexp_replace("([aA])(b?)", r"<\2\1>"),
    "case when regexp_matches(s, '(a)(b)') then regexp_extract(s, '(a)(b)', 2) end": s.regexp_extract(
        "(a)(b)", 2
    ),
    # DuckDB takes 1. and 1.1 for whole numbers
    "try_cast(case when not contains(s, '.') then s end as bigint)": s.try_cast(
        Types.LONG()
    ).if_null(lit(None, Types.LONG())),
    "year(ts)": at.extract("year"),
    "quarter(ts)": at.extract("quarter"),
    "month(ts)": at.extract("month"),
    "week(ts)": at.extract("week"),
    "isoyear(ts)": at.extract("isoyear"),
    "day(ts)": at.extract("day"),
    "dayofyear(ts)": at.extract("doy"),
    "isodow(ts)": at.extract("isodow"),
    "hour(ts)": at.extract("hour"),
    "minute(ts)": at.extract("minute"),
    "second(ts)": at.extract("second"),
    "year(day)": col("day").extract("year"),
    **{
        f"date_trunc('{unit}', ts)::timestamp": at.floor(unit)
        for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    },
    "ts + interval 3 day": at + lit(3).days,
    "ts - interval 5 hour": at - lit(5).hours,
    "ts + to_months(i::int)": at + i.months,
    "ts - interval 1 year": at - lit(1).year,
    "(day + interval 2 month)::date": col("day") + lit(2).months,
    "date_sub('hour', ts, later)": timestamp_diff("hour", at, col("later")),
    "date_sub('day', ts, later)": timestamp_diff("day", at, col("later")),
    "strftime(ts, '%Y-%m-%d %H:%M:%S')": date_format(at, "%Y-%m-%d %H:%M:%S"),
    "strftime(ts, '%d %B %Y %I:%M %p')": date_format(at, "%d %B %Y %I:%M %p"),
    "try_strptime(strftime(ts, '%d.%m.%Y %H:%M'), '%d.%m.%Y %H:%M')": to_timestamp(
        date_format(at, "dd.MM.yyyy HH:mm"), "dd.MM.yyyy HH:mm"
    ),
    "l[2]": col("l").at(2),
    "len(l)": col("l").cardinality,
    "case when l is not null then list_contains(l, 2) end": col("l").array_contains(2),
    "p.a": col("p").get("a"),
    "p.b": col("p").get(1),
}


def shown(values: list[Any]) -> list[Any]:
    return [
        repr(float(value))
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else repr(value)
        for value in values
    ]


@functools.lru_cache(maxsize=1)
def connection() -> Any:
    return duckdb.connect(config={"autoinstall_known_extensions": False})


def of_duckdb(sql: str, table: Any) -> list[Any]:
    connection().register("given", table)
    found: list[Any] = (
        connection()
        .sql(f"select {sql} as result from given")
        .to_arrow_table()
        .column("result")
        .to_pylist()
    )
    return found


@pytest.mark.parametrize("sql", SAME)
@given(rows=ROWS)
@settings(max_examples=10, deadline=None)
def test_an_expression_means_what_it_means_in_sql(sql: str, rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    batch = table.combine_chunks().to_batches()[0]
    found = compile_expression(SAME[sql], SCHEMA).evaluate(batch).to_pylist()
    assert shown(found) == shown(of_duckdb(sql, table))


AGGREGATES: dict[str, Expression] = {
    "count(i)": i.count,
    "sum(i)::bigint": i.sum,
    "avg(i)": i.avg,
    "min(s)": s.min,
    "max(x)": x.max,
    "count(distinct i)": i.count_distinct,
    "count(distinct p)": col("p").count_distinct,
    "count(distinct s)": s.count_distinct,
    "var_pop(x)": x.var_pop,
    "var_samp(x)": x.var_samp,
    "stddev_pop(i)": i.stddev_pop,
    "stddev_samp(x)": x.stddev_samp,
    "median(x)": x.median,
    "quantile_cont(x, 0.9)": x.percentile(0.9),
    "quantile_cont(i, 0.25)": i.percentile(0.25),
    "first(i) filter (i is not null)": i.first_value,
    "last(s) filter (s is not null)": s.last_value,
}


@pytest.mark.parametrize("sql", AGGREGATES)
@given(rows=ROWS)
@settings(max_examples=10, deadline=None)
def test_an_aggregate_means_what_it_means_in_sql(sql: str, rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    batch = table.combine_chunks().to_batches()[0]
    [call] = aggregate_calls([AGGREGATES[sql].alias("result")], "test")
    column = compile_expression(call.expression, SCHEMA).evaluate(batch)
    of = ColumnAggregate(call.kind, column.type, options=call.options)
    counts, values = of.values_of(column)
    sizes = of.counted(counts, len(column), None, 1)
    [found] = of.results(sizes, None if values is None else of.grouped(values, None, 1)).to_pylist()
    [expected] = of_duckdb(sql, table)
    if isinstance(found, float) and expected is not None:
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-6)
    else:
        assert shown([found]) == shown([expected])


# the SQL: the expression, its value, DuckDB's value
DIFFERENT: dict[str, tuple[Expression, Any, Any]] = {
    "greatest(1, null)": (greatest(1, lit(None, Types.LONG())), None, 1),
    "regexp_extract('x', '(a)', 1)": (lit("x").regexp_extract("(a)", 1), None, ""),
    "-7 // 2": (lit(-7) // 2, -4, -3),
    "-7 % 2": (lit(-7) % 2, 1, -1),
    "date_diff('month', timestamp '2024-01-31', timestamp '2024-02-01')": (
        timestamp_diff(
            "month", lit(datetime.datetime(2024, 1, 31)), lit(datetime.datetime(2024, 2, 1))
        ),
        0,
        1,
    ),
    "millisecond(timestamp '2024-01-01 00:00:02.5')": (
        lit(datetime.datetime(2024, 1, 1, 0, 0, 2, 500_000)).extract("millisecond"),
        500,
        2500,
    ),
    "list_contains(['a', null], null)": (lit("a").split(",").array_contains(None), False, None),
    "date '2024-01-01' + interval 5 hour": (
        lit(datetime.date(2024, 1, 1)) + lit(5).hours,
        datetime.date(2024, 1, 1),
        datetime.datetime(2024, 1, 1, 5),
    ),
    "2.5::int": (lit(2.5).cast(Types.INT()), 2, 3),
}


@pytest.mark.parametrize("sql", DIFFERENT)
def test_where_the_two_differ_is_known(sql: str) -> None:
    expression, ours, theirs = DIFFERENT[sql]
    batch = pa.RecordBatch.from_pydict({"n": [1]})
    assert compile_expression(expression, batch.schema).evaluate(batch).to_pylist() == [ours]
    assert of_duckdb(sql, pa.table({"n": [1]})) == [theirs]
