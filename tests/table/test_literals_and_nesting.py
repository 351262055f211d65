"""Constants beyond what a column of their kind holds, dictionaries as operands, keys of maps, and
expressions that are nested deep."""

from __future__ import annotations

import datetime
import operator
import pickle
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.columns.compiler import compile_expression
from flinkpy.columns.expression import MOST_NESTED, Expression
from flinkpy.columns.rowwise import evaluate
from flinkpy.core.errors import ProgramError
from flinkpy.core.program import code
from flinkpy.table.expressions import and_, col, lit, or_

UNSIGNED = st.integers(0, 2**64 - 1) | st.sampled_from(
    [0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
)
SIGNED = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, 0, 2**53, 2**53 + 1, 2**63 - 1])
COMPARED = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def columns(expression: Expression, **values: Any) -> list[Any]:
    batch = pa.RecordBatch.from_pydict(values)
    found: list[Any] = compile_expression(expression, batch.schema).evaluate(batch).to_pylist()
    return found


@given(
    st.lists(st.none() | UNSIGNED, min_size=1, max_size=5),
    UNSIGNED | SIGNED,
    st.sampled_from(COMPARED),
)
def test_unsigned_columns_are_compared_with_constants_of_64_bits(
    held: list[int | None], constant: int, compare: Any
) -> None:
    expected = [None if each is None else compare(each, constant) for each in held]
    expression = compare(col("u"), constant)
    assert (
        columns(expression, u=pa.array(held, pa.uint64()))
        == expected
        == [evaluate(expression, {"u": each}) for each in held]
    )


@given(st.lists(st.none() | SIGNED, min_size=1, max_size=5), UNSIGNED, st.sampled_from(COMPARED))
def test_signed_columns_are_compared_with_unsigned_constants(
    held: list[int | None], constant: int, compare: Any
) -> None:
    expected = [None if each is None else compare(each, constant) for each in held]
    assert columns(compare(col("i"), constant), i=pa.array(held, pa.int64())) == expected


@given(
    st.lists(UNSIGNED, min_size=1, max_size=5),
    st.lists(UNSIGNED | st.floats(0, 2.0**64) | st.integers(2**64, 2**65), min_size=1, max_size=4),
)
def test_one_of_many_large_numbers(held: list[int], choices: list[float]) -> None:
    expression = col("u").in_(choices)
    assert columns(expression, u=pa.array(held, pa.uint64())) == [
        evaluate(expression, {"u": each}) for each in held
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: col("a") == 2**64,
            r"whole numbers have 64 bits; write Decimal\(18446744073709551616\)",
        ),
        (lambda: col("a") > -(2**70), "64 bits"),
        (lambda: col("a") == Decimal("sNaN"), "decimals in columns are finite"),
        (lambda: lit(Decimal("NaN")), "infinities are floats"),
        (lambda: col("a").in_(Decimal("Infinity")), "decimals in columns are finite"),
    ],
)
def test_a_constant_that_no_column_holds_says_what_to_write(make: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        compile_expression(make(), pa.schema([("a", pa.int64())]))


@pytest.mark.parametrize(
    "values",
    [
        [3, None, 5, 3],
        [1.5, None, -2.0, 1.5],
        [datetime.date(2024, 5, 31), None, datetime.date(1969, 1, 1)],
        [Decimal("1.5"), None, Decimal("1.5")],
        [True, None, False],
    ],
)
def test_a_dictionary_is_computed_as_its_values(values: list[Any]) -> None:
    plain, encoded = pa.array(values), pa.array(values).dictionary_encode()
    is_first = col("v") == lit(values[0])
    for expression in (
        is_first,
        col("v").is_null,
        col("v").if_null(lit(values[0])),
        is_first.then(col("v"), col("v")),
    ):
        assert columns(expression, v=encoded) == columns(expression, v=plain)
    assert compile_expression(col("v"), pa.schema([("v", encoded.type)])).type == encoded.type


MAPS = [{1: "x", 2: "y"}, {}, None, {0: "zero", -(2**40): "z"}]


@pytest.mark.parametrize("key", [1, 2, 0, 1.0, 1.5, -1, 2**63, None, Decimal(2), Decimal("2.5")])
def test_a_value_of_a_map_is_that_of_the_equal_key(key: Any) -> None:
    held = pa.array(
        [None if each is None else list(each.items()) for each in MAPS],
        pa.map_(pa.int64(), pa.string()),
    )
    expected = [evaluate(col("m").at(lit(key)), {"m": each}) for each in MAPS]
    assert columns(col("m").at(lit(key)), m=held) == expected
    if key not in (None, 2**63):
        assert columns(col("m").at(col("k")), m=held, k=pa.array([key] * len(MAPS))) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("m").at("x"), "map<int64, string> and string .they are of different kinds"),
        (col("l").at(0), "counted from 1, this is 0; the last one"),
        (col("l").at(-1), r"the last one is at\(col\(...\).cardinality\)"),
    ],
)
def test_a_key_or_position_that_cannot_be_is_refused_at_once(
    expression: Expression, message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        compile_expression(
            expression,
            pa.schema([("m", pa.map_(pa.int64(), pa.string())), ("l", pa.list_(pa.int64()))]),
        )


def nested(times: int, step: Any) -> Expression:
    expression: Expression = col("a")
    for _ in range(times):
        expression = step(expression)
    return expression


@pytest.mark.parametrize(
    "step", [lambda each: each + 1, lambda each: (col("a") > 0).then(each, 0), lambda each: -each]
)
def test_what_may_be_nested_works_in_every_way(step: Any) -> None:
    expression = nested(MOST_NESTED - 2, step)
    expected = evaluate(expression, {"a": 1})
    assert columns(pickle.loads(pickle.dumps(expression)), a=[1]) == [expected]
    assert repr(code.loads(code.dumps(expression))) == repr(expression)
    with pytest.raises(
        ProgramError,
        match=r"nested more than 100 deep.*or_\(...\) at once, or compute a part before",
    ):
        nested(200, step)


def test_many_conditions_at_once_are_not_nested_deep() -> None:
    every = and_(*[col("a") > at for at in range(1000)])
    some = or_(*[col("a") == at for at in range(1000)])
    assert columns(every, a=[999, 1000]) == [False, True]
    assert columns(some, a=[999, 1000, None]) == [True, False, None]
    with pytest.raises(ProgramError, match="nested more than"):
        reduce(operator.or_, [col("a") == at for at in range(1000)])
