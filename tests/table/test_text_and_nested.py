"""Text, lists, structs and numbers over columns mean what they mean for one row."""

from __future__ import annotations

import datetime
import math
import pickle
import re
from collections.abc import Callable
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
from flinkpy.table.expressions import col, greatest, least, lit, when
from tests.table.test_moments import both

TEXTS = st.none() | st.text(alphabet="aAbB, -_1.é漢ß\n\\$", max_size=8)
PADS = st.sampled_from([" ", "xy", "é", "123"])


@st.composite
def of_text(draw: Any) -> Expression:
    text, number = col("s"), draw(st.integers(0, 12))
    return draw(  # type: ignore[no-any-return]
        st.sampled_from(
            [
                text.left(number),
                text.right(number),
                text.lpad(number, draw(PADS)),
                text.rpad(number, draw(PADS)),
                text.repeat(number % 4),
                text.reverse,
                text.init_cap,
                text.trim("a"),
                text.trim_leading("ab"),
                text.trim_trailing(" 1"),
                text.split(draw(st.sampled_from([",", "", "ab", " "]))),
                text.split_index(draw(st.sampled_from([",", "", "a"])), number),
                text.contains(draw(st.sampled_from(["a", "", "é", ".", "bB"]))),
                text.position(col("t")),
                lit("a").position(text),
                text.position("abAB漢"),
                text.split(",").at(number + 1),
                text.split("").cardinality,
                text.try_cast(Types.LONG()),
                text.try_cast(Types.DOUBLE()),
                text.try_cast(Types.SQL_DATE()),
                text.try_cast(Types.BOOLEAN()),
                text.try_cast(Types.FLOAT()),
                greatest(text, col("t")),
                least(text, col("t"), "m"),
                text.split(",").array_contains(col("t")),
                text.split("").array_contains("a"),
            ]
        )
    )


@given(of_text(), st.lists(st.fixed_dictionaries({"s": TEXTS, "t": TEXTS}), min_size=1, max_size=6))
@settings(max_examples=400, deadline=None)
def test_text_is_computed_as_its_rows_would_be(
    expression: Expression, rows: list[dict[str, Any]]
) -> None:
    by_rows, by_columns = both(
        expression,
        {name: pa.array([row[name] for row in rows], pa.string()) for name in ("s", "t")},
    )
    assert by_rows == by_columns != "an error"


PATTERNS = (
    "a",
    "[ab]+",
    "(a)(b)?",
    "^a",
    "b$",
    "(?i)AB",
    r"\d+",
    r"(\w)-(\w)",
    "a|b",
    "",
    "[^a]",
    r"\(",
    "(?:a(b))",
    "[(](a)",
    r"(?P<x>a)(b*)",
)


@given(st.sampled_from(PATTERNS), st.lists(TEXTS, min_size=1, max_size=6), st.integers(0, 2))
@settings(max_examples=200, deadline=None)
def test_regular_expressions_mean_what_pythons_do_where_both_have_them(
    pattern: str, texts: list[str | None], group: int
) -> None:
    """Without the places where Python differs: an end before the last line's end, and letters and
    digits beyond ASCII."""
    texts = [
        text
        if text is None
        else text.replace("\n", "").replace("é", "e").replace("漢", "h").replace("ß", "s")
        for text in texts
    ]
    expected_of: dict[Expression, Callable[[str], Any]] = {
        col("s").regexp(pattern): lambda text: re.search(pattern, text) is not None,
        col("s").regexp_replace(pattern, "<x>"): lambda text: (
            re.sub(pattern, "<x>", text) if pattern else None
        ),
        col("s").regexp_count(pattern): lambda text: len(re.findall(pattern, text)),
    }
    if group <= re.compile(pattern).groups:
        expected_of[col("s").regexp_extract(pattern, group)] = lambda text: (
            (found[group] or "") if (found := re.search(pattern, text)) else None
        )
    for expression, expected in expected_of.items():
        rows, columns = both(expression, {"s": pa.array(texts, pa.string())})
        assert rows == columns
        if pattern or "replace" not in repr(expression):
            assert columns == [repr(None if text is None else expected(text)) for text in texts]


@given(
    st.sampled_from(["a*", "^a", "a?", "", "a|", "b*", r"(\||a)*", "é*", "(?:ab)*"]),
    st.lists(st.none() | st.text(alphabet="ab|é漢ß😀", max_size=6), min_size=1, max_size=6),
)
@example("^a", ["aaa"])
@example("a*", ["aéa|", ""])
def test_matches_of_nothing_are_counted_between_letters_as_they_are_replaced(
    pattern: str, texts: list[str | None]
) -> None:
    def count(text: str) -> int:
        ends = {match.end() for match in re.finditer(pattern, text) if match.group()}
        return sum(
            1 for match in re.finditer(pattern, text) if match.group() or match.start() not in ends
        )

    rows, columns = both(col("s").regexp_count(pattern), {"s": pa.array(texts, pa.string())})
    assert rows == columns == [repr(None if text is None else count(text)) for text in texts]


