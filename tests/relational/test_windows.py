"""Windows of SQL: rows with their windows, watermarks, and aggregates when a window closes. What a
window aggregate gives is what a group aggregate gives over the rows with their windows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.sql.calc_program import ProgramBuilder
from flinkpy.common.logical_types.logical_type import BigIntType, DayTimeIntervalType, TimestampType
from flinkpy.core.elements import ColumnBatch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import StreamOperator
from flinkpy.relational.hash_groups.hash_aggregate import HashAggregateOperator
from flinkpy.relational.windows.held_aggregates import HeldAggregatesOperator
from flinkpy.relational.windows.held_windows import WindowedInput, slicing_for
from flinkpy.relational.windows.partial_aggregates import PartialAggregatesOperator
from flinkpy.relational.windows.partial_groups import are_partial
from flinkpy.relational.windows.sql_slices import SqlAggregateSlices, are_in_slices
from flinkpy.relational.windows.wall_clock import AS_IT_IS
from flinkpy.relational.windows.watermark_rows import WatermarkRowsOperator, behind_time
from flinkpy.relational.windows.window_rows import WindowRowsOperator
from flinkpy.sql.physical.physical_nodes import Phase
from flinkpy.sql.rex.relational_terms import WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from flinkpy.windowing.slices.operator import SliceOperator
from tests.operators.harness import ChainHarness, linear
from tests.relational.operator_runs import BATCH_SIZES, as_rows, batches, run

ANY = BigIntType()
TIMES = [
    pa.field(name, pa.timestamp("ms")) for name in ("window_start", "window_end", "window_time")
]
WINDOWS = [
    WindowSpec(WindowKind.TUMBLE, 1, 10),
    WindowSpec(WindowKind.TUMBLE, 1, 10, offset=3),
    WindowSpec(WindowKind.HOP, 1, 10, 5),
    WindowSpec(WindowKind.HOP, 1, 10, 4, offset=1),
    WindowSpec(WindowKind.HOP, 1, 4, 10),
    WindowSpec(WindowKind.CUMULATE, 1, 12, 4),
]
CALLS: list[tuple[AggregateCall, pa.DataType]] = [
    (AggregateCall("COUNT", (), ANY), pa.int64()),
    (AggregateCall("COUNT", (2,), ANY), pa.int64()),
    (AggregateCall("SUM", (2,), ANY), pa.int8()),
    (AggregateCall("SUM", (3,), ANY, filter=5), pa.float64()),
    (AggregateCall("SUM", (4,), ANY), pa.decimal128(38, 2)),
    (AggregateCall("AVG", (2,), ANY), pa.int8()),
    (AggregateCall("AVG", (4,), ANY), pa.decimal128(38, 6)),
    (AggregateCall("MIN", (2,), ANY), pa.int8()),
    (AggregateCall("MAX", (6,), ANY), pa.string()),
    (AggregateCall("COUNT", (), ANY, filter=5), pa.int64()),
    (AggregateCall("VAR_SAMP", (2,), ANY), pa.float64()),
]

DISTINCT_CALLS: list[tuple[AggregateCall, pa.DataType]] = [
    (AggregateCall("COUNT", (2,), ANY, distinct=True), pa.int64()),
    (AggregateCall("SUM", (2,), ANY, distinct=True, filter=5), pa.int8()),
    (AggregateCall("AVG", (2,), ANY, distinct=True), pa.int8()),
    (AggregateCall("MAX", (6,), ANY, distinct=True), pa.string()),
    (AggregateCall("COUNT", (2, 6), ANY, distinct=True), pa.int64()),
]
HELD_CALLS: list[tuple[AggregateCall, pa.DataType]] = [
    *DISTINCT_CALLS,
    (AggregateCall("ARRAY_AGG", (6,), ANY, order_by=(SortKey(6),)), pa.list_(pa.string())),
    (AggregateCall("LISTAGG", (6,), ANY, order_by=(SortKey(6),)), pa.string()),
]


OTHERS = {
    "in slices": [],
    "in parts": DISTINCT_CALLS,
    "in merged parts": DISTINCT_CALLS,
    "held": HELD_CALLS,
}


class Merging(PartialAggregatesOperator):
    """Merges rows of a group as soon as there are some."""

    most = 1


FORMS: dict[str, Any] = {
    "held": HeldAggregatesOperator,
    "in parts": PartialAggregatesOperator,
    "in merged parts": Merging,
}


def schema_in(unit: str) -> pa.Schema:
    return pa.schema(
        [
            ("k", pa.string()),
            ("ts", pa.timestamp(unit)),
            ("i", pa.int8()),
            ("x", pa.float64()),
            ("d", pa.decimal128(12, 2)),
            ("yes", pa.bool_()),
            ("t", pa.string()),
        ]
    )


ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from(["a", "b"]),
        st.integers(-20, 40),
        st.none() | st.integers(-128, 127),
        st.none() | st.sampled_from([0.5, -2.25]),
        st.none() | st.decimals(-(10**9), 10**9, places=2),
        st.none() | st.booleans(),
        st.none() | st.sampled_from(["", "x", "y"]),
    ),
    max_size=25,
)


def table_of(rows: list[Any], unit: str) -> pa.Table:
    factor = {"ms": 1, "us": 1000}[unit]
    columns = list(zip(*rows)) or [()] * 7
    columns[1] = tuple(each * factor for each in columns[1])
    schema = schema_in(unit)
    arrays = [
        pa.array(column, pa.int64()).cast(field.type)
        if field.name == "ts"
        else pa.array(column, field.type)
        for column, field in zip(columns, schema)
    ]
    return pa.table(arrays, schema=schema)


def with_windows(window: WindowSpec, table: pa.Table, size: int) -> pa.Table:
    schema = pa.schema([*table.schema, *TIMES])
    return run(WindowRowsOperator(window, schema), table, size=size)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(
    ROWS,
    st.sampled_from(["ms", "us"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(BATCH_SIZES),
    st.sampled_from(sorted(OTHERS)),
    st.booleans(),
)
@settings(max_examples=12)
def test_a_window_gives_what_its_rows_give_as_a_group(
    window: WindowSpec,
    rows: list[Any],
    unit: str,
    has_key: bool,
    is_attached: bool,
    size: int,
    form: str,
    is_in_time: bool,
) -> None:
    """``is_in_time``: rows come in order of time, and windows close between them."""
    if is_in_time:
        rows = sorted(rows, key=lambda row: int(row[1]))
    table = table_of(rows, unit)
    keys = (0,) if has_key else ()
    attached = with_windows(window, table, size)
    chosen = [*CALLS, *OTHERS[form]]
    fields = [pa.field(f"r{at}", kind) for at, (_, kind) in enumerate(chosen)]
    calls = [call for call, _ in chosen]
    of_groups = pa.schema([*(table.schema.field(at) for at in keys), *TIMES[:2], *fields])
    grouped = run(
        HashAggregateOperator((*keys, 7, 8), calls, Phase.WHOLE, attached.schema, of_groups),
        attached,
        size=size,
    )
    order = [*of_groups.names[: len(keys)], *(f.name for f in fields), "window_start", "window_end"]
    schema = pa.schema([of_groups.field(name) for name in order])
    input = table
    if is_attached:
        input = attached
        window = WindowSpec(window.kind, 1, window.size, window.step, window.offset, bounds=(7, 8))
    names = [table.schema.names[at] for at in keys]
    words = ("window_start", "window_end")
    operator: StreamOperator
    assert are_in_slices(calls, input.schema) is (form == "in slices")
    assert are_partial(calls, input.schema, [kind for _, kind in chosen]) is (form != "held")
    if form != "in slices":
        windowed = WindowedInput(input.schema, window, tuple(names))
        operator = FORMS[form](calls, words, windowed, AS_IT_IS, schema)
    else:
        store = SqlAggregateSlices(names, calls, window, words, schema)
        operator = SliceOperator(store, slicing_for(window), event_time=True)
    time = 1 if is_in_time and not is_attached else None
    found = run(operator, input, size=size, schema=schema, time=time)
    assert as_rows(found) == as_rows(grouped.select(order))


def test_rows_come_once_for_each_of_their_windows() -> None:
    times = pa.array([7], pa.int64()).cast(pa.timestamp("ms"))
    table = pa.table([pa.array(["a"]), times], names=["k", "ts"])

    def windows(window: WindowSpec) -> list[tuple[int, int, int]]:
        found = with_windows(window, table, 1)
        moments = [
            found.column(name).cast(pa.int64()).to_pylist() for name in found.schema.names[2:]
        ]
        return list(zip(*moments))

    assert windows(WindowSpec(WindowKind.TUMBLE, 1, 10)) == [(0, 10, 9)]
    assert windows(WindowSpec(WindowKind.HOP, 1, 10, 5)) == [(0, 10, 9), (5, 15, 14)]
    assert windows(WindowSpec(WindowKind.HOP, 1, 2, 10)) == []
    assert windows(WindowSpec(WindowKind.CUMULATE, 1, 9, 3)) == [(0, 9, 8)]
    assert windows(WindowSpec(WindowKind.CUMULATE, 1, 12, 4)) == [(0, 8, 7), (0, 12, 11)]


@pytest.mark.parametrize(("sign", "moved"), [("", 0), ("-", -2), ("+", 2)])
def test_the_watermark_is_the_greatest_value_of_its_expression_so_far(
    sign: str, moved: int
) -> None:
    moment = TimestampType(precision=3)
    builder = ProgramBuilder()
    value = builder.input(0, moment)
    if sign:
        two = builder.constant(2, DayTimeIntervalType("SECOND(3)"))
        value = builder.call(sign, (value, two), moment)
    strategy = builder.program([value])
    assert behind_time(strategy, 0) == (None if sign == "+" else -moved)
    assert behind_time(strategy, 1) is None
    schema = pa.schema([("ts", pa.timestamp("ms"))])
    harness = ChainHarness(linear(WatermarkRowsOperator(0, strategy, schema)))
    process = harness.chain.batch_inputs()[0]

    def times(*moments: int | None) -> ColumnBatch:
        column = pa.array(moments, pa.int64()).cast(pa.timestamp("ms"))
        return ColumnBatch(pa.record_batch([column], schema=schema))

    for batch in (times(5, 3), times(4), times(9)):
        process(batch)
    assert [each for each in harness.writers[0].elements if isinstance(each, Watermark)] == [
        Watermark(5 + moved),
        Watermark(9 + moved),
    ]
    with pytest.raises(ProgramError, match="'ts' is null"):
        process(times(10, None))


def test_late_rows_are_dropped() -> None:
    table = table_of(
        [("a", 1, 1, None, None, None, None), ("a", 25, 2, None, None, None, None)], "ms"
    )
    schema = pa.schema([("n", pa.int64()), ("window_time", pa.timestamp("ms"))])
    call = AggregateCall("COUNT", (), ANY)
    store = SqlAggregateSlices((), [call], WINDOWS[0], ("window_time",), schema)
    harness = ChainHarness(linear(SliceOperator(store, slicing_for(WINDOWS[0]), event_time=True)))
    process = harness.chain.batch_inputs()[0]
    for batch in batches(table, 1):
        process(ColumnBatch(batch))
    harness.control(Watermark(9))
    process(ColumnBatch(next(batches(table, 1))))
    harness.settle()
    harness.control(Watermark(100))
    given_rows = [
        each.data for each in harness.writers[0].elements if isinstance(each, ColumnBatch)
    ]
    found = pa.Table.from_batches(given_rows)
    assert found.column("n").to_pylist() == [1, 1]
    assert found.column("window_time").cast(pa.int64()).to_pylist() == [9, 29]
