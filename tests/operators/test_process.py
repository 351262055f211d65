"""Process functions, co-functions, side outputs and timers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.elements import Watermark
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.core.ids import OperatorId
from flinkpy.graph.chain_config import ChainConfig, ChainedOperator, NetworkEdge
from flinkpy.graph.partitioning import FORWARD, KeySpec
from flinkpy.operators.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    TimeDomain,
)
from flinkpy.operators.process.key_timers import TimerQueue
from flinkpy.operators.process.process_operators import (
    CoFlatMapOperator,
    CoMapOperator,
    CoProcessOperator,
    KeyedCoProcessOperator,
    KeyedProcessOperator,
    ProcessOperator,
)
from tests.operators.harness import ChainHarness, linear

LATE = OutputTag("late")


class Route(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        if value < 0:
            yield LATE, value
        elif value:
            yield value
            yield value, ctx.timestamp()


def test_side_outputs_and_timestamps_follow_the_record() -> None:
    config = ChainConfig(
        (
            ChainedOperator(
                OperatorId("p"),
                "p",
                None,
                ProcessOperator(Route()),
                (NetworkEdge(0, FORWARD), NetworkEdge(1, FORWARD, side_tag="late")),
            ),
        ),
        1,
    )
    harness = ChainHarness(config, writers=2)
    harness.push([1, -2, 0], [10, 20, 30])
    assert harness.writers[0].stamped == [(1, 10), ((1, 10), 10)]
    assert harness.writers[1].stamped == [(-2, 20)]
    harness.push([3])
    assert harness.writers[0].stamped[2:] == [(3, None), ((3, None), None)]


class WantsTimer(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        ctx.timer_service().register_event_time_timer(5)
        return None


def test_timers_without_a_key_are_refused() -> None:
    harness = ChainHarness(linear(ProcessOperator(WantsTimer())))
    with pytest.raises(ProgramError, match="call key_by"):
        harness.push([1])


class Remind(KeyedProcessFunction):
    """Event-time timers for positive values, processing-time ones for negative."""

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        name, when = value
        assert ctx.get_current_key() == name
        timers = ctx.timer_service()
        if when == 0:
            timers.delete_event_time_timer(10)
        elif when > 0:
            timers.register_event_time_timer(when)
        else:
            timers.register_processing_time_timer(timers.current_processing_time() - when)
        return None

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), timestamp, ctx.time_domain(), ctx.timestamp() == timestamp
        if timestamp == 20:
            ctx.timer_service().register_event_time_timer(25)


def keyed() -> ChainHarness:
    return ChainHarness(
        linear(KeyedProcessOperator(Remind(), KeySpec(selector=lambda value: value[0])))
    )


def test_event_time_timers_fire_in_order_before_the_watermark_goes_on() -> None:
    harness = keyed()
    harness.push([("a", 20), ("b", 10), ("a", 10), ("b", 10), ("a", 0), ("a", 99)])
    harness.control(Watermark(30))
    assert harness.writers[0].stamped == [
        (("b", 10, TimeDomain.EVENT_TIME, True), 10),
        (("a", 20, TimeDomain.EVENT_TIME, True), 20),
        (("a", 25, TimeDomain.EVENT_TIME, True), 25),
    ]
    assert harness.writers[0].elements[-1] == Watermark(30)


class At(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        ctx.timer_service().register_processing_time_timer(value)
        return None

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield timestamp, ctx.timer_service().current_processing_time()


def test_a_processing_time_timer_fires_when_its_millisecond_is_over_and_one_of_the_past_at_once() -> (
    None
):
    harness = ChainHarness(
        linear(KeyedProcessOperator(At(), KeySpec(selector=lambda value: value)))
    )
    start = harness.timers.now_ms()
    harness.push([start + 2, start, start - 1])
    harness.timers.advance(0)
    assert harness.output == [(start - 1, start)]
    harness.timers.advance(0.001)
    harness.timers.advance(0.001)
    assert harness.output[1:] == [(start, start + 1)]
    harness.timers.advance(0.001)
    assert harness.output[2:] == [(start + 2, start + 3)]


def test_processing_time_timers_fire_when_due() -> None:
    harness = keyed()
    harness.push([("a", -3000), ("b", -1000)])
    harness.timers.advance(1.5)
    assert [value[0] for value in harness.output] == ["b"]
    harness.timers.advance(2)
    assert [value[0] for value in harness.output] == ["b", "a"]
    harness.push([("c", -1000)])
    assert len(harness.timers.pending) == 1
    harness.chain.close()
    assert harness.timers.pending == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "remove", "due"]), st.integers(0, 20), st.sampled_from("ab")
        ),
        max_size=60,
    )
)
def test_a_timer_queue_is_a_sorted_set(steps: list[tuple[str, int, str]]) -> None:
    queue, model = TimerQueue(), set()
    for what, timestamp, key in steps:
        if what == "add":
            queue.add(timestamp, key)
            model.add((timestamp, key))
        elif what == "remove":
            queue.remove(timestamp, key)
            model.discard((timestamp, key))
        else:
            fired = list(queue.due(timestamp))
            assert sorted(fired) == sorted(entry for entry in model if entry[0] <= timestamp)
            assert [entry[0] for entry in fired] == sorted(entry[0] for entry in fired)
            model -= set(fired)
        assert len(queue) == len(model)
        assert queue.next_timestamp() == min((entry[0] for entry in model), default=None)


class Both(CoMapFunction, CoFlatMapFunction, CoProcessFunction):
    def map1(self, value: Any) -> Any:
        return f"one {value}"

    def map2(self, value: Any) -> Any:
        return f"two {value}"

    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        return [value, value]

    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        return None

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value, ctx.timestamp()

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield LATE, value


def test_co_functions_take_each_input_their_own_way() -> None:
    mapped, flat, processed = (
        ChainHarness(linear(operator(Both()), inputs=2))
        for operator in (CoMapOperator, CoFlatMapOperator, CoProcessOperator)
    )
    for harness in (mapped, flat, processed):
        harness.push([1], [5])
        harness.push([2], [6], input_index=1)
    assert mapped.writers[0].stamped == [("one 1", 5), ("two 2", 6)]
    assert flat.writers[0].stamped == [(1, 5), (1, 5)]
    assert processed.writers[0].stamped == [((1, 5), 5)]


class Meet(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(value[1])
        yield "left", ctx.get_current_key()

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield "right", ctx.get_current_key(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield "timer", ctx.get_current_key()


def test_keyed_co_functions_share_keys_and_timers() -> None:
    operator = KeyedCoProcessOperator(
        Meet(), KeySpec(selector=lambda value: value[0]), KeySpec(selector=lambda value: value)
    )
    harness = ChainHarness(linear(operator, inputs=2))
    harness.push([("k", 3)])
    harness.control(Watermark(4))
    harness.push(["k"], input_index=1)
    assert harness.output == [("left", "k"), ("timer", "k"), ("right", "k", 4)]


class Fails(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(1)
        if value == 2:
            raise ValueError("two")
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any] | None:
        raise ValueError("timer")


def test_errors_in_process_functions_name_the_record() -> None:
    harness = ChainHarness(
        linear(KeyedProcessOperator(Fails(), KeySpec(selector=lambda value: value)))
    )
    harness.push([1])
    with pytest.raises(UserCodeError) as caught:
        harness.push([1, 2, 3])
    assert (caught.value.cause, caught.value.record) == ("ValueError: two", "2")
    with pytest.raises(UserCodeError, match="ValueError: timer"):
        harness.control(Watermark(9))
