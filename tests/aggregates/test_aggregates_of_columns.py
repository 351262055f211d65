"""The aggregates that only columns have, in every form (running, restored, in batch, in windows),
against plain Python over a list."""

from __future__ import annotations

import math
import statistics
from datetime import date
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.columns.expression import Expression
from flinkpy.columns.expression_functions import col
from flinkpy.core.elements import MAX_TIMESTAMP, ColumnBatch, Watermark
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.keyed_columns.aggregate_of_all import AggregatesOfAllOperator
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.windowing.slicing import Slicing
from tests.windowing.slice_harness import Alone, aggregate_windows

V = col("v")
AGGREGATES: dict[str, Expression] = {
    "count_distinct": V.count_distinct,
    "first_value": V.first_value,
    "last_value": V.last_value,
    "var_pop": V.var_pop,
    "var_samp": V.var_samp,
    "stddev_pop": V.stddev_pop,
    "stddev_samp": V.stddev_samp,
    "median": V.median,
    "percentile 0.9": V.percentile(0.9),
    "percentile 0": V.percentile(0),
}
WHOLE = st.lists(
    st.none() | st.integers(-(2**40), 2**40) | st.integers(-2, 2), min_size=1, max_size=12
)
FLOATS = st.lists(
    st.none()
    | st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 0.1, 1e9 + 0.5, 1e9]),
    min_size=1,
    max_size=12,
)
TEXTS = st.lists(st.none() | st.sampled_from(["", "a", "b", "é"]), min_size=1, max_size=12)


def wanted(kind: str, values: list[Any]) -> Any:
    present = [value for value in values if value is not None]
    if kind == "count_distinct":
        return len({"nan" if value != value else value for value in present})
    if not present:
        return None
    if kind in ("first_value", "last_value"):
        return present[0 if kind == "first_value" else -1]
    if kind.startswith(("median", "percentile")):
        share = 0.5 if kind == "median" else float(kind.split()[1])
        ordered = sorted(map(float, present), key=lambda value: (value != value, value))
        at = Fraction(share) * (len(ordered) - 1)
        low, high = ordered[int(at)], ordered[min(int(at) + 1, len(ordered) - 1)]
        if at == int(at) or low == high:
            return low
        if math.isinf(low) or math.isinf(high) or math.isnan(high):
            return low + high
        return float(Fraction(low) + (Fraction(high) - Fraction(low)) * (at - int(at)))
    if kind.endswith("samp") and len(present) < 2:
        return None
    if not all(map(math.isfinite, present)):
        return math.nan
    exact = [Fraction(value) for value in present]
    found = float(
        statistics.variance(exact) if kind.endswith("samp") else statistics.pvariance(exact)
    )
    return math.sqrt(found) if kind.startswith("stddev") else found


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, float) and isinstance(expected, (int, float)):
        return (math.isnan(found) and math.isnan(expected)) or math.isclose(
            found, expected, rel_tol=1e-9, abs_tol=1e-9
        )
    return type(found) is type(expected) and bool(found == expected)


def batches_of(
    values: list[Any], kind: Any, size: int, keys: list[int] | None = None
) -> list[ColumnBatch]:
    data = pa.RecordBatch.from_pydict(
        {"k": pa.array(keys or [1] * len(values), pa.int64()), "v": pa.array(values, kind)}
    )
    return [
        ColumnBatch(part := data.slice(at, size), np.full(part.num_rows, 7))
        for at in range(0, len(values), size)
    ]


NUMBERS = st.sampled_from([0, 1, -1, 7, 2**62, -(2**62)])
REALS = st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 0.1, 1e300])


@settings(max_examples=300)
@given(st.data(), st.sampled_from(["sum", "min", "max", "avg"]), st.sampled_from([NUMBERS, REALS]))
def test_values_are_added_to_accumulators_as_if_these_came_first(
    data: Any, kind: str, numbers: Any
) -> None:
    column = ColumnAggregate(kind, pa.int64() if numbers is NUMBERS else pa.float64())
    groups = data.draw(st.integers(1, 3))
    before = np.array(data.draw(st.lists(numbers, min_size=groups, max_size=groups)), column.dtype)
    values = np.array(data.draw(st.lists(numbers, min_size=1, max_size=8)), column.dtype)
    codes = np.array(
        data.draw(st.lists(st.integers(0, groups - 1), min_size=len(values), max_size=len(values)))
    )

    def outcome(compute: Any) -> Any:
        try:
            found = compute()
        except OverflowError as error:
            return str(error)
        return found.dtype, repr(found.tolist())

    joint = np.concatenate((before, values)), np.concatenate((np.arange(groups), codes))
    assert outcome(lambda: column.added_to(before.copy(), values, codes)) == outcome(
        lambda: column.grouped(*joint, groups)
    )


