"""Joins by time whose rows have no room in memory give what they give in memory, in the same order:
with rows out of order and late, restarts, another backend and another number of subtasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.core.keys import channel_of_key_group
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.state import ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.relational.joins import temporal_rows_join
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.temporal_rows_join import TemporalRowsJoinOperator, TemporalTimes
from flinkpy.relational.state import waiting_rows
from flinkpy.relational.state.rows_by_group import groups_of_rows
from flinkpy.sql.rex.relational_terms import JoinKind
from tests.operators.harness import do_all
from tests.operators.in_pieces import InPieces
from tests.operators.joining import MAX_PARALLELISM
from tests.relational.changing_subtasks import KINDS, ChangingSubtasks, batch_of

pytest.importorskip("rocksdict")

NO_ROOM: dict[str, Any] = {STATE_BACKEND.key: "rocksdb", ROCKSDB_OBJECTS.key: "0 b"}
BACKENDS = st.sampled_from([NO_ROOM, NO_ROOM, {STATE_BACKEND.key: "rocksdb"}, {}])
ROWS = pa.schema([("k", pa.float64()), ("n", pa.int64()), ("t", pa.timestamp("ms"))])
BOTH = pa.schema([*ROWS, *(field.with_name(f"{field.name}0") for field in ROWS)])
Change: TypeAlias = "tuple[str, tuple[Any, ...]]"  # a kind, and key, number and time


class TwoInputs(ChangingSubtasks):
    """Subtasks of a join, which are given both sides by key."""

    def give(self, side: int, changes: Sequence[Change]) -> None:
        batch = batch_of(changes, ROWS)
        groups = groups_of_rows(batch.data, (0,), MAX_PARALLELISM).tolist()
        count = len(self.operators)
        channels = np.array([channel_of_key_group(g, MAX_PARALLELISM, count) for g in groups])
        for channel, operator in enumerate(self.operators):
            mine = np.flatnonzero(channels == channel)
            if len(mine):
                take = (operator.process_batch1, operator.process_batch2)[side]
                do_all(take(batch.take(mine)))


def temporal_join(kind: JoinKind, configuration: dict[str, Any]) -> TwoInputs:
    spec, times = JoinSpec(kind, (0,), (0,)), TemporalTimes(2, 2)

    def make() -> Any:
        return TemporalRowsJoinOperator(spec, times, ROWS, ROWS, BOTH, ALL_CHANGES)

    return TwoInputs(make, ROWS, (0,), configuration)


@pytest.fixture
def _narrow_slices() -> Iterator[None]:
    sorted_bytes = mock.patch.object(temporal_rows_join, "SORTED_BYTES", 0)
    with mock.patch.object(waiting_rows, "WIDTH", 3), sorted_bytes:
        yield


@st.composite
def two_sides(draw: st.DrawFn, kinds: Sequence[str], *, restarts: bool) -> list[Any]:
    """Rows of both sides, watermarks that go on, and restarts; the end of time."""
    keys = st.sampled_from([None, float("nan"), 0.0, -0.0, 1.0, 2.0])
    rows = st.tuples(
        st.sampled_from(kinds), st.tuples(keys, st.integers(0, 99), st.integers(0, 40))
    )
    sides = st.tuples(st.integers(0, 1), st.lists(rows, min_size=1, max_size=8))
    again = st.tuples(st.just("restart"), st.integers(1, 3), BACKENDS)
    kinds_of_steps = [sides, sides, st.just(0), *([again] if restarts else [])]
    steps: list[Any] = draw(st.lists(st.one_of(kinds_of_steps), max_size=12))
    now = 0
    for at, each in enumerate(steps):
        if each == 0:
            now += draw(st.integers(0, 15))
            steps[at] = now
    return [*steps, MAX_TIMESTAMP]


def run(of: TwoInputs, steps: Sequence[Any], *, changes_backend: bool = False) -> list[Change]:
    for step in steps:
        if isinstance(step, int):
            of.watermark(step)
        elif step[0] == "restart":
            of.restart(step[1], step[2] if changes_backend else None)
        else:
            of.give(*step)
    of.close()
    return of.output.changes


def by_key(changes: Sequence[Change]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for change in changes:
        key = change[1][0]
        found[repr(0.0 if key == 0 else key)].append(repr(change))
    return dict(found)


# their key groups are not in the order in which they come
IN_ONE_SLICE = [("+I", (float(key), key, 4)) for key in (9, 1, 5, 7, 2, 3)]
TEMPORAL_KINDS = st.sampled_from([JoinKind.INNER, JoinKind.LEFT])


@pytest.mark.usefixtures("_narrow_slices")
@settings(max_examples=60, deadline=None)
@given(two_sides(KINDS, restarts=False), TEMPORAL_KINDS)
@example([(0, IN_ONE_SLICE[:1]), (0, IN_ONE_SLICE[1:]), 5, MAX_TIMESTAMP], JoinKind.LEFT)
def test_rows_on_disk_meet_their_versions_and_go_out_as_they_came(
    steps: list[Any], kind: JoinKind
) -> None:
    wanted = run(temporal_join(kind, {}), steps)
    assert repr(run(temporal_join(kind, NO_ROOM), steps)) == repr(wanted)


@pytest.mark.usefixtures("_narrow_slices")
@settings(max_examples=60, deadline=None)
@given(two_sides(KINDS, restarts=True), TEMPORAL_KINDS)
def test_rows_on_disk_meet_their_versions_after_restarts(steps: list[Any], kind: JoinKind) -> None:
    wanted = run(temporal_join(kind, {}), steps)
    found = run(temporal_join(kind, NO_ROOM), steps, changes_backend=True)
    assert by_key(found) == by_key(wanted)


def waiting_left(configuration: dict[str, Any], rows: int, slices: int) -> tuple[TwoInputs, int]:
    """A join with so many rows of the left, each batch in so many slices; and the most bytes that
    they took."""
    of = temporal_join(JoinKind.LEFT, configuration)
    [operator] = of.operators
    most = 0
    for start in range(0, rows, 200):
        numbers = range(start, start + 200)
        times = (number * 7919 % slices * waiting_rows.WIDTH for number in numbers)
        of.give(0, [("+I", (0.0, number, time)) for number, time in zip(numbers, times)])
        most = max(most, operator.bytes_held())
    return of, most


def test_what_memory_holds_of_a_temporal_join_stays_within_its_share_until_all_go_out() -> None:
    share, rows = 256 << 10, 20_000
    of, most = waiting_left({**NO_ROOM, ROCKSDB_OBJECTS.key: f"{share} b"}, rows, 20)
    [operator] = of.operators
    left = operator._waiting[0]
    with mock.patch.object(left, "take", wraps=left.take) as take:
        of.watermark(MAX_TIMESTAMP)
    assert take.call_count > 10  # slice by slice
    assert most < 2 * share
    assert [row[1] for _, row in of.output.changes] == list(range(rows))
    of.close()


def test_a_second_checkpoint_of_a_temporal_join_writes_what_came_since(tmp_path: Path) -> None:
    of, _ = waiting_left({**NO_ROOM, CHECKPOINT_INCREMENTAL.key: "true"}, 20_000, 20)
    checkpoints = InPieces(of, tmp_path)
    written, _ = checkpoints.take()
    assert written > 200_000
    of.give(0, [("+I", (0.0, 1, 9)), ("+I", (1.0, 1, 9))])
    again, everything = checkpoints.take()
    assert everything > 200_000
    assert again < 20_000
    of.close()
