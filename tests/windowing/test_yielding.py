"""Functions of windows, slices, joins and co-groups that yield: what comes of them is what comes of
lists, in the same order, a batch at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import CheckpointBarrier, RowBatch, Watermark
from flinkpy.datastream import CoGroupFunction, FlatJoinFunction, ProcessWindowFunction
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import StreamOperator
from flinkpy.windowing.assigners import (
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkpy.windowing.evictors import CountEvictor
from flinkpy.windowing.general.contents import ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.joins.window_co_group import WindowCoGroupOperator
from flinkpy.windowing.joins.window_join import WindowJoinOperator
from flinkpy.windowing.session_windows import EventTimeSessionWindows
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.harness import ChainHarness, linear
from tests.windowing.slice_harness import row_windows

FIRST = KeySpec(lambda record: record[0])
MANY = 40  # results of one call: several batches of these chains
TIMES = ValueStateDescriptor("times called", None)


class Given(ProcessWindowFunction, FlatJoinFunction, CoGroupFunction):
    """Says what it was called with, many times, and how often the window had seen it begin by
    then."""

    def __init__(self, yields: bool) -> None:
        self.yields = yields

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        held = list(elements)
        times = context.window_state().get_state(TIMES) if self.keeps else None
        if times is not None:
            times.update((times.value() or 0) + 1)
        return self._all(key, held, None if times is None else times.value())

    keeps = True

    def join(self, first: Any, second: Any) -> Any:
        return self._all(first, second)

    def co_group(self, first: Any, second: Any) -> Any:
        return self._all(list(first), list(second))

    def _all(self, *told: Any) -> Any:
        results = [(*told, number) for number in range(MANY)]
        return (each for each in results) if self.yields else results


class KeepsNothing(Given):
    keeps = False  # windows that merge have no state of their own


TUMBLING, SESSIONS = TumblingEventTimeWindows(10), EventTimeSessionWindows(3)
GENERAL: dict[str, Callable[[bool], StreamOperator]] = {
    "tumbling": lambda yields: WindowOperator(
        FIRST, WindowingStrategy(TUMBLING, allowed_lateness=20), window_function=Given(yields)
    ),
    "sliding": lambda yields: WindowOperator(
        FIRST,
        WindowingStrategy(SlidingEventTimeWindows(10, 5), allowed_lateness=20),
        window_function=Given(yields),
    ),
    "sessions": lambda yields: WindowOperator(
        FIRST,
        WindowingStrategy(SESSIONS, allowed_lateness=20),
        window_function=KeepsNothing(yields),
    ),
    "count": lambda yields: WindowOperator(
        FIRST,
        WindowingStrategy(GlobalWindows(), PurgingTrigger(CountTrigger(2))),
        window_function=Given(yields),
    ),
    "counted sessions": lambda yields: WindowOperator(
        FIRST,
        WindowingStrategy(SESSIONS, CountTrigger(2), allowed_lateness=20),
        window_function=KeepsNothing(yields),
    ),
    "evictor": lambda yields: WindowOperator(
        FIRST,
        WindowingStrategy(TUMBLING, evictor=CountEvictor(2, True), allowed_lateness=20),
        window_function=Given(yields),
    ),
    "slices": lambda yields: row_windows(
        FIRST, Slicing(10, 5, 0), True, "max", 1, None, Given(yields), 20
    ),
}
JOINS: dict[str, Callable[[bool], StreamOperator]] = {
    "join": lambda yields: WindowJoinOperator(Given(yields), FIRST, FIRST, TUMBLING, 20, flat=True),
    "co-group": lambda yields: WindowCoGroupOperator(
        Given(yields), FIRST, FIRST, SlidingEventTimeWindows(10, 5), 20
    ),
}
RECORDS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 50)), min_size=1, max_size=5)
STEPS = st.lists(st.tuples(RECORDS, st.integers(0, 1), st.integers(-5, 20)), max_size=5)


def outcome(operator: StreamOperator, steps: Any, inputs: int) -> tuple[list[Any], list[Any]]:
    """Results and control elements; the work that parks is done only after everything has come,
    watermarks and a barrier too."""
    harness = ChainHarness(linear(operator, inputs=inputs))
    watermark = 0
    for records, side, on in steps:
        harness.chain.batch_inputs()[side % inputs](
            RowBatch(records, [time for _, time in records])
        )
        watermark = max(watermark, watermark + on)
        harness.chain.control(Watermark(watermark))
    harness.chain.control(Watermark(1000))
    harness.chain.process_barrier(CheckpointBarrier(1, 0), lambda barrier: None)
    harness.settle()
    assert harness.chain.close() == []
    return harness.writers[0].stamped, harness.writers[0].controls


@pytest.mark.parametrize("kind", GENERAL)
@given(STEPS)
def test_windows_give_what_they_give_of_lists_and_what_comes_meanwhile_waits(
    kind: str, steps: Any
) -> None:
    assert outcome(GENERAL[kind](True), steps, 1) == outcome(GENERAL[kind](False), steps, 1)


@pytest.mark.parametrize("kind", JOINS)
@given(STEPS)
def test_joins_give_what_they_give_of_lists_and_what_comes_meanwhile_waits(
    kind: str, steps: Any
) -> None:
    assert outcome(JOINS[kind](True), steps, 2) == outcome(JOINS[kind](False), steps, 2)


class Endless(Given):
    """Knows how many results were asked for, and whether the generator was closed."""

    def __init__(self) -> None:
        super().__init__(True)
        self.asked, self.closed = 0, False

    def _all(self, *told: Any) -> Iterator[int]:
        try:
            for number in itertools.count():
                self.asked += 1
                yield number
        finally:
            self.closed = True


class EndlessAlone(Endless):
    keeps = False


LATE = [("a", 12), ("a", 1), ("a", 2)]
ENDLESS: dict[str, Callable[[Endless], StreamOperator]] = {
    "count": lambda function: WindowOperator(
        FIRST, WindowingStrategy(GlobalWindows(), CountTrigger(1)), window_function=function
    ),
    "evictor": lambda function: WindowOperator(
        FIRST,
        WindowingStrategy(TUMBLING, EventTimeTrigger(), CountEvictor(2), allowed_lateness=20),
        window_function=function,
    ),
    "late": lambda function: WindowOperator(
        FIRST, WindowingStrategy(TUMBLING, allowed_lateness=20), window_function=function
    ),
    "late session": lambda function: WindowOperator(
        FIRST, WindowingStrategy(SESSIONS, allowed_lateness=20), window_function=function
    ),
    "slices": lambda function: row_windows(
        FIRST, Slicing(10, 10, 0), True, "max", 1, None, function, 20
    ),
    "join": lambda function: WindowJoinOperator(function, FIRST, FIRST, TUMBLING, 20, flat=True),
    "co-group": lambda function: WindowCoGroupOperator(function, FIRST, FIRST, TUMBLING, 20),
}


@pytest.mark.finding("first-use 12")
@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_function_is_asked_for_a_batch_at_a_time_and_closed_with_its_task(
    kind: str,
) -> None:
    function = EndlessAlone()
    inputs = 2 if kind in ("join", "co-group") else 1
    harness = ChainHarness(linear(ENDLESS[kind](function), inputs=inputs))
    harness.chain.control(Watermark(9))
    for side in range(inputs):
        harness.chain.batch_inputs()[side](RowBatch(LATE, [time for _, time in LATE]))
    for portions in range(1, 4):
        assert harness.chain.parked_work.pending()
        assert len(harness.output) <= function.asked <= portions * (4 + 16)
        assert harness.output == list(range(len(harness.output)))
        harness.chain.parked_work.go_on()
    assert harness.chain.close() == []
    assert function.closed


def test_a_join_of_one_result_for_each_pair_parks_too_where_there_are_very_many_pairs() -> None:
    harness = ChainHarness(
        linear(
            WindowJoinOperator(lambda one, other: (one, other), FIRST, FIRST, TUMBLING), inputs=2
        )
    )
    for side in range(2):
        harness.chain.batch_inputs()[side](RowBatch([("a", 1)] * 200, [1] * 200))
    harness.chain.control(Watermark(9))
    assert harness.chain.parked_work.pending()
    assert len(harness.output) == 4
    harness.settle()
    assert len(harness.output) == 40_000


def test_slices_of_very_many_keys_go_on_a_batch_at_a_time() -> None:
    harness = ChainHarness(linear(row_windows(FIRST, Slicing(10, 10, 0), True, "count")))
    harness.push([(key, 1) for key in range(100)], [1] * 100)
    harness.chain.control(Watermark(9))
    assert (len(harness.output), harness.chain.parked_work.pending()) == (4, True)
    harness.settle()
    assert len(harness.output) == 100


@pytest.mark.parametrize(
    "operator",
    [
        lambda kept: WindowOperator(FIRST, WindowingStrategy(TUMBLING), kept),
        lambda kept: WindowOperator(FIRST, WindowingStrategy(TUMBLING, CountTrigger(2)), kept),
        lambda kept: WindowOperator(FIRST, WindowingStrategy(SESSIONS), kept),
        lambda kept: WindowOperator(FIRST, WindowingStrategy(SESSIONS, CountTrigger(2)), kept),
        lambda kept: row_windows(FIRST, Slicing(10, 10, 0), True, "reduce", None, kept.function),
    ],
    ids=["tumbling", "counted", "sessions", "counted sessions", "slices"],
)
def test_none_is_a_value_that_windows_keep_and_give(
    operator: Callable[[Any], StreamOperator],
) -> None:
    seen: list[Any] = []

    def reduce(one: Any, other: Any) -> None:
        seen.append((one, other))

    harness = ChainHarness(linear(operator(ReduceContents(reduce))))
    harness.push([("a", 1), ("a", 2)], [1, 2])
    harness.control(Watermark(100))
    assert set(harness.output) == {None}
    harness.push([("a", 103), ("a", 104), ("a", 105)], [103, 104, 105])
    harness.control(Watermark(200))
    assert seen[-1] == (None, ("a", 105))