def column_of(values: list[Any], kind: str) -> Any:
    present = [value for value in values if value is not None]
    if present and isinstance(present[0], str):
        return None if kind.startswith(("var", "std", "med", "per")) else pa.string()
    return pa.float64() if any(isinstance(value, float) for value in present) else pa.int64()


every = pytest.mark.parametrize("kind", AGGREGATES)


@every
@settings(max_examples=60, deadline=None)
@given(values=WHOLE | FLOATS | TEXTS, size=st.sampled_from([1, 3, 12]), restart=st.booleans())
@example(values=[None, None], size=1, restart=True)
@example(values=[1e9, 1e9 + 0.5, None, 1e9], size=1, restart=True)
def test_running_it_is_that_of_the_records_so_far(
    kind: str, values: list[Any], size: int, restart: bool
) -> None:
    column = column_of(values, kind)
    if column is None:
        return
    calls = aggregate_calls([AGGREGATES[kind].alias("result")], "test")
    subtask, found = Alone(KeyedAggregatesOperator(["k"], calls)), []
    for number, batch in enumerate(batches_of(values, column, size)):
        if restart and number == 1:
            found += subtask.results
            subtask = Alone(KeyedAggregatesOperator(["k"], calls), subtask.snapshot())
        subtask.push(batch)
    found += subtask.results
    ends = [min(at + size, len(values)) for at in range(0, len(values), size)]
    expected = [wanted(kind, values[:end]) for end in ends]
    assert len(found) == len(ends)
    assert all(same(record[1], each) for (record, _), each in zip(found, expected)), (
        found,
        expected,
    )


@every
@settings(max_examples=40, deadline=None)
@given(
    values=WHOLE | FLOATS | TEXTS,
    size=st.sampled_from([1, 12]),
    restart=st.booleans(),
    form=st.sampled_from(["batch", "windows", "windows that overlap", "windows of all"]),
)
def test_of_a_window_or_a_batch_it_is_that_of_all_records(
    kind: str, values: list[Any], size: int, restart: bool, form: str
) -> None:
    column = column_of(values, kind)
    if column is None:
        return
    calls = aggregate_calls([AGGREGATES[kind].alias("result")], "test")

    def operator() -> Any:
        if form == "batch":
            return batch_form(KeyedAggregatesOperator(["k"], calls))
        return aggregate_windows(
            () if form == "windows of all" else ("k",),
            Slicing(10, 5 if "overlap" in form else 10, 0),
            True,
            calls,
        )

    subtask = Alone(operator())
    for number, batch in enumerate(batches_of(values, column, size)):
        if restart and number == 1 and form != "batch":
            subtask = Alone(operator(), subtask.snapshot())
        subtask.push(batch)
    subtask.push(Watermark(MAX_TIMESTAMP))
    if form == "batch":
        subtask.operator.finish()
        while subtask.operator.has_rest:
            subtask.operator.emit_rest()
    found = [record[0 if form == "windows of all" else 1] for record, _ in subtask.results]
    assert len(found) == (2 if "overlap" in form else 1)
    assert all(same(each, wanted(kind, values)) for each in found), (found, wanted(kind, values))


LARGE = st.lists(
    st.none() | st.sampled_from([2**63 - 1, -(2**63), 2**62, -(2**62), 7, -7]),
    min_size=1,
    max_size=6,
)