def test_a_replacement_may_hold_groups() -> None:
    batch = pa.RecordBatch.from_pydict({"s": ["2024-05", None, "x"]})
    found = compile_expression(
        col("s").regexp_replace(r"(\d+)-(\d+)", r"\2/\1"), batch.schema
    ).evaluate(batch)
    assert found.to_pylist() == ["05/2024", None, "x"]


@pytest.mark.parametrize(
    ("pattern", "group", "text", "found"),
    [
        (r"\Q(a\E(b)", 1, "(ab", "b"),
        (r"\((\d)\)", 1, "(7)", "7"),
        ("[(](x)", 1, "(x", "x"),
        (r"[\](](x)", 1, "](x", "x"),
        ("[]](x)", 1, "]x", "x"),
        ("[[:alpha:](](x)", 1, "ax", "x"),
        ("(?i:A)(b)", 1, "ab", "b"),
        ("(a(b(c)))", 3, "abc", "c"),
        ("(?P<n>a)(?P<m>b)", 2, "ab", "b"),
    ],
)
def test_a_group_is_found_wherever_parentheses_stand(
    pattern: str, group: int, text: str, found: str
) -> None:
    assert evaluate(col("s").regexp_extract(pattern, group), {"s": text}) == found


NUMBERS = st.none() | st.integers(-9, 9) | st.sampled_from([2**62, -(2**63), 2**63 - 1])
FLOATS = st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 7.0])


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, FLOATS, FLOATS), min_size=1, max_size=5),
    st.sampled_from(
        [
            col("i") // col("j"),
            col("i") // 3,
            col("i") // -1,
            7 // col("j"),
            col("f") // col("g"),
            col("f") // 2,
            col("i") // col("f"),
            greatest(col("f"), col("g")),
            least(col("f"), col("g")),
            greatest(col("i"), col("j"), 0),
            least(col("i"), 3),
            greatest(col("f"), 1.5, col("g")),
            least(lit(1), None),
            when(col("i") > 3).then("many").when(col("i") > 0).then("some").otherwise("none"),
            col("f").try_cast(Types.INT()),
            col("i").try_cast(Types.BYTE()),
        ]
    ),
)
@settings(max_examples=300, deadline=None)
def test_numbers_are_computed_as_their_rows_would_be(
    rows: list[Any], expression: Expression
) -> None:
    given_columns = {
        name: pa.array([row[at] for row in rows], pa.int64() if at < 2 else pa.float64())
        for at, name in enumerate("ijfg")
    }
    by_rows, by_columns = both(expression, given_columns)
    assert by_rows == by_columns or [as_float(each) for each in by_rows] == [
        as_float(each) for each in by_columns
    ]


def as_float(text: str) -> Any:
    try:
        return repr(float(text))
    except ValueError:
        return text


ITEMS = st.none() | st.lists(st.none() | st.integers(-3, 3), max_size=4)


@given(
    st.lists(st.tuples(ITEMS, st.none() | st.integers(1, 5)), min_size=1, max_size=5),
    st.integers(1, 5),
    st.integers(0, 3),
    st.sampled_from([pa.list_(pa.int64()), pa.large_list(pa.int64())]),
)
@settings(max_examples=200, deadline=None)
def test_lists_are_computed_as_their_rows_would_be(
    rows: list[Any], index: int, start: int, kind: Any
) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "l": pa.array([items for items, _ in rows], kind),
            "n": pa.array([number for _, number in rows], pa.int64()),
        }
    )
    batch = batch.slice(start) if start < batch.num_rows else batch
    for expression in (
        col("l").at(index),
        col("l").at(col("n")),
        col("l").cardinality,
        col("l").array_contains(2),
        col("l").array_contains(col("n")),
        col("l").array_contains(None),
        col("l").at(col("l").cardinality),
    ):
        found = (
            compile_expression(expression, batch.schema).evaluate(batch).to_pylist()
            if not fails(expression, batch)
            else None
        )
        assert found is None or found == [evaluate(expression, row) for row in batch.to_pylist()]


def fails(expression: Expression, batch: Any) -> bool:
    """Whether a row fails: the last item of an empty list is item 0."""
    try:
        for row in batch.to_pylist():
            evaluate(expression, row)
    except IndexError:
        with pytest.raises(IndexError):
            compile_expression(expression, batch.schema).evaluate(batch)
        return True
    return False


