"""Expressions over columns mean what their row form says."""

from __future__ import annotations

import datetime
import math
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.columns.compiler import compile_expression
from flinkpy.columns.expression import Expression, Literal
from flinkpy.columns.rowwise import evaluate
from flinkpy.common import Types
from flinkpy.core.errors import ProgramError
from flinkpy.table import DataTypes
from flinkpy.table.expressions import (
    and_,
    coalesce,
    col,
    concat,
    concat_ws,
    if_then_else,
    lit,
    not_,
    null_of,
    or_,
)

SMALL = st.integers(-50, 50)
INTS = st.integers(-(2**53), 2**53)
FLOATS = st.floats(allow_nan=False, width=64) | st.sampled_from([0.5, 1.5, -2.5, 0.0, 1e300])
TEXTS = st.text(alphabet="abXY %_.é漢 \\(", max_size=6)
SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("small", pa.int32()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("s", pa.string()),
        ("b", pa.bool_()),
    ]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.none() | INTS | SMALL,
            "small": st.none() | SMALL,
            "f": st.none() | FLOATS,
            "g": st.none() | st.floats(width=32, allow_nan=False),
            "s": st.none() | TEXTS,
            "b": st.none() | st.booleans(),
        }
    ),
    min_size=1,
    max_size=12,
)


