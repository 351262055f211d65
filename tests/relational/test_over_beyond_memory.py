"""OVER whose partitions have no room in memory gives what it gives in memory: on disk from the first
row on, with restarts, with another backend and another number of subtasks."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.state import ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk
from flinkpy.relational.in_time.over_in_time import OverInTimeOperator
from flinkpy.sql.rex.relational_terms import Frame, OverGroup
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from tests.operators.in_pieces import InPieces
from tests.operators.joining import disordered
from tests.relational.subtasks_of_tables import ROWS, SubtasksOfTables
from tests.relational.test_rows_in_time import CALLS, FRAMES, OF_PLACES

pytest.importorskip("rocksdict")

NO_ROOM: dict[str, Any] = {STATE_BACKEND.key: "rocksdb", ROCKSDB_OBJECTS.key: "0 b"}
BACKENDS = st.sampled_from([NO_ROOM, NO_ROOM, {}])


@pytest.fixture
def _writes_row_by_row() -> Iterator[None]:
    with mock.patch.multiple(RowsOnDisk, few=1, at_once=1):
        yield


def over(frame: Frame, calls: tuple[AggregateCall, ...], *, is_rowtime: bool) -> OverInTimeOperator:
    group = OverGroup((0,), (SortKey(2),), frame, calls)
    added = [pa.field(f"w{at}", pa.int64()) for at in range(len(calls))]
    return OverInTimeOperator(group, ROWS, pa.schema([*ROWS, *added]), is_rowtime=is_rowtime)


@pytest.mark.usefixtures("_writes_row_by_row")
@settings(max_examples=40, deadline=None)
@given(disordered(6), st.booleans(), st.data())
@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_partitions_without_room_in_memory_have_the_results_that_they_have_in_memory(
    frame: Frame, steps: list[Any], is_rowtime: bool, data: st.DataObject
) -> None:
    calls = FRAMES[frame]
    if data.draw(st.booleans()):
        calls = (*calls, OF_PLACES[0])
    make = functools.partial(over, frame, calls, is_rowtime=is_rowtime)
    beyond, within = SubtasksOfTables(make), SubtasksOfTables(make)
    beyond.restart(1, NO_ROOM)
    for step in steps:
        for each in (beyond, within):
            if isinstance(step, int):
                each.watermark(step)
            elif step[0] == "restart":
                each.restart(step[1], data.draw(BACKENDS) if each is beyond else None)
            else:
                # the clock goes on from row to row
                in_order = [(value, value[1]) for value, _ in step[1]]
                each.push(0, step[1] if is_rowtime else in_order)
    assert Counter(beyond.output.rows) == Counter(within.output.rows)
    for each in (beyond, within):
        each.close()


@pytest.mark.usefixtures("_writes_row_by_row")
@pytest.mark.parametrize("backend", [NO_ROOM, {}])
@pytest.mark.parametrize("frame", [Frame("ROWS", None, 0), Frame("ROWS", -2, 0)])
def test_partitions_on_disk_and_on_their_way_there_are_in_a_checkpoint(
    frame: Frame, backend: dict[str, Any]
) -> None:
    of = SubtasksOfTables(functools.partial(over, frame, CALLS[:2], is_rowtime=False))
    of.restart(1, NO_ROOM)
    for key in range(10):
        of.push(0, [((key, 1), key), ((key + 10, 2), key)])
    of.restart(3, backend)
    before = len(of.output.rows)
    for key in range(20):
        of.push(0, [((key, 5), 100)])
    last = [row[3:] for row in of.output.rows[before:]]
    assert last == [(2, 6)] * 10 + [(2, 7)] * 10
    of.close()


@pytest.mark.parametrize("frame", [Frame("ROWS", None, 0), Frame("ROWS", -2, 0)])
def test_what_memory_holds_of_partitions_stays_within_its_share_however_many_there_are(
    frame: Frame,
) -> None:
    share, keys = 64 << 10, 20_000
    of = SubtasksOfTables(functools.partial(over, frame, CALLS[:2], is_rowtime=False))
    of.restart(1, {**NO_ROOM, ROCKSDB_OBJECTS.key: f"{share} b"})
    [operator] = of.operators
    most = 0
    for at, start in enumerate([*range(0, keys, 200), 0]):
        of.push(0, [((key, 1), at) for key in range(start, start + 200)])
        most = max(most, operator.bytes_held())
    # beyond it by what one batch brings
    assert most < 2 * share
    assert {row[3:] for row in of.output.rows[-200:]} == {(2, 2)}
    of.close()


@pytest.mark.usefixtures("_writes_row_by_row")
def test_partitions_whose_rows_are_over_are_swept_from_disk() -> None:
    of = SubtasksOfTables(functools.partial(over, Frame("RANGE", -4, 0), CALLS, is_rowtime=True))
    of.restart(1, NO_ROOM)
    for time in range(100):
        of.push(0, [((time, 1), time)])
        of.watermark(time)
    [operator] = of.operators
    assert sum(rows.num_rows for rows in operator._disk.all_rows()) < 10
    of.close()


@pytest.mark.parametrize("frame", [Frame("ROWS", None, 0), Frame("ROWS", -2, 0)])
def test_an_incremental_checkpoint_of_many_partitions_writes_what_few_rows_change(
    frame: Frame, tmp_path: Path
) -> None:
    of = SubtasksOfTables(functools.partial(over, frame, CALLS[:2], is_rowtime=False))
    of.restart(1, {**NO_ROOM, CHECKPOINT_INCREMENTAL.key: True})
    for start in range(0, 5_000, 500):
        of.push(0, [((key, 1), 0) for key in range(start, start + 500)])
    few = [((key, 1), 1) for key in range(0, 5_000, 500)]
    of.push(0, few)  # all others are written now
    checkpoints = InPieces(of, tmp_path)
    first = checkpoints.written()
    of.push(0, few)
    assert checkpoints.written() < first / 20
    checkpoints.restart(2)
    of.push(0, [((key, 1), 2) for key in range(5_000)])
    counts = Counter(row[3] for row in of.output.rows[-5_000:])
    assert counts == {2: 4_990, 4 if frame.lower is None else 3: 10}
    of.close()
