"""Sort, ranks and aggregates over rows around one, against plain Python and DuckDB."""

from __future__ import annotations

import datetime
import functools
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.relational import sort_codes
from flinkpy.relational.ordering.rank_rows import RankOperator, RankSpec
from flinkpy.relational.ordering.sort_rows import SortOperator
from flinkpy.relational.ordering.sorted_runs import RUNS_AT_ONCE, SortedRuns, merged_runs
from flinkpy.relational.sort_codes import codes_of, sorted_positions
from flinkpy.sql.rex.rex_nodes import SortKey
from tests.relational.operator_runs import BATCH_SIZES, MEMORY, as_rows, run

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("k", pa.int32()),
        ("t", pa.string()),
        ("x", pa.float64()),
        ("d", pa.decimal128(30, 2)),
        ("day", pa.date32()),
        ("yes", pa.bool_()),
    ]
)
VALUES = st.tuples(
    st.none() | st.integers(-2, 2),
    st.none() | st.sampled_from(["", "a", "b", "ä", "aa"]),
    st.none() | st.sampled_from([0.5, -0.0, 0.0, -2.5, float("nan"), float("inf"), float("-inf")]),
    st.none() | st.decimals(-(10**26), 10**26, places=2) | st.sampled_from([1, -1]),
    st.none() | st.dates(datetime.date(1969, 12, 1), datetime.date(1970, 2, 1)),
    st.none() | st.booleans(),
)
TABLES = st.lists(VALUES, max_size=30).map(
    lambda rows: pa.table(
        [
            pa.array(column, field.type)
            for column, field in zip(
                zip(*((at, *row) for at, row in enumerate(rows))) if rows else [()] * 7, SCHEMA
            )
        ],
        schema=SCHEMA,
    )
)
KEYS = st.lists(
    st.builds(SortKey, st.integers(1, 6), st.booleans(), st.booleans()), min_size=1, max_size=3
)


def compared(one: Any, other: Any, key: SortKey) -> int:
    """How SQL orders two values: null where the key says, NaN above all."""
    if (one is None) != (other is None):
        return -1 if (one is None) == key.nulls_first else 1
    if one is None:
        return 0
    if isinstance(one, float):
        one, other = ((each != each, 0.0 if each != each else each) for each in (one, other))
    if isinstance(one, str):
        one, other = one.encode(), other.encode()
    found = int(one > other) - int(one < other)
    return -found if key.descending else found


def in_order(rows: list[Any], keys: list[SortKey]) -> list[Any]:
    def compare(one: Any, other: Any) -> int:
        found = (compared(one[key.index], other[key.index], key) for key in keys)
        return next((each for each in found if each), 0)

    return sorted(rows, key=functools.cmp_to_key(compare))


def rows_of(table: pa.Table) -> list[Any]:
    return list(zip(*(column.to_pylist() for column in table.columns)))


@given(
    TABLES,
    KEYS,
    st.sampled_from(BATCH_SIZES),
    st.integers(0, 3),
    st.none() | st.integers(0, 9),
    st.sampled_from(MEMORY),
    st.booleans(),
)
@settings(max_examples=40)
def test_rows_are_in_the_order_of_sql_and_equal_ones_in_their_own(
    table: pa.Table,
    keys: list[SortKey],
    size: int,
    offset: int,
    limit: int | None,
    memory: int | None,
    is_short: bool,
) -> None:
    operator = SortOperator(keys, SCHEMA, offset, limit)
    found = run(operator, table, size=size, memory=memory, is_short=is_short)
    wanted = in_order(rows_of(table), keys)[offset : None if limit is None else offset + limit]
    assert [row[0] for row in rows_of(found)] == [row[0] for row in wanted]


@pytest.mark.parametrize("limit", [None, 70])
def test_more_runs_than_can_be_merged_at_once_are_merged_in_steps(limit: int | None) -> None:
    """Each row is a run here. The second column says in which order rows came."""
    words = [("x" * (number * 7919 % 5), number) for number in range(RUNS_AT_ONCE + 20)]
    columns = [pa.array(column) for column in zip(*words)]
    table = pa.table(columns, names=["a", "b"])
    operator = SortOperator([SortKey(0, descending=True)], table.schema, limit=limit)
    found = run(operator, table, size=1, memory=0)
    wanted = sorted(words, key=lambda row: -len(row[0]))[:limit]
    assert found.column("b").to_pylist() == [number for _, number in wanted]