@settings(max_examples=100, deadline=None)
@given(
    values=LARGE,
    size=st.sampled_from([1, 2, 6]),
    form=st.sampled_from(["batch", "windows", "windows that overlap", "in two phases"]),
)
@example([2**63 - 1, 2**63 - 1, -(2**63), -7], 2, "in two phases")
@example([2**63 - 1, 7], 1, "batch")
def test_a_sum_is_refused_if_it_leaves_64_bits_and_not_if_only_a_part_of_it_does(
    values: list[int | None], size: int, form: str
) -> None:
    calls = aggregate_calls([V.sum.alias("result"), V.avg.alias("mean")], "test")
    batches = batches_of(values, pa.int64(), size)
    if form == "in two phases":
        phases = AggregatesOfAllOperator(
            calls, None, pa.schema([("k", pa.int64()), ("v", pa.int64())])
        ).in_two_phases()
        assert phases is not None
        operator = batch_form(phases.merging)
        local: Any = phases.local
        batches = [local.process_columns(batch) for batch in batches]
    elif form == "batch":
        operator = batch_form(KeyedAggregatesOperator(["k"], calls))
    else:
        operator = aggregate_windows(
            ("k",), Slicing(10, 5 if "overlap" in form else 10, 0), True, calls
        )
    subtask = Alone(operator)

    def run() -> list[Any]:
        for batch in batches:
            subtask.push(batch)
        subtask.push(Watermark(MAX_TIMESTAMP))
        if "windows" not in form:
            operator.finish()
            while operator.has_rest:
                operator.emit_rest()
        return [record[-1 - 2 * ("windows" in form) - 1] for record, _ in subtask.results]

    present = [value for value in values if value is not None]
    if -(2**63) <= sum(present) < 2**63:
        assert set(run()) == {sum(present) if present else None}
    else:
        with pytest.raises(UserCodeError, match="a sum leaves 64 bits"):
            run()


@every
@settings(max_examples=60, deadline=None)
@given(
    values=WHOLE | FLOATS | TEXTS,
    codes=st.lists(st.integers(0, 2), min_size=12, max_size=12),
    at=st.integers(0, 12),
)
def test_groups_and_parts_of_them_make_the_same(
    kind: str, values: list[Any], codes: list[int], at: int
) -> None:
    """Parts go between processes and into snapshots, and come back."""
    column = column_of(values, kind)
    if column is None:
        return
    [call] = aggregate_calls([AGGREGATES[kind].alias("result")], "test")
    of = ColumnAggregate(call.kind, column, options=call.options)
    groups = np.array(codes[: len(values)])
    counts, lifted = of.values_of(pa.array(values, column))
    grouped = []
    for part in (slice(0, at), slice(at, None)):
        sizes = of.counted(
            None if counts is None else counts[part], len(lifted[part]), groups[part], 3
        )
        accumulators = of.grouped(lifted[part], groups[part], 3)
        grouped.append((sizes, of.accumulators_of(of.accumulators(sizes, accumulators))))
    both = np.concatenate([each for _, each in grouped])
    total = of.grouped(both, np.array([0, 1, 2] * 2), 3)
    results = of.results(sum(sizes for sizes, _ in grouped), total).to_pylist()
    expected = [
        wanted(kind, [value for value, code in zip(values, codes) if code == group])
        for group in range(3)
    ]
    assert all(map(same, results, expected)), (results, expected)
    assert of.results(sum(sizes for sizes, _ in grouped), total).type == of.result_type


