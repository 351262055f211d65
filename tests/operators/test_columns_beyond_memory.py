"""Running aggregates over columns that have no room in memory give what they give in memory: on disk
from the first record on, or from some, with a failure in between, restored with another backend and
another number of subtasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns import col
from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.keys import channel_of_key_group
from flinkpy.core.options.state import ROCKSDB_DIRECTORY, ROCKSDB_OBJECTS
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk
from flinkpy.operators.columnar.tables_by_group import group_numbers
from flinkpy.operators.keyed_columns.distinct_rows import DistinctRowsOperator
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.keyed_columns.running_aggregate import KeyedColumnAggregateOperator
from flinkpy.operators.keyed_columns.state_tables import KeyedColumnsOperator
from flinkpy.state.snapshots.saved_state import SavedState
from tests.windowing.slice_harness import MAX_PARALLELISM, Alone, rescaled

pytest.importorskip("rocksdict")

_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
NO_ROOM: dict[str, Any] = {ROCKSDB_OBJECTS.key: "0 b"}
if _IN_MEMORY is not None:
    NO_ROOM[ROCKSDB_DIRECTORY.key] = _IN_MEMORY
BACKENDS = st.sampled_from(["rocksdb", "rocksdb", "hashmap"])
SCALES = st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 3)])
SCHEMA = pa.schema([("k", pa.string()), ("j", pa.float64()), ("n", pa.int64()), ("t", pa.string())])
NAMES = st.sampled_from(["a", "b", "", "long enough for two words", None])
FLOATS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), None])
NUMBERS = st.none() | st.integers(-3, 3) | st.sampled_from([1 << 62, -(1 << 62), 1 << 61])
RECORDS = st.lists(st.tuples(NAMES, FLOATS, NUMBERS, NAMES), max_size=14)
SIZES = st.sampled_from([1, 7, 100])

MAKERS: dict[str, Callable[[], KeyedColumnsOperator]] = {
    "max, which shows first records": lambda: KeyedColumnAggregateOperator("max", "n", ["k", "j"]),
    "sum of floats": lambda: KeyedColumnAggregateOperator("sum", "j", ["k"]),
    "aggregates": lambda: KeyedAggregatesOperator(
        ["k"],
        aggregate_calls(
            [
                col("n").avg.alias("avg"),
                col("n").count.alias("count"),
                col("j").sum.alias("sum"),
                col("t").max.alias("max"),
            ],
            "test",
        ),
    ),
    "aggregates that keep values": lambda: KeyedAggregatesOperator(
        ["j", "k"],
        aggregate_calls(
            [col("n").count_distinct.alias("distinct"), col("n").median.alias("median")], "test"
        ),
    ),
    "distinct": lambda: DistinctRowsOperator(["k", "j"]),
}


@pytest.fixture(autouse=True)
def _writes_row_by_row() -> Iterator[None]:
    with mock.patch.multiple(RowsOnDisk, few=1, at_once=1):
        yield


def batches_of(records: Sequence[Any], size: int) -> list[pa.RecordBatch]:
    columns = list(zip(*records)) or [()] * 4
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA)]
    whole = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    return [whole.slice(at, size) for at in range(0, len(records), size)]


class Subtasks:
    """All subtasks of one attempt."""

    def __init__(
        self,
        make: Callable[[], KeyedColumnsOperator],
        parallelism: int,
        backend: str,
        saved: list[SavedState] | None = None,
    ) -> None:
        self.keys = make().keys
        self.each = [
            Alone(
                make(),
                None if saved is None else rescaled(saved, subtask, parallelism),
                subtask,
                parallelism,
                backend=backend,
                options=NO_ROOM,
            )
            for subtask in range(parallelism)
        ]

    def push(self, data: pa.RecordBatch) -> None:
        groups = group_numbers(data, self.keys, MAX_PARALLELISM).tolist()
        owners = [channel_of_key_group(group, MAX_PARALLELISM, len(self.each)) for group in groups]
        for subtask, alone in enumerate(self.each):
            mine = np.flatnonzero(np.array(owners) == subtask)
            alone.push(ColumnBatch(data.take(pa.array(mine))))

    def saved(self) -> list[SavedState]:
        found = [alone.snapshot() for alone in self.each]
        for alone in self.each:
            alone.operator.close()
        return found


def results_of(each: Subtasks) -> list[str]:
    found = [batch for alone in each.each for batch in alone.out.batches]
    return [repr(row) for batch in found for row in batch.data.to_pylist()]  # type: ignore[union-attr]


@settings(max_examples=25, deadline=None)
@given(RECORDS, SIZES, st.integers(0, 14), SCALES, st.tuples(BACKENDS, BACKENDS))
@pytest.mark.parametrize("kind", MAKERS)
def test_aggregates_without_room_in_memory_give_what_aggregates_in_memory_give(
    kind: str, records: Any, size: int, cut: int, scales: tuple[int, int], backends: tuple[str, str]
) -> None:
    make = MAKERS[kind]
    whole = Subtasks(make, 1, "hashmap")
    before = Subtasks(make, scales[0], backends[0])
    for data in batches_of(records[:cut], size):
        whole.push(data)
        before.push(data)
    after = Subtasks(make, scales[1], backends[1], before.saved())
    for data in batches_of(records[cut:], size):
        whole.push(data)
        after.push(data)
    assert sorted(results_of(before) + results_of(after)) == sorted(results_of(whole))
    after.saved()


def test_what_memory_holds_stays_within_its_share_however_many_keys_there_are() -> None:
    share, keys = 64 << 10, 20_000
    options = {**NO_ROOM, ROCKSDB_OBJECTS.key: f"{share} b"}
    operator = MAKERS["aggregates"]()
    alone = Alone(operator, backend="rocksdb", options=options)
    most = 0
    with mock.patch.multiple(RowsOnDisk, few=1 << 10, at_once=1 << 12):
        for start in [*range(0, keys, 200), 0]:
            names = [f"key {number}" for number in range(start, start + 200)]
            alone.push(ColumnBatch(batches_of([(name, 0.5, 2, "t") for name in names], 200)[0]))
            most = max(most, operator.bytes_held())
        last = alone.out.batches[-1].data.to_pylist()  # type: ignore[union-attr]
        assert operator._disk is not None
        assert sum(rows.num_rows for rows in operator._disk.all_rows()) > keys - 2000
    # beyond it by what one batch brings
    assert most < 2 * share
    assert [row["count"] for row in last] == [2] * 200
    operator.close()


def test_rows_on_their_way_to_disk_are_part_of_a_checkpoint() -> None:
    before = Subtasks(MAKERS["aggregates"], 1, "rocksdb")
    records = [(name, 0.5, 2, "t") for name in ("a", "b", "c", "d")]
    [data] = batches_of(records, 4)
    before.push(data)  # all leave, and none is written yet
    after = Subtasks(MAKERS["aggregates"], 1, "rocksdb", before.saved())
    after.push(data)
    assert all("'count': 2" in row for row in results_of(after))
    after.saved()
