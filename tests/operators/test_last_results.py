"""Running results as a table: the operator gives the last one of each key when its input has
ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.aggregate_plan import AggregateCall
from flinkpy.common import Row
from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.elements import MAX_TIMESTAMP, Batch, ColumnBatch, RowBatch, Watermark
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.guarding.with_policy import with_policy
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.keyed_columns.running_aggregate import KeyedColumnAggregateOperator
from flinkpy.operators.results.last_results import LastResultsOperator
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator
from flinkpy.table.expressions import col
from tests.values import KEYS, key_of, may_meet, shown
from tests.windowing.slice_harness import Alone

RECORDS = st.lists(st.tuples(KEYS, st.integers(-9, 9)), max_size=12).filter(
    lambda records: may_meet(key for key, _ in records)
)
KEY = KeySpec(selector=lambda record: record[0])


def rows_of(records: list[tuple[Any, int]]) -> Batch:
    return RowBatch(records)


def columns_of(records: list[tuple[Any, int]]) -> Batch:
    schema = pa.schema([("k", pa.float64()), ("v", pa.int64())])
    return ColumnBatch(
        pa.RecordBatch.from_pylist(
            [{"k": key, "v": value} for key, value in records], schema=schema
        )
    )


def added(one: tuple[Any, int], other: tuple[Any, int]) -> tuple[Any, int]:
    return one[0], one[1] + other[1]


ROWS: dict[str, Callable[[], Any]] = {
    "reduce": lambda: KeyedReduceOperator(added, KEY),
    "sum": lambda: KeyedAggregateOperator("sum", 1, KEY),
    "max_by": lambda: KeyedAggregateOperator("max_by", 1, KEY),
    "with a policy": lambda: with_policy(
        KeyedReduceOperator(added, KEY), ErrorPolicy.divert(OutputTag("dead")), "divert"
    ),
}
COLUMNS: dict[str, Callable[[], Any]] = {
    "aggregates": lambda: KeyedAggregatesOperator(["k"], [AggregateCall("sum", col("v"), "v")]),
    "sum": lambda: KeyedColumnAggregateOperator("sum", "v", ["k"]),
}


def records_in(batches: list[Batch]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for batch in batches:
        if isinstance(batch, ColumnBatch):
            found += [tuple(row.values()) for row in batch.data.to_pylist()]
        else:
            found += [tuple(value) if isinstance(value, Row) else value for value in batch.values]
    return found


def last_of_each_key(records: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list({key_of(record[0]): record for record in records}.values())


def ended(subtask: Alone) -> list[Batch]:
    assert subtask.out.batches == []
    subtask.push(Watermark(MAX_TIMESTAMP))
    assert subtask.out.watermarks == []
    subtask.operator.finish()
    while subtask.operator.has_rest:
        subtask.operator.emit_rest()
    assert subtask.out.watermarks == [MAX_TIMESTAMP]
    return subtask.out.batches


def check(make: Callable[[], Any], batches: list[Batch], restart: int, backend: str) -> None:
    each, last = Alone(make(), backend=backend), Alone(LastResultsOperator(make()), backend=backend)
    for number, batch in enumerate(batches):
        if number == restart:
            saved = last.snapshot()
            last.operator.close()
            last = Alone(LastResultsOperator(make()), saved, backend=backend)
        each.push(batch)
        last.push(batch)
    found = records_in(ended(last))
    wanted = last_of_each_key(records_in(each.out.batches))
    assert sorted(str(shown(record)) for record in found) == sorted(
        str(shown(record)) for record in wanted
    )
    each.operator.close()
    last.operator.close()


def cut(records: list[Any], size: int) -> list[list[Any]]:
    return [records[at : at + size] for at in range(0, len(records), size)]


@pytest.mark.finding("newcomers 1")
@pytest.mark.parametrize(
    ("make", "backend"), [*((make, "hashmap") for make in ROWS), ("reduce", "rocksdb")]
)
@settings(max_examples=12, deadline=None)
@given(RECORDS, st.sampled_from([1, 3, 12]), st.integers(0, 4))
def test_a_table_has_the_last_result_of_each_key_of_rows(
    make: str, backend: str, records: list[Any], size: int, restart: int
) -> None:
    check(ROWS[make], [rows_of(part) for part in cut(records, size)], restart, backend)


@pytest.mark.finding("newcomers 1")
@pytest.mark.parametrize("make", COLUMNS)
@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, float("nan"), 0.0, -0.0, 1.0, 2.5]),
            st.none() | st.integers(-9, 9),
        ),
        max_size=12,
    ),
    st.sampled_from([1, 3, 12]),
    st.integers(0, 4),
)
def test_a_table_has_the_last_row_of_each_key_of_columns(
    make: str, records: list[Any], size: int, restart: int
) -> None:
    check(COLUMNS[make], [columns_of(part) for part in cut(records, size)], restart, "hashmap")
