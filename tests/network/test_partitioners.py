from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import channel_of_key_group, key_group, stable_hash
from flinkpy.graph.partitioning import (
    BROADCAST,
    FORWARD,
    GLOBAL,
    REBALANCE,
    RESCALE,
    SHUFFLE,
    KeySpec,
    Partitioning,
    PartitioningKind,
)
from flinkpy.network.partitioning.column_hashes import column_hashes
from flinkpy.network.partitioning.partitioners import (
    ChannelSelector,
    KeyGroupSelector,
    make_selector,
)


def by_key(*columns: str, max_parallelism: int = 128) -> Partitioning:
    positions = ["abcd".index(name) for name in columns]

    def select(row: Any) -> Any:
        return row[positions[0]] if len(positions) == 1 else tuple(row[i] for i in positions)

    return Partitioning(PartitioningKind.HASH, KeySpec(select, columns), max_parallelism)


def custom(function: Callable[[Any, int], int]) -> Partitioning:
    return Partitioning(
        PartitioningKind.CUSTOM, KeySpec(lambda row: row[0], ("a",)), custom=function
    )


Row = tuple[int, "str | None", float, datetime.date]
row = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.text(max_size=3),
    st.floats(allow_nan=False),
    st.dates(),
)
rows = st.lists(row, max_size=40)
partitionings = st.sampled_from(
    [
        FORWARD,
        REBALANCE,
        RESCALE,
        SHUFFLE,
        BROADCAST,
        GLOBAL,
        by_key("a"),
        by_key("b"),
        by_key("c"),
        by_key("d"),
        by_key("a", "b"),
        by_key("d", "c", "b"),
        custom(lambda key, channels: key % channels),
    ]
)


def columns_of(values: list[Row], timestamps: list[int] | None) -> ColumnBatch:
    types = [pa.int64(), pa.string(), pa.float64(), pa.date32()]
    data = pa.RecordBatch.from_arrays(
        [pa.array([row[i] for row in values], types[i]) for i in range(4)], names=list("abcd")
    )
    return ColumnBatch(data, None if timestamps is None else np.array(timestamps, dtype=np.int64))


def routed(
    selector: ChannelSelector, batches: list[Batch]
) -> dict[int, list[tuple[Any, int | None]]]:
    """Per channel the (record, timestamp) it got, in order."""
    found: dict[int, list[tuple[Any, int | None]]] = {
        channel: [] for channel in range(selector.channels)
    }
    for batch in batches:
        seen = []
        for channel, part in selector.split(batch):
            assert len(part)
            seen.append(channel)
            values = (
                part.values
                if isinstance(part, RowBatch)
                else [tuple(row.values()) for row in part.data.to_pylist()]
            )
            stamps = (
                part.timestamps
                if isinstance(part, RowBatch) or part.timestamps is None
                else part.timestamps.tolist()
            )
            found[channel] += (
                [(value, None) for value in values] if stamps is None else list(zip(values, stamps))
            )
        assert len(seen) == len(set(seen))
    return found


@given(partitionings, st.integers(1, 5), st.lists(rows.filter(bool), max_size=4), st.booleans())
def test_rows_and_columns_reach_the_same_channels_in_order(
    partitioning: Partitioning, channels: int, batches: list[list[Row]], stamped: bool
) -> None:
    stamps = [list(range(len(values))) if stamped else None for values in batches]
    as_rows: list[Batch] = [RowBatch(list(values), times) for values, times in zip(batches, stamps)]
    as_columns: list[Batch] = [columns_of(values, times) for values, times in zip(batches, stamps)]
    by_row = routed(make_selector(partitioning, channels), as_rows)
    assert by_row == routed(make_selector(partitioning, channels), as_columns)
    sent = [record for channel in by_row.values() for record in channel]
    expected = [
        (value, time if stamped else None)
        for values in batches
        for time, value in enumerate(values)
    ]
    copies = channels if partitioning.kind is PartitioningKind.BROADCAST else 1
    assert sorted(map(repr, sent)) == sorted(map(repr, expected * copies))


@given(st.lists(rows.filter(bool), max_size=4), st.integers(2, 7), st.integers(7, 300))
def test_a_key_reaches_the_subtask_that_owns_its_group(
    batches: list[list[Row]], channels: int, max_parallelism: int
) -> None:
    routes = routed(
        make_selector(by_key("b", max_parallelism=max_parallelism), channels),
        [RowBatch(list(values)) for values in batches],
    )
    for channel, received in routes.items():
        for row, _ in received:
            assert isinstance(row, tuple)
            assert (
                channel_of_key_group(key_group(row[1], max_parallelism), max_parallelism, channels)
                == channel
            )


@given(st.lists(st.integers(1, 20), max_size=10), st.integers(1, 6), st.integers(0, 9))
def test_rebalance_gives_every_channel_the_same_number_of_records_whatever_the_batches(
    sizes: list[int], channels: int, subtask: int
) -> None:
    routes = routed(
        make_selector(REBALANCE, channels, subtask), [RowBatch(list(range(size))) for size in sizes]
    )
    counts = [len(received) for received in routes.values()]
    assert max(counts) - min(counts) <= 1


def test_subtasks_begin_their_round_at_different_channels() -> None:
    assert [
        next(channel for channel, _ in make_selector(REBALANCE, 3, subtask).split(RowBatch([1])))
        for subtask in range(4)
    ] == [0, 1, 2, 0]


def test_one_channel_and_broadcast_hand_on_the_very_batch() -> None:
    batch = RowBatch([1, 2])
    assert next(part for _, part in make_selector(by_key("a"), 1).split(batch)) is batch
    assert all(part is batch for _, part in make_selector(BROADCAST, 3).split(batch))


