"""Windows that need an order, in BATCH: key by key and by time, as other keyed operators there
(Flink's semantics)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.time import Time
from flinkpy.core.elements import MAX_TIMESTAMP, Watermark
from flinkpy.operators.base import StreamOperator
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.windowing.assigners import (
    CountTumblingWindowAssigner,
    GlobalWindows,
    TumblingEventTimeWindows,
)
from flinkpy.windowing.evictors import CountEvictor
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.session_windows import EventTimeSessionWindows
from flinkpy.windowing.triggers import ContinuousEventTimeTrigger, CountTrigger, PurgingTrigger
from flinkpy.windowing.window_functions import ProcessWindowFunction
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.batch_harness import BatchHarness
from tests.operators.harness import ChainHarness, linear
from tests.windowing.harness import FIRST

Record = tuple[str, int]


def times(key: str, window: Any, records: list[Record]) -> list[Any]:
    return [(key, [time for _, time in records])]


def all_times(window: Any, records: list[Record]) -> list[Any]:
    return [[time for _, time in records]]


WINDOWS: dict[str, Callable[[], WindowOperator]] = {
    "tumbling": lambda: WindowOperator(
        FIRST, WindowingStrategy(TumblingEventTimeWindows(10)), window_function=times
    ),
    "sessions": lambda: WindowOperator(
        FIRST, WindowingStrategy(EventTimeSessionWindows(3)), window_function=times
    ),
    "every third record": lambda: WindowOperator(
        FIRST,
        WindowingStrategy(TumblingEventTimeWindows(20), PurgingTrigger.of(CountTrigger.of(3))),
        window_function=times,
    ),
    "the last two": lambda: WindowOperator(
        FIRST,
        WindowingStrategy(TumblingEventTimeWindows(10), evictor=CountEvictor.of(2)),
        window_function=times,
    ),
    "by count": lambda: WindowOperator(
        FIRST, WindowingStrategy(CountTumblingWindowAssigner(2)), window_function=times
    ),
    "all keys": lambda: WindowOperator(
        None, WindowingStrategy(TumblingEventTimeWindows(10)), window_function=all_times
    ),
}
RECORDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-30, 60)),
    max_size=30,
    unique_by=lambda record: record[1],
)


def in_batch(operator: StreamOperator, records: list[Record], memory: int = 1 << 20) -> list[Any]:
    harness = BatchHarness(operator, memory)
    for at in range(0, len(records), 7):
        part = records[at : at + 7]
        harness.push(part, [time for _, time in part])
    return harness.end()


def in_a_stream(operator: StreamOperator, records: list[Record]) -> list[Any]:
    harness = ChainHarness(linear(operator))
    for record in records:
        harness.push([record], [record[1]])
    harness.control(Watermark(MAX_TIMESTAMP))
    return harness.output


@pytest.mark.parametrize("memory", [0, 1 << 20])
@pytest.mark.parametrize("window", WINDOWS)
@given(records=RECORDS)
def test_windows_give_what_they_give_in_a_stream_in_the_order_of_time(
    window: str, memory: int, records: list[Record]
) -> None:
    make = WINDOWS[window]
    expected = in_a_stream(make(), sorted(records, key=lambda record: record[1]))
    assert Counter(map(repr, in_batch(make(), records, memory))) == Counter(map(repr, expected))


def test_windows_of_a_count_take_the_records_of_a_key_by_time() -> None:
    records = [("a", 3), ("b", 9), ("a", 1), ("a", 2), ("b", 8), ("a", 0)]
    assert sorted(in_batch(WINDOWS["by count"](), records)) == [
        ("a", [0, 1]),
        ("a", [2, 3]),
        ("b", [8, 9]),
    ]


def test_a_key_is_through_before_the_next_one_begins() -> None:
    records = [("ab"[number % 2], number) for number in range(40)]
    keys = [key for key, _ in in_batch(WINDOWS["tumbling"](), records)]
    assert keys in (["a"] * 4 + ["b"] * 4, ["b"] * 4 + ["a"] * 4)


class Nth(ProcessWindowFunction):
    """Which window of its key this is."""

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Any) -> list[Any]:
        seen = context.global_state().get_state(ValueStateDescriptor("seen"))
        seen.update((seen.value() or 0) + 1)
        return [(key, seen.value(), context.current_watermark())]


def test_what_the_function_keeps_for_a_key_goes_with_the_key_and_at_its_end_time_has_ended() -> (
    None
):
    operator = WindowOperator(
        FIRST, WindowingStrategy(TumblingEventTimeWindows(10)), window_function=Nth()
    )
    found = in_batch(operator, [("b", 5), ("a", 15), ("b", 25), ("a", 1)])
    assert sorted(found) == [(key, number, MAX_TIMESTAMP) for key in "ab" for number in (1, 2)]
    assert not any(operator.backend.statistics.keys.values())


def test_what_a_trigger_asks_for_at_the_end_of_a_key_is_dropped() -> None:
    """Else a trigger that fires again and again in a window without an end would never be
    through."""
    each_five = ContinuousEventTimeTrigger.of(Time.milliseconds(5))
    ending = WindowOperator(
        FIRST, WindowingStrategy(TumblingEventTimeWindows(100), each_five), window_function=times
    )
    # at 10 and at the window's end
    assert in_batch(ending, [("a", 7), ("a", 12)]) == [("a", [7, 12])] * 2
    endless = WindowOperator(
        FIRST, WindowingStrategy(GlobalWindows(), each_five), window_function=times
    )
    # at 10 and 15, and at the end of time
    assert sorted(in_batch(endless, [("a", 7), ("b", 12)])) == [("a", [7])] * 2 + [("b", [12])] * 2


def test_a_record_without_a_time_is_refused_as_in_a_stream() -> None:
    harness = BatchHarness(WINDOWS["tumbling"]())
    harness.push([("a", 1)])
    with pytest.raises(Exception, match="assign_timestamps_and_watermarks"):
        harness.end()
