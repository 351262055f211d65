"""Interval joins whose records, and the index of when these end, have no room in memory give what
they give in memory: in the same order, with any keys, restored with another backend and another
number of subtasks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.state import ROCKSDB_DIRECTORY, ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.operators.process.expiries import FarExpiries
from flinkpy.operators.process.interval_join import BUFFERS, EXPIRIES, IntervalJoinOperator
from flinkpy.state.far_timers import FarTimers
from flinkpy.state.held_values import HeldValues
from tests.operators.joining import Subtasks, disordered
from tests.operators.test_interval_join import FIRST, Pair
from tests.state.test_incremental_rocksdb import Checkpoints, Saved

pytest.importorskip("rocksdict")

_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
HEAP: dict[str, Any] = {STATE_BACKEND.key: "hashmap"}
ROOMY: dict[str, Any] = {STATE_BACKEND.key: "rocksdb"}
if _IN_MEMORY is not None:
    ROOMY[ROCKSDB_DIRECTORY.key] = _IN_MEMORY
NO_ROOM = ROOMY | {ROCKSDB_OBJECTS.key: "0 b"}
BACKENDS = {"hashmap": HEAP, "rocksdb": ROOMY, "no room": NO_ROOM}
KEYS = st.sampled_from([None, float("nan"), 1, "1", ("a", 2), (None, 1), -0.0])


@pytest.fixture(autouse=True)
def _looks_at_each_batch() -> Iterator[None]:
    with (
        mock.patch.object(HeldValues, "at_once", 1),
        mock.patch.object(FarTimers, "few", 1),
        mock.patch.object(IntervalJoinOperator, "at_once", 2),
    ):
        yield


def subtasks(lower: int, upper: int, parallelism: int, configuration: dict[str, Any]) -> Subtasks:
    return Subtasks(
        lambda: IntervalJoinOperator(Pair(), FIRST, FIRST, lower, upper, ("left", "right")),
        parallelism,
        configuration=configuration,
    )


def with_keys(steps: list[Any], keys: list[Any]) -> list[Any]:
    """The same steps with these keys in place of numbers."""
    return [
        step
        if isinstance(step, int) or step[0] == "restart"
        else (step[0], [((keys[value[0]], value[1]), at) for value, at in step[1]])
        for step in steps
    ]


def outcome(
    steps: list[Any], lower: int, upper: int, parallelism: int, backends: list[dict[str, Any]]
) -> Any:
    """What comes out, in its order. At each restart the next backend goes on."""
    joined = subtasks(lower, upper, parallelism, backends[0])
    turn = 0
    for step in steps:
        if isinstance(step, int):
            joined.watermark(step)
        elif step[0] == "restart":
            turn += 1
            joined.restart(step[1], backends[turn % len(backends)])
            joined.watermark(step[2])
        else:
            joined.push(*step)
    assert [list(operator._buffers.items()) for operator in joined.operators] == [
        [] for _ in joined.operators
    ]
    assert all(operator._expiries.is_empty for operator in joined.operators)
    joined.close()
    # NaN is not equal to itself
    return repr((joined.output.main, joined.output.sides))


@settings(max_examples=40, deadline=None)
@given(
    disordered(at_least=4),
    st.lists(KEYS, min_size=4, max_size=4),
    st.integers(-8, 8),
    st.integers(0, 10),
    st.integers(1, 3),
    st.lists(st.sampled_from(sorted(BACKENDS)), min_size=1, max_size=3),
)
@example(
    [0, (0, [((0, 1), 5)]), ("restart", 1, 0), ("restart", 2, 0), (1, [((0, 2), 6)]), 40, 1 << 60],
    ["a", "b", "c", "d"],
    -2,
    9,
    1,
    ["no room", "hashmap", "no room"],
)
def test_an_interval_join_on_disk_gives_what_one_in_memory_gives(
    steps: list[Any], keys: list[Any], lower: int, width: int, parallelism: int, backends: list[str]
) -> None:
    steps = with_keys(steps, keys)
    expected = outcome(steps, lower, lower + width, parallelism, [HEAP])
    kinds = [BACKENDS[name] for name in ("no room", *backends)]
    assert outcome(steps, lower, lower + width, parallelism, kinds) == expected


def of_keys(count: int, at: int = 0) -> list[tuple[Any, int]]:
    return [((f"key {number}", number), at + number) for number in range(count)]


def test_memory_has_only_the_index_of_what_ends_first() -> None:
    joined = subtasks(-5, 5, 1, NO_ROOM)
    for at in range(20):
        joined.push(at % 2, of_keys(20, at * 1000))
    (operator,) = joined.operators
    assert isinstance(operator._expiries, FarExpiries)
    assert len(operator._expiries) < 10
    assert len(dict(operator._buffers.items())) == 20
    joined.watermark(MAX_TIMESTAMP)
    assert dict(operator._buffers.items()) == {}
    assert len(operator.backend._held[BUFFERS].gone) < 3  # removed, and perhaps on disk
    joined.close()


def test_a_restore_on_disk_reads_no_records() -> None:
    joined = subtasks(-5, 5, 1, NO_ROOM)
    joined.push(0, of_keys(50))
    with mock.patch.object(IntervalJoinOperator, "_look_at") as looked:
        joined.restart(2)
    assert not looked.called
    joined.push(1, of_keys(50, 1))
    assert len(joined.output.main) == 50
    joined.close()


@pytest.mark.parametrize("first", [HEAP, NO_ROOM])
def test_an_index_that_another_backend_saved_is_not_taken_for_the_one_of_now(
    first: dict[str, Any],
) -> None:
    joined = subtasks(0, 5, 1, first)
    joined.push(0, of_keys(3))
    joined.restart(1, NO_ROOM)
    joined.restart(1, HEAP)
    joined.push(0, [((f"new {number}", number), 9) for number in range(3)])
    joined.restart(1, NO_ROOM)
    joined.watermark(14)
    assert dict(joined.operators[0]._buffers.items()) == {}
    joined.close()


def test_a_snapshot_of_a_join_without_a_saved_index_is_taken_over() -> None:
    """As jobs saved it before there was one."""
    joined = subtasks(0, 5, 1, NO_ROOM)
    joined.push(0, of_keys(30))
    (operator,) = joined.operators
    operator.backend._regions.pop(EXPIRIES)
    operator.backend._tables.pop(f"{EXPIRIES} on disk")
    joined.restart(2)
    assert not all(operator._expiries.is_empty for operator in joined.operators)
    joined.watermark(40)
    assert [dict(operator._buffers.items()) for operator in joined.operators] == [{}, {}]
    joined.close()


def test_records_that_could_be_changed_are_copied_also_after_a_restore_that_reads_none() -> None:
    class Changes(Pair):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
            yield tuple(left[1])
            left[1].append("changed")

    joined = Subtasks(
        lambda: IntervalJoinOperator(Changes(), FIRST, FIRST, -5, 5), 1, configuration=NO_ROOM
    )
    joined.push(0, [(("a", [1]), 1)])
    joined.restart(1)
    joined.push(1, [(("a", 2), 2), (("a", 3), 3)])
    assert [value for value, _ in joined.output.main] == [(1,), (1,)]
    joined.close()


def test_an_incremental_checkpoint_of_a_large_state_writes_what_few_records_change() -> None:
    sizes = NO_ROOM | {CHECKPOINT_INCREMENTAL.key: True, ROCKSDB_OBJECTS.key: "100 kb"}
    with mock.patch.object(HeldValues, "at_once", 1 << 12), mock.patch.object(FarTimers, "few", 64):
        joined = subtasks(-5, 5, 1, sizes)
        for at in range(20):
            joined.push(0, [((f"key {at} {n}", n), at * 1000 + n) for n in range(1000)])
        backend, checkpoints = joined.operators[0].backend, Checkpoints()
        first = checkpoints.save(backend)
        joined.push(0, of_keys(10, 20_000))
        joined.push(1, of_keys(10, 20_000))
        second = checkpoints.save(backend, bases=first)
        assert new_bytes(second[0], first[0]) < new_bytes(first[0]) / 4
        joined.close()


def new_bytes(saved: Saved, base: Saved | None = None) -> int:
    """What a checkpoint writes that the one before did not."""
    known = {} if base is None else base.pieces.pieces
    pieces = saved.pieces.pieces
    return len(saved.rest or b"") + sum(
        pieces[name].length for name in pieces.keys() - known.keys()
    )
