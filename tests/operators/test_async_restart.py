"""An asynchronous operator that is restored with more than it may have under way: everything is
called for, a capacity at a time, nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.async_harness import ORDERED, UNORDERED, AsyncHarness

MODES = pytest.mark.parametrize("mode", [ORDERED, UNORDERED])


def full(mode: Any, capacity: int = 5) -> AsyncHarness:
    harness = AsyncHarness(mode=mode, capacity=capacity)
    harness.push([1, 2, 3, 4, 5], [10, 20, 30, 40, 50])
    return harness


@MODES
def test_more_records_than_the_new_capacity_are_called_for_one_after_the_other(mode: Any) -> None:
    again = AsyncHarness(mode=mode, capacity=2, restored=full(mode).snapshot())
    assert again.under_way == [1, 2]
    assert not again.is_available()
    for value in (1, 2, 3, 4):
        again.loop.answer(value)
        assert not again.is_available() or value == 4
    again.loop.answer(5)
    assert again.is_available()
    assert again.loop.begun == [1, 2, 3, 4, 5]
    assert again.writers[0].stamped == [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]


@MODES
def test_new_records_come_behind_the_restored_ones(mode: Any) -> None:
    again = AsyncHarness(mode=mode, capacity=2, restored=full(mode).snapshot())
    again.push([6], [60])
    again.watermark(60)
    for value in range(1, 7):
        assert value in again.under_way
        again.loop.answer(value)
    assert again.elements == [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60), 60]


@MODES
def test_what_waits_for_room_is_saved_with_what_is_under_way_and_what_has_gone_out_is_not(
    mode: Any,
) -> None:
    harness = full(mode, capacity=2)
    harness.loop.answer(1)
    assert harness.output == [1]
    again = AsyncHarness(mode=mode, capacity=10, restored=harness.snapshot())
    assert again.under_way == [2, 3, 4, 5]


def test_in_order_a_finished_record_that_had_to_wait_is_called_for_again() -> None:
    harness = full(ORDERED)
    harness.loop.answer(3)
    assert harness.output == []
    assert AsyncHarness(mode=ORDERED, capacity=10, restored=harness.snapshot()).under_way == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_without_order_a_record_that_has_gone_out_is_not_called_for_again() -> None:
    harness = full(UNORDERED)
    harness.loop.answer(3)
    assert harness.output == [3]
    assert AsyncHarness(mode=UNORDERED, capacity=10, restored=harness.snapshot()).under_way == [
        1,
        2,
        4,
        5,
    ]


@MODES
def test_a_snapshot_of_a_restored_operator_that_got_nowhere_is_the_same_again(mode: Any) -> None:
    once = AsyncHarness(mode=mode, capacity=2, restored=full(mode).snapshot())
    twice = AsyncHarness(mode=mode, capacity=10, restored=once.snapshot())
    assert twice.under_way == [1, 2, 3, 4, 5]
    assert not twice.chain.finish()
    twice.loop.answer(1, 2, 3, 4, 5)
    assert twice.chain.finish()
