"""Powers, NaN, and rounding to any number of places mean the same for columns and rows, and what
they mean in Python."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.columns.compiler import compile_expression
from flinkpy.columns.expression import Expression
from flinkpy.columns.rowwise import evaluate
from flinkpy.core.errors import ProgramError
from flinkpy.table.expressions import col, lit

FLOATS = st.floats() | st.sampled_from(
    [0.0, -0.0, 1.5, 2.5, -2.5, 1e300, -1e308, 1.7e308, 5e-324, 4e15 + 0.5]
)
PLACES = st.sampled_from(
    [
        -400,
        -309,
        -308,
        -300,
        -20,
        -19,
        -18,
        -2,
        0,
        1,
        2,
        9,
        10,
        11,
        15,
        19,
        20,
        292,
        300,
        308,
        309,
        400,
    ]
)
DECIMALS = st.decimals("-999.99", "999.99", places=2)


def outcome(compute: Any) -> str:
    try:
        return repr(compute())
    except (ArithmeticError, pa.ArrowInvalid):
        return "an error"


def both(expression: Expression, **values: tuple[Any, Any]) -> tuple[str, str]:
    """The value of one row, from the row and from a column, or that it was refused."""
    row = {name: value for name, (value, _) in values.items()}
    batch = pa.RecordBatch.from_pydict(
        {name: pa.array([value], kind) for name, (value, kind) in values.items()}
    )
    by_column = outcome(
        lambda: compile_expression(expression, batch.schema).evaluate(batch)[0].as_py()
    )
    return outcome(lambda: evaluate(expression, row)), by_column


@given(FLOATS | st.integers(-9, 9), FLOATS | st.integers(-9, 9))
@example(-0.0, -3)
@example(-1e308, 3)
@example(-8, 1 / 3)
@example(0, -1)
def test_a_power_is_the_float_that_it_is_in_python_or_an_infinity_or_nan(
    base: float, exponent: float
) -> None:
    kinds = [pa.float64() if isinstance(each, float) else pa.int64() for each in (base, exponent)]
    rows, columns = both(col("a") ** col("b"), a=(base, kinds[0]), b=(exponent, kinds[1]))
    assert rows == columns
    try:
        expected = math.pow(base, exponent)
    except (ValueError, OverflowError):
        assert columns in ("nan", "inf", "-inf")
    else:
        assert columns == repr(expected)


def test_powers_and_absolute_values_are_written_as_in_python() -> None:
    expression = 2 ** abs(col("n")) ** 2
    assert repr(expression) == "(2 ** (col('n').abs ** 2))"
    assert both(expression, n=(-3, pa.int64())) == ("512.0", "512.0")


@given(FLOATS | st.none())
def test_nan_is_nan_and_null_is_null(value: float | None) -> None:
    expected = repr(None if value is None else math.isnan(value))
    assert both(col("a").is_nan, a=(value, pa.float64())) == (expected, expected)


@given(FLOATS, PLACES)
@example(1.5, -400)
@example(0.02, 15)
@example(-731.271511775197, 11)
@example(1.7e308, -308)
@example(1e300, 308)
@example(5e-324, 309)
@settings(max_examples=300)
def test_a_float_is_rounded_to_any_number_of_places(value: float, places: int) -> None:
    rows, columns = both(col("a").round(places), a=(value, pa.float64()))
    assert rows == columns
    if places < -308 or places > 308:
        assert columns == (repr(value) if not math.isfinite(value) else repr(round(value, places)))


@given(
    st.integers(-(2**63), 2**63 - 1) | st.sampled_from([5 * 10**18, 5 * 10**18 - 1, -5 * 10**18]),
    PLACES,
)
def test_an_integer_is_rounded_to_any_number_of_places(value: int, places: int) -> None:
    rows, columns = both(col("a").round(places), a=(value, pa.int64()))
    assert rows == columns


@given(DECIMALS, PLACES)
def test_a_decimal_is_rounded_to_any_number_of_places(value: Decimal, places: int) -> None:
    column = pa.RecordBatch.from_pydict({"a": pa.array([value, None], pa.decimal128(5, 2))})
    found = compile_expression(col("a").round(places), column.schema).evaluate(column).to_pylist()
    assert found == [evaluate(col("a").round(places), {"a": value}), None]


def test_pythons_round_says_what_to_write() -> None:
    with pytest.raises(ProgramError, match=r"write col\('a'\).round\(1\), which"):
        round(col("a"), 1)


@pytest.mark.parametrize(
    "expression",
    [
        col("t") + 1,
        1 + col("t"),
        col("t") - 1,
        col("t") + col("t"),
        col("t") + "1",
        lit(5) - col("t"),
    ],
)
def test_a_moment_and_a_number_say_how_an_interval_is_written(expression: Expression) -> None:
    with pytest.raises(
        ProgramError, match=r"takes an interval, such as lit\(1\).day or col\(\"n\"\).hours"
    ):
        compile_expression(expression, pa.schema([("t", pa.timestamp("us"))]))
