"""How many entries of state operators hold: what they tell is what a reader counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkpy.core.elements import ColumnBatch, RowBatch, Watermark
from flinkpy.graph.partitioning import KeySpec
from flinkpy.metrics.definitions import ENTRIES, STATE_BYTES
from flinkpy.operators.keyed_columns.running_aggregate import KeyedColumnAggregateOperator
from flinkpy.operators.rows.keyed import KeyedAggregateOperator
from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator
from flinkpy.windowing.slices.column_slices import FieldSlices
from flinkpy.windowing.slices.operator import SliceOperator
from flinkpy.windowing.slices.row_slices import RowSlices
from flinkpy.windowing.slicing import Slicing
from tests.operators.joining import Subtasks
from tests.windowing.joins import TUMBLING, columns, joined
from tests.windowing.slice_harness import Alone

FIRST = KeySpec(selector=lambda value: value[0])
# three keys, each in two windows of ten
RECORDS = [((key, 1), stamp) for key in range(3) for stamp in (1, 2, 15)]


def row_batch() -> RowBatch:
    return RowBatch([value for value, _ in RECORDS], [stamp for _, stamp in RECORDS])


def column_batch() -> ColumnBatch:
    data = pa.RecordBatch.from_pydict(
        {"k": [value[0] for value, _ in RECORDS], "v": [value[1] for value, _ in RECORDS]}
    )
    return ColumnBatch(data, np.array([stamp for _, stamp in RECORDS], dtype=np.int64))


def entries(operator: Any) -> float:
    return float(operator.measures(0)[ENTRIES])


def test_windows_over_rows_tell_the_keys_of_each_window_that_is_open() -> None:
    alone = Alone(SliceOperator(RowSlices(FIRST, "sum", 1), Slicing(10, 10, 0), event_time=True))
    assert entries(alone.operator) == 0
    alone.push(row_batch())
    assert entries(alone.operator) == 6
    alone.push(Watermark(9))
    assert entries(alone.operator) == 3


def test_windows_over_columns_tell_keys_and_what_waits() -> None:
    alone = Alone(
        SliceOperator(FieldSlices(["k"], "sum", "v"), Slicing(10, 10, 0), event_time=True)
    )
    alone.push(column_batch())
    assert 6 <= entries(alone.operator) <= len(RECORDS)
    alone.snapshot()
    alone.push(Watermark(9))
    assert entries(alone.operator) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: joined(TUMBLING),
        lambda: Subtasks(lambda: ColumnarJoinOperator(["k"], ["k"], TUMBLING), 1, columns),
    ],
)
def test_joins_of_windows_tell_the_records_of_both_sides(make: Any) -> None:
    of = make()
    of.push(0, RECORDS)
    of.push(1, RECORDS[:2])
    assert entries(of.operators[0]) == len(RECORDS) + 2
    of.watermark(9)
    assert entries(of.operators[0]) == 3


LARGE = "x" * 1000
MANY = [((f"{key} {LARGE}", LARGE, key), key % 100) for key in range(2000)]


@pytest.mark.parametrize("makes_columns", [False, True])
def test_windows_tell_how_much_memory_they_have(makes_columns: bool) -> None:
    store = FieldSlices(["k"], "max", "n") if makes_columns else RowSlices(FIRST, "max", 2)
    alone = Alone(SliceOperator(store, Slicing(10, 10, 0), event_time=True))
    assert alone.operator.measures(0)[STATE_BYTES] == 0
    values, stamps = [value for value, _ in MANY], [stamp for _, stamp in MANY]
    data = pa.RecordBatch.from_pydict(
        {"k": [k for k, _, _ in values], "n": [n for *_, n in values]}
    )
    alone.push(
        ColumnBatch(data, np.array(stamps, dtype=np.int64))
        if makes_columns
        else RowBatch(values, stamps)
    )
    told = alone.operator.measures(0)[STATE_BYTES]
    # over columns the keys lie in a table of all windows
    assert (100 if makes_columns else 1500) * len(MANY) < told < 5000 * len(MANY)


@pytest.mark.parametrize(
    "make",
    [
        lambda: joined(TUMBLING),
        lambda: Subtasks(lambda: ColumnarJoinOperator(["k"], ["k"], TUMBLING), 1, columns),
    ],
)
def test_joins_of_windows_tell_how_much_memory_they_have(make: Any) -> None:
    of = make()
    assert of.operators[0].measures(0)[STATE_BYTES] == 0
    of.push(0, [((key, LARGE), stamp) for (_, _, key), stamp in MANY])
    told = of.operators[0].measures(0)[STATE_BYTES]
    assert 900 * len(MANY) < told < 3000 * len(MANY)


def test_running_aggregates_tell_their_keys_in_both_forms() -> None:
    rows = Alone(KeyedAggregateOperator("sum", 1, FIRST))
    rows.push(row_batch())
    in_columns = Alone(KeyedColumnAggregateOperator("sum", "v", ["k"]))
    in_columns.push(column_batch())
    assert entries(rows.operator) == entries(in_columns.operator) == 3
