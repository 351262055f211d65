"""Whole numbers from 2**63 on in expressions and sums, moments as text, and batches of different
types as one table."""

from __future__ import annotations

import datetime
import operator
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flinkpy.columns.compiler import compile_expression
from flinkpy.columns.rowwise import evaluate
from flinkpy.common import Types
from flinkpy.core.errors import FlinkpyError
from flinkpy.table import DataTypes
from flinkpy.table.expressions import col
from flinkpy.testing import embedded_environment

LARGE = pa.table({"k": ["a", "a"], "u": pa.array([2**63, 1], pa.uint64())})
ADVICE = (
    r"column 'u' has whole numbers from 2\*\*63 on.*cast it to "
    r"Types.BIG_INT\(\).*DataTypes.DOUBLE\(\)"
)


@pytest.mark.parametrize(
    "expression",
    [col("u") + 1, col("u") * 2, col("u") % 2, -col("u"), col("u") - col("u")],
    ids=str,
)
def test_arithmetic_with_whole_numbers_beyond_63_bits_says_which_column_to_cast(
    expression: Any,
) -> None:
    with pytest.raises(FlinkpyError, match=ADVICE):
        embedded_environment().from_arrow(LARGE).select(expression.alias("x")).to_arrow()


def test_their_sum_says_so_too() -> None:
    with pytest.raises(FlinkpyError, match=ADVICE):
        list(embedded_environment().from_arrow(LARGE).key_by("k").sum("u").execute_and_collect())
    # a table's are added up over several batches
    with pytest.raises(FlinkpyError, match=ADVICE):
        embedded_environment().from_arrow(LARGE).key_by("k").sum("u").to_arrow()
    exact = (
        embedded_environment()
        .from_arrow(LARGE)
        .select(col("k"), col("u").cast(Types.BIG_INT()).alias("u"))
        .key_by("k")
        .sum("u")
    )
    assert exact.to_arrow()["u"].to_pylist()[-1] == 2**63 + 1


@given(st.lists(st.none() | st.integers(0, 2**64 - 1)), st.integers(-(2**63), 2**63 - 1))
def test_they_are_compared_exactly(numbers: list[int | None], other: int) -> None:
    data = pa.RecordBatch.from_pydict(
        {"u": pa.array(numbers, pa.uint64()), "i": pa.array([other] * len(numbers), pa.int64())}
    )
    for compare in (operator.eq, operator.lt, operator.ge):
        for right in (col("i"), other):
            found = (
                compile_expression(compare(col("u"), right), data.schema).evaluate(data).to_pylist()
            )
            assert found == [
                None if number is None else compare(number, other) for number in numbers
            ]
    found = compile_expression(col("u").in_(other, 1), data.schema).evaluate(data).to_pylist()
    assert found == [None if number is None else number in (other, 1) for number in numbers]


@given(
    st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from([None, "UTC", "Europe/Berlin", "America/New_York"]),
)
def test_a_timestamp_as_text_is_the_same_of_rows_and_of_columns(
    moment: datetime.datetime, unit: str, zone: str | None
) -> None:
    moment = moment.replace(
        microsecond={"s": 0, "ms": moment.microsecond // 1000 * 1000}.get(unit, moment.microsecond)
    )
    kept = (
        moment
        if zone is None
        else moment.replace(tzinfo=datetime.timezone.utc).astimezone(ZoneInfo(zone))
    )
    shown = col("t").cast(DataTypes.STRING())
    data = pa.RecordBatch.from_pydict({"t": pa.array([kept, None], pa.timestamp(unit, zone))})
    assert compile_expression(shown, data.schema).evaluate(data).to_pylist() == [
        evaluate(shown, {"t": kept}),
        None,
    ]


@given(
    st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2200, 1, 1)),
    st.sampled_from(["ms", "us"]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "+02:00"]),
    st.sampled_from(
        [DataTypes.DATE(), DataTypes.TIME(), DataTypes.TIMESTAMP(), DataTypes.STRING()]
    ),
)
@example(datetime.datetime(2038, 7, 1, 22, 30), "us", "Europe/Berlin", DataTypes.DATE())
def test_what_the_clocks_of_a_zone_show_is_the_same_of_rows_and_of_columns(
    moment: datetime.datetime, unit: str, zone: str, to: Any
) -> None:
    """Also after 2037, where Arrow knows no summer time."""
    data = pa.RecordBatch.from_pydict(
        {"t": pa.array([moment.replace(microsecond=0), None], pa.timestamp(unit, zone))}
    )
    there = datetime.timezone(datetime.timedelta(hours=2)) if zone[0] == "+" else ZoneInfo(zone)
    row = {"t": moment.replace(microsecond=0, tzinfo=datetime.timezone.utc).astimezone(there)}
    cast = col("t").cast(to)
    assert compile_expression(cast, data.schema).evaluate(data).to_pylist() == [
        evaluate(cast, row),
        None,
    ]


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03:04:05"),
        (datetime.datetime(2024, 1, 2, 3, 4, 5, 120_000), "2024-01-02 03:04:05.120"),
        (datetime.datetime(2024, 1, 2, 3, 4, 5, 1), "2024-01-02 03:04:05.000001"),
        (datetime.time(3, 4), "03:04:00"),
        (datetime.time(3, 4, 5, 6000), "03:04:05.006"),
        (
            datetime.datetime(2024, 7, 2, tzinfo=ZoneInfo("Europe/Berlin")),
            "2024-07-02 00:00:00+02:00",
        ),
        (datetime.date(2024, 1, 2), "2024-01-02"),
    ],
)
def test_how_moments_are_shown_as_text(moment: Any, text: str) -> None:
    shown = col("t").cast(DataTypes.STRING())
    data = pa.RecordBatch.from_pydict({"t": pa.array([moment])})
    assert (
        compile_expression(shown, data.schema).evaluate(data).to_pylist()
        == [evaluate(shown, {"t": moment})]
        == [text]
    )


def batches_of(first: list[Any], then: list[Any]) -> pa.Table:
    """A stream whose batches have columns of two types."""

    def given_back(batch: Any) -> Any:
        return {"n": first if batch["n"][0].as_py() == 0 else then}

    env = embedded_environment()
    one, other = (env.from_arrow(pa.table({"n": [number]})) for number in (0, 1))
    return one.map_batches(given_back).union(other.map_batches(given_back)).to_arrow()


def test_whole_numbers_become_floats_beside_fractions_where_they_stay_exact() -> None:
    assert sorted(batches_of([1, 2**60, None], [0.5])["n"].to_pylist(), key=str) == sorted(
        [1.0, 2.0**60, None, 0.5], key=str
    )


def test_a_whole_number_that_no_float_is_is_not_cut_but_named() -> None:
    with pytest.raises(FlinkpyError, match=rf"'n'.*{2**53 + 1}"):
        batches_of([2**53 + 1], [0.5])
