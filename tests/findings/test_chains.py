"""What a function yields moves on while it yields; and a record that was handed on stays what it
was."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flinkpy.common import OutputTag, Time, TimestampAssigner, WatermarkStrategy
from flinkpy.common.typeinfo import Types
from flinkpy.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoProcessFunction,
    DataStream,
    FlatJoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from flinkpy.datastream.state import MapStateDescriptor
from flinkpy.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from flinkpy.testing import embedded_environment

RULES = MapStateDescriptor("rules", Types.STRING(), Types.STRING())


NONE = Time.milliseconds(0)
TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(5))
SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(5))


def one(value: Any) -> int:
    return 1


class Endless(  # type: ignore[misc]
    ProcessFunction,
    CoFlatMapFunction,
    CoProcessFunction,
    BroadcastProcessFunction,
    ProcessJoinFunction,
):
    """Counts without end, whatever it is called with."""

    def process_element(self, value: Any, *context: Any) -> Any:
        return itertools.count()

    flat_map1 = flat_map2 = process_element1 = process_element2 = process_broadcast_element = (  # type: ignore[assignment]
        process_element  # type: ignore[assignment]
    )


class EndlessKeyed(KeyedProcessFunction, KeyedCoProcessFunction, KeyedBroadcastProcessFunction):  # type: ignore[misc]
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield from itertools.count()

    process_element1 = process_element2 = process_element

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return None


class EndlessTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_processing_time_timer(0)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield from itertools.count()


class EndlessEventTimer(EndlessTimer):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(0)


class EndlessWindow(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        return itertools.count()


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, one: int, other: int) -> int:
        return one + other


class EndlessJoin(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return itertools.count()


class EndlessCoGroup(CoGroupFunction):
    def co_group(self, first: Any, second: Any) -> Any:
        yield from itertools.count()


class EndlessAll(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any) -> Any:
        yield from itertools.count()


class OfValue(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


def timed(stream: DataStream) -> DataStream:
    return stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(OfValue())
    )


def broadcast(stream: DataStream) -> Any:
    return stream.map(str).broadcast(RULES)


CALLS: dict[str, Callable[[DataStream], DataStream]] = {
    "flat_map": lambda s: s.flat_map(lambda value: itertools.count()),
    "flat_map among others": lambda s: (
        s.map(one)
        .flat_map(lambda value: itertools.count())
        .filter(lambda n: n >= 0)
        .map(lambda n: n)
    ),
    "flat_map of a flat_map": lambda s: s.flat_map(lambda value: itertools.count()).flat_map(
        lambda value: (each for each in (value,))
    ),
    "keyed flat_map": lambda s: s.key_by(one).flat_map(lambda value: itertools.count()),
    "process": lambda s: s.process(Endless()),
    "keyed process": lambda s: s.key_by(one).process(EndlessKeyed()),
    "timer": lambda s: s.key_by(one).process(EndlessTimer()),
    "event timer": lambda s: s.key_by(one).process(EndlessEventTimer()),
    "window": lambda s: (
        timed(s).window_all(TumblingEventTimeWindows.of(Time.milliseconds(5))).process(EndlessAll())
    ),
    "keyed window": lambda s: (
        timed(s)
        .key_by(one)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(5)))
        .process(EndlessWindow())
    ),
    "session": lambda s: (
        timed(s)
        .key_by(one)
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        .process(EndlessWindow())
    ),
    "own trigger": lambda s: (
        s.key_by(one)
        .window(GlobalWindows.create())
        .trigger(CountTrigger.of(1))
        .process(EndlessWindow())
    ),
    "count window": lambda s: s.key_by(one).count_window(1).process(EndlessWindow()),
    "count window that slides": lambda s: s.key_by(one).count_window(2, 1).process(EndlessWindow()),
    "evictor": lambda s: (
        timed(s).key_by(one).window(TUMBLING).evictor(CountEvictor.of(3)).process(EndlessWindow())
    ),
    "sessions with an own trigger": lambda s: (
        timed(s).key_by(one).window(SESSIONS).trigger(CountTrigger.of(1)).process(EndlessWindow())
    ),
    "late session": lambda s: (
        timed(s).key_by(one).window(SESSIONS).allowed_lateness(9**9).process(EndlessWindow())
    ),
    "slices": lambda s: (
        timed(s).key_by(one).window(TUMBLING).reduce(lambda a, b: a, EndlessWindow())
    ),
    "slices of all": lambda s: timed(s).window_all(TUMBLING).reduce(lambda a, b: a, EndlessAll()),
    "slices in processing time": lambda s: (
        s.flat_map(lambda value: itertools.count())
        .key_by(one)
        .window(TumblingProcessingTimeWindows.of(Time.milliseconds(5)))
        .reduce(lambda a, b: a, EndlessWindow())
    ),
    "aggregate": lambda s: (
        timed(s).key_by(one).window(TUMBLING).aggregate(Count(), EndlessWindow())
    ),
    "window join": lambda s: (
        timed(s).join(timed(s)).where(one).equal_to(one).window(TUMBLING).apply(EndlessJoin())
    ),
    "window join with a trigger": lambda s: (
        timed(s)
        .join(timed(s))
        .where(one)
        .equal_to(one)
        .window(TUMBLING)
        .trigger(EventTimeTrigger())
        .apply(EndlessJoin())
    ),
    "session join": lambda s: (
        timed(s).join(timed(s)).where(one).equal_to(one).window(SESSIONS).apply(EndlessJoin())
    ),
    "co-group": lambda s: (
        timed(s)
        .co_group(timed(s))
        .where(one)
        .equal_to(one)
        .window(TUMBLING)
        .apply(EndlessCoGroup())
    ),
    "session co-group": lambda s: (
        timed(s)
        .co_group(timed(s))
        .where(one)
        .equal_to(one)
        .window(SESSIONS)
        .apply(EndlessCoGroup())
    ),
    "interval join": lambda s: (
        timed(s)
        .key_by(one)
        .interval_join(timed(s).key_by(one))
        .between(NONE, NONE)
        .process(Endless())
    ),
    "connected flat_map": lambda s: s.connect(s).flat_map(Endless()),
    "connected process": lambda s: s.connect(s).process(Endless()),
    "connected keyed process": lambda s: (
        s.key_by(one).connect(s.key_by(one)).process(EndlessKeyed())
    ),
    "map_batches": lambda s: s.map(
        lambda value: (value,), Types.ROW_NAMED(["n"], [Types.LONG()])
    ).map_batches(lambda batch: itertools.count(), output="rows"),
    "broadcast": lambda s: s.connect(broadcast(s)).process(Endless()),
    "keyed broadcast": lambda s: s.key_by(one).connect(broadcast(s)).process(EndlessKeyed()),
}


@pytest.mark.finding("first-use 12")
@pytest.mark.parametrize("call", CALLS)
def test_a_function_may_yield_without_end(call: str) -> None:
    assert CALLS[call](embedded_environment().from_collection([1, 2])).take(3) == [0, 1, 2]


@pytest.mark.finding("first-use 12")
def test_a_job_whose_function_yields_without_end_is_cancelled_at_once_and_the_generator_closed() -> (
    None
):
    closed, begun = threading.Event(), threading.Event()

    def without_end(value: int) -> Iterator[int]:
        try:
            for number in itertools.count():
                begun.set()
                yield number
        finally:
            closed.set()

    env = embedded_environment()
    env.from_collection([1]).flat_map(_on_this_process(without_end)).filter(lambda n: False).print()
    job = env.execute_async()
    assert begun.wait(30)
    job.cancel().result(30)
    assert closed.wait(30)


_SHARED: dict[int, Any] = {}


class _Shared:
    """A function of this process, by reference: it may use the test's locks."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, value: Any) -> Any:
        return _SHARED[self.number](value)


