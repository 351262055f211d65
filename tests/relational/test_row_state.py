"""Rows by number and rows by key, against a dict, through any additions and deletions."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.operators.columnar.array_memory import Empty
from flinkpy.relational.state import row_store
from flinkpy.relational.state.multi_map import MultiMap, SingleRows
from flinkpy.relational.state.row_memory import RowMemory
from flinkpy.relational.state.row_store import RowStore
from flinkpy.relational.state.row_table import RowTable
from tests.operators.arrays_in_files import in_files

SEEDS = st.integers(0, 1 << 32)
SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])
# what gives arrays: in memory, or all of them in mapped files
ARRAYS = st.sampled_from([np.empty, in_files().empty])


def batch(values: list[int]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int64()), [str(each) for each in values]], SCHEMA)


def numbers(values: Any) -> Any:
    return np.array(list(values), np.int64)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), SEEDS), max_size=30), st.sampled_from([None, 0, 200]))
def test_rows_keep_their_numbers_until_they_are_deleted(
    steps: list[tuple[int, int]], limit: int | None
) -> None:
    store, known, following = RowStore(SCHEMA, RowMemory(limit)), dict[int, int](), 0
    before, expected = store.freeze(), dict[int, int]()
    for count, seed in steps:
        chance = random.Random(seed)
        if chance.random() < 0.1:
            before, expected = store.freeze(), dict(known)
        if chance.random() < 0.6:
            values = list(range(following, following + count))
            following += count
            given_numbers = store.add(batch(values)).tolist()
            assert not known.keys() & set(given_numbers)
            known.update(zip(given_numbers, values))
        else:
            over = chance.sample(sorted(known), min(2 * count, len(known)))
            store.delete(numbers(over))
            for each in over:
                del known[each]
        asked = chance.sample(sorted(known), len(known))
        assert store.take(numbers(asked)).equals(batch([known[each] for each in asked]))
        assert len(store) == len(known)
        assert sorted(store.all().tolist()) == sorted(known)
    frozen = {
        number: row.as_py()
        for data, rows in before.batches()
        for number, row in zip(rows.tolist(), data.column(0))
    }
    assert frozen == expected


def test_chunks_are_few_and_not_half_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_store, "_LARGEST", 1_000)
    store = RowStore(SCHEMA)
    rows = np.concatenate([store.add(batch(list(range(at, at + 7)))) for at in range(0, 7_000, 7)])
    assert len(store.freeze().parts) <= 30
    store.delete(rows[::3])
    store.delete(rows[1::3])
    assert sum(len(each.data) for each in store.freeze().parts) <= 2 * len(store)
    store.delete(rows[2::3])
    assert not store.freeze().parts


def test_large_rows_make_chunks_of_bounded_size() -> None:
    store = RowStore(SCHEMA, RowMemory(3 << 20))
    rows = []
    for number in range(0, 600, 10):
        texts = [str(each) * 20_000 for each in range(number, number + 10)]
        data = pa.record_batch([list(range(number, number + 10)), texts], SCHEMA)
        rows.append(store.add(data))
    sizes = [part.chunk.data_bytes for part in store.freeze().parts]
    assert sum(sizes) > 25 << 20
    assert max(sizes) <= 3 << 20
    assert len(sizes) < 30
    store.delete(np.concatenate(rows[::2]))
    store.delete(np.concatenate([each[:5] for each in rows[1::2]]))
    assert max(part.chunk.data_bytes for part in store.freeze().parts) <= 3 << 20
    assert store.take(rows[-1][-1:]).column(0).to_pylist() == [599]


@pytest.mark.parametrize(
    ("options", "memory"),
    [
        ({}, None),
        ({"state.backend.type": "rocksdb"}, 64 << 20),
        ({"state.backend.type": "rocksdb", "state.backend.rocksdb.memory.objects": "5m"}, 5 << 20),
        ({"state.backend.type": "rocksdb", "state.backend.columns.memory": "7m"}, 7 << 20),
        ({"state.backend.columns.memory": "7m"}, 7 << 20),
    ],
)
def test_with_rocksdb_rows_beyond_those_of_objects_lie_in_files(
    options: dict[str, str], memory: int | None
) -> None:
    assert RowMemory.configured(options).limit == memory


def test_rows_beyond_their_memory_lie_in_files_that_go_with_them(tmp_path: Path) -> None:
    memory = RowMemory(4_000, [str(tmp_path)])
    stores = RowStore(SCHEMA, memory), RowStore(SCHEMA, memory)
    before, arrow = open_files(), pa.total_allocated_bytes()
    rows = [store.add(batch(list(range(2_000)))) for store in stores]
    rows[1] = np.concatenate([rows[1], stores[1].add(batch([7, 8]))])
    assert pa.total_allocated_bytes() - arrow <= 4_000
    assert open_files() - before == 2
    assert not list(tmp_path.iterdir())
    assert stores[1].take(rows[1][-3:]).column(0).to_pylist() == [1_999, 7, 8]
    for store, numbers_of in zip(stores, rows):
        store.delete(numbers_of)
    assert open_files() == before


def test_a_process_short_of_memory_maps_what_is_worth_a_file(tmp_path: Path) -> None:
    memory = RowMemory(1 << 30, [str(tmp_path)])
    small, large = RowStore(SCHEMA, memory), RowStore(SCHEMA, memory)
    small.add(batch([1, 2]))
    rows = large.add(batch(list(range(300_000))))
    before, arrow = open_files(), pa.total_allocated_bytes()
    memory.free()
    memory.free()
    assert open_files() - before == 1
    assert arrow - pa.total_allocated_bytes() > 2 << 20
    assert large.take(rows[-2:]).column(0).to_pylist() == [299_998, 299_999]


def open_files() -> int:
    """How many this process has."""
    return len(os.listdir("/dev/fd"))


def test_a_disk_that_fails_names_the_option_of_its_folders(tmp_path: Path) -> None:
    store = RowStore(SCHEMA, RowMemory(0, [str(tmp_path / "absent")]))
    with pytest.raises(ResourceUnavailableError, match=r"io\.tmp\.dirs"):
        store.add(batch([1]))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 20), SEEDS), max_size=20), ARRAYS)
def test_the_rows_of_a_key_are_found(steps: list[tuple[int, int]], empty: Empty) -> None:
    rows, known, following = MultiMap(empty), dict[int, int](), 0
    for count, seed in steps:
        chance = random.Random(seed)
        if chance.random() < 0.6:
            added = {following + at: int(6 * chance.random() ** 2) for at in range(count)}
            following += count
            rows.add(numbers(added.values()), numbers(added))
            known |= added
        else:
            over = chance.sample(sorted(known), min(count, len(known)))
            rows.remove(numbers(known.pop(each) for each in over), numbers(over))
        asked = [-1, *(int(9 * chance.random()) for _ in range(5))]
        at, found = rows.pairs(numbers(asked))
        expected = sorted(
            (place, row)
            for place, key in enumerate(asked)
            for row, of in known.items()
            if of == key
        )
        assert sorted(zip(at.tolist(), found.tolist())) == expected
        assert (np.diff(at) >= 0).all()
        assert rows.counts(numbers(asked)).tolist() == [
            list(known.values()).count(k) for k in asked
        ]
        assert len(rows) == len(known)


def test_what_keys_leave_is_used_again() -> None:
    rows = MultiMap()
    for turn in range(50):
        keys = np.arange(turn, turn + 40) % 60
        rows.add(keys, np.arange(40))
        rows.remove(keys, np.arange(40))
    assert rows._used <= 64


def test_rooms_that_no_key_needs_any_more_are_left_out() -> None:
    rows, count = MultiMap(), 500
    for turn in range(12):
        rows.add(np.arange(count), np.arange(turn * count, turn * count + count))
    assert rows._used <= 1.7 * len(rows)
    at, found = rows.pairs(np.arange(count))
    assert (at == np.repeat(np.arange(count), 12)).all()
    assert (found % count == at).all()
    assert len(set(found.tolist())) == len(rows)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 60), SEEDS), max_size=20), ARRAYS)
def test_rows_are_found_by_hashes_that_others_have_too(
    steps: list[tuple[int, int]], empty: Empty
) -> None:
    table, known, following = RowTable(empty), dict[int, int](), 0
    for count, seed in steps:
        chance = random.Random(seed)
        if chance.random() < 0.6:
            added = {
                following + at: chance.choice([chance.randrange(3), chance.getrandbits(62)])
                for at in range(count)
            }
            following += count
            table.put(numbers(added.values()), numbers(added))
            known |= added
        else:
            over = chance.sample(sorted(known), min(count, len(known)))
            table.remove(numbers(known.pop(each) for each in over), numbers(over))
        wanted, absent = list(known), [following + at for at in range(3)]
        asked = numbers([*known.values(), 0, 1, chance.getrandbits(62)])
        rows = numbers([*wanted, *absent])
        found = table.find(asked, lambda at, them, rows=rows: them == rows[at])  # type: ignore[misc]
        assert found.tolist() == [*wanted, -1, -1, -1]
        assert len(table) == len(known)


def test_a_key_with_one_row_gives_it_up_for_the_next() -> None:
    rows = SingleRows()
    rows.add(numbers([3, 5]), numbers([0, 1]))
    rows.add(numbers([5]), numbers([2]))
    assert len(rows) == 2
    assert [[each.tolist() for each in piece] for piece in rows.pieces(numbers([9, 5, 3, -1]))] == [
        [[1, 2], [2, 0]]
    ]
    rows.remove(numbers([5]), numbers([2]))
    assert rows.counts(numbers([3, 5])).tolist() == [1, 0]
