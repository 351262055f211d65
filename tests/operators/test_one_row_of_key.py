"""Operators over columns that give one row of each key in BATCH: whatever their memory, the rows
are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.aggregate_plan import AggregateCall, plan_aggregates
from flinkpy.core.elements import ColumnBatch
from flinkpy.metrics.definitions import SPILLED_BYTES
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.keyed_columns.aggregate_of_all import AggregatesOfAllOperator
from flinkpy.operators.keyed_columns.distinct_rows import DistinctRowsOperator
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.keyed_columns.running_aggregate import KeyedColumnAggregateOperator
from flinkpy.table.expressions import col
from tests.open_files import open_spill_files
from tests.operators.harness import ChainHarness, linear

SCHEMA = pa.schema(
    [("k", pa.float64()), ("t", pa.dictionary(pa.int8(), pa.string())), ("n", pa.int64())]
)
ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from([0.0, -0.0, float("nan")]) | st.integers(0, 60).map(float),
        st.none() | st.sampled_from(["a", "", "longer than a word"]),
        st.none() | st.integers(-9, 9),
        st.integers(0, 99),
    ),
    max_size=60,
)


def calls_of(*aggregates: Any) -> tuple[AggregateCall, ...]:
    return tuple(plan_aggregates(aggregates, ("k", "t"), "aggregate()").calls)


FEW = calls_of(col("n").sum.alias("s"), col("n").avg.alias("m"), col("t").max.alias("most"))
ALL_VALUES = calls_of(col("n").count_distinct.alias("d"), col("n").sum.alias("s"))
OPERATORS = [
    KeyedAggregatesOperator(("k", "t"), FEW),
    KeyedAggregatesOperator(("k",), ALL_VALUES),
    KeyedColumnAggregateOperator("max", "n", ("k", "t")),
    DistinctRowsOperator(("k", "t")),
    DistinctRowsOperator(("k",)),
    AggregatesOfAllOperator(ALL_VALUES),
]


def run(
    operator: StreamOperator, rows: list[Any], size: int, memory: int | None, timed: bool
) -> tuple[list[Any], float]:
    """Its results with their timestamps, and how many bytes it spilled."""
    wrapped = batch_form(operator)
    harness = ChainHarness(linear(wrapped), memory=memory)
    for first in range(0, len(rows), size):
        *columns, stamps = zip(*rows[first : first + size])
        arrays = [pa.array(column).cast(each.type) for column, each in zip(columns, SCHEMA)]
        data = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        harness.chain.batch_inputs()[0](ColumnBatch(data, np.array(stamps) if timed else None))
    while not harness.chain.finish():
        pass
    spilled = wrapped.measures(0).get(SPILLED_BYTES, 0)
    harness.chain.close()
    found = []
    for batch in harness.writers[0].elements:
        if isinstance(batch, ColumnBatch):
            times = [None] * len(batch) if batch.timestamps is None else batch.timestamps.tolist()
            found += [
                (*map(repr, row.values()), at) for row, at in zip(batch.data.to_pylist(), times)
            ]
    return found, spilled


@given(
    st.sampled_from(OPERATORS),
    ROWS,
    st.sampled_from([1, 7, 100]),
    st.sampled_from([0, 700, 20_000]),
    st.booleans(),
)
@settings(max_examples=25)
def test_the_memory_changes_nothing_but_the_order_of_the_rows(
    operator: StreamOperator, rows: list[Any], size: int, memory: int, timed: bool
) -> None:
    of_others = open_spill_files()  # of a test before, until they are collected
    wanted, _ = run(operator, rows, size, None, timed)
    found, _ = run(operator, rows, size, memory, timed)
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert open_spill_files() <= of_others


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_does_not_fit_is_spilled_unless_there_is_one_key(operator: Any) -> None:
    rows = [(float(number % 300), "ab"[number % 2], number, number) for number in range(600)]
    wanted, _ = run(operator, rows, 60, None, True)
    found, spilled = run(operator, rows, 60, 15_000, True)
    assert sorted(found) == sorted(wanted)
    assert bool(spilled) == operator.has_many_keys
