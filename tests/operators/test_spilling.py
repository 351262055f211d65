"""Rows of batch jobs in files: by key, and gone with their operator."""

from __future__ import annotations

import doctest
import errno
import os
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.operators.spilling import batch_file, key_partitions
from flinkpy.operators.spilling.key_partitions import KeyPartitions, RowWeight, partition_numbers
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.operators.spilling.portions import portions
from tests.open_files import open_spill_files

SCHEMA = pa.schema([("k", pa.float64()), ("t", pa.string()), ("number", pa.int64())])
KEYS = st.tuples(
    st.none() | st.sampled_from([0.0, -0.0, float("nan"), 1.0]) | st.integers(0, 99).map(float),
    st.none() | st.sampled_from(["", "a", "longer than a word of eight bytes"]),
)


def batch_of(keys: list[Any], first: int) -> pa.RecordBatch:
    rows = [(*key, first + at) for at, key in enumerate(keys)]
    columns = [pa.array(column, each.type) for column, each in zip(zip(*rows), SCHEMA)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def as_key(row: dict[str, Any]) -> Any:
    number = row["k"]
    return "NaN" if number is not None and number != number else number, row["t"]


@given(
    st.lists(st.lists(KEYS, min_size=1, max_size=9), max_size=9),
    st.sampled_from([0, 400, 2000, None]),
    st.integers(0, 2),
)
@settings(max_examples=25)
def test_each_portion_has_all_rows_of_its_keys_in_their_order(
    batches: list[list[Any]], limit: int | None, level: int
) -> None:
    memory = OperatorMemory(limit)
    rows = KeyPartitions((0, 1), memory, level, keeps=memory.kept, weight=RowWeight(1, 8))
    given_keys: list[Any] = []
    for keys in batches:
        rows.add(batch_of(keys, len(given_keys)))
        given_keys += keys
    found: dict[Any, list[int]] = {}
    for portion in portions(rows):
        of_portion: dict[Any, list[int]] = {}
        for row in (row for data in portion for row in data.to_pylist()):
            of_portion.setdefault(as_key(row), []).append(row["number"])
        assert not of_portion.keys() & found.keys()
        found |= of_portion
    wanted: dict[Any, list[int]] = {}
    for number, (k, t) in enumerate(given_keys):
        wanted.setdefault(as_key({"k": k, "t": t}), []).append(number)
    assert found == wanted
    assert memory.spilled or limit != 0 or not batches
    memory.close()


def test_keys_are_spread_by_each_level_anew_and_equal_ones_of_any_type_are_together() -> None:
    keys = range(6400)
    types = [pa.int64(), pa.int16(), pa.float64(), pa.decimal128(9, 2), pa.uint64()]
    seen = [""] * len(keys)
    for level in range(key_partitions.LEVELS):
        found = [
            partition_numbers(pa.record_batch([pa.array(keys, kind)], names=["k"]), (0,), level)
            for kind in types
        ]
        assert all((found[0] == each).all() for each in found)
        seen = [f"{before} {number}" for before, number in zip(seen, found[0].tolist())]
        assert len(set(seen)) > min(0.8 * 32 ** (level + 1), 5000)


def test_a_partition_that_the_next_bits_cannot_split_is_given_as_it_is() -> None:
    memory = OperatorMemory(1000)
    rows = KeyPartitions((0, 1), memory, keeps=memory.kept)
    for first in range(0, 900, 9):
        rows.add(batch_of([(1.0, "a")] * 9, first))
    found = [[data.column(2).to_pylist() for data in portion] for portion in portions(rows)]
    assert len(found) == 1
    assert [number for numbers in found[0] for number in numbers] == [*range(900)]
    memory.close()


def test_files_are_gone_when_their_rows_were_read_and_when_the_operator_closes() -> None:
    before, memory = open_spill_files(), OperatorMemory(0)
    rows, others = KeyPartitions((0,), memory), KeyPartitions((0,), memory)
    for each in (rows, others):
        each.add(batch_of([(1.0, "a"), (2.0, "b")], 0))
    assert open_spill_files() == before + 2
    written = memory.spilled
    assert sum(data.num_rows for portion in portions(rows) for data in portion) == 2
    assert open_spill_files() == before + 1
    memory.close()
    assert open_spill_files() == before
    assert memory.spilled >= written > 0


def test_a_full_disk_is_told_with_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    memory = OperatorMemory(0)
    with pytest.raises(ResourceUnavailableError, match=r"No space left .* set io\.tmp\.dirs"):
        KeyPartitions((0,), memory).add(batch_of([(1.0, "a")], 0))
    memory.close()


def test_the_documentation_holds() -> None:
    assert doctest.testmod(batch_file).failed == 0
