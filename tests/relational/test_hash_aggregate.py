"""Aggregates of groups in BATCH, against DuckDB and against SQL's rules in plain Python."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.logical_types.logical_type import BigIntType, LogicalType
from flinkpy.core.errors import ProgramError
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.relational.aggregates.calls_of_groups import partial_schema
from flinkpy.relational.hash_groups.group_table import GroupPlan
from flinkpy.relational.hash_groups.hash_aggregate import HashAggregateOperator
from flinkpy.relational.hash_groups.spilling_groups import BoundedGroups
from flinkpy.sql.physical.physical_nodes import Phase
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from tests.relational.operator_runs import (
    BATCH_SIZES,
    MEMORY,
    as_rows,
    asked_of_duckdb,
    parts_by_key,
    run,
)

pytest.importorskip("duckdb", reason="duckdb is not installed")

ANY: LogicalType = BigIntType()  # operators read the types of Arrow's schemas
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("t", pa.string()),
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("yes", pa.bool_()),
    ]
)
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-1, 2),
        st.none() | st.sampled_from(["a", "b", "ä"]),
        st.none() | st.integers(-9, 9),
        st.none() | st.sampled_from([0.5, -2.25, 3.0, float("nan")]),
        st.none() | st.decimals(-(10**9), 10**9, places=2),
        st.none() | st.dates(datetime.date(1999, 1, 1), datetime.date(2001, 1, 1)),
        st.none() | st.booleans(),
    ),
    max_size=40,
)


def table_of(rows: list[Any], schema: pa.Schema = SCHEMA) -> pa.Table:
    columns = list(zip(*rows)) or [()] * len(schema)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema)], schema=schema)


# A call, its result's type, and the same in DuckDB's words.
CALLS: list[tuple[AggregateCall, pa.DataType, str]] = [
    (AggregateCall("COUNT", (), ANY), pa.int64(), "count(*)"),
    (AggregateCall("COUNT", (2,), ANY), pa.int64(), "count(i)"),
    (AggregateCall("COUNT", (1,), ANY, distinct=True), pa.int64(), "count(distinct t)"),
    (AggregateCall("SUM", (2,), ANY), pa.int32(), "sum(i)::int"),
    (AggregateCall("SUM", (3,), ANY, filter=6), pa.float64(), "sum(x) filter (yes)"),
    (AggregateCall("SUM", (4,), ANY), pa.decimal128(38, 2), "sum(d)"),
    (AggregateCall("SUM", (2,), ANY, distinct=True), pa.int32(), "sum(distinct i)::int"),
    (AggregateCall("AVG", (2,), ANY), pa.int32(), "trunc(avg(i))::int"),
    (AggregateCall("MIN", (2,), ANY), pa.int32(), "min(i)"),
    (AggregateCall("MAX", (3,), ANY), pa.float64(), "max(x)"),
    (AggregateCall("MIN", (3,), ANY), pa.float64(), "min(x)"),
    (AggregateCall("MAX", (1,), ANY), pa.string(), "max(t)"),
    (AggregateCall("MIN", (4,), ANY), pa.decimal128(12, 2), "min(d)"),
    (AggregateCall("MAX", (5,), ANY), pa.date32(), "max(day)"),
    (AggregateCall("VAR_SAMP", (2,), ANY), pa.float64(), "var_samp(i)"),
    (AggregateCall("STDDEV_POP", (2,), ANY), pa.float64(), "stddev_pop(i)"),
]


def schema_of(keys: tuple[int, ...], types: list[pa.DataType]) -> pa.Schema:
    fields = [SCHEMA.field(at) for at in keys]
    return pa.schema([*fields, *(pa.field(f"r{at}", kind) for at, kind in enumerate(types))])


def by_duckdb(table: pa.Table, keys: tuple[int, ...]) -> list[Any]:
    names = [SCHEMA.names[at] for at in keys]
    chosen = ", ".join([*names, *(text for _, _, text in CALLS)])
    grouped = f" group by {', '.join(names)}" if names else ""
    found = asked_of_duckdb(f"select {chosen} from t{grouped}", t=table)
    schema = schema_of(keys, [kind for _, kind, _ in CALLS])
    return as_rows(found.rename_columns(schema.names).cast(schema))


@pytest.mark.parametrize("keys", [(), (0,), (1, 0), (3,), (4, 5)])
@given(ROWS, st.sampled_from(BATCH_SIZES), st.sampled_from([1, 3]), st.sampled_from(MEMORY))
@settings(max_examples=6)
def test_groups_have_the_aggregates_that_duckdb_says(
    keys: tuple[int, ...], rows: list[Any], size: int, parallelism: int, memory: int | None
) -> None:
    table = table_of(rows)
    calls = [call for call, _, _ in CALLS]
    schema = schema_of(keys, [kind for _, kind, _ in CALLS])
    operator = HashAggregateOperator(keys, calls, Phase.WHOLE, SCHEMA, schema)
    parts = parts_by_key(table, keys, parallelism) if keys else [table]
    found = [
        row for part in parts for row in as_rows(run(operator, part, size=size, memory=memory))
    ]
    assert sorted(found, key=repr) == by_duckdb(table, keys)


IN_PARTS = [each for each in CALLS if not each[0].distinct]


@pytest.mark.parametrize("keys", [(), (1, 0)])
@given(ROWS, st.sampled_from(BATCH_SIZES), st.sampled_from(MEMORY))
@settings(max_examples=8)
def test_two_phases_give_what_one_gives(
    keys: tuple[int, ...], rows: list[Any], size: int, memory: int | None
) -> None:
    table = table_of(rows)
    calls = [call for call, _, _ in IN_PARTS]
    schema = schema_of(keys, [kind for _, kind, _ in IN_PARTS])
    parts = partial_schema(keys, calls, SCHEMA)
    assert parts is not None
    local = HashAggregateOperator(keys, calls, Phase.LOCAL, SCHEMA, parts)
    merging = HashAggregateOperator(keys, calls, Phase.GLOBAL, SCHEMA, schema)
    senders = [
        run(local, table.slice(at, 9), size=size, memory=memory)
        for at in range(0, len(rows) + 1, 9)
    ]
    whole = run(HashAggregateOperator(keys, calls, Phase.WHOLE, SCHEMA, schema), table, size=size)
    merged = run(merging, pa.concat_tables(senders), size=size, memory=memory)
    assert as_rows(merged) == as_rows(whole)


@pytest.mark.parametrize("memory", [0, 700, 3000])
def test_rows_of_groups_that_are_in_memory_are_accumulated_there_and_others_wait_on_disk(
    memory: int,
) -> None:
    keys = [1, 2, 1, 3, None, 1, 3, 2, None] * 3
    table = pa.table({"k": pa.array(keys, pa.int64()), "i": pa.array(range(27), pa.int32())})
    calls = [AggregateCall("SUM", (1,), ANY), AggregateCall("FIRST_VALUE", (1,), ANY)]
    schema = pa.schema([("k", pa.int64()), ("s", pa.int32()), ("f", pa.int32())])
    operator = HashAggregateOperator((0,), calls, Phase.WHOLE, table.schema, schema)
    found = run(operator, table, size=2, memory=memory)
    assert as_rows(found) == as_rows(run(operator, table, size=2))


def one(call: AggregateCall, result: pa.DataType, column: pa.Array, *more: pa.Array) -> Any:
    """The aggregate of all values."""
    table = pa.table([column, *more], names=[f"c{at}" for at in range(1 + len(more))])
    schema = pa.schema([("r", result)])
    operator = HashAggregateOperator((), [call], Phase.WHOLE, table.schema, schema)
    return run(operator, table).column(0)[0].as_py()


def test_integers_wrap_round_in_their_own_width() -> None:
    sum_of = AggregateCall("SUM", (0,), ANY)
    assert one(sum_of, pa.int8(), pa.array([127, 1], pa.int8())) == -128
    assert one(sum_of, pa.int64(), pa.array([2**63 - 1, 1], pa.int64())) == -(2**63)


def test_averages_of_integers_are_cut_and_those_of_decimals_rounded_half_up() -> None:
    average = AggregateCall("AVG", (0,), ANY)
    assert one(average, pa.int32(), pa.array([-3, -4], pa.int32())) == -3
    halves = pa.array([decimal.Decimal("0.000001"), decimal.Decimal(0)], pa.decimal128(12, 6))
    assert one(average, pa.decimal128(38, 6), halves) == decimal.Decimal("0.000001")


def test_a_sum_of_decimals_beyond_38_digits_is_null_and_else_exact() -> None:
    sum_of = AggregateCall("SUM", (0,), ANY)
    kind = pa.decimal128(38, 0)
    large = decimal.Decimal(10**38 - 1)
    assert one(sum_of, kind, pa.array([large, large], kind)) is None
    assert one(sum_of, kind, pa.array([large, large, large.copy_negate()], kind)) == large
    most = [decimal.Decimal(2**63 - 1)] * 5
    assert one(sum_of, kind, pa.array(most, pa.decimal128(19, 0))) == 5 * (2**63 - 1)


def test_collections_have_the_values_of_a_group_in_the_order_that_is_asked_for() -> None:
    values = pa.array(["b", None, "a", "b"])
    numbers = pa.array([3, 2, 1, 0])
    ordered = (SortKey(1),)
    array = AggregateCall("ARRAY_AGG", (0,), ANY, order_by=ordered)
    assert one(array, pa.list_(pa.string()), values, numbers) == ["b", "a", None, "b"]
    without = AggregateCall("ARRAY_AGG", (0,), ANY, options=(("NULLS", "IGNORE"),))
    assert one(without, pa.list_(pa.string()), values) == ["b", "a", "b"]
    listed = AggregateCall("LISTAGG", (0, 2), ANY, order_by=ordered)
    assert one(listed, pa.string(), values, numbers, pa.array(["; "] * 4)) == "b; a; b"
    multiset = AggregateCall("COLLECT", (0,), ANY)
    assert one(multiset, pa.map_(pa.string(), pa.int32()), values) == [("b", 2), ("a", 1)]
    nothing = values.slice(0, 0)
    assert one(array, pa.list_(pa.string()), nothing, numbers.slice(0, 0)) is None
    assert one(multiset, pa.map_(pa.string(), pa.int32()), nothing) == []


def test_first_and_last_values_skip_null() -> None:
    values = pa.array([None, "b", "c", None])
    assert one(AggregateCall("FIRST_VALUE", (0,), ANY), pa.string(), values) == "b"
    assert one(AggregateCall("LAST_VALUE", (0,), ANY), pa.string(), values) == "c"


def test_a_second_row_where_one_may_be_is_an_error_that_says_what_to_do() -> None:
    single = AggregateCall("SINGLE_VALUE", (0,), ANY)
    assert one(single, pa.string(), pa.array([None], pa.string())) is None
    assert one(single, pa.string(), pa.array(["a"])) == "a"
    with pytest.raises(ProgramError, match="LIMIT 1"):
        one(single, pa.string(), pa.array(["a", "a"]))


@pytest.mark.wide
def test_a_sender_with_many_groups_gives_them_away() -> None:
    calls = [AggregateCall("COUNT", (), ANY)]
    table = pa.table({"k": range(3 << 20)})
    parts = partial_schema((0,), calls, table.schema)
    assert parts is not None
    local = HashAggregateOperator((0,), calls, Phase.LOCAL, table.schema, parts)
    found = run(local, table, size=1 << 19)
    assert found.num_rows == 3 << 20


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64()])
def test_groups_in_memory_never_grow_beyond_the_limit(kind: pa.DataType) -> None:
    schema = pa.schema([("k", kind), ("v", pa.int64())])
    wanted = pa.schema([("k", kind), ("s", pa.int64()), ("n", pa.int64())])
    calls = (AggregateCall("SUM", (1,), ANY), AggregateCall("COUNT", (), ANY))
    limit = 1 << 20
    memory = OperatorMemory(limit)
    groups = BoundedGroups(GroupPlan((0,), calls, Phase.WHOLE, schema, wanted), memory)
    most = 0
    for first in range(0, 20_000, 500):
        keys = np.arange(first, first + 500) * 1_000_003
        groups.take(pa.record_batch([pa.array(keys).cast(kind), keys], schema=schema))
        held = held_bytes(groups)
        assert held <= limit
        most = max(most, held)
    assert most > 200_000
    assert sum(len(each) for each in groups.results()) == 20_000
    memory.close()
