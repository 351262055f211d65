"""Arithmetic of decimal columns against Python's decimal module with Flink's rules."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.columns.compiler import compile_expression
from flinkpy.columns.kernels.decimals import capped
from flinkpy.table.expressions import col, lit

EXACT = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)
OPERATIONS = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}
KINDS = st.integers(1, 38).flatmap(
    lambda precision: st.builds(pa.decimal128, st.just(precision), st.integers(0, precision))
)


def values_of(kind: Any) -> st.SearchStrategy[Decimal | None]:
    """Nulls, both ends of the type, zeros, and numbers of every length."""
    most = 10**kind.precision - 1
    near = st.integers(0, kind.precision).flatmap(
        lambda digits: st.integers(-(10**digits), 10**digits)
    )
    digits = st.sampled_from([most, -most, 0, 1, -1, 5, -5]) | near.filter(lambda n: abs(n) <= most)
    return st.none() | digits.map(lambda unscaled: Decimal(unscaled).scaleb(-kind.scale, EXACT))


@st.composite
def two_columns(draw: Any) -> tuple[Any, Any]:
    kinds = [draw(KINDS), draw(KINDS)]
    length = draw(st.integers(1, 6))
    return tuple(
        pa.array(draw(st.lists(values_of(kind), min_size=length, max_size=length)), kind)
        for kind in kinds
    )


def result_type(operation: str, one: Any, other: Any) -> Any:
    """Flink's rule: digits after the point are given up first, but for six of them."""
    if operation == "*":
        scale, digits = one.scale + other.scale, one.precision + other.precision
    else:
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale + 1
    if digits > 38:
        scale = max(38 - (digits - scale), min(scale, 6))
    return pa.decimal128(min(digits, 38), scale)


def plain(operation: str, left: Any, right: Any, kind: Any) -> list[Decimal | None] | None:
    """The meaning, one value after the other; None if one does not fit."""
    unit = Decimal(1).scaleb(-kind.scale)
    found: list[Decimal | None] = []
    for one, other in zip(left.to_pylist(), right.to_pylist()):
        if one is None or other is None:
            found.append(None)
            continue
        value = OPERATIONS[operation](one, other).quantize(unit, context=EXACT)
        if value.scaleb(kind.scale, EXACT).copy_abs() >= 10**kind.precision:
            return None
        found.append(value)
    return found


@given(st.sampled_from("+-*"), two_columns())
@example(
    "*",
    (
        pa.array([Decimal("9" * 38)], pa.decimal128(38, 0)),
        pa.array([Decimal("0." + "9" * 38)], pa.decimal128(38, 38)),
    ),
)
@example(
    "*",
    (
        pa.array([Decimal("0." + "9" * 38), Decimal("-0." + "9" * 38)], pa.decimal128(38, 38)),
        pa.array([Decimal("0." + "9" * 38), Decimal("0." + "9" * 38)], pa.decimal128(38, 38)),
    ),
)
@example(
    "+",
    (
        pa.array([Decimal("9" * 38)], pa.decimal128(38, 0)),
        pa.array([Decimal("0." + "9" * 38)], pa.decimal128(38, 38)),
    ),
)
@settings(max_examples=150, deadline=None)
def test_arithmetic_of_decimals_is_that_of_pythons_decimals(
    operation: str, columns: tuple[Any, Any]
) -> None:
    left, right = columns
    kind = result_type(operation, left.type, right.type)
    expected = plain(operation, left, right, kind)
    kernel = capped(operation, [left.type, right.type])
    if kernel is None:
        data = pa.RecordBatch.from_arrays([left, right], names=["l", "r"])
        term = {"+": col("l") + col("r"), "-": col("l") - col("r"), "*": col("l") * col("r")}
        assert (
            compile_expression(term[operation], data.schema).evaluate(data).to_pylist() == expected
        )
        return
    chunks = [each.slice(at, 2) for each in (left,) for at in range(0, len(left), 2)]
    forms = [
        (left, right),
        (pa.concat_arrays([right[:0].cast(left.type, safe=False), left, left])[len(left) :], right),
        (pa.chunked_array(chunks, left.type), pa.chunked_array([right], right.type)),
    ]
    for one, other in forms:
        if expected is None:
            with pytest.raises(pa.ArrowInvalid):
                kernel(one, other)
        else:
            found = kernel(one, other)
            assert found.type.precision == 38
            assert found.type.scale == kind.scale
            assert found.to_pylist() == expected


@given(
    st.sampled_from("+-*"),
    KINDS.flatmap(
        lambda kind: st.tuples(st.just(kind), st.lists(values_of(kind), min_size=1, max_size=4))
    ),
    st.integers(-(2**63), 2**63 - 1),
)
@settings(max_examples=60, deadline=None)
def test_a_constant_or_an_integer_beside_a_decimal_is_exact_too(
    operation: str, column: tuple[Any, list[Decimal | None]], number: int
) -> None:
    kind, values = column
    left = pa.array(values, kind)
    data = pa.RecordBatch.from_arrays([left, pa.array([number] * len(left))], names=["l", "r"])
    integer = pa.decimal128(19, 0)
    result = result_type(operation, kind, integer)
    expected = plain(operation, left, pa.array([Decimal(number)] * len(left), integer), result)
    for right in (col("r"), lit(number)):
        term = {"+": col("l") + right, "-": col("l") - right, "*": col("l") * right}[operation]
        evaluate = compile_expression(term, data.schema).evaluate
        if expected is None:
            with pytest.raises(pa.ArrowInvalid):
                evaluate(data)
        else:
            assert evaluate(data).to_pylist() == expected
