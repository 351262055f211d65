"""Joins by time whose rows have no room in memory give what they give in memory, in the same order:
with rows out of order and late, restarts, another backend and another number of subtasks."""

from __future__ import annotations

import base64
import zlib
from collections import Counter, defaultdict
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
from flinkpy.core.options.state import COLUMNS_MEMORY, ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.relational.joins import temporal_rows_join
from flinkpy.relational.joins.interval_rows_join import IntervalRowsJoinOperator
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.keyed_rows import Chunk
from flinkpy.relational.joins.temporal_rows_join import TemporalRowsJoinOperator, TemporalTimes
from flinkpy.relational.state import row_memory, waiting_rows
from flinkpy.relational.state.rows_by_group import groups_of_rows
from flinkpy.sql.rex.relational_terms import Interval, JoinKind
from flinkpy.state.snapshots.saved_state import SavedState
from tests.operators.harness import do_all
from tests.operators.in_pieces import InPieces
from tests.operators.joining import MAX_PARALLELISM
from tests.relational.changing_subtasks import KINDS, ChangingSubtasks, batch_of
from tests.relational.subtasks_of_tables import ROWS as WHOLE_KEYS
from tests.relational.subtasks_of_tables import SubtasksOfTables

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


def run(steps: Sequence[Any], of: TwoInputs, *, changes_backend: bool = False) -> list[Change]:
    for step in steps:
        if isinstance(step, int):
            of.watermark(step)
        elif step[0] == "restart":
            of.restart(step[1], step[2] if changes_backend else None)
        else:
            of.give(*step)
    if steps[-1] == MAX_TIMESTAMP:
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
    wanted = run(steps, temporal_join(kind, {}))
    assert repr(run(steps, temporal_join(kind, NO_ROOM))) == repr(wanted)


@pytest.mark.usefixtures("_narrow_slices")
@settings(max_examples=60, deadline=None)
@given(two_sides(KINDS, restarts=True), TEMPORAL_KINDS)
def test_rows_on_disk_meet_their_versions_after_restarts(steps: list[Any], kind: JoinKind) -> None:
    wanted = run(steps, temporal_join(kind, {}))
    found = run(steps, temporal_join(kind, NO_ROOM), changes_backend=True)
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


# -- interval joins --------------------------------------------------------------------------------


def interval_join(kind: JoinKind, configuration: dict[str, Any], lower: int = -8) -> TwoInputs:
    spec, interval = JoinSpec(kind, (0,), (0,)), Interval(2, 2, lower, 4)
    return TwoInputs(
        lambda: IntervalRowsJoinOperator(spec, interval, ROWS, ROWS, BOTH),
        ROWS,
        (0,),
        configuration,
    )


INTERVAL_KINDS = st.sampled_from([JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL])
IN_FILES = {COLUMNS_MEMORY.key: "0 b"}


def of_steps(of: TwoInputs, steps: Sequence[Any], *, changes_backend: bool = False) -> list[Any]:
    """What comes of each step, in any order."""
    found, before = [], 0
    for step in steps:
        run([step], of, changes_backend=changes_backend)
        found.append(Counter(map(repr, of.output.changes[before:])))
        before = len(of.output.changes)
    return found


@settings(max_examples=60, deadline=None)
@given(two_sides(["+I"], restarts=False), INTERVAL_KINDS, st.sampled_from([NO_ROOM, IN_FILES]))
def test_rows_of_an_interval_join_in_files_are_met_as_in_memory(
    steps: list[Any], kind: JoinKind, configuration: dict[str, Any]
) -> None:
    wanted, found = interval_join(kind, {}), interval_join(kind, configuration)
    for of in (wanted, found):
        run(steps, of)
    assert repr(found.output.changes) == repr(wanted.output.changes)


@settings(max_examples=60, deadline=None)
@given(two_sides(["+I"], restarts=True), INTERVAL_KINDS)
def test_rows_of_an_interval_join_in_files_are_met_after_restarts_and_in_small_chunks(
    steps: list[Any], kind: JoinKind
) -> None:
    wanted = of_steps(interval_join(kind, {}), steps)
    with mock.patch.object(row_memory, "_WORTH_A_FILE", 500):
        assert of_steps(interval_join(kind, NO_ROOM), steps, changes_backend=True) == wanted


def large_interval_join(configuration: dict[str, Any], rows: int) -> TwoInputs:
    of = interval_join(JoinKind.LEFT, configuration, lower=-rows)
    for start in range(0, rows, 500):
        numbers = range(start, start + 500)
        of.give(1, [("+I", (float(number), number, number)) for number in numbers])
    return of


