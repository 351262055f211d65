"""Rows that wait for the watermark and have no room in memory have their turn as in memory: with
late rows, restarts, another backend and another number of subtasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.state import ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.relational.in_time.first_rows import FirstRowsOperator
from flinkpy.relational.in_time.temporal_sort import TemporalSortOperator
from flinkpy.relational.state import waiting_rows
from flinkpy.sql.rex.relational_terms import Frame
from flinkpy.sql.rex.rex_nodes import SortKey
from tests.operators.in_pieces import InPieces
from tests.operators.joining import disordered
from tests.relational.subtasks_of_tables import ROWS, SubtasksOfTables
from tests.relational.test_over_beyond_memory import over
from tests.relational.test_rows_in_time import CALLS

pytest.importorskip("rocksdict")

NO_ROOM: dict[str, Any] = {STATE_BACKEND.key: "rocksdb", ROCKSDB_OBJECTS.key: "0 b"}
BACKENDS = st.sampled_from([NO_ROOM, NO_ROOM, {}])

MAKERS: dict[str, Callable[[], Any]] = {
    "over": lambda: over(Frame("ROWS", None, 0), CALLS, is_rowtime=True),
    "first rows": lambda: FirstRowsOperator(ROWS, 2, (0,), ROWS),
    "sort": lambda: TemporalSortOperator((SortKey(2),), ROWS),
}


@pytest.fixture
def _narrow_slices() -> Iterator[None]:
    with mock.patch.object(waiting_rows, "WIDTH", 3):
        yield


def by_key(rows: list[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    found: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row)
    return dict(found)


@pytest.mark.usefixtures("_narrow_slices")
@settings(max_examples=40, deadline=None)
@given(disordered(6), st.data())
@pytest.mark.parametrize("kind", MAKERS)
def test_rows_without_room_in_memory_have_their_turn_as_in_memory(
    kind: str, steps: list[Any], data: st.DataObject
) -> None:
    beyond, within = (SubtasksOfTables(MAKERS[kind], by_key=kind != "sort") for _ in range(2))
    beyond.restart(1, NO_ROOM)
    for step in steps:
        for each in (beyond, within):
            if isinstance(step, int):
                each.watermark(step)
            elif step[0] == "restart":
                parallelism = 1 if kind == "sort" else step[1]
                each.restart(parallelism, data.draw(BACKENDS) if each is beyond else None)
            else:
                each.push(0, step[1])
    if kind == "sort":
        assert beyond.output.rows == within.output.rows
    assert by_key(beyond.output.rows) == by_key(within.output.rows)
    for each in (beyond, within):
        each.close()


@pytest.mark.usefixtures("_narrow_slices")
@pytest.mark.parametrize("backend", [{STATE_BACKEND.key: "rocksdb"}, {}])
def test_rows_on_disk_are_in_a_checkpoint_and_come_before_those_of_their_time_in_memory(
    backend: dict[str, Any],
) -> None:
    of = SubtasksOfTables(MAKERS["sort"], by_key=False)
    of.restart(1, NO_ROOM)
    of.push(0, [((0, 1), 50), ((0, 2), 90), ((0, 3), 50)])
    assert of.operators[0].entries_held() == 0  # all are on disk
    of.restart(1, backend)
    of.push(0, [((0, 4), 50), ((0, 5), 52)])
    of.watermark(51)
    assert [row[1] for row in of.output.rows] == [1, 3, 4]
    of.restart(1, {})
    of.watermark(MAX_TIMESTAMP)
    assert [row[1] for row in of.output.rows] == [1, 3, 4, 5, 2]
    of.close()


def test_what_memory_holds_of_waiting_rows_stays_within_its_share_however_many_there_are() -> None:
    share, rows, width = 64 << 10, 20_000, waiting_rows.WIDTH
    of = SubtasksOfTables(MAKERS["sort"], by_key=False)
    of.restart(1, {**NO_ROOM, ROCKSDB_OBJECTS.key: f"{share} b"})
    [operator] = of.operators
    most = 0
    for start in range(0, rows, 200):
        # 20 slices, of which each batch has some rows
        numbers = range(start, start + 200)
        of.push(0, [((0, number), number * 7919 % 20 * width) for number in numbers])
        most = max(most, operator.bytes_held())
    with mock.patch.object(operator, "take_in_time", wraps=operator.take_in_time) as taken:
        for moment in (5 * width, MAX_TIMESTAMP):
            of.watermark(moment)
    taken_at_once = [call.args[0].nbytes for call in taken.call_args_list]
    assert max(most, *taken_at_once) < 2 * share
    assert len(of.output.rows) == rows
    times = [row[2] for row in of.output.rows]
    assert times == sorted(times)
    of.close()


def test_an_incremental_checkpoint_of_many_waiting_rows_writes_the_few_that_came(
    tmp_path: Path,
) -> None:
    width = waiting_rows.WIDTH
    of = SubtasksOfTables(MAKERS["first rows"])
    of.restart(1, {**NO_ROOM, CHECKPOINT_INCREMENTAL.key: True})
    for start in range(0, 6_000, 1_000):
        of.push(0, [((key, 1), 50 + key % 7 * width) for key in range(start, start + 1_000)])
    checkpoints = InPieces(of, tmp_path)
    first = checkpoints.written()
    of.push(0, [((key, 2), 50 + key % 7 * width) for key in range(6_000, 6_010)])
    assert checkpoints.written() < first / 20
    checkpoints.restart(2)
    of.watermark(MAX_TIMESTAMP)
    assert len(of.output.rows) == 6_010
    of.close()
