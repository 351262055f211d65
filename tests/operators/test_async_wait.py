"""The asynchronous operator, with calls that come back when the test says so. What is expected is
what Flink documents of async I/O."""

from __future__ import annotations

from typing import Any

import pytest

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.elements import LatencyMarker, WatermarkStatus
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.operators.async_io.async_functions import AsyncFunction
from flinkpy.operators.async_io.async_wait import IN_FLIGHT
from flinkpy.operators.async_io.retry import AsyncRetryStrategy
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.functions import RuntimeContext
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.state.snapshots.saved_state import redistribute_all
from tests.operators.async_harness import AGAIN, ORDERED, SECOND, UNORDERED, AsyncHarness, Patient
from tests.operators.harness import ChainHarness, linear

# -- order -----------------------------------------------------------------------------------------


def test_in_order_a_slow_call_holds_back_those_behind_it() -> None:
    harness = AsyncHarness(mode=ORDERED, capacity=4)
    harness.push([1, 2, 3])
    harness.loop.answer(2)
    harness.loop.answer(3)
    assert harness.elements == []
    harness.loop.answer(1)
    assert harness.elements == [1, 2, 3]
    assert harness.batches == [3]  # what goes out together is one batch


def test_without_order_results_go_out_as_they_come() -> None:
    harness = AsyncHarness(mode=UNORDERED, capacity=4)
    harness.push([1, 2, 3])
    harness.loop.answer(3)
    harness.loop.answer(1)
    harness.loop.answer(2)
    assert harness.elements == [3, 1, 2]


@pytest.mark.parametrize("mode", [ORDERED, UNORDERED])
def test_no_record_passes_a_watermark_in_either_direction(mode: Any) -> None:
    harness = AsyncHarness(mode=mode, capacity=10)
    harness.push(["a", "b"], [1, 2])
    harness.watermark(2)
    harness.push(["c"], [3])
    harness.watermark(3)
    harness.loop.answer("c")
    assert harness.elements == []
    harness.loop.answer("b")
    assert harness.elements == ([] if mode is ORDERED else [("b", 2)])
    harness.loop.answer("a")
    assert harness.elements == (
        [("a", 1), ("b", 2), 2, ("c", 3), 3]
        if mode is ORDERED
        else [("b", 2), ("a", 1), 2, ("c", 3), 3]
    )


@pytest.mark.parametrize("mode", [ORDERED, UNORDERED])
def test_a_watermark_with_nothing_under_way_passes_at_once(mode: Any) -> None:
    harness = AsyncHarness(mode=mode)
    harness.watermark(1)
    harness.push(["a"], [5])
    harness.loop.answer("a")
    harness.watermark(5)
    assert harness.elements == [1, ("a", 5), 5]


def test_watermarks_with_nothing_between_them_are_one() -> None:
    harness = AsyncHarness(capacity=1)
    harness.push(["a", "b"], [1, 2])
    for timestamp in range(10, 1000):
        harness.watermark(timestamp)
    harness.loop.answer("a")
    harness.watermark(1000)
    harness.loop.answer("b")
    assert harness.elements == [("a", 1), ("b", 2), 1000]


def test_a_status_keeps_its_place_and_a_latency_marker_does_not_wait() -> None:
    harness = AsyncHarness()
    harness.push(["a"])
    idle, marker = WatermarkStatus(idle=True), LatencyMarker(0, "source", 0)
    harness.control(idle)
    harness.control(marker)
    harness.loop.answer("a")
    assert harness.elements == [marker, "a", idle]


def test_any_number_of_results_get_the_records_timestamp() -> None:
    harness = AsyncHarness(capacity=3)
    harness.push(["none", "one", "two"], [1, 2, 3])
    harness.loop.answer(
        "none",
        "one",
        "two",
        with_=lambda value: {"none": None, "one": (1,), "two": [21, 22]}[value],
    )
    assert harness.elements == [(1, 2), (21, 3), (22, 3)]


def test_records_with_and_without_timestamps_keep_what_they_have() -> None:
    harness = AsyncHarness(capacity=4)
    harness.push(["a"])
    harness.push(["b", "c"], [1, 2])
    harness.push(["d"])
    harness.loop.answer("d", "c", "b", "a")
    assert harness.elements == ["a", ("b", 1), ("c", 2), "d"]


# -- capacity --------------------------------------------------------------------------------------


