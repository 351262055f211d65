"""Calls that take too long, and calls that are made again."""

from __future__ import annotations

from typing import Any

import pytest

from flinkpy.core.errors import UserCodeError
from flinkpy.operators.async_io.async_functions import AsyncFunction
from flinkpy.operators.async_io.retry import AsyncRetryStrategy
from tests.operators.async_harness import AGAIN, SECOND, UNORDERED, AsyncHarness, Patient

# -- timeouts --------------------------------------------------------------------------------------


def test_a_call_that_does_not_come_back_in_time_fails_the_job() -> None:
    harness = AsyncHarness(timeout=SECOND)
    harness.push(["a"])
    harness.timers.advance(0.999)
    with pytest.raises(UserCodeError, match="TimeoutError: no result within 1 s") as raised:
        harness.timers.advance(0.001)
    assert raised.value.record == "'a'"
    assert harness.loop.cancelled == ["a"]


def test_timeout_is_said_by_the_function_too() -> None:
    class Plain(AsyncFunction):
        async def async_invoke(self, value: Any) -> list[Any]:
            return [value]

    harness = AsyncHarness(Plain(), timeout=SECOND)
    harness.push(["a"])
    with pytest.raises(UserCodeError, match=r"TimeoutError: .*override timeout\(value\)"):
        harness.timers.advance(1)


def test_the_functions_timeout_gives_results_instead_and_a_late_answer_is_dropped() -> None:
    harness = AsyncHarness(Patient(), timeout=SECOND, capacity=3)
    harness.push(["a"], [1])
    harness.timers.advance(0.5)
    harness.push(["b"], [2])
    harness.timers.advance(0.5)
    assert harness.elements == [(("late", "a"), 1)]
    harness.loop.answer("a")
    harness.loop.answer("b")
    assert harness.elements == [(("late", "a"), 1), ("b", 2)]


def test_each_record_has_its_own_deadline_and_one_timer_serves_all() -> None:
    harness = AsyncHarness(Patient(), mode=UNORDERED, timeout=SECOND, capacity=1000)
    for number in range(100):
        harness.push([number])
        assert len(harness.timers.pending) == 1
        harness.timers.advance(0.001)
    harness.timers.advance(0.895)  # 995 ms after the first
    assert harness.output == []
    harness.timers.advance(0.005)
    assert harness.output == [("late", 0)]
    harness.timers.advance(0.050)
    assert harness.output == [("late", number) for number in range(51)]


def test_a_call_that_comes_back_leaves_no_timeout_behind() -> None:
    harness = AsyncHarness(timeout=SECOND)
    harness.push(["a"])
    harness.loop.answer("a")
    harness.timers.advance(10)
    assert harness.output == ["a"]
    assert harness.timers.pending == []


def test_time_begins_with_the_call_not_with_the_wait_for_room() -> None:
    harness = AsyncHarness(Patient(), timeout=SECOND, capacity=1)
    harness.push(["a", "b"])
    harness.timers.advance(0.9)
    harness.loop.answer("a")
    harness.timers.advance(0.9)
    harness.loop.answer("b")
    assert harness.output == ["a", "b"]


# -- retries ---------------------------------------------------------------------------------------


def test_an_outcome_of_no_use_is_tried_again_after_the_pause() -> None:
    harness = AsyncHarness(strategy=AGAIN, timeout=10 * SECOND)
    harness.push(["a"])
    harness.loop.fail("a", ConnectionError())
    assert harness.under_way == []
    harness.timers.advance(0.099)
    assert harness.under_way == []
    harness.timers.advance(0.001)
    assert harness.under_way == ["a"]
    harness.loop.answer("a", with_=lambda value: [])
    harness.timers.advance(0.1)
    harness.loop.answer("a")
    assert harness.output == ["a"]
    assert harness.loop.begun == ["a", "a", "a"]


def test_after_the_last_attempt_the_outcome_stands() -> None:
    harness = AsyncHarness(strategy=AGAIN, timeout=10 * SECOND, capacity=5)
    harness.push(["empty", "broken"])
    for _ in range(2):
        harness.loop.answer("empty", with_=lambda value: [])
        harness.loop.fail("broken", ConnectionError("down"))
        harness.timers.advance(0.1)
    harness.loop.answer("empty", with_=lambda value: [])
    with pytest.raises(UserCodeError, match="ConnectionError: down"):
        harness.loop.fail("broken", ConnectionError("down"))
    assert harness.loop.begun == ["empty", "broken"] * 3


def test_other_exceptions_are_not_tried_again() -> None:
    harness = AsyncHarness(strategy=AGAIN, timeout=10 * SECOND)
    harness.push(["a"])
    with pytest.raises(UserCodeError, match="KeyError"):
        harness.loop.fail("a", KeyError("a"))


def test_the_timeout_covers_all_attempts_and_pauses() -> None:
    harness = AsyncHarness(
        Patient(),
        strategy=AsyncRetryStrategy.fixed_delay(100, 400, lambda results: not results),
        timeout=SECOND,
    )
    harness.push(["a"])
    for _ in range(2):
        harness.loop.answer("a", with_=lambda value: [])
        harness.timers.advance(0.4)
    harness.loop.answer("a", with_=lambda value: [])
    harness.timers.advance(0.2)
    assert harness.output == [("late", "a")]
    harness.timers.advance(10)
    assert harness.loop.begun == ["a"] * 3  # the pause was given up


def test_pauses_grow_exponentially_for_each_record_by_itself() -> None:
    strategy = AsyncRetryStrategy.exponential_backoff(
        10, 100, 350, 2.0, lambda results: not results
    )
    harness = AsyncHarness(strategy=strategy, timeout=100 * SECOND, capacity=2)
    harness.push(["a", "b"])
    for pause in (0.1, 0.2, 0.35, 0.35):
        harness.loop.answer("a", with_=lambda value: [])
        harness.timers.advance(pause - 0.001)
        assert "a" not in harness.under_way
        harness.timers.advance(0.001)
        assert "a" in harness.under_way
    harness.loop.answer("b", with_=lambda value: [])
    harness.timers.advance(0.1)
    assert "b" in harness.under_way


def test_a_predicate_that_raises_fails_the_job_with_the_record() -> None:
    harness = AsyncHarness(
        strategy=AsyncRetryStrategy.fixed_delay(1, 1, lambda results: results[0] > 0),
        timeout=SECOND,
    )
    harness.push(["a"])
    with pytest.raises(UserCodeError, match="IndexError") as raised:
        harness.loop.answer("a", with_=lambda value: [])
    assert raised.value.record == "'a'"


def test_the_end_of_the_input_waits_for_retries() -> None:
    harness = AsyncHarness(strategy=AGAIN, timeout=10 * SECOND)
    harness.push(["a"])
    harness.loop.fail("a", ConnectionError())
    assert not harness.chain.finish()
    harness.timers.advance(0.1)
    harness.loop.answer("a")
    assert harness.chain.finish()
    assert harness.output == ["a"]
