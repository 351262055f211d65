"""Sessions of SQL that have no room in memory give what they give in memory: on disk from the first
row on, with late rows, restarts, another backend and another number of subtasks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.core.errors import SavepointRestoreError
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.state import ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk
from flinkpy.relational.windows.held_windows import WindowedInput
from flinkpy.relational.windows.sessions.changing_sessions import ChangingSessionsOperator
from flinkpy.relational.windows.sessions.held_sessions import HeldSessionsOperator
from flinkpy.relational.windows.sessions.rows_of_sessions import RowsOfSessionsOperator
from flinkpy.relational.windows.sessions.session_aggregates import SessionAggregatesOperator
from flinkpy.relational.windows.wall_clock import AS_IT_IS
from flinkpy.sql.rex.relational_terms import WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall
from tests.operators.in_pieces import InPieces
from tests.relational.changing_subtasks import RESTART, ChangingSubtasks

pytest.importorskip("rocksdict")

NO_ROOM: dict[str, Any] = {STATE_BACKEND.key: "rocksdb", ROCKSDB_OBJECTS.key: "0 b"}
LITTLE_ROOM = {**NO_ROOM, ROCKSDB_OBJECTS.key: "6600 b"}  # so what leaves is there for some batches
BACKENDS = st.sampled_from([NO_ROOM, LITTLE_ROOM, LITTLE_ROOM, {}])
GAP = 5
TIME = pa.timestamp("ms")
ROWS = pa.schema(
    [("k", pa.float64()), ("j", pa.string()), ("v", pa.float64()), ("n", pa.int64()), ("t", TIME)]
)
BIG = BigIntType()
CALLS = [
    AggregateCall("COUNT", (), BIG),
    AggregateCall("SUM", (2,), BIG),
    AggregateCall("COUNT", (3,), BIG, distinct=True),
    AggregateCall("MAX", (1,), BIG),
]
NEEDS_ROWS = [AggregateCall("LISTAGG", (1,), BIG), AggregateCall("COUNT", (3,), BIG)]
RESULTS = [("c", pa.int64()), ("s", pa.float64()), ("d", pa.int64()), ("m", pa.string())]
WORDS = ("window_start", "window_end", "window_time")
TIMES = [(name, TIME) for name in WORDS]
INPUT = WindowedInput(ROWS, WindowSpec(WindowKind.SESSION, 4, GAP, partition=(0, 1)), ("j", "k"))
BY_KEY = [("j", pa.string()), ("k", pa.float64())]


def of_rows(kind: Any) -> Callable[[], Any]:
    schema = pa.schema([*BY_KEY, ("l", pa.string()), ("n", pa.int64()), *TIMES])
    return lambda: kind(NEEDS_ROWS, WORDS, INPUT, AS_IT_IS, schema)


MAKERS: dict[str, Callable[[], Any]] = {
    "rows": lambda: RowsOfSessionsOperator(INPUT, AS_IT_IS, pa.schema([*ROWS, *TIMES])),
    "aggregates": lambda: SessionAggregatesOperator(
        CALLS, WORDS, INPUT, AS_IT_IS, pa.schema([*BY_KEY, *RESULTS, *TIMES])
    ),
    "aggregates that need rows": of_rows(HeldSessionsOperator),
    "rows that change": of_rows(ChangingSessionsOperator),
}


@pytest.fixture
def _writes_row_by_row() -> Iterator[None]:
    with mock.patch.multiple(RowsOnDisk, few=1, at_once=1):
        yield


def subtasks(kind: str, configuration: dict[str, Any]) -> ChangingSubtasks:
    return ChangingSubtasks(MAKERS[kind], ROWS, (1, 0), configuration)


A_ROW = st.tuples(
    st.sampled_from([0.0, -0.0, float("nan"), 1.5, None]),
    st.sampled_from(["a", "longer than eight bytes", None]),
    st.sampled_from([None, 0.5, -1.25, 1e6]),
    st.sampled_from([None, 1, 2, 3]),
    st.integers(-12, 12),  # milliseconds from the watermark on
)
STEPS = st.lists(
    st.one_of(
        st.lists(A_ROW, min_size=1, max_size=6),
        st.lists(A_ROW, min_size=1, max_size=6),
        st.integers(1, 8),
        st.just(RESTART),
    ),
    min_size=8,
    max_size=25,
)


def at(watermark: int, row: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    return "+I", (*row[:4], watermark + row[4])


def by_key(changes: list[Any]) -> dict[str, list[str]]:
    """The results of each key, in their order; zeros show their sign."""
    found: dict[str, list[str]] = {}
    for _, row in changes:
        found.setdefault(repr(sorted(map(repr, row[:2]))).replace("-0.0", "0.0"), []).append(
            repr(row)
        )
    return found


@pytest.mark.usefixtures("_writes_row_by_row")
@settings(max_examples=40, deadline=None)
@given(STEPS, st.data())
@pytest.mark.parametrize("kind", MAKERS)
def test_sessions_without_room_in_memory_give_what_they_give_in_memory(
    kind: str, steps: list[Any], data: st.DataObject
) -> None:
    rooms = data.draw(st.sampled_from([NO_ROOM, LITTLE_ROOM]))
    beyond, within = subtasks(kind, rooms), subtasks(kind, {})
    watermark = 0
    for step in [*steps, MAX_TIMESTAMP]:
        if isinstance(step, int):
            watermark = min(watermark + step, MAX_TIMESTAMP)
        for each in (beyond, within):
            if isinstance(step, int):
                each.watermark(watermark)
            elif step == RESTART:
                parallelism = data.draw(st.sampled_from([1, 3]))
                each.restart(parallelism, data.draw(BACKENDS) if each is beyond else None)
            else:
                each.take([at(watermark, row) for row in step])
        assert late(beyond) == late(within)
    assert by_key(beyond.output.changes) == by_key(within.output.changes)
    assert Counter(beyond.output.changes) == Counter(within.output.changes)
    for each in (beyond, within):
        each.close()


def late(of: ChangingSubtasks) -> int:
    return sum(operator.late_records_dropped for operator in of.operators)


@pytest.mark.usefixtures("_writes_row_by_row")
@pytest.mark.parametrize("kind", ["rows", "aggregates"])
def test_sessions_that_come_back_while_others_are_on_their_way_to_disk_are_there_once(
    kind: str,
) -> None:
    """So many keys that rows which leave are there for some batches, written in part."""
    drawn = random.Random(7)
    room = {**NO_ROOM, ROCKSDB_OBJECTS.key: "6900 b"}
    beyond, within = subtasks(kind, room), subtasks(kind, {})
    for watermark in range(0, 90, 3):
        rows = [
            (float(drawn.randrange(80)), "a", 0.5, drawn.randrange(9), drawn.randrange(-12, 9))
            for _ in range(10)
        ]
        for each in (beyond, within):
            each.take([at(watermark, row) for row in rows])
            each.watermark(watermark)
            if watermark in (30, 60):
                each.restart(2, room if each is beyond else None)
    for each in (beyond, within):
        each.watermark(MAX_TIMESTAMP)
    assert late(beyond) == late(within) > 0
    assert by_key(beyond.output.changes) == by_key(within.output.changes)
    for each in (beyond, within):
        each.close()


@pytest.mark.usefixtures("_writes_row_by_row")
@pytest.mark.parametrize("backend", [NO_ROOM, {}])
@pytest.mark.parametrize("kind", ["rows", "aggregates"])
def test_sessions_on_disk_and_on_their_way_there_are_in_a_checkpoint(
    kind: str, backend: dict[str, Any]
) -> None:
    of = subtasks(kind, NO_ROOM)
    of.take([at(0, (float(key), "a", 1.0, 1, 0)) for key in range(10)])
    of.watermark(1)
    of.take([at(0, (float(key), "b", 1.0, 1, 4)) for key in range(5)])
    assert sum(operator.entries_held() for operator in of.operators) == 0
    of.restart(3, backend)
    assert of.take([at(0, (float(key), "a", 1.0, 1, 5)) for key in range(3)]) == []
    of.watermark(4)
    ended = [row[-2].microsecond // 1000 for _, row in of.output.changes]
    assert ended == [5] * 7
    of.restart(2, backend)
    of.watermark(MAX_TIMESTAMP)
    ended = [row[-2].microsecond // 1000 for _, row in of.output.changes[7:]]
    assert sorted(ended) == [9] * 5 + [10] * (6 if kind == "rows" else 3)
    of.close()


@pytest.mark.usefixtures("_writes_row_by_row")
@pytest.mark.parametrize("backend", [NO_ROOM, {}])
def test_a_row_whose_session_had_ended_on_disk_is_late_after_a_restart_too(
    backend: dict[str, Any],
) -> None:
    of = subtasks("aggregates", backend)
    of.take([at(0, (1.0, "a", 1.0, 1, 0))])
    of.watermark(20)
    of.restart(2, backend)
    of.take([at(0, (1.0, "a", 1.0, 1, 1))])
    assert late(of) == 1
    of.close()


def test_aggregates_of_sessions_on_disk_are_refused_to_another_query() -> None:
    of = subtasks("aggregates", NO_ROOM)
    of.take([at(0, (1.0, "a", 1.0, 1, 0))])
    calls = [AggregateCall("MIN", (1,), BIG) if each is CALLS[3] else each for each in CALLS]
    schema = pa.schema([*BY_KEY, *RESULTS, *TIMES])
    of._make = lambda: SessionAggregatesOperator(calls, WORDS, INPUT, AS_IT_IS, schema)
    with pytest.raises(SavepointRestoreError, match=r"it has \[j, k, COUNT\(\), .*MAX\(j\)\]"):
        of.restart(1)


@pytest.mark.parametrize("kind", ["rows", "aggregates"])
def test_what_memory_holds_of_sessions_stays_within_its_share_however_many_there_are(
    kind: str,
) -> None:
    share, keys = 64 << 10, 6_000
    of = subtasks(kind, {**NO_ROOM, ROCKSDB_OBJECTS.key: f"{share} b"})
    [operator] = of.operators
    most = 0
    for start in [*range(0, keys, 200), 0]:
        of.take([at(0, (float(key), "a", 1.0, 1, 0)) for key in range(start, start + 200)])
        most = max(most, operator.bytes_held())
    # beyond it by what one batch brings
    assert most < 2 * share
    with (
        mock.patch.object(RowsOnDisk, "at_once", 1 << 9),
        mock.patch.object(operator, "results", wraps=operator.results) as results,
    ):
        of.watermark(MAX_TIMESTAMP)
    assert max(_rows_in(call.args[0]) for call in results.call_args_list) < keys / 3
    assert len(of.output.changes) == keys + (200 if kind == "rows" else 0)
    assert operator.next_moment is None
    of.close()


def _rows_in(ended: Any) -> int:
    return len(ended.starts)


@pytest.mark.parametrize("kind", ["rows", "aggregates"])
def test_an_incremental_checkpoint_of_many_sessions_writes_what_few_rows_change(
    kind: str, tmp_path: Path
) -> None:
    of = subtasks(kind, {**NO_ROOM, CHECKPOINT_INCREMENTAL.key: True})
    for start in range(0, 5_000, 500):
        of.take([at(0, (float(key), "a", 1.0, 1, 0)) for key in range(start, start + 500)])
    few = [at(0, (float(key), "a", 1.0, 1, 1)) for key in range(0, 5_000, 500)]
    of.take(few)  # all others are written now
    checkpoints = InPieces(of, tmp_path)
    first = checkpoints.written()
    of.take(few)
    assert checkpoints.written() < first / 20
    checkpoints.restart(2)
    of.watermark(MAX_TIMESTAMP)
    assert len(of.output.changes) == 5_000 + (20 if kind == "rows" else 0)
    of.close()


@pytest.mark.parametrize("room", [NO_ROOM, {}])
def test_sessions_of_processing_time_end_by_the_clock_on_disk_too(room: dict[str, Any]) -> None:
    window = WindowSpec(WindowKind.SESSION, 4, 6_000, partition=(0, 1), is_processing=True)
    input, schema = WindowedInput(ROWS, window, ("j", "k")), pa.schema([*ROWS, *TIMES])
    of = ChangingSubtasks(
        lambda: RowsOfSessionsOperator(input, AS_IT_IS, schema), ROWS, (1, 0), room
    )
    of.take([at(0, (float(key), "a", 1.0, 1, 0)) for key in range(3)])
    of.timers.advance(4)
    of.take([at(0, (0.0, "a", 1.0, 2, 0))])
    of.timers.advance(4)
    assert [row[0] for _, row in of.output.changes] == [1.0, 2.0]
    of.restart(2)
    of.timers.advance(4)
    assert [(row[0], row[3]) for _, row in of.output.changes[2:]] == [(0.0, 1), (0.0, 2)]
    assert all(operator.next_moment is None for operator in of.operators)
    of.close()