def test_shuffle_reaches_every_channel() -> None:
    routes = routed(make_selector(SHUFFLE, 4), [RowBatch(list(range(4000)))])
    assert all(850 < len(received) < 1150 for received in routes.values())


def test_the_memo_is_bounded_and_forgetting_changes_nothing() -> None:
    selector = KeyGroupSelector(4, KeySpec(lambda value: value), 128, memoised=10)
    values = list(range(500))
    first, second = routed(selector, [RowBatch(values)]), routed(selector, [RowBatch(values)])
    assert first == second
    assert len(selector._appends) <= 10 + len(values)


def test_the_keys_of_a_channel_lead_to_one_and_the_same_method() -> None:
    """An object for each key would be another miss of the processor's cache for each record."""
    selector = KeyGroupSelector(4, KeySpec(lambda value: value), 128)
    routed(selector, [RowBatch(list(range(500)))])
    assert len({id(append) for append in selector._appends.values()}) == 4


def test_a_failing_key_selector_leaves_nothing_behind_for_the_next_batch() -> None:
    selector = make_selector(
        Partitioning(PartitioningKind.HASH, KeySpec(lambda value: 1 // value), 128), 2
    )
    with pytest.raises(ZeroDivisionError):
        selector.split(RowBatch([1, 0]))
    assert sum(len(part) for _, part in selector.split(RowBatch([1, 2]))) == 2


@pytest.mark.parametrize("channel", [-1, 2, None, 1.0, "1", [1]], ids=repr)
def test_a_custom_partitioner_that_names_no_channel_is_told_the_range_and_the_key(
    channel: Any,
) -> None:
    selector = make_selector(custom(lambda key, channels: channel), 2)
    expected = (
        f"returned {channel!r} for the key 1; where there are 2 channels it must return a "
        "whole number from 0 to 1"
    )
    with pytest.raises(ValueError, match=re.escape(expected)):
        selector.split(RowBatch([(1,)]))


@pytest.mark.parametrize("channel", [True, np.int64(1)], ids=repr)
def test_a_custom_partitioner_may_return_any_whole_number(channel: Any) -> None:
    parts = make_selector(custom(lambda key, channels: channel), 2).split(RowBatch([(1,)]))
    assert [number for number, _ in parts] == [1]


def test_an_unhashable_key_is_refused_with_advice() -> None:
    with pytest.raises((ProgramError, TypeError), match="list"):
        make_selector(
            Partitioning(PartitioningKind.HASH, KeySpec(lambda value: [value]), 128), 2
        ).split(RowBatch([1]))


def test_rows_on_a_stream_keyed_by_columns_only_are_refused() -> None:
    with pytest.raises(ProgramError, match="give the keyed stream a key selector too"):
        make_selector(Partitioning(PartitioningKind.HASH, KeySpec(None, ("a",)), 128), 2).split(
            RowBatch([1])
        )


def test_a_missing_key_column_is_named() -> None:
    with pytest.raises(ProgramError, match="no key column 'z'; the batch has a"):
        make_selector(Partitioning(PartitioningKind.HASH, KeySpec(None, ("z",)), 128), 2).split(
            ColumnBatch(pa.record_batch({"a": [1]}))
        )


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, -1], pa.int8()),
        pa.array([2**64 - 1, 0, None], pa.uint64()),
        pa.array([1.5, 2.0, None]),
        pa.array([True, False, None]),
        pa.array(["a", None, "ä"]),
        pa.array(["a", "b", "a", None]).dictionary_encode(),
        pa.array([b"x", None]),
        pa.array([datetime.date(2020, 1, 1), None]),
        pa.array([datetime.datetime(2020, 1, 1, 2, 3, 4, 5), None]),
        pa.array([None, None]),
        pa.array([[1, 2], [], None]),
        pa.array([{"x": 1}, {"x": None}]),
        pa.array([], pa.string()),
        pa.array(["long", None], pa.large_string()),
        pa.array([float("nan"), float("inf")]),
        pa.array([0.0, -0.0, float("nan"), -float("nan"), 2.5, None], pa.float32()),
        pa.array([1, 1001, None], pa.int64()).view(pa.time64("ns")),
        pa.array([1, 1001, None], pa.int64()).view(pa.timestamp("ns")),
        pa.array([1, None], pa.timestamp("us", "Europe/Berlin")),
        pa.array([1, 1001, None], pa.int64()).view(pa.duration("ns")),
        pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.00"), None]),
        pa.array([{"x": -0.0}, {"x": float("nan")}, None]),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_every_type_hash_like_their_values(column: pa.Array) -> None:
    def plain(value: Any) -> Any:
        return (
            tuple(map(plain, value))
            if isinstance(value, list)
            else tuple(value.values())
            if isinstance(value, dict)
            else value
        )

    assert column_hashes(column).tolist() == [
        stable_hash(plain(value)) for value in column.to_pylist()
    ]


@given(st.lists(st.integers(-(2**53), 2**53) | st.sampled_from([0, 1, -1]), min_size=1, max_size=8))
def test_equal_numbers_hash_alike_whatever_their_column_and_as_in_rows(values: list[int]) -> None:
    small = [value % 100 for value in values]
    expected = [stable_hash(value) for value in small]
    for kind in (
        pa.int8(),
        pa.uint64(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(6, 2),
    ):
        assert column_hashes(pa.array(small, kind)).tolist() == expected
    assert (
        column_hashes(pa.array(values)).tolist()
        == column_hashes(pa.array(list(map(float, values)))).tolist()
    )