def test_a_batch_larger_than_the_capacity_waits_and_nothing_is_lost() -> None:
    harness = AsyncHarness(capacity=3)
    assert harness.is_available()
    harness.push(range(8))
    assert harness.under_way == [0, 1, 2]
    assert not harness.is_available()
    harness.loop.answer(0, 1)
    assert harness.under_way == [2, 3, 4]
    assert not harness.is_available()
    assert harness.signals == 0
    harness.loop.answer(2, 3, 4)
    harness.loop.answer(5)
    assert harness.is_available()  # two under way, none waiting
    assert harness.signals == 1
    harness.loop.answer(6, 7)
    assert harness.output == list(range(8))
    assert harness.signals == 1


def test_finished_records_that_may_not_go_out_yet_take_capacity() -> None:
    harness = AsyncHarness(mode=ORDERED, capacity=2)
    harness.push([1, 2, 3])
    harness.loop.answer(2)
    assert harness.under_way == [1]
    harness.loop.answer(1)
    assert harness.under_way == [3]


def test_what_comes_while_there_is_no_room_waits_in_its_place() -> None:
    harness = AsyncHarness(capacity=1)
    harness.push(["a", "b"], [1, 2])
    harness.watermark(2)
    harness.push(["c"], [3])
    harness.watermark(3)
    for value in "abc":
        assert harness.under_way == [value]
        harness.loop.answer(value)
    assert harness.elements == [("a", 1), ("b", 2), 2, ("c", 3), 3]


# -- the end ---------------------------------------------------------------------------------------


def test_the_end_of_the_input_waits_for_all_that_is_under_way() -> None:
    harness = AsyncHarness(capacity=1)
    harness.push([1, 2])
    harness.watermark(9)
    assert not harness.chain.finish()
    harness.loop.answer(1)
    assert (harness.chain.finish(), harness.signals) == (False, 0)
    harness.loop.answer(2)
    assert harness.signals == 1
    assert harness.chain.finish()
    assert harness.elements == [1, 2, 9]


class SaysGoodbye(OneInputOperator):
    """Emits one more record at the end."""

    def process_batch(self, batch: Any) -> None:
        self.output.emit(batch)

    def finish(self) -> None:
        from flinkpy.core.elements import RowBatch

        self.output.emit(RowBatch(["goodbye"]))


def test_in_a_chain_those_behind_finish_when_the_last_result_is_through() -> None:
    inner = AsyncHarness(capacity=5)
    harness = ChainHarness(
        linear(SaysGoodbye(), inner.operator, MapOperator(str.upper), SaysGoodbye())
    )
    harness.push(["a"])
    assert not harness.chain.finish()
    loop = inner.loops[-1]
    assert [entry.value for entry in loop.calls] == ["a", "goodbye"]
    loop.answer("a", "goodbye")
    assert harness.chain.finish()
    assert harness.output == ["A", "GOODBYE", "goodbye"]


def test_calls_are_ended_before_the_function_is_closed() -> None:
    function = Patient()
    harness = AsyncHarness(function, timeout=SECOND)
    harness.push([1])
    assert harness.chain.close() == []
    assert harness.loop.closed
    assert function.life == ["open in 0", "close"]
    assert harness.timers.pending == []
    harness.loop.answer(1)  # comes too late for anybody
    assert harness.output == []


def test_a_function_is_closed_even_if_it_could_not_be_opened() -> None:
    class Broken(Patient):
        def open(self, runtime_context: RuntimeContext) -> None:
            raise OSError("no route to host")

    function = Broken()
    harness = AsyncHarness.__new__(AsyncHarness)
    with pytest.raises(UserCodeError, match="no route to host"):
        AsyncHarness.__init__(harness, function)
    assert harness.chain.close() == []
    assert function.life == ["close"]


# -- failures --------------------------------------------------------------------------------------


def test_an_exception_names_the_operator_and_the_record() -> None:
    harness = AsyncHarness()
    harness.push(["a", "b"])
    with pytest.raises(UserCodeError, match="ConnectionError: refused") as raised:
        harness.loop.fail("b", ConnectionError("refused"))
    assert (raised.value.operator, raised.value.record) == ("op 0", "'b'")


def test_a_result_that_is_no_list_is_refused_with_what_to_write() -> None:
    harness = AsyncHarness()
    harness.push(["a"])
    with pytest.raises(
        UserCodeError, match=r"gives a list of results, this is 'text': write \[result\]"
    ):
        harness.loop.answer("a", with_=lambda value: "text")


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [ORDERED, UNORDERED])
def test_records_whose_results_have_not_gone_out_are_called_for_again_before_new_ones(
    mode: Any,
) -> None:
    before = AsyncHarness(mode=mode, capacity=3)
    before.push(range(8), range(10, 18))
    before.loop.answer(0)
    before.loop.answer(2)
    assert len(before.elements) == (1 if mode is ORDERED else 2)
    after = AsyncHarness(mode=mode, capacity=3, restored=before.snapshot())
    assert not after.is_available()
    after.push([100], [20])
    expected = [1, 2, 3, 4, 5, 6, 7, 100] if mode is ORDERED else [1, 3, 4, 5, 6, 7, 100]
    while after.under_way:
        after.loop.answer(after.under_way[0])
    assert after.elements == [(value, value + 10 if value < 100 else 20) for value in expected]


