"""Casts, decimals and text over columns mean what they mean for one row, over the values that are easily got wrong."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.compiler import compile_expression
from flinkpy.columns.expression import Expression
from flinkpy.columns.rowwise import evaluate
from flinkpy.common import Types
from flinkpy.core.errors import ProgramError
from flinkpy.table.expressions import col

MOMENTS = [None, 0, -1, 1, 86_399_999, -86_400_001, 1_700_000_000_123]  # milliseconds
DECIMALS = st.none() | st.decimals("-999.99", "999.99", places=2) | st.sampled_from([Decimal("999.99"), Decimal("2.55"), Decimal("-999.50")])
TEXTUAL = st.none() | st.sampled_from([
    "+5", "-5", " 7 ", "0x10", "0X1", "1.5", "", "+", "++1", "1_0", "1e5", ".5", "nan", "-Infinity",
    "2020-02-29", "2020-01-01 00:00:00.5", "2020-01-01T10:00:00.123456", "10:00",
    "10:00:01", "10:00:01.250000", "25:00:00", "true", "ß"]) | st.integers(-(2**70), 2**70).map(str)


def moments(kind: Any, step: int) -> tuple[Any, Any]:
    return kind, [None if each is None else each // step for each in MOMENTS]


CASTS_FROM: list[tuple[Any, Any]] = [
    moments(pa.timestamp("s"), 1000), moments(pa.timestamp("ms"), 1), (pa.timestamp("us"), [None, 0, -1, 1, 1_500, -1_500, 10**15 + 1]),
    (pa.timestamp("ns"), [None, 0, -1000, 1000, 1_500_000, -1_500_000]),
    (pa.timestamp("us", "Europe/Berlin"), [None, 0, -1, 1_500, 1_593_561_600_000_000]),
    (pa.timestamp("ms", "UTC"), MOMENTS), (pa.duration("us"), [None, 0, -1, 1_500, -1_500]), (pa.date32(), [None, 0, -1, 18_321]),
    (pa.time64("us"), [None, 0, 1_500_000]), (pa.time32("s"), [None, 0, 61]), (pa.int64(), MOMENTS), (pa.bool_(), [None, True, False]),
    (pa.float64(), [None, 1.5, -1.5, 0.0, 1e10, 2.0**62]),
]
CASTS_TO = [Types.LONG(), Types.INT(), Types.SQL_TIMESTAMP(), Types.INSTANT(), Types.SQL_DATE(), Types.SQL_TIME(), Types.BIG_INT(), Types.DOUBLE(),
            Types.BOOLEAN()]


def outcome(compute: Any) -> Any:
    """The value, or that it was refused."""
    try:
        return compute()
    except (TypeError, ValueError, ArithmeticError, AttributeError, KeyError, pa.ArrowException, ProgramError):
        return "an error"


def by_column(expression: Expression, column: Any) -> list[Any]:
    data = pa.RecordBatch.from_arrays([column], names=["v"])
    found: list[Any] = compile_expression(expression, data.schema).evaluate(data).to_pylist()
    return found


def by_row(expression: Expression, value: Any, wanted: Any) -> Any:
    found = outcome(lambda: evaluate(expression, {"v": value}))
    return found if found is None or isinstance(found, wanted) else "an error"  # such as a date as a time of day


@pytest.mark.finding("first-use 10")
@pytest.mark.finding("hunts 6")
@pytest.mark.parametrize("target", CASTS_TO, ids=lambda target: target.name)
@pytest.mark.parametrize(("kind", "stored"), CASTS_FROM, ids=lambda value: str(value) if isinstance(value, pa.DataType) else "")
def test_casts_of_moments_and_numbers_have_one_meaning(kind: Any, stored: list[Any], target: Any) -> None:
    whole = {32: pa.int32(), 64: pa.int64()}[kind.bit_width] if pa.types.is_temporal(kind) else None
    column = pa.array(stored, kind) if whole is None else pa.array(stored, whole).view(kind)
    expression = col("v").cast(target)
    expected = [by_row(expression, value, PYTHON_TYPES[target.name]) for value in column.to_pylist() if value is not None]
    pieces = [column.slice(at, 1) for at, value in enumerate(stored) if value is not None]
    assert [outcome(lambda piece=piece: by_column(expression, piece)[0]) for piece in pieces] == expected
    if "an error" not in expected:
        assert by_column(expression, column) == [None, *expected]


PYTHON_TYPES: dict[str, Any] = {
    "LONG": int, "INT": int, "SQL_TIMESTAMP": datetime.datetime, "INSTANT": datetime.datetime, "SQL_DATE": datetime.date, "SQL_TIME": datetime.time,
    "BIG_INT": Decimal, "DOUBLE": float, "BOOLEAN": bool}


@pytest.mark.finding("hunts 12")
@pytest.mark.finding("hunts 6")
@given(TEXTUAL, st.sampled_from([Types.INT(), Types.LONG(), Types.DOUBLE(), Types.SQL_TIMESTAMP(), Types.SQL_DATE(), Types.SQL_TIME(),
                                  Types.BOOLEAN()]))
@settings(max_examples=200)
def test_text_is_cast_as_rows_cast_it(text: str | None, target: Any) -> None:
    expression = col("v").cast(target)
    found = outcome(lambda: by_column(expression, pa.array([text], pa.string())))
    assert repr(found) == repr(outcome(lambda: [evaluate(expression, {"v": text})]))


@pytest.mark.finding("hunts 2")
@pytest.mark.finding("hunts 3")
@given(DECIMALS, st.sampled_from([pa.decimal128(5, 2), pa.decimal128(38, 2), pa.decimal256(40, 2), pa.decimal128(20, 2)]),
       st.sampled_from([col("d").ceil(), col("d").floor(),
                        col("d").round(), col("d").round(1), col("d").round(-2), col("d") == 2.55, col("d") < 999.99,
                        col("d") * 1.0, col("d").cast(Types.DOUBLE()), col("d").cast(Types.BIG_INT()), col("d").cast(Types.LONG()), col("d") + 1,
                        col("d") - col("d"), col("d") * 3]))
@settings(max_examples=400)
def test_decimals_are_rounded_compared_and_cast_as_rows_do(value: Any, kind: Any, expression: Expression) -> None:
    data = pa.RecordBatch.from_arrays([pa.array([value, None, value], kind).slice(1)], names=["d"])
    found = compile_expression(expression, data.schema).evaluate(data).to_pylist()
    assert found == [None, evaluate(expression, {"d": value})]


@pytest.mark.finding("hunts 9")
@pytest.mark.parametrize(("expression", "kind", "value", "expected"), [
    (col("d") + 1, pa.decimal128(38, 18), "1.000000000000000005", "2.00000000000000001"), (col("d") - 1, pa.decimal128(38, 18), "1.5", "0.5"),
    (col("d") * col("d"), pa.decimal128(38, 18), "1.5", "2.250000"), (1 + col("d"), pa.decimal128(38, 0), "9" * 37, "1" + "0" * 37),
    (col("d") * 2, pa.decimal128(19, 2), "1.25", "2.50"), (col("d") * col("d"), pa.decimal128(20, 10), "0.0000000001", "0"),
])
def test_decimal_arithmetic_caps_its_digits(expression: Expression, kind: Any, value: str, expected: str) -> None:
    data = pa.RecordBatch.from_arrays([pa.array([Decimal(value), None], kind)], names=["d"])
    assert compile_expression(expression, data.schema).evaluate(data).to_pylist() == [Decimal(expected), None]


@pytest.mark.finding("hunts 9")
def test_decimal_arithmetic_that_leaves_38_digits_is_an_error() -> None:
    data = pa.RecordBatch.from_arrays([pa.array([Decimal("9" * 38)], pa.decimal128(38, 0))], names=["d"])
    with pytest.raises(pa.ArrowInvalid, match="precision"):
        compile_expression(col("d") + 1, data.schema).evaluate(data)


@pytest.mark.finding("hunts 11")
def test_unsigned_integers_are_compared_with_decimals() -> None:
    decimals = pa.array([Decimal("3.00"), Decimal("1.00")], pa.decimal128(5, 2))
    data = pa.RecordBatch.from_pydict({"u": pa.array([3, 2**64 - 1], pa.uint64()), "d": decimals})
    assert compile_expression(col("u") == col("d"), data.schema).evaluate(data).to_pylist() == [True, False]
    assert compile_expression(col("u") > col("d"), data.schema).evaluate(data).to_pylist() == [False, True]


@pytest.mark.finding("hunts 7")
@given(st.none() | st.text("abß", max_size=4), st.sampled_from(["", "a"]), st.sampled_from(["", "x", "\\1"]))
def test_replacing_ends_also_where_nothing_is_searched(text: str | None, search: str, replacement: str) -> None:
    data = pa.RecordBatch.from_arrays([pa.array([text], pa.string())], names=["s"])
    expression = col("s").replace(search, replacement)
    assert compile_expression(expression, data.schema).evaluate(data).to_pylist() == [evaluate(expression, {"s": text})]


@pytest.mark.finding("hunts 6")
@given(st.lists(st.none() | st.text("aß\u0130\u03a3\u03c2\u01c6\ufb01漢", max_size=4), min_size=1, max_size=3))
def test_letters_that_become_two_are_changed_as_in_rows(texts_: list[str | None]) -> None:
    data = pa.RecordBatch.from_arrays([pa.array(texts_, pa.string())], names=["s"])
    for expression in (col("s").upper_case, col("s").lower_case):
        assert compile_expression(expression, data.schema).evaluate(data).to_pylist() == [evaluate(expression, {"s": text}) for text in texts_]


@pytest.mark.finding("hunts 12")
@pytest.mark.parametrize("length", [2**63 - 1, 2**63, 2**80, 0])
@pytest.mark.parametrize("begin", [1, 2, 2**63, 2**80])
def test_a_part_of_text_may_be_asked_for_beyond_its_end(begin: int, length: int) -> None:
    data = pa.RecordBatch.from_pydict({"s": ["abc"]})
    expression = col("s").substring(begin, length)
    assert compile_expression(expression, data.schema).evaluate(data).to_pylist() == ["abc"[begin - 1 : begin - 1 + length]]