def test_a_merge_of_merged_runs_takes_no_more_memory_than_one_of_first_runs() -> None:
    schema, memory = pa.schema([("a", pa.int64())]), OperatorMemory(1 << 14)
    module = "flinkpy.relational.ordering.sorted_runs"
    windows: list[int] = []

    def watched(of: Any, *others: Any) -> Any:
        windows.append(len(of) * max(run.rows_of_block for run in of))
        return merged_runs(of, *others)

    with mock.patch(f"{module}.merged_runs", watched), mock.patch(f"{module}.RUNS_AT_ONCE", 4):
        runs = SortedRuns([SortKey(0)], schema, memory)
        for begin in range(0, 6000, 100):
            numbers = np.arange(begin, begin + 100) * 7919 % 6007
            runs.add(pa.record_batch([pa.array(numbers)], schema=schema))
        assert sum(data.num_rows for data in runs.batches()) == 6000
    memory.close()
    assert len(windows) > 4
    assert max(windows) == windows[0]


def test_a_limit_keeps_only_rows_that_can_be_among_the_first() -> None:
    table = pa.table({"a": pa.array(range(300_000, 0, -1)), "b": pa.array([1, 2] * 150_000)})
    operator = SortOperator([SortKey(0)], table.schema, 1, 3)
    assert run(operator, table, size=1 << 15).column("a").to_pylist() == [2, 3, 4]


@given(
    TABLES,
    KEYS,
    st.sampled_from(["ROW_NUMBER", "RANK", "DENSE_RANK"]),
    st.sampled_from([(), (1,), (2, 6), (3,)]),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from(BATCH_SIZES),
    st.sampled_from(MEMORY),
)
@settings(max_examples=30)
def test_ranks_are_those_of_plain_python(
    table: pa.Table,
    keys: list[SortKey],
    function: str,
    partition: tuple[int, ...],
    first: int,
    more: int,
    size: int,
    memory: int | None,
) -> None:
    spec = RankSpec(function, partition, tuple(keys), first, first + more, gives_rank=True)
    schema = SCHEMA.append(pa.field("rank", pa.int64()))
    found = run(RankOperator(spec, SCHEMA, schema), table, size=size, memory=memory)
    wanted = []
    groups: dict[Any, list[Any]] = {}
    for row in rows_of(table):
        groups.setdefault(tuple(map(_key, (row[at] for at in partition))), []).append(row)
    for rows in groups.values():
        rank = dense = 0
        before = None
        for number, row in enumerate(in_order(rows, keys), 1):
            if before is None or any(compared(before[k.index], row[k.index], k) for k in keys):
                rank, dense = number, dense + 1
            before = row
            given_rank = {"ROW_NUMBER": number, "RANK": rank, "DENSE_RANK": dense}[function]
            if first <= given_rank <= first + more:
                wanted.append((row[0], given_rank))
    assert sorted((row[0], row[-1]) for row in rows_of(found)) == sorted(wanted)


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


def test_rows_behind_the_last_rank_are_dropped_on_the_way() -> None:
    table = pa.table({"g": pa.array([1, 2] * 200_000), "a": pa.array(range(400_000, 0, -1))})
    spec = RankSpec("ROW_NUMBER", (0,), (SortKey(1),), 1, 2)
    found = run(RankOperator(spec, table.schema, table.schema), table, size=1 << 15)
    assert as_rows(found) == [(1, 2), (1, 4), (2, 1), (2, 3)]


def test_texts_that_are_there_once_sort_as_those_that_repeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["b", None, "", "ab", "\u00e4", "a" * 40, None, "a" * 40 + "b"]
    columns = [pa.array(words), pa.array([word and word.encode() for word in words])]
    for key in (SortKey(0), SortKey(1, descending=True, nulls_first=True)):
        by_dictionary = sorted_positions(codes_of(columns, [key]), len(words))
        with monkeypatch.context() as changed:
            changed.setattr(sort_codes, "_SAMPLED", 4)
            changed.setattr(sort_codes, "_FEWEST_SAMPLED", 1)
            by_rank = codes_of(columns, [key])
        assert by_rank[-1].dtype == np.uint64
        assert sorted_positions(by_rank, len(words)).tolist() == by_dictionary.tolist()