@pytest.mark.parametrize(
    ("column", "different"),
    [
        (pa.array([0, 0, None, 5], pa.timestamp("ns", "Europe/Oslo")), 2),
        (pa.array([0.0, -0.0, math.nan, -math.nan]), 2),
        (pa.array([b"a", b"a", b"b"]), 2),
        (pa.array([True, None, False]), 2),
        (pa.array(["x", "x"]).dictionary_encode(), 1),
        (
            pa.array(
                [{"a": 1, "x": math.nan}, {"a": 1, "x": -math.nan}, {"a": 1, "x": None}, None],
                pa.struct([("a", pa.int8()), ("x", pa.float64())]),
            ),
            2,
        ),
        (
            pa.array(
                [
                    {"t": 0, "n": {"s": "x"}},
                    {"t": 0, "n": {"s": "x"}},
                    {"t": 0, "n": None},
                    {"t": None, "n": None},
                ],
                pa.struct(
                    [
                        ("t", pa.timestamp("ns", "Europe/Oslo")),
                        ("n", pa.struct([("s", pa.large_string())])),
                    ]
                ),
            ),
            3,
        ),
        (pa.array([date(2024, 1, 1)] * 2).dictionary_encode(), 1),
        (pa.array([7, 8, 7]).dictionary_encode(), 2),
        (pa.array([2**63 + 1, 1, 1], pa.uint64()), 2),
        (pa.array([1, 2, 1], pa.date32()), 2),
        (pa.array([None, None]), 0),
    ],
)
def test_what_is_different(column: Any, different: int) -> None:
    of = ColumnAggregate("count_distinct", column.type)
    counts, values = of.values_of(column)
    sizes, groups = of.counted(counts, len(column), None, 1), of.grouped(values, None, 1)
    assert of.results(sizes, groups).to_pylist() == [different]
    assert of.results(sizes, of.accumulators_of(of.accumulators(sizes, groups))).to_pylist() == [
        different
    ]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("sum", 4), ("avg", 4 / 3), ("min", 1), ("max", 2), ("first_value", 2), ("median", 1.0)],
)
def test_dictionaries_of_numbers_are_numbers(kind: str, expected: float) -> None:
    assert whole(kind, pa.array([2, None, 1, 1]).dictionary_encode()) == expected


def whole(kind: str, column: Any, **options: Any) -> Any:
    of = ColumnAggregate(kind, column.type, options=tuple(options.items()))
    counts, values = of.values_of(column)
    sizes = of.counted(counts, len(column), None, 1)
    return of.results(sizes, of.grouped(values, None, 1)).to_pylist()[0]


def test_numbers_that_no_float_equals_are_taken_as_the_nearest() -> None:
    assert whole("median", pa.array([2**53 + 1, None, 2**53 + 3])) == float(2**53 + 2)
    assert whole("percentile", pa.array([2**64 - 1], pa.uint64()), percentage=0.3) == 2.0**64
    assert whole("median", pa.array([Decimal("0.1")], pa.decimal128(38, 20))) == 0.1
    assert whole("var_pop", pa.array([2**53 + 1, 2**53 + 1])) == 0.0


def test_what_lies_between_large_numbers_is_no_infinity() -> None:
    assert whole("median", pa.array([-1.7e308, 1.7e308])) == 0.0
    assert whole("percentile", pa.array([-math.inf, 1.0]), percentage=0.25) == -math.inf


def test_a_mean_of_decimals_is_rounded_once_whatever_the_context() -> None:
    values = [
        Decimal("12345678901234567890.123456789012345678"),
        Decimal("0.000000000000000001"),
        Decimal(1),
    ]
    with localcontext(Context(prec=3)):
        assert whole("avg", pa.array(values, pa.decimal128(38, 18))) == float(
            sum(map(Fraction, values)) / 3
        )


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.struct([("x", pa.int64())]), [{"x": 1}, {"x": None}]),
        (pa.list_(pa.int64()), [[1, None], []]),
        (pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
    ],
)
def test_the_first_and_the_last_value_may_be_nested(kind: Any, values: list[Any]) -> None:
    column = pa.array([None, *values, None], kind)
    assert [whole("first_value", column), whole("last_value", column)] == values
    of = ColumnAggregate("last_value", kind)
    counts, lifted = of.values_of(column)
    sizes, grouped = of.counted(counts, len(column), None, 1), of.grouped(lifted, None, 1)
    assert (
        of.results(sizes, of.accumulators_of(of.accumulators(sizes, grouped))).to_pylist()
        == values[1:]
    )


def test_a_snapshot_of_distinct_values_stays_as_it_was() -> None:
    of = ColumnAggregate("count_distinct", pa.int64())
    before = of.grouped(of.values_of(pa.array(list(range(100))))[1], None, 1)
    of.grouped(np.concatenate([before, of.values_of(pa.array([-1, -2]))[1]]), None, 1)
    assert len(before[0]) == 100


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("var_pop", pa.string()),
        ("median", pa.bool_()),
        ("count_distinct", pa.list_(pa.int64())),
        ("min", pa.struct([("x", pa.int64())])),
    ],
)
def test_a_column_that_an_aggregate_cannot_take_is_refused(kind: str, column: Any) -> None:
    with pytest.raises(ProgramError, match=kind):
        ColumnAggregate(kind, column)