def columns(expression: Expression, rows: list[dict[str, Any]]) -> list[Any]:
    values: list[Any] = (
        compile_expression(expression, SCHEMA)
        .evaluate(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
        .to_pylist()
    )
    return values


def outcome(compute: Any) -> Any:
    """The values, or that it raised: both forms must agree on that too."""
    try:
        return compute()
    except (
        ArithmeticError,
        pa.ArrowInvalid,
        ValueError,
        KeyError,
        ProgramError,
    ):  # the last: of what is constant, while the program is built
        return "an error"


def same(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    # a column has one type: where one value is a float, all numbers are
    if {type(left), type(right)} <= {int, float}:
        return float(left) == float(right) or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and bool(left == right)


@st.composite
def numbers(draw: Any, depth: int = 3) -> Any:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(
            st.sampled_from([col("i"), col("small"), col("f"), col("g")])
            | st.builds(lit, SMALL | FLOATS)
        )
    left = draw(numbers(depth - 1))
    kind = draw(st.integers(0, 15))
    if kind <= 5:
        right = draw(numbers(depth - 1))
        return [
            left + right,
            left - right,
            left * right,
            left / right,
            left % right,
            coalesce(left * 1.0, right * 1.0),
        ][kind]
    if kind == 6:
        # of one type, which rows do not know
        return draw(conditions(depth - 1)).then(left * 1.0, draw(numbers(depth - 1)) * 1.0)
    return [
        -left,
        left.abs,
        left.floor(),
        left.ceil(),
        left.round(),
        left.sign,
        left.sqrt,
        left.exp,
        left.ln,
    ][kind - 7]


@st.composite
def texts(draw: Any, depth: int = 2) -> Any:
    if depth == 0 or draw(st.booleans()):
        return draw(st.just(col("s")) | st.builds(lit, TEXTS))
    one = draw(texts(depth - 1))
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return one.substring(draw(st.integers(1, 4)), draw(st.none() | st.integers(0, 3)))
    if kind == 1:
        return concat(one, draw(texts(depth - 1)))
    if kind == 2:
        return concat_ws("-", one, draw(texts(depth - 1)))
    return [one.upper_case, one.lower(), one.trim(), one.trim_leading(), one.replace("a", "zz")][
        kind - 3
    ]


@st.composite
def conditions(draw: Any, depth: int = 2) -> Any:
    kind = draw(st.integers(0, 11)) if depth else draw(st.integers(6, 11))
    if kind < 4:
        left, right = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return [left & right, left | right, ~left, left.is_true][kind]
    if kind < 6:
        left, right = draw(texts(1)), draw(texts(1))
        return left < right if kind == 4 else left == right
    if kind < 9:
        left, right = draw(
            st.sampled_from(
                [
                    (col("i"), lit(3)),
                    (col("f"), lit(0.5)),
                    (col("small"), col("i")),
                    (col("f"), col("g")),
                ]
            )
        )
        return [left >= right, left != right, left.is_null][kind - 6]
    return [
        col("b"),
        col("s").like(draw(st.sampled_from(["%", "a%", "_b%", "%X", "a.%"]))),
        col("small").in_(1, 2, -3),
    ][kind - 9]


@given(numbers() | texts() | conditions(), ROWS)
@example(1 / lit(-0.0).floor(), [dict.fromkeys(("i", "small", "f", "g", "s", "b"))])
@example(1 / lit(-0.25).ceil(), [dict.fromkeys(("i", "small", "f", "g", "s", "b"))])
@example(1 / lit(-0.25).round(0), [dict.fromkeys(("i", "small", "f", "g", "s", "b"))])
@settings(max_examples=250, deadline=None)
def test_a_column_is_computed_as_its_rows_would_be(
    expression: Expression, rows: list[dict[str, Any]]
) -> None:
    by_rows = outcome(lambda: [evaluate(expression, row) for row in typed(rows)])
    by_columns = outcome(lambda: columns(expression, rows))
    assert same(by_rows, by_columns)


def typed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as the columns hold them."""
    found: list[dict[str, Any]] = pa.RecordBatch.from_pylist(rows, schema=SCHEMA).to_pylist()
    return found


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (col("i") / 2, 3.5),
        (col("i") % 4, 3),
        (-col("i") % 4, 1),
        (col("i") % -4, -1),
        (1 - col("i"), -6),
        (2 * col("i"), 14),
        (col("i") / 0, math.inf),
        (col("f").round(1), 2.4),
        (lit(2.5).round(), 3.0),
        (lit(-2.5).round(), -3.0),
        (col("i").sign, 1),
        (lit(4).sqrt, 2.0),
        (lit(0).ln, -math.inf),
        (col("s") + "!", "ab!"),
        (col("s").char_length, 2),
        (col("i").between(7, 8), True),
        (col("none").is_null, True),
        (col("none") + 1, None),
        (col("none").if_null(5), 5),
        (if_then_else(col("none") > 1, "yes", "no"), "no"),
        (not_(col("i") > 1), False),
        (and_(True, True, False), False),
        (or_(False, False, True), True),
        (lit(None).is_null & True, True),
        (col("f").cast(DataTypes.BIGINT()), 2),
        (col("i").cast(DataTypes.STRING()), "7"),
        (lit("12").cast(DataTypes.INT()), 12),
        (lit(1.5).cast(DataTypes.STRING()), "1.5"),
        (col("i").in_([7, 8]), True),
        (col("s").startswith("a") & col("s").endswith("b"), True),
        (null_of(DataTypes.DOUBLE()), None),
        (col("dictionary") == "x", True),
        (col("i") == 7.0, True),
        (lit(3) + 4, 7),
        (col("day") > lit("2013-01-01").cast(DataTypes.DATE()), True),
    ],
)
def test_single_functions(expression: Expression, value: Any) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "i": [7],
            "f": [2.35],
            "s": ["ab"],
            "none": pa.array([None], pa.int64()),
            "day": [datetime.date(2013, 5, 1)],
            "dictionary": pa.array(["x"]).dictionary_encode(),
        }
    )
    assert compile_expression(expression, batch.schema).evaluate(batch).to_pylist() == [value]


def test_an_integer_overflow_is_an_error_not_a_wrong_number() -> None:
    batch = pa.RecordBatch.from_pydict({"i": [2**62]})
    for expression in (col("i") * 4, col("i") + col("i"), -col("i") - col("i") - col("i")):
        with pytest.raises(pa.ArrowInvalid, match="overflow"):
            compile_expression(expression, batch.schema).evaluate(batch)


def test_small_integers_are_computed_in_64_bits() -> None:
    batch = pa.RecordBatch.from_pydict({"i": pa.array([100, None], pa.int8())})
    assert compile_expression(col("i") * col("i"), batch.schema).evaluate(batch).to_pylist() == [
        10_000,
        None,
    ]


def test_an_expression_travels_and_reads_as_it_was_written() -> None:
    expression = (
        ((col("price") * 0.908 > 10) & ~col("channel").in_("a", "b"))
        .then(col("x").abs, lit(None))
        .alias("y")
    )
    text = (
        "((((col('price') * 0.908) > 10) & ~col('channel').in_('a', 'b'))).then(col('x').abs, "
        "None).alias('y')"
    )
    assert repr(pickle.loads(pickle.dumps(expression))) == text.replace("((((", "(((").replace(
        "'b')))", "'b'))"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bool(col("a") == 1), "no truth of its own"),
        (lambda: col("a").in_(1, None), "none of them None"),
        (lambda: col("a").cast(int), "DataTypes.BIGINT"),  # type: ignore[arg-type]
        (lambda: col("a") + object(), "cannot stand in an expression"),
        (lambda: col(3), "takes a column's name"),  # type: ignore[arg-type]
        (lambda: col("a").substring(0), "from 1 on"),
        (lambda: col("a").sum.max, "aggregates belong into"),
        (lambda: (col("a") + 1).column_name("key_by()"), "takes a column"),
    ],
)
def test_what_cannot_be_written_is_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        make()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("prize"), "no column 'prize'; did you mean 'price'"),
        (col("price") + col("channel"), "cannot take int64 and string"),
        (col("price") & True, "parentheses around comparisons"),
        (col("channel") > 3, "different kinds"),
        (col("channel").sqrt, "needs numbers"),
        (col("price").like("a"), "needs text"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_with_the_part_that_does_not(
    expression: Expression, message: str
) -> None:
    schema = pa.schema([("price", pa.int64()), ("channel", pa.string())])
    with pytest.raises(ProgramError, match=message):
        compile_expression(expression, schema)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (5.5, Types.INT()),
        (2**40, Types.INT()),
        (0.1, Types.BIG_DEC()),
        (1000, Types.SQL_TIMESTAMP()),
        (datetime.datetime(2024, 1, 1, 12), Types.SQL_DATE()),
        (datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc), Types.SQL_TIMESTAMP()),
    ],
)
def test_a_constant_of_a_declared_type_is_not_cut(value: Any, kind: Any) -> None:
    with pytest.raises(ProgramError, match="cannot stand in an expression"):
        compile_expression(lit(value, kind), pa.schema([]))


@pytest.mark.parametrize(
    "choices", [(0.0, 2), (-0.0, math.nan), (np.float64(0), 1.5), (0, math.nan)]
)
def test_a_float_is_one_of_the_values_it_is_equal_to(choices: tuple[Any, ...]) -> None:
    values = [0.0, -0.0, math.nan, None, 1.5, 2.0]
    batch = pa.RecordBatch.from_pydict({"f": values})
    expected = [
        None if value is None else any(value == each for each in choices) for value in values
    ]
    assert (
        compile_expression(col("f").in_(choices), batch.schema).evaluate(batch).to_pylist()
        == expected
    )
    assert [evaluate(col("f").in_(*choices), {"f": value}) for value in values] == expected


def test_constants_of_numpy_and_pandas_are_the_values_they_equal() -> None:
    assert Literal(np.datetime64("2024-01-01T12:00:00.000000000")).value == datetime.datetime(
        2024, 1, 1, 12
    )
    assert Literal(np.datetime64("2024-01-01")).value == datetime.date(2024, 1, 1)
    assert Literal(np.timedelta64(5_000, "ns")).value == datetime.timedelta(microseconds=5)
    assert [
        Literal(nothing).value
        for nothing in (pd.NaT, np.datetime64("NaT", "ns"), np.timedelta64("NaT", "ns"))
    ] == [None] * 3
    with pytest.raises(ProgramError, match="parts of microseconds"):
        lit(np.datetime64(1, "ns"))


def test_a_constant_fills_its_column() -> None:
    batch = pa.RecordBatch.from_pydict({"i": [1, 2, 3]})
    compiled = compile_expression(lit(1) + 1, batch.schema)
    assert compiled.type == pa.int64()
    assert compiled.evaluate(batch).to_pylist() == [2, 2, 2]
    assert isinstance(lit(1), Literal)


MONEY = pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(10, 2))


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        (col("m") == 2, [False, False, None]),
        (col("m") > 1, [True, True, None]),
        (col("m") < Decimal("1.501"), [True, False, None]),
        (col("i") > col("m"), [False, True, None]),
        (col("i") > Decimal("1.5"), [False, True, True]),
        (col("m").between(1, 2), [True, False, None]),
        (col("m").in_(Decimal("1.5"), Decimal("7.125")), [True, False, None]),
        (col("m").in_(1, 2), [False, False, None]),
        (col("m").if_null(0), [Decimal("1.50"), Decimal("2.25"), Decimal(0)]),
        ((col("m") > 2).then(1, col("m")), [Decimal("1.50"), Decimal(1), None]),
        (
            coalesce(col("m"), Decimal("0.125")),
            [Decimal("1.500"), Decimal("2.250"), Decimal("0.125")],
        ),
        (col("m") > lit(Decimal("1.5"), Types.BIG_DEC()), [False, True, None]),
        (col("m").sign, [Decimal(1), Decimal(1), None]),
        (col("m").cast(DataTypes.INT()), [1, 2, None]),
        (col("m") / 2, [0.75, 1.125, None]),
    ],
)
def test_decimals_are_brought_to_one_that_holds_all_of_their_values(
    expression: Expression, values: list[Any]
) -> None:
    batch = pa.RecordBatch.from_pydict({"m": MONEY, "i": pa.array([1, 10**6, 3])})
    assert compile_expression(expression, batch.schema).evaluate(batch).to_pylist() == values


def test_a_branch_is_only_computed_for_the_rows_it_is_for() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"a": [7, 8, 9, None], "b": [2, 0, None, 3], "s": ["1", "", "x", None]}
    )
    for expression, values in (
        ((col("b") != 0).then(col("a") % col("b"), -1), [1, -1, -1, None]),
        (col("s").in_("", "x").then(None, col("s").cast(DataTypes.INT())), [1, None, None, None]),
        (if_then_else(True, 0, col("a") % 0), [0, 0, 0, 0]),
        ((col("b") != 0).then((col("b") > 2).then(0, col("a") % col("b")), 5), [1, 5, 5, 0]),
    ):
        assert compile_expression(expression, batch.schema).evaluate(batch).to_pylist() == values
        assert [evaluate(expression, row) for row in batch.to_pylist()] == values
    with pytest.raises(ZeroDivisionError):
        compile_expression((col("b") == 0).then(col("a") % col("b"), -1), batch.schema).evaluate(
            batch
        )


def test_a_remainder_of_null_is_null_whatever_the_divisor() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "a": pa.array([None, 5], pa.int64()),
            "b": [0, 3],
            "none": pa.array([None, None], pa.int64()),
        }
    )
    for expression, values in (
        (col("a") % col("b"), [None, 2]),
        (col("none") % 0, [None, None]),
        (col("none") % col("b"), [None, None]),
    ):
        assert compile_expression(expression, batch.schema).evaluate(batch).to_pylist() == values


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [("a\\%b", "a\\xb"), ("%a\\", "xa\\"), ("a\\", "a\\"), ("\\_(", "\\x("), ("a%\\%b", "a\n\\b")],
)
def test_a_backslash_in_a_pattern_is_itself(pattern: str, fits: str) -> None:
    batch = pa.RecordBatch.from_pydict({"s": [fits, "a%b"]})
    assert compile_expression(col("s").like(pattern), batch.schema).evaluate(batch).to_pylist() == [
        True,
        False,
    ]


def test_moments_of_different_zones_are_compared_as_moments() -> None:
    noon = datetime.datetime(2013, 1, 1, 12, tzinfo=datetime.timezone.utc)
    batch = pa.RecordBatch.from_pydict(
        {"at": pa.array([noon, None], pa.timestamp("us", "America/New_York"))}
    )
    for expression in (col("at") == noon, col("at").in_(noon), col("at") >= noon):
        assert compile_expression(expression, batch.schema).evaluate(batch).to_pylist() == [
            True,
            None,
        ]


def test_a_cast_passes_over_spaces_around_text_and_cuts_what_is_finer() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "s": [" 5 ", "7"],
            "day": ["2013-01-01 ", " 2013-01-02"],
            "at": pa.array([1_000_000_001, 5], pa.timestamp("ns")),
        }
    )
    for expression, values in (
        (col("s").cast(DataTypes.INT()), [5, 7]),
        (col("s").cast(DataTypes.DOUBLE()), [5.0, 7.0]),
        (col("s").cast(DataTypes.STRING()), [" 5 ", "7"]),
        (col("day").cast(DataTypes.DATE()), [datetime.date(2013, 1, 1), datetime.date(2013, 1, 2)]),
        (
            col("at").cast(DataTypes.TIMESTAMP()),
            [datetime.datetime(1970, 1, 1, 0, 0, 1), datetime.datetime(1970, 1, 1)],
        ),
    ):
        assert compile_expression(expression, batch.schema).evaluate(batch).to_pylist() == values


@pytest.mark.parametrize(
    "expression", [lit(1) % 0, lit("many").cast(DataTypes.INT()), lit(2**62) * 4]
)
def test_a_constant_that_cannot_be_computed_is_refused_when_the_program_is_built(
    expression: Expression,
) -> None:
    with pytest.raises(ProgramError, match=r"modulo by zero|parse|overflow"):
        compile_expression(expression, SCHEMA)
