"""Rows by key that have no room in memory give what they give in memory: on disk from the first
record on, with restarts, with another backend and another number of subtasks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.state import ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk
from flinkpy.relational.in_time.first_rows import FirstRowsOperator
from flinkpy.relational.ranks.deduplicated_rows import LastRowsOperator
from flinkpy.relational.ranks.normalized_rows import NormalizedRowsOperator
from flinkpy.sql.rex.relational_terms import JoinKind
from tests.operators.in_pieces import InPieces
from tests.relational import test_versions_of_tables as versions
from tests.relational.changing_subtasks import RESTART, ChangingSubtasks, parts_of
from tests.relational.drawn_changes import ROWS, SIZES, inserts, upserts

pytest.importorskip("rocksdict")

NO_ROOM: dict[str, Any] = {STATE_BACKEND.key: "rocksdb", ROCKSDB_OBJECTS.key: "0 b"}
BACKENDS = st.sampled_from([NO_ROOM, NO_ROOM, {}])
PAUSES = st.sampled_from([0, 0.4, 1.2])

MAKERS: dict[str, Callable[[int], Any]] = {
    "the first row": lambda ttl_ms: FirstRowsOperator(ROWS, None, (0,), ROWS, ttl_ms=ttl_ms),
    "the last row, by two keys": lambda ttl_ms: LastRowsOperator(
        ROWS, None, (1, 0), ROWS, ALL_CHANGES, ttl_ms
    ),
    "upserts": lambda ttl_ms: NormalizedRowsOperator(ROWS, (0,), ROWS, ALL_CHANGES, ttl_ms),
    "each of the upserts": lambda ttl_ms: NormalizedRowsOperator(
        ROWS, (1,), ROWS, ALL_CHANGES, ttl_ms, every_change=True
    ),
}


@pytest.fixture
def _writes_row_by_row() -> Iterator[None]:
    with mock.patch.multiple(RowsOnDisk, few=1, at_once=1):
        yield


@pytest.mark.usefixtures("_writes_row_by_row")
@settings(max_examples=40, deadline=None)
@given(st.data(), SIZES, st.sampled_from([0, 1000]))
@pytest.mark.parametrize("kind", MAKERS)
def test_rows_by_key_without_room_in_memory_give_what_they_give_in_memory(
    kind: str, data: st.DataObject, size: int, ttl_ms: int
) -> None:
    changes = data.draw(upserts() if "upserts" in kind else inserts())
    make = functools.partial(MAKERS[kind], ttl_ms)
    keys = make().keys
    beyond, within = (ChangingSubtasks(make, ROWS, keys, each) for each in (NO_ROOM, {}))
    for part in parts_of(changes, size):
        pause = data.draw(PAUSES)
        for each in (beyond, within):
            each.timers.advance(pause)
        if part == RESTART:
            parallelism = data.draw(st.sampled_from([1, 3]))
            beyond.restart(parallelism, data.draw(BACKENDS))
            within.restart(parallelism)
        else:
            assert beyond.take(part) == within.take(part)
    for each in (beyond, within):
        each.close()


@pytest.mark.usefixtures("_writes_row_by_row")
@settings(max_examples=40, deadline=None)
@given(versions.two_sides(), SIZES, st.sampled_from([0, 50]), st.data())
def test_versions_without_room_in_memory_are_met_as_in_memory(
    steps: list[Any], size: int, ttl_ms: int, data: st.DataObject
) -> None:
    beyond, within = (versions.TwoInputs(JoinKind.LEFT, ttl_ms) for _ in range(2))
    beyond.restart(1, NO_ROOM)
    for step in steps:
        pause = data.draw(PAUSES)
        for each in (beyond, within):
            each.timers.advance(pause / 10)
            if isinstance(step, int):
                each.watermark(step)
            elif step[0] == "restart":
                each.restart(step[1], data.draw(BACKENDS) if each is beyond else None)
            else:
                for part in parts_of(step[1], size):
                    each.give(step[0], part)
    # a restart leaves the rows of a key in their order
    assert of_keys(beyond.output.changes) == of_keys(within.output.changes)
    for each in (beyond, within):
        each.close()


def of_keys(changes: list[Any]) -> dict[Any, list[Any]]:
    """The changes of each key, in their order."""
    found: dict[Any, list[Any]] = {}
    for change in changes:
        found.setdefault(change[1][0], []).append(change)
    return found


def test_what_memory_holds_of_last_rows_stays_within_its_share_however_many_keys_there_are() -> (
    None
):
    share, keys = 64 << 10, 20_000
    options = {**NO_ROOM, ROCKSDB_OBJECTS.key: f"{share} b"}
    of = ChangingSubtasks(lambda: MAKERS["upserts"](0), ROWS, (0,), options)
    [operator] = of.operators
    most = 0
    for start in [*range(0, keys, 200), 0]:
        given = of.take([("+U", (key, f"of {key}", 0.5, 1)) for key in range(start, start + 200)])
        most = max(most, operator.bytes_held())
    # what is on its way to disk counts, too; and what one batch brings
    assert most < 4 * share
    assert given == []  # all rows stood there
    last = of.take([("-D", (keys - 1, None, None, None))])
    assert last == [("-D", (keys - 1, f"of {keys - 1}", 0.5, 1))]
    of.close()


@pytest.mark.usefixtures("_writes_row_by_row")
def test_rows_that_have_expired_are_swept_from_disk() -> None:
    of = ChangingSubtasks(lambda: MAKERS["upserts"](1000), ROWS, (0,), NO_ROOM)
    for start in range(0, 300, 10):
        of.take([("+I", (key, "a", 1.0, 1)) for key in range(start, start + 10)])
        of.timers.advance(0.1)
    [operator] = of.operators
    assert sum(rows.num_rows for rows in operator._kept._disk.all_rows()) < 200
    of.close()


@pytest.mark.usefixtures("_writes_row_by_row")
@pytest.mark.parametrize("backend", [NO_ROOM, {}])
def test_rows_on_disk_and_on_their_way_there_are_in_a_checkpoint(backend: dict[str, Any]) -> None:
    of = ChangingSubtasks(lambda: MAKERS["upserts"](1000), ROWS, (0,), NO_ROOM)
    for key in range(10):
        of.take([("+I", (key, "a", 1.0, 1)), ("+I", (key + 10, "b", 1.0, 1))])
        of.timers.advance(0.1)
    of.restart(3, backend)
    of.timers.advance(0.65)
    deleted = [of.take([("-D", (key, None, None, None))]) for key in range(20)]
    # the last ones were written to 0.75, 0.85 and 0.95 seconds ago
    assert [len(each) for each in deleted] == 2 * [*[0] * 7, 1, 1, 1]
    of.close()


@pytest.mark.usefixtures("_writes_row_by_row")
def test_a_key_that_was_deleted_does_not_come_back_from_disk() -> None:
    of = ChangingSubtasks(lambda: MAKERS["upserts"](0), ROWS, (0,), NO_ROOM)
    for key in range(10):
        of.take([("+I", (key, "a", 1.0, 1))])
    assert len(of.take([("-D", (3, None, None, None))])) == 1
    of.restart(2, NO_ROOM)
    assert of.take([("-D", (3, None, None, None))]) == []
    of.close()


def test_an_incremental_checkpoint_of_the_rows_of_many_keys_writes_those_of_few(
    tmp_path: Path,
) -> None:
    options = {**NO_ROOM, CHECKPOINT_INCREMENTAL.key: True}
    of = ChangingSubtasks(lambda: MAKERS["upserts"](0), ROWS, (0,), options)
    for start in range(0, 5_000, 500):
        of.take([("+U", (key, "a", 1.0, 1)) for key in range(start, start + 500)])
    few = range(0, 5_000, 500)
    of.take([("+U", (key, "b", 1.0, 1)) for key in few])  # all others are written now
    checkpoints = InPieces(of, tmp_path)
    first = checkpoints.written()
    of.take([("+U", (key, "c", 1.0, 1)) for key in few])
    assert checkpoints.written() < first / 20
    checkpoints.restart(2)
    deleted = of.take([("-D", (key, None, None, None)) for key in range(5_000)])
    assert [row[1] for _, row in deleted].count("c") == len(few)
    assert len(deleted) == 5_000
    of.close()