def test_structs_and_maps() -> None:
    kind = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
    batch = pa.RecordBatch.from_pydict(
        {
            "p": pa.array([{"x": 1, "y": ["a", "b"]}, None, {"x": None, "y": None}], kind),
            "m": pa.array([[("a", 1), ("b", 2)], None, []], pa.map_(pa.string(), pa.int64())),
            "k": ["b", "a", "z"],
            "fixed": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64(), 2)),
        }
    )
    for expression, expected in (
        (col("p").get("x"), [1, None, None]),
        (col("p").get(0), [1, None, None]),
        (col("p").get("y").at(2), ["b", None, None]),
        (col("m").at("b"), [2, None, None]),
        (col("m").at(col("k")), [2, None, None]),
        (col("m").cardinality, [2, None, 0]),
        (col("fixed").at(2), [2, None, None]),
        (col("fixed").array_contains(3), [False, None, True]),
        (col("fixed").cardinality, [2, None, 2]),
    ):
        assert compile_expression(expression, batch.schema).evaluate(batch).to_pylist() == expected
    rows: list[dict[str, Any]] = [
        {"p": {"x": 1, "y": ["a", "b"]}, "m": {"a": 1, "b": 2}},
        {"p": None, "m": None},
        {"p": {"x": None, "y": None}, "m": {}},
    ]
    assert [evaluate(col("p").get("y").at(2), row) for row in rows] == ["b", None, None]
    assert [evaluate(col("m").at("b"), row) for row in rows] == [2, None, None]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: col("s").lpad(-1), "whole number from 0"),
        (lambda: col("s").trim(""), "not empty"),
        (lambda: col("p").get(-1), "position from 0"),
        (lambda: col("s").split(3), "takes text"),  # type: ignore[arg-type]
        (lambda: col("v").percentile(95), "share from 0 to 1"),
        (lambda: col("v").sum.distinct, "only count has it"),
        (lambda: col("s").try_cast(int), "DataTypes"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        make()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("p").get("z"), "there is no field 'z'; there are x, year"),
        (col("p").get("yaer"), "did you mean 'year'"),
        (col("l").get("x"), r"at\(\.\.\.\)"),
        (col("p").at(1), "needs a list or a map"),
        (col("s").regexp("("), "missing"),
        (col("s").regexp_extract("a", 1), "0 groups"),
        (col("s").regexp("(?=a)"), "[Ii]nvalid"),
        (col("n") // lit(Decimal("1.5")), "cast them to DOUBLE"),
        (lit(1) // 0, "division by zero"),
        (col("day").try_cast(Types.DOUBLE()), "cannot take"),
    ],
)
def test_what_does_not_fit_the_schema_says_what_to_do(expression: Expression, message: str) -> None:
    schema = pa.schema(
        [
            ("p", pa.struct([("x", pa.int64()), ("year", pa.int64())])),
            ("l", pa.list_(pa.int64())),
            ("s", pa.string()),
            ("n", pa.int64()),
            ("day", pa.date32()),
        ]
    )
    with pytest.raises(ProgramError, match=message):
        compile_expression(expression, schema)


def test_rows_of_no_case_are_null() -> None:
    cases = when(col("n") > 9).then("many").when(col("n") > 0).then("some")
    batch = pa.RecordBatch.from_pydict({"n": [10, 1, 0, None]})
    for expression, last in (
        (pickle.loads(pickle.dumps(cases)), None),
        (cases.otherwise("none"), "none"),
    ):
        assert compile_expression(expression, batch.schema).evaluate(batch).to_pylist() == [
            "many",
            "some",
            last,
            last,
        ]
        assert [evaluate(expression, row) for row in batch.to_pylist()] == [
            "many",
            "some",
            last,
            last,
        ]


def test_a_failed_cast_is_null_only_where_it_fails() -> None:
    batch = pa.RecordBatch.from_pydict({"s": ["1", " 2 ", "x", None, "3.5"]})
    for kind, expected in (
        (Types.LONG(), [1, 2, None, None, None]),
        (Types.DOUBLE(), [1.0, 2.0, None, None, 3.5]),
        (Types.SQL_TIMESTAMP(), [None] * 5),
    ):
        assert (
            compile_expression(col("s").try_cast(kind), batch.schema).evaluate(batch).to_pylist()
            == expected
        )
    days = pa.RecordBatch.from_pydict({"s": ["2024-02-29", "2023-02-29"]})
    assert compile_expression(col("s").try_cast(Types.SQL_DATE()), days.schema).evaluate(
        days
    ).to_pylist() == [datetime.date(2024, 2, 29), None]


CASTABLE = st.lists(
    st.none()
    | st.sampled_from(
        [
            "1",
            "+5",
            " 7 ",
            "-3",
            "1.5",
            "1e3",
            "99999999999999999999",
            "300",
            "x",
            "",
            "2024-02-29",
            "2023-02-29",
            "2024-01-01 10:00",
            "2024-01-01T25:00",
            "nan",
            "true",
            "1_0",
            "0000-01-01",
        ]
    ),
    min_size=1,
    max_size=8,
)


@given(
    CASTABLE,
    st.sampled_from(
        [
            Types.LONG(),
            Types.BYTE(),
            Types.DOUBLE(),
            Types.FLOAT(),
            Types.SQL_DATE(),
            Types.SQL_TIMESTAMP(),
            Types.SQL_TIME(),
            Types.BOOLEAN(),
            Types.STRING(),
            Types.BIG_INT(),
        ]
    ),
)
@example(["0000-01-01"], Types.SQL_DATE())
@example(["0000-01-01", None], Types.SQL_TIMESTAMP())
@settings(max_examples=300, deadline=None)
def test_a_cast_of_messy_text_is_null_where_the_row_form_says_so(
    texts: list[str | None], kind: Any
) -> None:
    rows, columns = both(col("s").try_cast(kind), {"s": pa.array(texts, pa.string())})
    assert rows == columns != "an error"