def test_of_an_interval_join_only_what_changes_stays_in_memory_beyond_its_share() -> None:
    of = large_interval_join({**NO_ROOM, ROCKSDB_OBJECTS.key: "1 mb"}, 60_000)
    [operator] = of.operators
    chunks = operator._sides[1].chunks
    assert operator.bytes_held() > 4 << 20  # of all, as of the rows of other joins
    assert sum(each.data_bytes for each in chunks if not each.is_mapped) <= 1 << 20
    assert max(each.data_bytes for each in chunks) <= 1 << 20
    of.give(0, [("+I", (float(number), number, 60_000)) for number in (0, 31_000, 59_999)])
    assert [row[1] for _, row in of.output.changes] == [0, 31_000, 59_999]
    of.watermark(118_000)
    assert operator.entries_held() < 10_000
    of.close()


def test_a_watermark_finds_the_rows_that_are_over_without_a_look_at_all() -> None:
    times = np.arange(5000) * 7919 % 5000
    data = pa.record_batch({"n": times})
    chunk = Chunk.of(data, np.zeros(5000, np.int64), times, np.zeros(5000, np.bool_))
    assert times[chunk.over(1000)].max() == 1000
    looked_at: list[int] = []

    class Counted:
        def __getitem__(self, at: int) -> Any:
            looked_at.append(at)
            return times[at]

    chunk.times = Counted()
    assert sorted(times[chunk.over(1003)].tolist()) == [1001, 1002, 1003]
    assert 0 < len(looked_at) < 20


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_a_second_checkpoint_of_an_interval_join_writes_what_came_since(
    backend: str, tmp_path: Path
) -> None:
    options = {STATE_BACKEND.key: backend, ROCKSDB_OBJECTS.key: "0 b"}
    of = large_interval_join({**options, CHECKPOINT_INCREMENTAL.key: "true"}, 20_000)
    checkpoints = InPieces(of, tmp_path)
    written, _ = checkpoints.take()
    assert written > 200_000
    of.give(1, [("+I", (0.0, 1, 20_000))])
    of.give(0, [("+I", (0.0, 1, 20_000))])
    again, everything = checkpoints.take()
    assert everything > 200_000
    assert again < 20_000
    checkpoints.restart(2)
    of.give(0, [("+I", (5.0, 5, 20_000))])
    assert [row[4] for _, row in of.output.changes] == [0, 1, 5]
    of.close()


# before the rows of a side had a state of their own: (1, 10) at 100, (2, 11) at 101, the watermark
# 99, and on the right (1, 20) at 102
_OF_BEFORE = (
    "c-rk$J4*vW5T3nklFNBT0wJVGk;1}CEiB|JQLssAV<U1Tmj~uWa)O0|C|IRBBUo4nYOvD(Ahve?277;j&OTx"
    ";>z%|`mpNwl=JCzl%+Bn3VS@m`*71GA-rH{59lKt4>a}h|A9P*Yb-G8_b*Jo}4mwVy)@oip+;nP{s!twNI<4"
    "Jy_uK=^BbKK<X?I@4@~GuSpXjR>v%I)<7(H76K?nW09%T{xTm1qQifhn6!N=}Jd0eTjM!0f!J`8CDB8_q6l@"
    "@^13dPkn8s3m}Og+h63@{-EQPA-XiBOaQB^_5PSHaiFCFCV3?_(SU#8{l1)PdY*8;&d9DVJ}Bufcq?K3{eME"
    "`DD}j!Dh4@YR@aTJdcnKXN;e6<|4}IX2G!Iw^A!*qnmh;dz<Jah}&O2CGMwh;K16AtNhd@~9A@{GXR$NCwI#"
    "uMVr(1&CS_7?BR)lvMUGeO|HW75k!MU-ab)zOx{T-*;tA(a(HTL69T&lH&g+&gpZrYNHko@AFJxpJyhR5E_W"
    "2<H#2pfFw8}o6`yT@r306XhQT5A5|YVK|_01v1k8jLWnXEB}E@P3Dbs~Hr#I-Zdjl4mkk$wRi*;3%G3mxY$6"
    "bu@FCv;8}KyF"
)


@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_an_interval_join_goes_on_from_a_snapshot_that_had_rows_beside_times(backend: str) -> None:
    spec, interval = JoinSpec(JoinKind.FULL, (0,), (0,)), Interval(2, 2, -5, 5)
    schema = pa.schema([*WHOLE_KEYS, *(each.with_name(f"{each.name}0") for each in WHOLE_KEYS)])
    of = SubtasksOfTables(
        lambda: IntervalRowsJoinOperator(spec, interval, WHOLE_KEYS, WHOLE_KEYS, schema)
    )
    of.restart(1, {STATE_BACKEND.key: backend})
    of.close()
    of.start(2, [SavedState(zlib.decompress(base64.b85decode(_OF_BEFORE)))])
    of.push(1, [((1, 21), 97)])
    of.watermark(MAX_TIMESTAMP)
    assert sorted(of.output.rows, key=repr) == [
        (1, 10, 100, 1, 21, 97),
        (2, 11, 101, None, None, None),
    ]
    of.close()
