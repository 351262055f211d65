"""Lookup joins alone: every form of the table against a loop over its rows."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.sql.calc_program import CalcProgram, ProgramBuilder
from flinkpy.common.logical_types.logical_type import BigIntType, RowType
from flinkpy.connectors.memory.joined_tables import HeldTable
from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import BadRecordError
from flinkpy.operators.columnar.table_join import JoinedTable
from flinkpy.relational.lookups.asked_rows import AskedRows
from flinkpy.relational.lookups.kept_answers import KeptAnswers
from flinkpy.relational.lookups.lookup_join import LookupJoinOperator
from flinkpy.relational.lookups.lookup_port import AskedTable, CacheRules
from flinkpy.relational.lookups.rows_beside import LookupSpec
from flinkpy.sql.catalog.catalog_port import CatalogTable
from flinkpy.sql.syntax.statements import ColumnDefinition
from flinkpy.table.factories.files.filesystem_tables import FilesystemFactory
from flinkpy.table.factories.files.looked_up_files import FilesTable
from tests.windowing.slice_harness import Alone

BIGINT = BigIntType()
LEFT = pa.schema([("k", pa.int64()), ("n", pa.int64())])
FOUND = pa.schema([("key", pa.int64()), ("v", pa.int64())])
SCHEMA = pa.schema([*LEFT, *FOUND])
KEYS = st.none() | st.integers(0, 4)
NUMBERS = st.none() | st.integers(0, 3)
Rows = list[tuple[Any, ...]]


def key() -> CalcProgram:
    builder = ProgramBuilder()
    return builder.program([builder.input(0, BIGINT)])


def asked(rows: Rows, cache: CacheRules | None, calls: list[int]) -> AskedTable:
    def find(key: int) -> Rows:
        calls.append(key)
        return [row for row in rows if row[0] == key]

    row = RowType.of(("key", BIGINT), ("v", BIGINT))
    return AskedTable(find, row, ("key",), ("key",), ("key", "v"), cache=cache)


def joined(table: JoinedTable | AskedTable, keeps_left: bool) -> Alone:
    spec = LookupSpec(key(), LEFT, FOUND, keeps_left)
    return Alone(LookupJoinOperator(spec, table, ("key",), SCHEMA))


def columns_of(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows)) or [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(KEYS, NUMBERS, st.integers(0, 3)), max_size=9),
    st.lists(st.tuples(KEYS, NUMBERS), max_size=7),
    st.booleans(),
    st.sampled_from(["held", "asked", "kept"]),
    st.sampled_from([1, 4, 9]),
)
def test_each_row_meets_the_rows_of_its_key_and_keeps_its_kind(
    left: Rows, right: Rows, keeps_left: bool, form: str, size: int
) -> None:
    expected = []
    for at, number, kind in left:
        partners: Rows = [row for row in right if at is not None and row[0] == at]
        if keeps_left and not partners:
            partners = [(None, None)]
        expected += [(kind, at, number, *partner) for partner in partners]
    calls: list[int] = []
    cache = CacheRules() if form == "kept" else None
    table: JoinedTable | AskedTable = asked(right, cache, calls)
    if form == "held":
        table = HeldTable(pa.Table.from_batches([columns_of(right, FOUND)]))
    subtask = joined(table, keeps_left)
    for begin in range(0, len(left), size):
        part = left[begin : begin + size]
        kinds = np.array([kind for *_, kind in part], np.int8)
        subtask.push(ColumnBatch(columns_of([row[:2] for row in part], LEFT), None, kinds))
    found = []
    for batch in subtask.out.batches:
        assert isinstance(batch, ColumnBatch)
        given = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        found += [(kind, *row.values()) for kind, row in zip(given, batch.data.to_pylist())]
    assert found == expected
    if form == "kept":
        assert len(calls) == len(set(calls)), "each key was asked once"


def test_answers_are_kept_as_the_rules_of_the_cache_say() -> None:
    clock = ManualClock()
    written = KeptAnswers(CacheRules(after_write=timedelta(seconds=10)), clock)
    used = KeptAnswers(CacheRules(2, after_access=timedelta(seconds=10)), clock)
    missing = KeptAnswers(CacheRules(keeps_missing=False), clock)
    for kept in (written, used, missing):
        kept.keep((1,), [("a",)])
        kept.keep((2,), [])
    clock.advance(6)
    assert (written.get((1,)), used.get((1,)), missing.get((2,))) == ([("a",)], [("a",)], None)
    missing.keep((9,), [("z",)])
    missing.clear()
    assert missing.get((9,)) is None
    missing.keep((1,), [("a",)])
    used.keep((3,), [])  # 2 was used longest ago
    assert used.get((2,)) is None
    clock.advance(6)
    assert (written.get((1,)), used.get((1,)), missing.get((1,))) == (None, [("a",)], [("a",)])


def test_a_call_that_fails_is_repeated_and_its_error_names_function_and_key() -> None:
    attempts: list[int] = []

    def cities(id: int) -> Any:
        attempts.append(id)
        if len(attempts) < 3:
            raise ConnectionError("the server is away")
        return {"id": id, "name": 7}

    row = RowType.of(("id", BIGINT), ("name", BIGINT))
    subtask = joined(HeldTable(pa.table({"key": [1], "v": [1]})), False)
    keys = pa.record_batch({"id": pa.array([5])})
    table = AskedTable(cities, row, ("id",), ("id",), ("name",), retries=2)
    found = AskedRows(table, subtask.operator.context).find(keys)
    assert (found.rows.to_pylist(), attempts) == ([{"name": 7}], [5, 5, 5])
    attempts.clear()
    table = AskedTable(cities, row, ("id",), ("id",), ("name",), retries=1)
    with pytest.raises(BadRecordError, match=r"cities\(\.\.\.\): the server is away.*\(id=5\)"):
        AskedRows(table, subtask.operator.context).find(keys)


def test_a_coroutine_is_asked_for_all_keys_at_once() -> None:
    under_way: set[int] = set()

    async def met(key: int) -> tuple[int, int]:
        under_way.add(key)
        while len(under_way) < 3:
            await asyncio.sleep(0)
        return key, key * 10

    row = RowType.of(("key", BIGINT), ("v", BIGINT))
    subtask = joined(HeldTable(pa.table({"key": [1], "v": [1]})), False)
    table = AskedTable(met, row, ("key",), ("key",), ("v",), is_async=True)
    rows = AskedRows(table, subtask.operator.context)
    keys = pa.record_batch({"key": pa.array([1, 2, 1, 3])})
    found = asyncio.run(rows.find_together(keys, asyncio.Semaphore(3)))
    assert found.rows.column(0).to_pylist() == [10, 20, 10, 30]


def test_files_are_read_again_and_rows_meet_those_of_before_until_then(tmp_path: Path) -> None:
    columns = tuple(ColumnDefinition(name, BIGINT) for name in FOUND.names)
    options = {"connector": "filesystem", "path": str(tmp_path), "format": "csv"}
    subtask = joined(
        FilesTable(FilesystemFactory(), CatalogTable(columns, options), FOUND, 60.0), True
    )

    def value_now() -> list[Any]:
        before = len(subtask.out.batches)
        subtask.push(ColumnBatch(columns_of([(1, 1)], LEFT)))
        return [row["v"] for each in subtask.out.batches[before:] for row in each.data.to_pylist()]  # type: ignore[union-attr]

    assert value_now() == [None]  # there are no files yet
    (tmp_path / "a.csv").write_text("1,10\n")
    (tmp_path / "b.csv").write_text("2,20\n1,11\n")
    assert value_now() == [None]
    threads = set(threading.enumerate())
    subtask.timers.advance(60.0)
    for thread in set(threading.enumerate()) - threads:
        thread.join()
    assert value_now() == [10, 11]
    subtask.operator.close()
