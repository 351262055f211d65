"""Aggregates over the rows around one, against DuckDB."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.relational.ordering.over_aggregate import OverAggregateOperator
from flinkpy.sql.rex.relational_terms import Frame, OverGroup
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from tests.relational.operator_runs import BATCH_SIZES, as_rows, asked_of_duckdb, run

pytest.importorskip("duckdb", reason="duckdb is not installed")

ANY = BigIntType()
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),  # different in each row, so that the order is one
        ("g", pa.string()),
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(12, 2)),
        ("t", pa.string()),
        ("two", pa.int32()),
    ]
)
VALUES = st.tuples(
    st.none() | st.sampled_from(["a", "b"]),
    st.none() | st.integers(-5, 5),
    st.none() | st.sampled_from([0.5, -2.25, 3.0]),
    st.none() | st.decimals(-(10**9), 10**9, places=2),
    st.none() | st.sampled_from(["", "a", "ä", "b"]),
)
TABLES = st.lists(VALUES, max_size=25).map(
    lambda rows: pa.table(
        [
            pa.array(column, field.type)
            for column, field in zip(
                zip(*((at, *row, 2) for at, row in enumerate(rows))) if rows else [()] * 7, SCHEMA
            )
        ],
        schema=SCHEMA,
    )
)
# A call, its type, and DuckDB's words; the last says whether the frame matters.
CALLS: list[tuple[AggregateCall, pa.DataType, str]] = [
    (AggregateCall("COUNT", (), ANY), pa.int64(), "count(*)"),
    (AggregateCall("COUNT", (2,), ANY), pa.int64(), "count(i)"),
    (AggregateCall("SUM", (2,), ANY), pa.int32(), "sum(i)"),
    (AggregateCall("SUM", (3,), ANY), pa.float64(), "sum(x)"),
    (AggregateCall("SUM", (4,), ANY), pa.decimal128(38, 2), "sum(d)"),
    (AggregateCall("AVG", (3,), ANY), pa.float64(), "avg(x)"),
    (AggregateCall("MIN", (2,), ANY), pa.int32(), "min(i)"),
    (AggregateCall("MAX", (5,), ANY), pa.string(), "max(t)"),
    (AggregateCall("MAX", (4,), ANY), pa.decimal128(12, 2), "max(d)"),
    (AggregateCall("COUNT", (2,), ANY, distinct=True), pa.int64(), "count(distinct i)"),
    (AggregateCall("VAR_POP", (2,), ANY), pa.float64(), "var_pop(i)"),
]
OF_PLACES: list[tuple[AggregateCall, pa.DataType, str]] = [
    (AggregateCall("ROW_NUMBER", (), ANY), pa.int64(), "row_number()"),
    (AggregateCall("RANK", (), ANY), pa.int64(), "rank()"),
    (AggregateCall("DENSE_RANK", (), ANY), pa.int64(), "dense_rank()"),
    (AggregateCall("PERCENT_RANK", (), ANY), pa.float64(), "percent_rank()"),
    (AggregateCall("CUME_DIST", (), ANY), pa.float64(), "cume_dist()"),
    (AggregateCall("NTILE", (6,), ANY), pa.int64(), "ntile(2)"),
    (AggregateCall("LAG", (2,), ANY), pa.int32(), "lag(i)"),
    (AggregateCall("LEAD", (5, 6), ANY), pa.string(), "lead(t, 2)"),
    (AggregateCall("LAG", (2, 6, 6), ANY), pa.int32(), "lag(i, 2, 2)"),
]
ORDERS = {
    "i nulls first, n": (SortKey(2), SortKey(0)),
    "t desc nulls last, n": (SortKey(5, descending=True, nulls_first=False), SortKey(0)),
    "i nulls first": (SortKey(2),),
}
FRAMES = {
    "rows between unbounded preceding and current row": Frame("ROWS", None, 0),
    "rows between 2 preceding and 1 following": Frame("ROWS", -2, 1),
    "rows between 1 following and 2 following": Frame("ROWS", 1, 2),
    "rows between current row and unbounded following": Frame("ROWS", 0, None),
    "range between unbounded preceding and current row": Frame("RANGE", None, 0),
    "range between unbounded preceding and unbounded following": Frame("RANGE", None, None),
}
OFFSETS = {
    "range between 2 preceding and 1 following": Frame("RANGE", -2, 1),
    "range between 3 preceding and 1 preceding": Frame("RANGE", -3, -1),
    "range between current row and 2 following": Frame("RANGE", 0, 2),
    "range between unbounded preceding and 1 following": Frame("RANGE", None, 1),
}


def check(
    table: pa.Table,
    calls: list[tuple[AggregateCall, pa.DataType, str]],
    partition: tuple[int, ...],
    order: tuple[str, tuple[SortKey, ...]],
    frame: tuple[str, Frame],
    size: int,
) -> None:
    fields = [pa.field(f"r{at}", kind) for at, (_, kind, _) in enumerate(calls)]
    schema = pa.schema([*SCHEMA, *fields])
    group = OverGroup(partition, order[1], frame[1], tuple(call for call, _, _ in calls))
    memory = 700 if size == BATCH_SIZES[1] else None  # where it spills, too
    found = run(OverAggregateOperator([group], SCHEMA, schema), table, size=size, memory=memory)
    by = ", ".join(SCHEMA.names[at] for at in partition)
    by = f"partition by {by} " if by else ""
    window = f"over ({by}order by {order[0]} {frame[0]})"
    chosen = ", ".join(f"{text} {window}" for _, _, text in calls)
    wanted = asked_of_duckdb(f"select *, {chosen} from tt", tt=table)
    assert as_rows(found) == as_rows(wanted.rename_columns(schema.names).cast(schema))


@given(
    TABLES,
    st.sampled_from([(), (1,), (1, 6)]),
    st.sampled_from(list(ORDERS.items())),
    st.sampled_from(list(FRAMES.items())),
    st.sampled_from(BATCH_SIZES),
)
@settings(max_examples=30)
def test_aggregates_over_frames_are_those_of_duckdb(
    table: pa.Table, partition: Any, order: Any, frame: Any, size: int
) -> None:
    if order[0] == "i nulls first" and frame[1].unit == "ROWS":
        order = next(iter(ORDERS.items()))  # else the rows of a frame are not determined
    check(table, CALLS, partition, order, frame, size)


@given(
    TABLES,
    st.sampled_from([(), (1,)]),
    st.sampled_from(
        [("i nulls first", (SortKey(2),)), ("i desc nulls first", (SortKey(2, True, True),))]
    ),
    st.sampled_from(list(OFFSETS.items())),
)
@settings(max_examples=20)
def test_frames_may_be_a_distance_of_values(
    table: pa.Table, partition: Any, order: Any, frame: Any
) -> None:
    check(table, CALLS, partition, order, frame, 7)


@given(
    TABLES,
    st.sampled_from([(), (1,)]),
    st.sampled_from(["i nulls first, n", "t desc nulls last, n"]),
)
@settings(max_examples=20)
def test_ranks_buckets_and_other_rows_are_those_of_duckdb(
    table: pa.Table, partition: Any, order: str
) -> None:
    check(table, OF_PLACES, partition, (order, ORDERS[order]), ("", Frame()), 7)


def test_first_and_last_values_of_a_frame_skip_null_and_several_windows_stand_side_by_side() -> (
    None
):
    table = pa.table({"k": [1, 2, 3, 4], "v": pa.array([None, 1, None, 3])})
    near = Frame("ROWS", -1, 1)
    first = OverGroup((), (SortKey(0),), near, (AggregateCall("FIRST_VALUE", (1,), ANY),))
    last = OverGroup(
        (), (SortKey(0, descending=True),), near, (AggregateCall("LAST_VALUE", (1,), ANY),)
    )
    schema = table.schema.append(pa.field("f", pa.int64())).append(pa.field("l", pa.int64()))
    found = run(OverAggregateOperator([first, last], table.schema, schema), table)
    assert found.column("f").to_pylist() == [1, 1, 1, 3]
    assert found.column("l").to_pylist() == [1, 1, 1, 3]
