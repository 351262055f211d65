"""Sums and averages of decimal columns, which add digits in arrays, against Python's integers and
fractions."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.aggregates import wide_integers
from flinkpy.aggregates.algebra import Runs
from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.columns.expression_functions import col
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import UserCodeError
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.keyed_columns.running_aggregate import KeyedColumnAggregateOperator
from tests.table.harness import run

EXACT = Context(prec=200)
MOST = 10**38 - 1
DIGITS = st.sampled_from(
    [0, 1, -1, MOST, -MOST, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, -(2**64), 2**96]
) | st.integers(0, 38).flatmap(lambda n: st.integers(-(10**n - 1), 10**n - 1))
SCALES = st.sampled_from([0, 2, 18, 38])
COLUMNS = st.lists(st.tuples(st.integers(0, 2), st.none() | DIGITS), min_size=1, max_size=12)


def column_of(digits: list[int | None], scale: int) -> Any:
    return pa.array(
        [None if each is None else Decimal(each).scaleb(-scale, EXACT) for each in digits],
        pa.decimal128(38, scale),
    )


def tuples(batches: list[Any]) -> list[tuple[Any, ...]]:
    return [row for batch in batches for row in zip(*(c.to_pylist() for c in batch.data.columns))]


def whole(values: Any) -> list[int]:
    return [
        low + (middle << 64) + (high << 128)
        for low, middle, high in wide_integers.widened(values).tolist()
    ]


@given(COLUMNS, COLUMNS, SCALES)
@settings(deadline=None)
def test_grouped_and_added_sums_are_exact_also_beyond_38_digits(
    first: list[tuple[int, int | None]], second: list[tuple[int, int | None]], scale: int
) -> None:
    aggregate = ColumnAggregate("sum", pa.decimal128(38, scale))
    accumulators: Any = None
    for records in (first, second):
        # a slice of a longer array
        column = column_of([7, *(digits for _, digits in records)], scale)[1:]
        counts, values = aggregate.values_of(column)
        codes = np.array([code for code, _ in records])
        present = [digits is not None for _, digits in records]
        assert (counts is None and all(present)) or counts.tolist() == present
        accumulators = (
            aggregate.grouped(values, codes, 3)
            if accumulators is None
            else aggregate.added_to(accumulators, values, codes)
        )
    expected = [
        sum(digits or 0 for code, digits in [*first, *second] if code == group)
        for group in range(3)
    ]
    assert whole(accumulators) == expected
    together = aggregate.joined(
        [aggregate.values_of(column_of([d for _, d in part], scale))[1] for part in (first, second)]
    )
    assert whole(aggregate.grouped(together, None, 1)) == [sum(expected)]


@given(st.lists(st.lists(DIGITS, min_size=1, max_size=5), min_size=1, max_size=3), DIGITS)
@settings(deadline=None)
def test_running_sums_are_exact_in_each_run(runs: list[list[int]], before: int) -> None:
    aggregate = ColumnAggregate("sum", pa.decimal128(38, 0))
    numbers = aggregate.values_of(column_of([digits for run in runs for digits in run], 0))[1]
    ends = np.cumsum([len(run) for run in runs]) - 1
    starts = np.append(0, ends[:-1] + 1)
    carried = wide_integers.widened(aggregate.values_of(column_of([before] * len(runs), 0))[1])
    expected = [before + sum(run[: at + 1]) for run in runs for at in range(len(run))]
    assert whole(aggregate.running(Runs(numbers, starts, ends, carried))) == expected


@given(st.lists(st.lists(DIGITS, min_size=1, max_size=3), min_size=1, max_size=8), SCALES)
@example([[1], [2**53 + 1], [-(2**53) - 1], [3, 3, 4]], 0)
@settings(deadline=None)
def test_an_average_of_decimals_is_the_nearest_float(groups: list[list[int]], scale: int) -> None:
    aggregate = ColumnAggregate("avg", pa.decimal128(38, scale))
    codes = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    values = aggregate.values_of(column_of([d for group in groups for d in group], scale))[1]
    counts = np.bincount(codes)
    found = aggregate.results(counts, aggregate.grouped(values, codes, len(groups)))
    assert found.to_pylist() == [
        float(Fraction(sum(group), len(group) * 10**scale)) for group in groups
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(-(10**30), 10**30))), SCALES)
@settings(deadline=None, max_examples=50)
def test_operators_show_sums_and_extremes_so_far_and_null_before_the_first_value(
    records: list[tuple[int, int | None]], scale: int
) -> None:
    if not records:
        return
    data = pa.RecordBatch.from_arrays(
        [pa.array([key for key, _ in records]), column_of([d for _, d in records], scale)],
        names=["k", "d"],
    )
    sums: dict[int, Decimal | None] = {}
    expected = []
    for key, value in zip(*(column.to_pylist() for column in data.columns)):
        known = sums.get(key)
        sums[key] = known if value is None else EXACT.add(known or Decimal(0), value)
        expected.append((key, sums[key]))
    batches: list[Any] = [ColumnBatch(data.slice(at, 3)) for at in range(0, len(records), 3)]
    running = run(KeyedColumnAggregateOperator("sum", "d", ["k"]), batches)
    assert tuples(running) == expected
    d = col("d")
    calls = aggregate_calls([d.sum.alias("s"), d.min.alias("low"), d.max.alias("high")], "test")
    last = {row[0]: row[1:] for row in tuples(run(KeyedAggregatesOperator(["k"], calls), batches))}
    values = {
        key: [
            each
            for other, each in zip(*data.to_pydict().values())
            if other == key and each is not None
        ]
        for key in sums
    }
    assert last == {
        key: (sums[key], min(found, default=None), max(found, default=None))
        for key, found in values.items()
    }


def test_a_running_sum_of_decimals_beyond_38_digits_says_what_to_do() -> None:
    data = pa.RecordBatch.from_pydict({"k": [1, 1], "d": column_of([MOST, 1], 0)})
    with pytest.raises(UserCodeError, match=r"precision of decimal128.*DOUBLE"):
        run(KeyedColumnAggregateOperator("sum", "d", ["k"]), [ColumnBatch(data)])
