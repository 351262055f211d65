"""Dates and times over columns mean what they mean for one row, with and without zones, before 1970
and after 2037."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.columns.compiler import compile_expression
from flinkpy.columns.expression import Expression
from flinkpy.columns.rowwise import evaluate
from flinkpy.columns.units import BETWEEN, PARTS_OF_DAYS, PARTS_OF_TIMES, TRUNCATED_TO, WHOLE_DAYS
from flinkpy.core.errors import ProgramError
from flinkpy.table.expressions import (
    TimeIntervalUnit,
    TimePointUnit,
    col,
    date_format,
    lit,
    timestamp_diff,
    to_date,
    to_timestamp,
    to_timestamp_ltz,
)

ZONES = ("Europe/Oslo", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")
NAIVE = st.datetimes(
    datetime.datetime(1902, 1, 1), datetime.datetime(2099, 12, 31)
) | st.sampled_from(
    [
        datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999),
        datetime.datetime(1970, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 1),
        datetime.datetime(2024, 3, 31, 2, 30),
        datetime.datetime(2024, 10, 27, 2, 30),
        datetime.datetime(2050, 3, 27, 2, 30),
        datetime.datetime(2024, 1, 31),
    ]
)
UNITS = ("s", "ms", "us", "ns")


def both(expression: Expression, columns: dict[str, Any]) -> tuple[Any, Any]:
    """What rows and columns give: the values, or that it was refused."""
    batch = pa.RecordBatch.from_pydict(columns)
    return (
        outcome(lambda: [evaluate(expression, row) for row in batch.to_pylist()]),
        outcome(lambda: compile_expression(expression, batch.schema).evaluate(batch).to_pylist()),
    )


def outcome(compute: Callable[[], Any]) -> Any:
    try:
        return [shown(value) for value in compute()]
    except (
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        IndexError,
        pa.ArrowException,
        ProgramError,
    ):
        return "an error"


def shown(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime.datetime) else repr(value)


@given(
    st.lists(st.none() | NAIVE, min_size=1, max_size=5),
    st.sampled_from([*PARTS_OF_DAYS, *PARTS_OF_TIMES]),
    st.none() | st.sampled_from(ZONES),
    st.sampled_from(UNITS),
)
@settings(max_examples=200, deadline=None)
def test_a_part_of_a_timestamp(
    moments: list[Any], unit: str, zone: str | None, precision: str
) -> None:
    column = timestamps(moments, zone, precision)
    rows, columns = both(col("at").extract(unit), {"at": column})
    assert rows == columns != "an error"


def timestamps(moments: list[Any], zone: str | None, precision: str) -> Any:
    """Of the last two units a datetime of Python has all digits."""
    cut = {"s": 1_000_000, "ms": 1000}.get(precision, 1)
    listed = [
        each
        and each.replace(
            microsecond=each.microsecond // cut * cut,
            tzinfo=None if zone is None else ZoneInfo("UTC"),
        )
        for each in moments
    ]
    kind = pa.timestamp("us", zone)
    return pa.array(listed, kind).cast(pa.timestamp("us" if precision == "ns" else precision, zone))


@given(
    st.lists(st.none() | NAIVE, min_size=1, max_size=5),
    st.sampled_from(TRUNCATED_TO),
    st.none() | st.sampled_from(ZONES),
    st.booleans(),
    st.sampled_from(["ms", "us"]),
)
@example(
    [datetime.datetime(2024, 10, 27, 0, 30), datetime.datetime(2024, 10, 27, 1, 30)],
    "hour",
    "Europe/Oslo",
    False,
    "us",
)
@example([datetime.datetime(2024, 3, 31, 12)], "day", "Europe/Oslo", True, "us")
@settings(max_examples=300, deadline=None)
def test_the_beginning_of_a_unit(
    moments: list[Any], unit: str, zone: str | None, is_up: bool, precision: str
) -> None:
    at = col("at")
    rows, columns = both(
        at.ceil(unit) if is_up else at.floor(unit), {"at": timestamps(moments, zone, precision)}
    )
    assert rows == columns != "an error"


@given(
    st.lists(
        st.none() | st.dates(datetime.date(1902, 1, 1), datetime.date(2099, 12, 31)),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(TRUNCATED_TO),
    st.sampled_from(PARTS_OF_DAYS + PARTS_OF_TIMES),
)
@settings(max_examples=100, deadline=None)
def test_dates_have_whole_days(days: list[Any], unit: str, part: str) -> None:
    given_days = {"day": pa.array(days, pa.date32())}
    for expression, is_of_days in (
        (col("day").floor(unit), unit in WHOLE_DAYS),
        (col("day").ceil(unit), unit in WHOLE_DAYS),
        (col("day").extract(part), part in PARTS_OF_DAYS),
    ):
        rows, columns = both(expression, given_days)
        assert columns == rows if is_of_days else columns == "an error"


@given(
    st.lists(st.none() | st.times(), min_size=1, max_size=5),
    st.sampled_from(["hour", "minute", "second"]),
    st.sampled_from(PARTS_OF_TIMES),
)
@example([datetime.time(23, 0)], "hour", "hour")
@settings(max_examples=100, deadline=None)
def test_times_of_day_have_none(times: list[Any], unit: str, part: str) -> None:
    given_times = {"time": pa.array(times, pa.time64("us"))}
    for expression in (col("time").floor(unit), col("time").ceil(unit), col("time").extract(part)):
        rows, columns = both(expression, given_times)
        assert rows == columns
    assert both(col("time").extract("day"), given_times)[1] == "an error"


@given(
    st.lists(st.none() | NAIVE, min_size=1, max_size=5),
    st.sampled_from(ZONES),
    st.sampled_from(ZONES),
)
@example([datetime.datetime(2024, 3, 31, 2, 30)], "Europe/Oslo", "UTC")
@example([datetime.datetime(2050, 3, 27, 2, 30)], "Europe/Oslo", "UTC")
@settings(max_examples=200, deadline=None)
def test_zones(moments: list[Any], zone: str, other: str) -> None:
    for expression in (
        col("at").replace_time_zone(zone),
        col("at").replace_time_zone(zone).convert_time_zone(other),
        col("at").replace_time_zone(zone).replace_time_zone(None),
        col("at").replace_time_zone(zone).replace_time_zone(other),
    ):
        rows, columns = both(expression, {"at": pa.array(moments, pa.timestamp("us"))})
        assert rows == columns != "an error"


def test_a_local_time_has_the_instant_that_python_gives_it() -> None:
    skipped, twice = datetime.datetime(2024, 3, 31, 2, 30), datetime.datetime(2024, 10, 27, 2, 30)
    batch = pa.RecordBatch.from_pydict({"at": [skipped, twice, None]})
    found = (
        compile_expression(
            col("at").replace_time_zone("Europe/Oslo").convert_time_zone("UTC"), batch.schema
        )
        .evaluate(batch)
        .to_pylist()
    )
    assert [value and value.hour for value in found] == [1, 0, None]
    assert [
        value.replace(tzinfo=ZoneInfo("Europe/Oslo")).timestamp() for value in (skipped, twice)
    ] == [value.timestamp() for value in found[:2]]


@given(
    st.lists(
        st.tuples(st.none() | NAIVE, st.none() | st.integers(-50, 50)), min_size=1, max_size=5
    ),
    st.none() | st.sampled_from(ZONES),
    st.sampled_from(
        ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "milli"]
    ),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_intervals_are_added_and_subtracted(
    pairs: list[Any], zone: str | None, unit: str, is_minus: bool
) -> None:
    moments = timestamps([at for at, _ in pairs], zone, "us")
    numbers = pa.array([number for _, number in pairs], pa.int64())
    interval = getattr(col("n"), unit)
    rows, columns = both(
        col("at") - interval if is_minus else interval + col("at"), {"at": moments, "n": numbers}
    )
    assert rows == columns != "an error"


@given(
    st.lists(
        st.tuples(
            st.none() | st.dates(datetime.date(1902, 1, 1), datetime.date(2099, 1, 1)),
            st.none() | st.integers(-50, 50),
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(["year", "quarter", "month", "week", "day", "hour"]),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_a_date_and_an_interval_are_a_date(pairs: list[Any], unit: str, is_minus: bool) -> None:
    interval = getattr(col("n"), unit)
    given_pairs = {
        "day": pa.array([day for day, _ in pairs], pa.date32()),
        "n": pa.array([number for _, number in pairs], pa.int64()),
    }
    rows, columns = both(col("day") - interval if is_minus else col("day") + interval, given_pairs)
    assert rows == columns != "an error"


@given(
    st.lists(st.tuples(st.none() | NAIVE, st.none() | NAIVE), min_size=1, max_size=5),
    st.sampled_from(BETWEEN),
    st.none() | st.sampled_from(ZONES),
)
@example([(datetime.datetime(2024, 1, 31), datetime.datetime(2024, 2, 29))], "month", None)
@example([(datetime.datetime(2024, 2, 29), datetime.datetime(2024, 1, 31))], "month", None)
@settings(max_examples=200, deadline=None)
def test_the_whole_units_between_two_moments(pairs: list[Any], unit: str, zone: str | None) -> None:
    one, other = (timestamps([pair[at] for pair in pairs], zone, "us") for at in (0, 1))
    rows, columns = both(
        timestamp_diff(unit, col("one"), col("other")), {"one": one, "other": other}
    )
    assert rows == columns != "an error"


def test_nanoseconds_are_neither_lost_nor_in_the_way() -> None:
    at = pa.array([1_704_103_200_123_456_789, None], pa.timestamp("ns"))
    batch = pa.RecordBatch.from_pydict(
        {"at": at, "other": pa.array([1_704_103_200_123_456, 5], pa.timestamp("us"))}
    )

    def found(expression: Expression) -> list[Any]:
        values = compile_expression(expression, batch.schema).evaluate(batch)
        return (  # type: ignore[no-any-return]
            values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values
        ).to_pylist()

    assert found(col("at") + lit(1).month) == [
        1_704_103_200_123_456_789 + 31 * 86_400 * 10**9,
        None,
    ]
    assert found(col("at") > col("other")) == [True, None]
    assert found(col("at") > datetime.datetime(2024, 1, 1, 10)) == [True, None]
    assert found(
        col("at").between(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
    ) == [True, None]
    assert found(lit(None) + lit(1).month) == [None, None]
    with pytest.raises(ProgramError, match="parts of microseconds"):
        lit(pd.Timestamp("2024-01-01 00:00:00.123456789"))


@given(
    st.dates(datetime.date(1902, 1, 1), datetime.date(2099, 1, 1)),
    st.integers(-200_000, 200_000),
    st.integers(-1, 1),
    st.booleans(),
)
def test_a_long_interval_has_all_of_its_days(
    day: datetime.date, days: int, micros: int, is_minus: bool
) -> None:
    elapsed = lit(datetime.timedelta(days=days, microseconds=micros))
    rows, columns = both(
        col("day") - elapsed if is_minus else col("day") + elapsed, {"day": pa.array([day])}
    )
    assert rows == columns


FORMATS = (
    "yyyy-MM-dd HH:mm:ss",
    "dd.MM.yyyy",
    "d/M/yyyy H:m:s",
    "yyyyMMddHHmmssSSS",
    "dd MMM yyyy hh:mm a",
    "EEEE, MMMM d, yyyy h:mm:ss.SSSSSS a",
    "yyyy-MM-dd'T'HH:mm:ss",
    "yyyy''MM''dd",
    "%Y-%m-%d %H:%M:%S",
    "%d/%b/%Y:%H:%M:%S",
    "%A %d %B %Y %I:%M %p",
    "%Y%m%d%H%M%S%f",
    "100%% %Y.%m.%d",
    "(yyyy) [MM] dd^HH\\mm",
    "d.M.yy",
    "%d/%m/%y %H:%M",
)


@given(
    st.lists(st.none() | NAIVE, min_size=1, max_size=5),
    st.sampled_from(FORMATS),
    st.none() | st.sampled_from(ZONES),
)
@settings(max_examples=200, deadline=None)
def test_a_moment_is_shown_in_a_format(moments: list[Any], format: str, zone: str | None) -> None:
    column = timestamps(moments, zone, "us")
    rows, columns = both(date_format(col("at"), format), {"at": column})
    assert rows == columns != "an error"
    if "%" in format and zone is None:
        assert columns == [repr(value and value.strftime(format)) for value in moments]


@given(
    st.lists(st.none() | NAIVE, min_size=1, max_size=5),
    st.sampled_from(FORMATS),
    st.lists(
        st.sampled_from(
            [
                "",
                " ",
                "31.02.2024",
                "2024-13-01 00:00:00",
                "2024-01-01 24:00:00",
                "1/1/2024 1:2:3",
                "00 Jan 2024 00:10 am",
                "x",
                "0000-01-01 00:00:00",
                "29/fEb/2023:00:00:00",
                "2024-01-01 00:00:0é",
            ]
        ),
        max_size=5,
    ),
)
@settings(max_examples=200, deadline=None)
def test_what_was_shown_is_read_again_and_anything_else_is_null(
    moments: list[Any], format: str, others: list[str]
) -> None:
    written = (
        compile_expression(date_format(col("at"), format), pa.schema([("at", pa.timestamp("us"))]))
        .evaluate(pa.RecordBatch.from_pydict({"at": pa.array(moments, pa.timestamp("us"))}))
        .to_pylist()
    )
    for read in (to_timestamp, to_date):
        rows, columns = both(
            read(col("text"), format), {"text": pa.array([*written, *others], pa.string())}
        )
        assert rows == columns != "an error"
    if "%S" in format or "ss" in format:
        digits = (
            1 if "%f" in format or "SSSSSS" in format else 1000 if "SSS" in format else 1_000_000
        )
        expected = [
            moment and moment.replace(microsecond=moment.microsecond // digits * digits)
            for moment in moments
        ]
        assert both(to_timestamp(col("text"), format), {"text": pa.array(written, pa.string())})[
            1
        ] == [shown(each) for each in expected]


@pytest.mark.parametrize(
    ("format", "years"),
    [("yy-MM-dd", [2000, 2068, 2069, 2099]), ("%y-%m-%d", [2000, 2068, 1969, 1999])],
)
def test_a_year_of_two_digits_is_of_this_century_or_with_pythons_directive_as_python_reads_it(
    format: str, years: list[int]
) -> None:
    texts = pa.array(["00-01-01", "68-01-01", "69-01-01", "99-01-01"])
    rows, columns = both(to_date(col("text"), format), {"text": texts})
    assert rows == columns == [repr(datetime.date(year, 1, 1)) for year in years]


@given(NAIVE, st.sampled_from([each for each in FORMATS if "%" in each and "%A" not in each]))
def test_pythons_formats_are_read_as_python_reads_them(
    moment: datetime.datetime, format: str
) -> None:
    text = moment.strftime(format)
    assert evaluate(to_timestamp(lit(text), format), {}) == datetime.datetime.strptime(text, format)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: col("at").floor("dya"), "did you mean 'day'"),
        (lambda: col("at").extract(TimePointUnit.DAY).extract(3), "knows no unit 3"),  # type: ignore[arg-type]
        (lambda: timestamp_diff("century", "a", "b"), "take one of month"),
        (lambda: to_timestamp(col("text"), "HH:mm"), "has no year"),
        (lambda: to_timestamp(col("text"), "yyyy-MM-dd MM"), "has the month twice"),
        (lambda: to_timestamp(col("text"), "yyyy-MM-dd hh:mm"), "AM or PM"),
        (lambda: date_format(col("at"), "yyyy-QQ"), "has 'QQ', which is not there; there are yyyy"),
        (
            lambda: date_format(col("at"), "YYYY-MM-DD"),
            "has 'YYYY', which is not there; did you mean 'yyyy'",
        ),
        (lambda: date_format(col("at"), "%Y %Q"), "has 'Q', which is not there"),
        (lambda: col("at").convert_time_zone("Oslo"), "such as 'Europe/Oslo'"),
        (lambda: to_timestamp_ltz(col("n"), 6), "seconds"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        make()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("at").hour, r"write \.extract\('hour'\)"),
        (col("at").month, "months are added to"),
        (col("at").convert_time_zone("UTC"), "replace_time_zone"),
        (col("n").extract("day"), "needs a date"),
        (col("day").floor("hour"), "a date has no hour"),
        (timestamp_diff("day", col("at"), col("zoned")), "zone"),
        (col("n") + lit(1).month, "months are added to dates"),
        (col("at").floor(), 'a unit, such as "day"'),
        (col("n").floor("day"), "floor cannot take int64"),
    ],
)
def test_what_does_not_fit_the_schema_says_what_to_do(expression: Expression, message: str) -> None:
    schema = pa.schema(
        [
            ("at", pa.timestamp("us")),
            ("n", pa.int64()),
            ("day", pa.date32()),
            ("zoned", pa.timestamp("us", "UTC")),
        ]
    )
    with pytest.raises(ProgramError, match=message):
        compile_expression(expression, schema)


def test_expressions_of_moments_read_as_they_were_written() -> None:
    assert (
        repr(col("at").floor(TimeIntervalUnit.DAY) + lit(3).days)
        == "(col('at').floor('day') + 3.day)"
    )
    assert repr(col("n").milli) == "col('n').milli"
    assert repr(to_timestamp_ltz(col("s"), 0)) == "(col('s') * 1000).cast(Types.INSTANT())"
