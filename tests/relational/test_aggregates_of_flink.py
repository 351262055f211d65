"""Aggregates whose results a live Flink 2.3 gave, and the algebra of sets that are aggregated."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.sql.sql_meanings.bitmaps.bitmap_meanings import bitmap_of
from flinkpy.columns.sql.sql_meanings.bitmaps.roaring_format import (
    numbers_of_roaring,
    roaring_bytes,
)
from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.core.errors import JobExecutionError
from flinkpy.relational.aggregates.calls_of_groups import partial_schema
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.hash_groups.hash_aggregate import HashAggregateOperator
from flinkpy.sql.physical.physical_nodes import Phase
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.table import EnvironmentSettings, TableEnvironment
from tests.relational.operator_runs import BATCH_SIZES, run

# Over the values 1 to 10, of which 4 is null: what Flink gives for the odd and the even ones.
OF_FLINK: list[tuple[str, Any, Any]] = [
    ("ARRAY_AGG(v)", [1, 3, 5, 7, 9], [2, None, 6, 8, 10]),
    ("ARRAY_AGG(v IGNORE NULLS)", [1, 3, 5, 7, 9], [2, 6, 8, 10]),
    ("ARRAY_AGG(v RESPECT NULLS)", [1, 3, 5, 7, 9], [2, None, 6, 8, 10]),
    ("ARRAY_AGG(v) IGNORE NULLS", [1, 3, 5, 7, 9], [2, 6, 8, 10]),
    ("ARRAY_AGG(DISTINCT v)", [1, 3, 5, 7, 9], [2, None, 6, 8, 10]),
    ("LISTAGG(CAST(v AS STRING))", "1,3,5,7,9", "2,6,8,10"),
    ("LISTAGG(DISTINCT CAST(v AS STRING), '-')", "1-3-5-7-9", "2-6-8-10"),
    ("PERCENTILE(v, 0.5)", 5.0, 7.0),
    ("PERCENTILE(v, 0)", 1.0, 2.0),
    ("PERCENTILE(v, 1)", 9.0, 10.0),
    ("PERCENTILE(v, ARRAY[0.25, 0.5, 0.9])", [3.0, 5.0, 8.2], [5.0, 7.0, 9.4]),
    ("PERCENTILE(v, 0.5, 2)", 5.0, 7.0),
    ("PERCENTILE(v, 0.3, v)", 5.0, 7.0),
    ("PERCENTILE(v, 0.3, v - 3)", 7.0, 8.0),
    ("PERCENTILE(CAST(v AS DECIMAL(10, 2)), 0.5)", 5.0, 7.0),
    ("PERCENTILE(DISTINCT v, 0.5)", 5.0, 7.0),
    ("JSON_ARRAYAGG(v)", "[1,3,5,7,9]", "[2,6,8,10]"),
    ("JSON_ARRAYAGG(v NULL ON NULL)", "[1,3,5,7,9]", "[2,null,6,8,10]"),
    ("JSON_ARRAYAGG(v ABSENT ON NULL)", "[1,3,5,7,9]", "[2,6,8,10]"),
    ("JSON_ARRAYAGG(JSON_OBJECT('a' VALUE v))", *('[{"a":1},{"a":3},{"a":5},{"a":7},{"a":9}]',
      '[{"a":2},{"a":null},{"a":6},{"a":8},{"a":10}]')),
    ("JSON_ARRAYAGG(v > 2)", "[false,true,true,true,true]", "[false,true,true,true]"),
    ("JSON_OBJECTAGG(KEY n VALUE v)", '{"a":1,"c":3,"e":5,"g":7,"i":9}',
     '{"b":2,"d":null,"f":6,"h":8,"j":10}'),
    ("JSON_OBJECTAGG(KEY n VALUE v ABSENT ON NULL)", '{"a":1,"c":3,"e":5,"g":7,"i":9}',
     '{"b":2,"f":6,"h":8,"j":10}'),
    ("JSON_OBJECTAGG(KEY n VALUE JSON_ARRAY(k))", '{"a":[1],"c":[1],"e":[1],"g":[1],"i":[1]}',
     '{"b":[0],"d":[0],"f":[0],"h":[0],"j":[0]}'),
    ("BITMAP_TO_STRING(BITMAP_BUILD_AGG(v))", "{1,3,5,7,9}", "{2,6,8,10}"),
    ("BITMAP_BUILD_CARDINALITY_AGG(v)", 5, 4),
    ("BITMAP_BUILD_CARDINALITY_AGG(v) FILTER (WHERE v > 100)", None, None),
    ("BITMAP_TO_STRING(BITMAP_AND_AGG(BITMAP_BUILD(ARRAY[k, 100, v])))", "{1,100}", "{0,100}"),
    ("BITMAP_AND_CARDINALITY_AGG(BITMAP_BUILD(ARRAY[k, 100, v]))", 2, 2),
    ("BITMAP_OR_CARDINALITY_AGG(BITMAP_BUILD(ARRAY[k, v]))", 5, 5),
    ("BITMAP_TO_STRING(BITMAP_OR_AGG(BITMAP_BUILD(ARRAY[k, v])))", "{1,3,5,7,9}", "{0,2,6,8,10}"),
    ("BITMAP_TO_STRING(BITMAP_XOR_AGG(BITMAP_BUILD(ARRAY[100, v])))", "{1,3,5,7,9,100}",
     "{2,6,8,10,100}"),
    ("BITMAP_XOR_CARDINALITY_AGG(BITMAP_BUILD(ARRAY[100, v]))", 6, 5),
]  # fmt: skip
# What Flink gives where no row is.
OF_NONE: list[tuple[str, Any]] = [
    ("ARRAY_AGG(v)", None),
    ("LISTAGG(n)", None),
    ("COLLECT(v)", {}),
    ("PERCENTILE(v, 0.5)", None),
    ("PERCENTILE(v, ARRAY[0.5])", None),
    ("JSON_OBJECTAGG(n VALUE v)", "{}"),
    ("JSON_ARRAYAGG(v)", "[]"),
    *((f"BITMAP_{each}_AGG(BITMAP_BUILD(ARRAY[v]))", None) for each in ("AND", "OR", "XOR")),
    ("BITMAP_BUILD_CARDINALITY_AGG(v)", None),
]


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    rows = ", ".join(
        f"({at % 2}, '{'-abcdefghij'[at]}', {'CAST(NULL AS INT)' if at == 4 else at})"
        for at in range(1, 11)
    )
    made.execute_sql(f"CREATE VIEW g AS SELECT * FROM (VALUES {rows}) AS t (k, n, v)")
    return made


def rows_of(tables: TableEnvironment, query: str) -> list[Any]:
    with tables.execute_sql(query).collect() as rows:
        return list(rows)


def test_aggregates_give_what_flink_gives(tables: TableEnvironment) -> None:
    calls = ", ".join(call for call, _, _ in OF_FLINK)
    rows = rows_of(tables, f"SELECT k, {calls} FROM g GROUP BY k")
    even, odd = sorted(rows, key=lambda row: row[0])
    wrong = [
        (call, ours)
        for (call, *flinks), ours in zip(OF_FLINK, zip(list(odd)[1:], list(even)[1:]))
        if tuple(flinks) != ours
    ]
    assert wrong == []


def test_aggregates_of_no_rows_give_what_flink_gives(tables: TableEnvironment) -> None:
    calls = ", ".join(call for call, _ in OF_NONE)
    [row] = rows_of(tables, f"SELECT {calls} FROM g WHERE v > 100")
    assert list(row) == [value for _, value in OF_NONE]


def test_a_name_that_is_twice_in_a_json_object_is_an_error(tables: TableEnvironment) -> None:
    with pytest.raises(JobExecutionError, match='"x" is twice in a group of JSON_OBJECTAGG'):
        rows_of(tables, "SELECT JSON_OBJECTAGG(KEY 'x' VALUE v) FROM g")


LISTS = st.lists(
    st.none() | st.lists(st.none() | st.text("ab", max_size=9), max_size=3), max_size=3
)


@settings(max_examples=15)
@given(rows=st.lists(st.none() | LISTS, max_size=12), cut=st.integers(0, 3))
def test_equal_arrays_are_one_group(rows: list[Any], cut: int) -> None:
    column = pa.array(rows, pa.list_(pa.list_(pa.string()))).slice(cut)
    groups = GroupNumbers([0])
    numbers = groups.of(pa.record_batch({"x": column}))
    firsts = list(dict.fromkeys(map(repr, rows[cut:])))
    assert numbers.tolist() == [firsts.index(repr(each)) for each in rows[cut:]]
    assert (
        [repr(each) for each in groups.key_columns()[0].to_pylist()] == firsts if firsts else True
    )


def test_arrays_and_rows_are_keys_and_maps_are_none(tables: TableEnvironment) -> None:
    query = "SELECT x, COUNT(*) FROM (SELECT {} AS x FROM g) GROUP BY x"
    assert sorted(map(list, rows_of(tables, query.format("ARRAY[k]")))) == [[[0], 5], [[1], 5]]
    assert len(rows_of(tables, query.format("ROW(ARRAY[k, v], n)"))) == 10
    assert len(rows_of(tables, "SELECT ARRAY[k] FROM g INTERSECT SELECT ARRAY[1]")) == 1
    with pytest.raises(
        JobExecutionError, match="cannot be grouped or joined by values of the type"
    ):
        rows_of(tables, query.format("MAP[n, v]"))


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "BITMAP_OR_AGG": frozenset.union,
    "BITMAP_AND_AGG": frozenset.intersection,
    "BITMAP_XOR_AGG": frozenset.symmetric_difference,
}
INPUTS = pa.schema([("k", pa.int64()), ("i", pa.int32()), ("b", pa.binary())])
CALLS = [
    AggregateCall("BITMAP_BUILD_AGG", (1,), BigIntType()),
    *(AggregateCall(name, (2,), BigIntType()) for name in OPERATIONS),
]
NUMBERS = st.integers(0, 6) | st.sampled_from([65536, 65537, 2**32 - 1])
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.none() | st.integers(-2, 5),
        st.none() | st.frozensets(NUMBERS, max_size=6),
    ),
    max_size=25,
)


@settings(max_examples=10)
@given(rows=ROWS, size=st.sampled_from(BATCH_SIZES), in_parts=st.booleans())
def test_sets_of_groups_are_those_of_python(rows: list[Any], size: int, in_parts: bool) -> None:
    keys, numbers, sets = list(zip(*rows)) or ((), (), ())
    data = [None if each is None else roaring_bytes(each) for each in sets]
    table = pa.table([pa.array(c, f.type) for c, f in zip((keys, numbers, data), INPUTS)], INPUTS)
    results = pa.schema([("k", pa.int64()), *((str(at), pa.binary()) for at in range(len(CALLS)))])
    if in_parts:
        parts = partial_schema([0], CALLS, INPUTS)
        assert parts is not None
        local = HashAggregateOperator([0], CALLS, Phase.LOCAL, INPUTS, parts)
        pieces = [run(local, each, size=size) for each in (table.slice(0, 9), table.slice(9))]
        whole = HashAggregateOperator([0], CALLS, Phase.GLOBAL, INPUTS, results)
        found = run(whole, pa.concat_tables(pieces), size=size)
    else:
        found = run(HashAggregateOperator([0], CALLS, Phase.WHOLE, INPUTS, results), table)
    wanted = {}
    for key in set(keys):
        own = [row for row in rows if row[0] == key]
        integers = [number for _, number, _ in own if number is not None]
        given_sets = [each for _, _, each in own if each is not None]
        wanted[key] = [
            bitmap_of(integers) if integers else None,
            *(reduce(each, given_sets) if given_sets else None for each in OPERATIONS.values()),
        ]
    shown = {
        key: [None if each is None else numbers_of_roaring(each) for each in values]
        for key, *values in zip(*(column.to_pylist() for column in found.columns))
    }
    assert shown == wanted
