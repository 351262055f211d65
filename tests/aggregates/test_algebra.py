"""Every built-in aggregate: its callable, its row expression and its kernels say the same, and
parts can be merged."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.aggregates.algebra import Aggregate, OfColumns, Runs
from flinkpy.aggregates.builtin import BUILT_IN, OF_FIELDS
from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.aggregates.of_records import OF_RECORDS, FieldAggregate

WHOLE = st.integers(-(2**40), 2**40)
FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 1e300, 0.1])
ANY = st.lists(WHOLE, min_size=1, max_size=12) | st.lists(FLOATS, min_size=1, max_size=12)
# whose accumulators are values
OF_VALUES = {name: each for name, each in BUILT_IN.items() if not isinstance(each, OfColumns)}
every = pytest.mark.parametrize("aggregate", OF_VALUES.values(), ids=OF_VALUES)


def fold(aggregate: Aggregate, values: list[Any]) -> Any:
    return functools.reduce(aggregate.add, values[1:], aggregate.first(values[0]))


def shown(values: Any) -> str:
    """Tells zeros apart; not-a-numbers have no sign that matters."""
    return repr(["nan" if value != value else value for value in values])


@every
@given(
    values=st.lists(WHOLE, min_size=2, max_size=12)
    | st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.25]), min_size=2, max_size=12),
    at=st.integers(1, 11),
)
def test_the_accumulators_of_two_parts_make_that_of_all(
    aggregate: Aggregate, values: list[Any], at: int
) -> None:
    at = min(at, len(values) - 1)
    merged = aggregate.merge(fold(aggregate, values[:at]), fold(aggregate, values[at:]))
    assert shown([merged]) == shown([fold(aggregate, values)])


@every
@given(
    values=ANY | st.lists(st.sampled_from([0.1, 0.3, -0.7, 3.3, 1e-3]), min_size=1, max_size=12),
    at=st.integers(1, 11),
)
def test_what_merges_exactly_is_the_same_in_whatever_parts(
    aggregate: Aggregate, values: list[Any], at: int
) -> None:
    """Windows in two phases rest on it."""
    if aggregate.merges_exactly(set(map(type, values))):
        parts = [fold(aggregate, part) for part in (values[:at], values[at:]) if part]
        assert shown([functools.reduce(aggregate.merge, parts)]) == shown([fold(aggregate, values)])


@pytest.mark.parametrize("name", dict.fromkeys([*BUILT_IN, *OF_RECORDS]))
def test_the_page_of_values_says_what_it_makes_of_odd_values(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "values.md").read_text()
    section = page.partition("\n## In an aggregate\n")[2].partition("\n## ")[0]
    assert f"`{name}`" in section


@pytest.mark.parametrize("kind", OF_RECORDS)
@given(ANY)
def test_the_expression_for_generated_loops_is_the_callable_written_out(
    kind: str, values: list[Any]
) -> None:
    aggregate = FieldAggregate(kind, 1)
    text = aggregate.update_expression((0, values[0]))
    assert text is not None
    by_expression = by_callable = (0, values[0])
    for number, value in enumerate(values[1:], 1):
        record = (number, value)
        by_expression = eval(
            text, {"current": by_expression, "record": record, "update": aggregate.update}
        )
        by_callable = aggregate.update(by_callable, record)
        assert shown(by_expression) == shown(by_callable)


@every
@given(ANY, st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_the_kernel_over_groups_folds_each_group(
    aggregate: Aggregate, values: list[Any], codes: list[int]
) -> None:
    if aggregate.only_counts:
        return
    of = ColumnAggregate(aggregate.name, pa.int64() if isinstance(values[0], int) else pa.float64())
    numbers, codes = np.array(values, of.dtype), codes[: len(values)]
    expected = [
        [value for value, group in zip(values, codes) if group == code] for code in range(3)
    ]
    found = of.grouped(numbers, np.array(codes), 3)
    assert shown(found.tolist()) == shown(
        [fold(aggregate, each) if each else of.identity for each in expected]
    )
    assert shown(of.grouped(numbers, None, 1).tolist()) == shown([fold(aggregate, values)])


@pytest.mark.parametrize("kind", OF_FIELDS)
@given(ANY, st.integers(1, 11), st.booleans())
def test_the_running_kernel_gives_what_adding_one_by_one_gives(
    kind: str, values: list[Any], at: int, goes_on: bool
) -> None:
    first, second = values[:at], values[at:] or values
    of = ColumnAggregate(kind, pa.int64() if isinstance(first[0], int) else pa.float64())
    before = np.full(2, of.identity, of.dtype)
    if goes_on:
        before[1] = first[0]
    starts, ends = np.array([0, len(first)]), np.array([len(first), len(first) + len(second)]) - 1
    found = of.running(Runs(np.array(first + second, of.dtype), starts, ends, before))
    so_far = [
        [first[:at] for at in range(1, len(first) + 1)],
        [[*([first[0]] if goes_on else []), *second[:at]] for at in range(1, len(second) + 1)],
    ]
    assert shown(found.tolist()) == shown([fold(of.of, values) for run in so_far for values in run])


@every
@given(ANY)
def test_the_identity_changes_nothing(aggregate: Aggregate, values: list[Any]) -> None:
    if aggregate.only_counts:
        return
    of = ColumnAggregate(aggregate.name, pa.int64() if isinstance(values[0], int) else pa.float64())
    with_identity = of.grouped(np.array([of.identity, *values, of.identity], of.dtype), None, 1)
    assert shown(with_identity.tolist()) == shown(
        of.grouped(np.array(values, of.dtype), None, 1).tolist()
    )
