"""Savepoints and checkpoints of joins. In the canonical form others read the rows in typed columns;
in pieces a checkpoint writes chunks of rows once; and the join goes on from all of them."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.types import RowKind
from flinkpy.core.files import spool
from flinkpy.core.ids import JobId, OperatorId
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.state.canonical.canonical_reader import read_canonical
from flinkpy.state.canonical.canonical_writer import Place, write_canonical
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.snapshots.saved_state import SavedState
from tests.operators.in_pieces import InPieces
from tests.operators.joining import BARRIER, MAX_PARALLELISM
from tests.relational.joins_row_by_row import Row
from tests.relational.test_regular_join import (
    LAYOUTS,
    MEMORIES,
    SubtasksOfChanges,
    changelog,
    in_memory,
    in_turns,
    operator_for,
)

ROWS = [(float(at % 7), at % 4, at % 3) for at in range(60)]


def saved_by(of: SubtasksOfChanges, folder: Path) -> list[SavedState]:
    """What the subtasks have written as files, and what is read of these."""
    storage = FileCheckpointStorage(str(folder), JobId("job"))
    found = []
    for index, operator in enumerate(of.operators):
        place = Place(OperatorId("join"), "join", f"{index}-0")
        with storage.state_writer(1, f"join-{index}", 0) as writer:
            state = write_canonical(writer, operator.freeze_state(BARRIER), place)
        [checkpoint] = folder.rglob("chk-1")
        reader = storage.reader(str(checkpoint))
        groups = range(MAX_PARALLELISM)
        found.append(read_canonical(state.tables, reader.read, MAX_PARALLELISM, groups))
    return found


@pytest.mark.parametrize("memory", [None, "0 b"])
def test_a_savepoint_of_a_join_has_its_rows_in_typed_columns(
    memory: str | None, tmp_path: Path
) -> None:
    layouts = [LAYOUTS["any rows"], LAYOUTS["rows that only come"]]
    of = SubtasksOfChanges(
        operator_for(JoinKind.LEFT, layouts, ttl=(60_000, 0)), 2, configuration=in_memory(memory)
    )
    of.push_changes(0, [(RowKind.INSERT, row) for row in ROWS])
    of.push_changes(1, [(RowKind.INSERT, (1.0, 9, 9))])
    saved = saved_by(of, tmp_path)
    tables = [pq.read_table(each) for each in sorted(tmp_path.rglob("join-*.left.*.parquet"))]
    assert tables[0].schema.remove_metadata() == pa.schema(
        [
            pa.field("key_group", pa.int32(), nullable=False),
            pa.field("$key", pa.int64(), nullable=False),
            pa.field("k", pa.float64()),
            pa.field("id", pa.int64()),
            pa.field("v", pa.int64()),
            pa.field("$partners", pa.int64()),
            pa.field("$written", pa.int64()),
            pa.field("$copies", pa.int64()),
        ]
    )
    kept = pa.concat_tables(tables).to_pylist()
    copies = Counter({(each["k"], each["id"], each["v"]): each["$copies"] for each in kept})
    assert copies == Counter(ROWS)
    assert {each["k"]: each["$partners"] for each in kept} == {
        float(key): int(key == 1) for key in range(7)
    }
    of.close()
    of.start(3, saved)
    found = of.push_changes(0, [(RowKind.DELETE, row) for row in ROWS])
    assert Counter(row for kind, row in found if kind is RowKind.DELETE) == Counter(
        (*row, *((1.0, 9, 9) if row[0] == 1 else (None, None, None))) for row in ROWS
    )


@settings(max_examples=8)
@given(
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from([JoinKind.INNER, JoinKind.FULL, JoinKind.ANTI]),
    st.sampled_from(MEMORIES),
    st.integers(0, 1 << 32),
)
def test_a_join_goes_on_from_checkpoints_in_pieces(
    layout: str, kind: JoinKind, memory: str | None, seed: int
) -> None:
    chance = random.Random(seed)
    layouts = [LAYOUTS[layout]] * 2
    options = {**in_memory(memory), CHECKPOINT_INCREMENTAL.key: "true"}
    of = SubtasksOfChanges(operator_for(kind, layouts), 2, configuration=options)
    plain = SubtasksOfChanges(operator_for(kind, layouts))
    changes = [changelog(chance, 40, *each) for each in layouts]
    with TemporaryDirectory() as folder:
        checkpoints = InPieces(of, Path(folder))
        for at, (side, batch) in enumerate(in_turns(chance, changes, 5)):
            found = of.push_changes(side, batch)
            assert Counter(found) == Counter(plain.push_changes(side, batch))
            if at % 3 == 1:
                checkpoints.take()
            if at in (7, 10):
                checkpoints.take()
                checkpoints.restart(chance.choice([1, 2, 3]))


def test_a_checkpoint_writes_little_of_a_join_of_which_little_was_touched(tmp_path: Path) -> None:
    options = {CHECKPOINT_INCREMENTAL.key: "true"}
    of = SubtasksOfChanges(
        operator_for(JoinKind.LEFT, [LAYOUTS["any rows"]] * 2), configuration=options
    )
    rows: list[Row] = [(float(at), at, at) for at in range(20_000)]
    of.push_changes(0, [(RowKind.INSERT, row) for row in rows])
    checkpoints = InPieces(of, tmp_path)
    checkpoints.take()
    for begin in range(3):
        some = rows[begin::100]
        of.push_changes(0, [(RowKind.DELETE, row) for row in some])
        of.push_changes(0, [(RowKind.INSERT, (row[0], -1, -1)) for row in some])
        written, all_bytes = checkpoints.take()
        assert written <= 0.05 * all_bytes


def test_a_join_takes_back_rows_chunk_by_chunk_and_saves_them_as_they_were(tmp_path: Path) -> None:
    options = {**in_memory("1 mb"), CHECKPOINT_INCREMENTAL.key: "true"}
    of = SubtasksOfChanges(
        operator_for(JoinKind.LEFT, [LAYOUTS["any rows"]] * 2), configuration=options
    )
    rows: list[Row] = [(float(at), at, at) for at in range(300_000)]
    for begin in range(0, len(rows), 30_000):
        of.push_changes(0, [(RowKind.INSERT, row) for row in rows[begin : begin + 30_000]])
    checkpoints = InPieces(of, tmp_path)
    _, all_bytes = checkpoints.take()
    states = checkpoints.states
    tracemalloc.start()
    try:
        checkpoints.restart(1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert of.operators[0].entries_held() == len(rows)
    assert peak < all_bytes
    checkpoints.states = states
    written, _ = checkpoints.take()
    assert written <= 0.2 * all_bytes


def test_a_savepoint_of_a_join_is_written_a_key_group_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", 1 << 20)
    of = SubtasksOfChanges(
        operator_for(JoinKind.LEFT, [LAYOUTS["any rows"]] * 2), configuration=in_memory("1 mb")
    )
    rows: list[Row] = [(float(at), at, at) for at in range(300_000)]
    for begin in range(0, len(rows), 30_000):
        of.push_changes(0, [(RowKind.INSERT, row) for row in rows[begin : begin + 30_000]])
    del rows
    keyed = of.operators[0].freeze_state(BARRIER).keyed
    tracemalloc.start()
    try:
        size = sum(map(len, keyed.chunks()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 8 << 20
    assert peak < size, (peak, size)
