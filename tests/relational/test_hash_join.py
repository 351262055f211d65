"""Hash joins of BATCH against DuckDB: all kinds, either side built, with conditions over both."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.sql.calc_program import CalcProgram, ProgramBuilder
from flinkpy.common.logical_types.logical_type import BigIntType, BooleanType
from flinkpy.relational.joins.hash_join import HashJoinOperator
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.sql.rex.relational_terms import JoinKind
from tests.relational.operator_runs import (
    BATCH_SIZES,
    MEMORY,
    as_rows,
    asked_of_duckdb,
    parts_by_key,
    run,
)

pytest.importorskip("duckdb", reason="duckdb is not installed")

LEFT = pa.schema([("a", pa.int64()), ("t", pa.string()), ("x", pa.float64()), ("n", pa.int64())])
RIGHT = pa.schema([("b", pa.int64()), ("u", pa.string()), ("y", pa.float64()), ("m", pa.int64())])
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-1, 3) | st.just(2**40),
        st.none() | st.sampled_from(["", "a", "b"]),
        st.none() | st.sampled_from([0.0, 1.5, float("nan")]),
        st.none() | st.integers(-2, 2),
    ),
    max_size=25,
)
ONE_SIDE = {JoinKind.SEMI: "exists", JoinKind.ANTI: "not exists"}


def table_of(rows: list[Any], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows)) or [()] * len(schema)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema)], schema=schema)


def left_less_than_right() -> CalcProgram:
    """n < m."""
    builder = ProgramBuilder()
    n, m = builder.input(3, BigIntType()), builder.input(7, BigIntType())
    return builder.program([], builder.call("<", [n, m], BooleanType()))


def by_duckdb(left: pa.Table, right: pa.Table, kind: JoinKind, on: str) -> list[Any]:
    if kind in ONE_SIDE:
        text = f"select * from l where {ONE_SIDE[kind]} (select 1 from r where {on})"
    else:
        text = f"select * from l {kind.value} join r on {on}"
    return as_rows(asked_of_duckdb(text, l=left, r=right))


@pytest.mark.parametrize("kind", JoinKind)
@given(
    ROWS,
    ROWS,
    st.sampled_from([(0,), (1,), (2,), (0, 1), (1, 2, 0)]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(BATCH_SIZES),
    st.sampled_from([1, 3]),
    st.sampled_from(MEMORY),
)
@settings(max_examples=12)
def test_joins_give_what_duckdb_says(
    kind: JoinKind,
    left_rows: list[Any],
    right_rows: list[Any],
    keys: tuple[int, ...],
    null_safe: bool,
    has_condition: bool,
    builds_left: bool,
    in_order: bool,
    size: int,
    parallelism: int,
    memory: int | None,
) -> None:
    left, right = table_of(left_rows, LEFT), table_of(right_rows, RIGHT)
    spec = JoinSpec(
        kind,
        keys,
        keys,
        (null_safe,) * len(keys),
        left_less_than_right() if has_condition else None,
        builds_left=builds_left,
    )
    schema = LEFT if kind in ONE_SIDE else pa.schema([*LEFT, *RIGHT])
    operator = HashJoinOperator(spec, LEFT, RIGHT, schema)
    sides = zip(parts_by_key(left, keys, parallelism), parts_by_key(right, keys, parallelism))
    right_first = in_order != builds_left
    found = [
        run(operator, *each, size=size, right_first=right_first, memory=memory) for each in sides
    ]
    equals = "is not distinct from" if null_safe else "="
    on = [f"l.{LEFT.names[at]} {equals} r.{RIGHT.names[at]}" for at in keys]
    on += ["l.n < r.m"] if has_condition else []
    assert as_rows(pa.concat_tables(found)) == by_duckdb(left, right, kind, " and ".join(on))


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI])
@given(ROWS, ROWS, st.booleans(), st.sampled_from(MEMORY))
@settings(max_examples=6)
def test_without_keys_every_row_meets_every_row(
    kind: JoinKind,
    left_rows: list[Any],
    right_rows: list[Any],
    builds_left: bool,
    memory: int | None,
) -> None:
    left, right = table_of(left_rows, LEFT), table_of(right_rows, RIGHT)
    spec = JoinSpec(kind, (), (), condition=left_less_than_right(), builds_left=builds_left)
    schema = LEFT if kind in ONE_SIDE else pa.schema([*LEFT, *RIGHT])
    operator = HashJoinOperator(spec, LEFT, RIGHT, schema)
    found = run(operator, left, right, right_first=not builds_left, memory=memory)
    assert as_rows(found) == by_duckdb(left, right, kind, "l.n < r.m")


@given(ROWS, ROWS, st.booleans(), st.sampled_from(MEMORY))
@settings(max_examples=15)
def test_not_in_is_unknown_where_a_null_is(
    left_rows: list[Any], right_rows: list[Any], has_condition: bool, memory: int | None
) -> None:
    left, right = table_of(left_rows, LEFT), table_of(right_rows, RIGHT)
    condition = left_less_than_right() if has_condition else None
    spec = JoinSpec(JoinKind.ANTI, (0,), (0,), condition=condition, null_aware=True)
    operator = HashJoinOperator(spec, LEFT, RIGHT, LEFT)
    found = run(operator, left, right, right_first=True, memory=memory)
    where = "where l.n < r.m" if has_condition else ""
    text = f"select * from l where l.a not in (select r.b from r {where})"
    assert as_rows(found) == as_rows(asked_of_duckdb(text, l=left, r=right))


def test_pairs_go_out_in_pieces_of_bounded_size() -> None:
    """The run asserts it of each batch."""
    left = pa.table({"a": pa.array([1] * 400)})
    right = pa.table({"b": pa.array([1] * 400)})
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    spec = JoinSpec(JoinKind.INNER, (0,), (0,))
    operator = HashJoinOperator(spec, left.schema, right.schema, schema)
    assert run(operator, left, right, size=1 << 20, right_first=True).num_rows == 160_000