def test_records_without_timestamps_come_back_without() -> None:
    before = AsyncHarness()
    before.push(["a", "b", "c"])
    after = AsyncHarness(restored=before.snapshot())
    after.loop.answer("b", "a")
    after.loop.answer("c")
    assert after.elements == ["a", "b", "c"]


def test_an_attempt_and_a_deadline_begin_anew_after_a_restore() -> None:
    before = AsyncHarness(Patient(), strategy=AGAIN, timeout=SECOND)
    before.push(["a"])
    before.loop.fail("a", ConnectionError())
    after = AsyncHarness(Patient(), strategy=AGAIN, timeout=SECOND, restored=before.snapshot())
    after.timers.advance(0.99)
    assert after.under_way == ["a"]
    after.timers.advance(0.01)
    assert after.output == [("late", "a")]


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_records_under_way_are_shared_out_when_the_parallelism_changes(parallelism: int) -> None:
    snapshots = []
    for first in (0, 10):
        harness = AsyncHarness(capacity=2)
        harness.push(range(first, first + 5))
        snapshots.append(harness.snapshot())
    found: list[int] = []
    for share in redistribute_all(snapshots, 128, parallelism):
        after = AsyncHarness(capacity=100, restored=share)
        found += after.under_way
    assert sorted(found) == [*range(5), *range(10, 15)]


# -- what is refused -------------------------------------------------------------------------------


async def fine(value: Any) -> list[Any]:
    return [value]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 0}, "from 1 on"),
        ({"timeout": -1}, "cannot be negative"),
        ({"timeout": "1 s"}, "the timeout is a Time"),
        ({"strategy": 3}, "AsyncRetryStrategy"),
        ({"strategy": AGAIN}, "retries need a timeout"),
        ({"function": lambda value: [value]}, "declare it with 'async def'"),
        ({"function": 3}, "pass an AsyncFunction"),
        ({"function": Patient}, r"write Patient\(\)"),
    ],
)
def test_what_cannot_work_is_refused_at_once(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        AsyncHarness(**{"function": fine, **arguments})


def test_methods_declared_the_wrong_way_round_are_refused() -> None:
    class NotAsync(AsyncFunction):
        def async_invoke(self, value: Any) -> list[Any]:  # type: ignore[override]
            return [value]

    class AsyncTimeout(Patient):
        async def timeout(self, value: Any) -> list[Any]:  # type: ignore[override]
            return [value]

    with pytest.raises(ProgramError, match=r"NotAsync.async_invoke is no coroutine function"):
        AsyncHarness(NotAsync())
    with pytest.raises(ProgramError, match=r"AsyncTimeout.timeout gives its results at once"):
        AsyncHarness(AsyncTimeout())


@pytest.mark.parametrize("arguments", [(0, 1), (1, 0), (1, -5), (True, 1), ("3", 1)])
def test_a_strategy_refuses_numbers_that_are_not_positive(arguments: Any) -> None:
    with pytest.raises(ProgramError, match="greater than zero"):
        AsyncRetryStrategy.fixed_delay(*arguments)


def test_a_dead_letter_goes_out_when_its_results_would_and_is_part_of_no_checkpoint_before() -> (
    None
):
    harness = AsyncHarness(mode=ORDERED, capacity=4, policy=ErrorPolicy.divert(OutputTag("dead")))
    sides: list[Any] = []

    def take(tag_id: str, batch: Any) -> None:
        sides.extend(batch.values)

    harness.operator.output.emit_side = take  # type: ignore[method-assign]
    harness.push([1, 2])
    harness.loop.fail(2, ValueError("no"))
    assert sides == []
    assert [
        value for value, _ in harness.operator.context.operator_state.engine_list(IN_FLIGHT).get()
    ] == []
    harness.snapshot()
    # both are called again
    assert [
        value for value, _ in harness.operator.context.operator_state.engine_list(IN_FLIGHT).get()
    ] == [1, 2]
    harness.loop.answer(1)
    assert (harness.elements, [letter.record for letter in sides]) == ([1], [2])