def _on_this_process(function: Callable[[Any], Any]) -> Any:
    _SHARED[id(function)] = function
    return _Shared(id(function))


@pytest.mark.finding("first-use 2")
@pytest.mark.parametrize("fused", [True, False])
def test_a_map_that_first_gives_new_lists_and_later_changes_one_it_kept(fused: bool) -> None:
    class Turning(MapFunction):
        kept: list[int] = []

        def map(self, value: int) -> list[int]:
            if value <= 3:
                return [value]
            if not self.kept:
                self.kept = [0]
            self.kept[0] = value
            return self.kept

    env = embedded_environment()
    stream = env.from_collection([1, 2, 3, 4, 5, 6]).map(Turning())
    if not fused:
        stream = stream.map(lambda value: value).disable_chaining()
    assert list(stream.map(lambda value: value[0]).execute_and_collect()) == [1, 2, 3, 4, 5, 6]


@pytest.mark.finding("first-use 12")
def test_side_outputs_of_a_function_that_yields_without_end_come_too() -> None:
    tag = OutputTag("aside", Types.INT())

    class Both(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            for number in itertools.count():
                yield number
                yield tag, -number

    assert embedded_environment().from_collection([1]).process(Both()).get_side_output(tag).take(
        3
    ) == [0, -1, -2]


@pytest.mark.finding("first-use 12")
@pytest.mark.parametrize("call", ["evictor", "slices", "window join", "co-group"])
def test_a_function_may_yield_without_end_on_two_task_executors(call: str) -> None:
    env = embedded_environment({"taskmanager.numberOfTaskSlots": 1}, parallelism=2)
    assert CALLS[call](env.from_collection([1, 2])).map(lambda value: value).set_parallelism(
        1
    ).take(3) == [0, 1, 2]


@pytest.mark.finding("first-use 12")
@pytest.mark.parametrize("window", ["own trigger", "session", "slices", "window join", "co-group"])
def test_a_window_whose_function_yields_without_end_is_cancelled_at_once_and_the_generator_closed(
    window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, begun = threading.Event(), threading.Event()

    def without_end(*arguments: Any) -> Iterator[int]:
        try:
            for number in itertools.count():
                begun.set()
                yield number
        finally:
            closed.set()

    shared = _on_this_process(without_end)
    for kind, method in (
        (EndlessWindow, "process"),
        (EndlessJoin, "join"),
        (EndlessCoGroup, "co_group"),
    ):
        monkeypatch.setattr(kind, method, lambda self, *arguments: shared(arguments))
    env = embedded_environment()
    CALLS[window](env.from_collection([1])).filter(lambda n: False).print()
    job = env.execute_async()
    assert begun.wait(30)
    job.cancel().result(30)
    assert closed.wait(30)
