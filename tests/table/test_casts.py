"""Casts, decimals and text over columns mean what they mean for one row, over the values that are
easily got wrong."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.columns.compiler import compile_expression
from flinkpy.columns.expression import Expression
from flinkpy.columns.rowwise import evaluate
from flinkpy.common import Types
from flinkpy.core.errors import ProgramError
from flinkpy.table.expressions import col, greatest

MOMENTS = [None, 0, -1, 1, 86_399_999, -86_400_001, 1_700_000_000_123]  # milliseconds
DECIMALS = (
    st.none()
    | st.decimals("-999.99", "999.99", places=2)
    | st.sampled_from([Decimal("999.99"), Decimal("2.55"), Decimal("-999.50")])
)
TEXTUAL = (
    st.none()
    | st.sampled_from(
        [
            "+5",
            "-5",
            " 7 ",
            "0x10",
            "0X1",
            "1.5",
            "",
            "+",
            "++1",
            "1_0",
            "1e5",
            ".5",
            "nan",
            "-Infinity",
            "2020-02-29",
            "2020-01-01 00:00:00.5",
            "2020-01-01T10:00:00.123456",
            "10:00",
            "10:00:01",
            "10:00:01.250000",
            "25:00:00",
            "true",
            "ß",
            "t",
            "F",
            " Yes",
            "no",
            "y",
            "N",
            "1",
            "0",
            "on",
            "2",
            "tru",
        ]
    )
    | st.integers(-(2**70), 2**70).map(str)
)


def moments(kind: Any, step: int) -> tuple[Any, Any]:
    return kind, [None if each is None else each // step for each in MOMENTS]


CASTS_FROM: list[tuple[Any, Any]] = [
    moments(pa.timestamp("s"), 1000),
    moments(pa.timestamp("ms"), 1),
    (pa.timestamp("us"), [None, 0, -1, 1, 1_500, -1_500, 10**15 + 1]),
    (pa.timestamp("ns"), [None, 0, -1000, 1000, 1_500_000, -1_500_000]),
    (pa.timestamp("us", "Europe/Berlin"), [None, 0, -1, 1_500, 1_593_561_600_000_000]),
    (pa.timestamp("ms", "UTC"), MOMENTS),
    (pa.duration("us"), [None, 0, -1, 1_500, -1_500]),
    (pa.date32(), [None, 0, -1, 18_321]),
    (pa.time64("us"), [None, 0, 1_500_000]),
    (pa.time32("s"), [None, 0, 61]),
    (pa.int64(), MOMENTS),
    (pa.bool_(), [None, True, False]),
    (pa.float64(), [None, 1.5, -1.5, 0.0, 1e10, 2.0**62]),
]
CASTS_TO = [
    Types.LONG(),
    Types.INT(),
    Types.SQL_TIMESTAMP(),
    Types.INSTANT(),
    Types.SQL_DATE(),
    Types.SQL_TIME(),
    Types.BIG_INT(),
    Types.DOUBLE(),
    Types.BOOLEAN(),
]


def outcome(compute: Any) -> Any:
    """The value, or that it was refused."""
    try:
        return compute()
    except (
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        KeyError,
        pa.ArrowException,
        ProgramError,
    ):
        return "an error"


def by_column(expression: Expression, column: Any) -> list[Any]:
    data = pa.RecordBatch.from_arrays([column], names=["v"])
    found: list[Any] = compile_expression(expression, data.schema).evaluate(data).to_pylist()
    return found


def by_row(expression: Expression, value: Any, wanted: Any) -> Any:
    found = outcome(lambda: evaluate(expression, {"v": value}))
    # such as a date as a time of day
    return found if found is None or isinstance(found, wanted) else "an error"


@pytest.mark.finding("first-use 10")
@pytest.mark.finding("hunts 6")
@pytest.mark.parametrize("target", CASTS_TO, ids=lambda target: target.name)
@pytest.mark.parametrize(
    ("kind", "stored"),
    CASTS_FROM,
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_casts_of_moments_and_numbers_have_one_meaning(
    kind: Any, stored: list[Any], target: Any
) -> None:
    whole = {32: pa.int32(), 64: pa.int64()}[kind.bit_width] if pa.types.is_temporal(kind) else None
    column = pa.array(stored, kind) if whole is None else pa.array(stored, whole).view(kind)
    expression = col("v").cast(target)
    expected = [
        by_row(expression, value, PYTHON_TYPES[target.name])
        for value in column.to_pylist()
        if value is not None
    ]
    pieces = [column.slice(at, 1) for at, value in enumerate(stored) if value is not None]
    assert [
        outcome(lambda piece=piece: by_column(expression, piece)[0]) for piece in pieces
    ] == expected
    if "an error" not in expected:
        assert by_column(expression, column) == [None, *expected]


PYTHON_TYPES: dict[str, Any] = {
    "LONG": int,
    "INT": int,
    "SQL_TIMESTAMP": datetime.datetime,
    "INSTANT": datetime.datetime,
    "SQL_DATE": datetime.date,
    "SQL_TIME": datetime.time,
    "BIG_INT": Decimal,
    "DOUBLE": float,
    "BOOLEAN": bool,
}


@pytest.mark.finding("hunts 12")
@pytest.mark.finding("hunts 6")
@given(
    TEXTUAL,
    st.sampled_from(
        [
            Types.INT(),
            Types.LONG(),
            Types.DOUBLE(),
            Types.SQL_TIMESTAMP(),
            Types.SQL_DATE(),
            Types.SQL_TIME(),
            Types.BOOLEAN(),
        ]
    ),
)
@settings(max_examples=200)
def test_text_is_cast_as_rows_cast_it(text: str | None, target: Any) -> None:
    expression = col("v").cast(target)
    found = outcome(lambda: by_column(expression, pa.array([text], pa.string())))
    assert repr(found) == repr(outcome(lambda: [evaluate(expression, {"v": text})]))


DIGITS = st.integers(-(10**40), 10**40) | st.sampled_from(
    [10**20, 10**20 - 1, -(10**38), 10**38 - 1, 0]
)
NUMERALS = st.one_of(
    DIGITS.map(str),
    st.tuples(DIGITS, st.integers(0, 40)).map(lambda pair: str(Decimal(pair[0]).scaleb(-pair[1]))),
    st.sampled_from(
        ["+5", " 7 ", "1e3", "1E-18", ".5", "5.", "1_0", "nan", "", "1.1234567890123456789", "0x1"]
    ),
)


@given(
    st.lists(st.none() | NUMERALS, min_size=1, max_size=3),
    st.sampled_from([Types.BIG_INT(), Types.BIG_DEC()]),
)
@example(["123456789012345678901234567890"], Types.BIG_DEC())
@example(["1e3"], Types.BIG_INT())
@example(["1e3", "x"], Types.BIG_INT())
@settings(max_examples=300)
def test_text_becomes_the_decimal_that_it_shows_or_none(
    texts: list[str | None], target: Any
) -> None:
    column = pa.array(texts, pa.string())
    rows = [evaluate(col("v").try_cast(target), {"v": text}) for text in texts]
    assert by_column(col("v").try_cast(target), column) == rows
    is_wrong = any(row is None and text is not None for row, text in zip(rows, texts))
    assert outcome(lambda: by_column(col("v").cast(target), column)) == (
        "an error" if is_wrong else rows
    )


@given(
    DIGITS.filter(lambda value: abs(value) < 10**38),
    st.sampled_from([pa.decimal128(38, 0), pa.decimal256(76, 2)]),
    st.sampled_from([Types.BIG_INT(), Types.BIG_DEC()]),
)
@example(123456789012345678901234567890, pa.decimal128(38, 0), Types.BIG_DEC())
def test_a_decimal_that_does_not_fit_another_is_an_error(
    value: int, kind: Any, target: Any
) -> None:
    number = Decimal(value)
    found = outcome(lambda: by_column(col("v").cast(target), pa.array([number], kind)))
    assert found == outcome(lambda: [evaluate(col("v").cast(target), {"v": number})])
    assert found == ([number] if target == Types.BIG_INT() or abs(value) < 10**20 else "an error")


@given(
    st.lists(
        st.sampled_from(
            [
                "2024-01-01 10:00:00",
                "2024-01-01T10:00:00Z",
                "2024-01-01 10:00:00+02:00",
                "2024-01-01 10:00:00.5-0330",
                "x",
                "2024-01-01",
                "2024-01-01Z",
                " 2024-01-01 10Z ",
                "2024-01-01 10:30-03",
                "2024-01-01 10:00:00.1234567Z",
            ]
        ),
        min_size=1,
        max_size=4,
    )
)
def test_text_becomes_the_instant_that_it_shows_or_none(texts: list[str]) -> None:
    for expression in (col("v").try_cast(Types.INSTANT()), col("v").cast(Types.INSTANT())):
        rows = outcome(
            lambda expression=expression: [evaluate(expression, {"v": text}) for text in texts]
        )
        assert outcome(lambda expression=expression: by_column(expression, pa.array(texts))) == rows


@pytest.mark.parametrize(
    ("expression", "value", "kind", "expected"),
    [
        (col("v").cast(Types.STRING()), b"a\xc3\xa9", pa.binary(), "aé"),
        (col("v").cast(Types.FLOAT()), 2**60 + 2**36 + 1, pa.int64(), 2.0**60 + 2.0**37),
        (
            col("v").cast(Types.SQL_TIMESTAMP()),
            "2024-01-01 10",
            pa.string(),
            datetime.datetime(2024, 1, 1, 10),
        ),
        (col("v") == 2.0**53, 2**53 + 1, pa.int64(), True),
        (col("v").in_(2.0**53), 2**53 + 1, pa.int64(), True),
        (greatest(col("v"), 2.0**53), 2**53 + 1, pa.int64(), 2.0**53),
        (col("v").in_(0.1, 7.5), Decimal("0.1"), pa.decimal128(5, 2), True),
    ],
)
def test_a_number_means_the_same_for_a_row_and_for_a_column(
    expression: Expression, value: Any, kind: Any, expected: Any
) -> None:
    """Beside a float, numbers are floats, as in SQL."""
    assert by_column(expression, pa.array([value], kind)) == [expected]
    assert evaluate(expression, {"v": value}) == expected


@pytest.mark.finding("hunts 2")
@pytest.mark.finding("hunts 3")
@given(
    DECIMALS,
    st.sampled_from(
        [pa.decimal128(5, 2), pa.decimal128(38, 2), pa.decimal256(40, 2), pa.decimal128(20, 2)]
    ),
    st.sampled_from(
        [
            col("d").ceil(),
            col("d").floor(),
            col("d").round(),
            col("d").round(1),
            col("d").round(-2),
            col("d") == 2.55,
            col("d") < 999.99,
            col("d") * 1.0,
            col("d").cast(Types.DOUBLE()),
            col("d").cast(Types.BIG_INT()),
            col("d").cast(Types.LONG()),
            col("d") + 1,
            col("d") - col("d"),
            col("d") * 3,
        ]
    ),
)
@settings(max_examples=400)
def test_decimals_are_rounded_compared_and_cast_as_rows_do(
    value: Any, kind: Any, expression: Expression
) -> None:
    data = pa.RecordBatch.from_arrays([pa.array([value, None, value], kind).slice(1)], names=["d"])
    found = compile_expression(expression, data.schema).evaluate(data).to_pylist()
    assert found == [None, evaluate(expression, {"d": value})]


@pytest.mark.finding("hunts 9")
@pytest.mark.parametrize(
    ("expression", "kind", "value", "expected"),
    [
        (col("d") + 1, pa.decimal128(38, 18), "1.000000000000000005", "2.00000000000000001"),
        (col("d") - 1, pa.decimal128(38, 18), "1.5", "0.5"),
        (col("d") * col("d"), pa.decimal128(38, 18), "1.5", "2.250000"),
        (1 + col("d"), pa.decimal128(38, 0), "9" * 37, "1" + "0" * 37),
        (col("d") * 2, pa.decimal128(19, 2), "1.25", "2.50"),
        (col("d") * col("d"), pa.decimal128(20, 10), "0.0000000001", "0"),
    ],
)
def test_decimal_arithmetic_caps_its_digits(
    expression: Expression, kind: Any, value: str, expected: str
) -> None:
    data = pa.RecordBatch.from_arrays([pa.array([Decimal(value), None], kind)], names=["d"])
    assert compile_expression(expression, data.schema).evaluate(data).to_pylist() == [
        Decimal(expected),
        None,
    ]


@pytest.mark.finding("hunts 9")
def test_decimal_arithmetic_that_leaves_38_digits_is_an_error() -> None:
    data = pa.RecordBatch.from_arrays(
        [pa.array([Decimal("9" * 38)], pa.decimal128(38, 0))], names=["d"]
    )
    with pytest.raises(pa.ArrowInvalid, match="precision"):
        compile_expression(col("d") + 1, data.schema).evaluate(data)


@pytest.mark.finding("hunts 11")
def test_unsigned_integers_are_compared_with_decimals() -> None:
    decimals = pa.array([Decimal("3.00"), Decimal("1.00")], pa.decimal128(5, 2))
    data = pa.RecordBatch.from_pydict({"u": pa.array([3, 2**64 - 1], pa.uint64()), "d": decimals})
    assert compile_expression(col("u") == col("d"), data.schema).evaluate(data).to_pylist() == [
        True,
        False,
    ]
    assert compile_expression(col("u") > col("d"), data.schema).evaluate(data).to_pylist() == [
        False,
        True,
    ]


@pytest.mark.finding("hunts 7")
@given(
    st.none() | st.text("abß", max_size=4),
    st.sampled_from(["", "a"]),
    st.sampled_from(["", "x", "\\1"]),
)
def test_replacing_ends_also_where_nothing_is_searched(
    text: str | None, search: str, replacement: str
) -> None:
    data = pa.RecordBatch.from_arrays([pa.array([text], pa.string())], names=["s"])
    expression = col("s").replace(search, replacement)
    assert compile_expression(expression, data.schema).evaluate(data).to_pylist() == [
        evaluate(expression, {"s": text})
    ]


@pytest.mark.finding("hunts 6")
@given(
    st.lists(
        st.none() | st.text("aß\u0130\u03a3\u03c2\u01c6\ufb01漢", max_size=4),
        min_size=1,
        max_size=3,
    )
)
def test_letters_that_become_two_are_changed_as_in_rows(texts_: list[str | None]) -> None:
    data = pa.RecordBatch.from_arrays([pa.array(texts_, pa.string())], names=["s"])
    for expression in (col("s").upper_case, col("s").lower_case):
        assert compile_expression(expression, data.schema).evaluate(data).to_pylist() == [
            evaluate(expression, {"s": text}) for text in texts_
        ]


@pytest.mark.finding("hunts 12")
@pytest.mark.parametrize("length", [2**63 - 1, 2**63, 2**80, 0])
@pytest.mark.parametrize("begin", [1, 2, 2**63, 2**80])
def test_a_part_of_text_may_be_asked_for_beyond_its_end(begin: int, length: int) -> None:
    data = pa.RecordBatch.from_pydict({"s": ["abc"]})
    expression = col("s").substring(begin, length)
    assert compile_expression(expression, data.schema).evaluate(data).to_pylist() == [
        "abc"[begin - 1 : begin - 1 + length]
    ]
