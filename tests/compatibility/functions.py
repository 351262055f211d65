"""Functions with state, timers, windows, broadcast state and asynchronous calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flinkpy.common import Duration, Time, Types, WatermarkStrategy
from flinkpy.datastream import (
    AggregateFunction,
    AsyncDataStream,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
)
from flinkpy.datastream.async_retry_predicates import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)
from flinkpy.datastream.async_retry_strategies import (
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
    NoRetryStrategy,
    RetryPredicate,
)
from flinkpy.datastream.data_stream import AllWindowedStream, WindowedStream
from flinkpy.datastream.functions import (
    AllWindowFunction,
    AsyncFunction,
    AsyncFunctionDescriptor,
    AsyncRetryStrategy,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from flinkpy.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from tests.compatibility.streams import First, Sum, Times, env, got, refused, timed


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        number = value[1] if isinstance(value, tuple) else value
        return accumulator[0] + number, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class States(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        value = ValueStateDescriptor("value", Types.LONG())
        value.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        assert value.get_name() == "value"
        reducing = ReducingStateDescriptor("reducing", lambda a, b: a + b, Types.LONG())
        aggregating = AggregatingStateDescriptor("mean", Mean())
        assert callable(reducing.get_reduce_function())
        assert isinstance(aggregating.get_agg_function(), Mean)
        self.value = runtime_context.get_state(value)
        self.items = runtime_context.get_list_state(ListStateDescriptor("list", Types.LONG()))
        self.map = runtime_context.get_map_state(
            MapStateDescriptor("map", Types.STRING(), Types.LONG())
        )
        self.reducing = runtime_context.get_reducing_state(reducing)
        self.mean = runtime_context.get_aggregating_state(aggregating)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        assert ctx.get_current_key() == value[0]
        assert ctx.timestamp() == value[1]
        self.value.update((self.value.value() or 0) + 1)
        self.items.update([1])
        self.items.add(2)
        self.items.add_all([3])
        assert list(self.items.get()) == [1, 2, 3]
        self._use_map()
        self.reducing.add(value[1])
        self.mean.add(value[1])
        timers = ctx.timer_service()
        assert timers.current_watermark() < timers.current_processing_time()
        timers.register_event_time_timer(value[1] + 10)
        timers.register_event_time_timer(value[1] + 11)
        timers.delete_event_time_timer(value[1] + 11)
        timers.register_processing_time_timer(1 << 50)
        timers.delete_processing_time_timer(1 << 50)
        yield value[0], self.reducing.get(), self.mean.get()

    def _use_map(self) -> None:
        self.map.put("x", 1)
        self.map.put_all({"y": 2})
        assert (self.map.get("x"), self.map.contains("y"), self.map.is_empty()) == (1, True, False)
        assert (sorted(self.map.keys()), sorted(self.map.values()), sorted(self.map.items())) == (
            ["x", "y"],
            [1, 2],
            [("x", 1), ("y", 2)],
        )
        self.map.remove("x")
        self.map.clear()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield "timer", ctx.get_current_key(), timestamp, ctx.time_domain().name


def keyed_state_and_timers() -> None:
    found = got(timed([("a", 1), ("a", 3)]).key_by(First()).process(States()))
    assert found == [
        ("a", 1, 1.0),
        ("a", 4, 2.0),
        ("timer", "a", 11, "EVENT_TIME"),
        ("timer", "a", 13, "EVENT_TIME"),
    ]


class Plain(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield 1, ctx.timestamp(), ctx.timer_service().current_processing_time() > 0

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield 2, ctx.timestamp(), True


class Keyed(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1)
        yield ctx.get_current_key()

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        return []

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield timestamp, ctx.time_domain().name


def two_inputs() -> None:
    stream = timed()
    assert sorted(got(stream.connect(stream.map(lambda pair: pair)).process(Plain())))[0] == (
        1,
        1,
        True,
    )
    stream = timed([("a", 1)])
    other = stream.map(lambda pair: pair)
    assert got(stream.key_by(First()).connect(other.key_by(First())).process(Keyed())) == [
        "a",
        (2, "EVENT_TIME"),
    ]


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Rules(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        state = ctx.get_broadcast_state(RULES)
        assert ctx.current_processing_time() > ctx.current_watermark()
        ctx.timestamp()
        read_all(state)
        return []

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield write_all(ctx.get_broadcast_state(RULES))


def read_all(state: Any) -> None:
    assert state.is_empty() or (
        state.contains("x") and state.get("x") == 1 and dict(state.items()) == {"x": 1}
    )
    assert len(list(state.keys())) == len(list(state.values()))


def write_all(state: Any) -> Any:
    state.put("y", 2)
    state.put_all({"x": 1, "z": 3})
    state.remove("y")
    state.remove("z")
    read_all(state)
    return dict(state.items())


class KeyedRules(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        read_all(ctx.get_broadcast_state(RULES))
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1)
        yield ctx.get_current_key()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        write_all(ctx.get_broadcast_state(RULES))
        return []

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield timestamp, ctx.get_current_key(), ctx.time_domain().name


def broadcast_state() -> None:
    program = env()
    rules = program.from_collection([1]).broadcast(RULES)
    assert got(program.from_collection([("a", 1)]).connect(rules).process(Rules())) == [{"x": 1}]
    stream = timed([("a", 1)])
    rules = stream.map(lambda pair: pair).broadcast(RULES)
    assert got(stream.key_by(First()).connect(rules).process(KeyedRules())) == [
        "a",
        (2, "a", "EVENT_TIME"),
    ]


# -- windows ---------------------------------------------------------------------------------------


class Count(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [(key, window.start, len(list(inputs)))]


class CountAll(AllWindowFunction):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [(window.start, len(list(inputs)))]


class Context(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        assert context.current_processing_time() > 0
        assert context.current_watermark() >= context.window().end - 1
        for store in (context.window_state(), context.global_state()):
            state = store.get_state(ValueStateDescriptor("n", Types.LONG()))
            state.update((state.value() or 0) + 1)
        yield key, len(list(elements)), state.value()

    def clear(self, context: Any) -> None:
        context.window_state().get_state(ValueStateDescriptor("n", Types.LONG())).clear()


class ContextAll(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for store in (context.window_state(), context.global_state()):
            store.get_state(ValueStateDescriptor("n", Types.LONG())).update(1)
        yield context.window().start, len(list(elements))

    def clear(self, context: Any) -> None:
        context.window_state().get_state(ValueStateDescriptor("n", Types.LONG())).clear()


class Telling(Trigger[Any, Any]):
    """Fires at the window's end, having looked at everything a trigger is offered."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        assert ctx.get_current_watermark() < ctx.get_current_processing_time()
        ctx.get_metric_group().counter("seen").inc()
        ctx.get_partitioned_state(ValueStateDescriptor("n", Types.LONG())).update(1)
        ctx.register_processing_time_timer(1 << 50)
        ctx.delete_processing_time_timer(1 << 50)
        ctx.register_event_time_timer(window.max_timestamp() - 1)
        ctx.delete_event_time_timer(window.max_timestamp() - 1)
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Any) -> None:
        """Never."""

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(ValueStateDescriptor("n", Types.LONG())).clear()


class Asking(TumblingEventTimeWindows):
    """Looks at what an assigner is offered."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Any:
        assert context.get_current_processing_time() > 0
        assert context.get_runtime_context() is not None
        return super().assign_windows(element, timestamp, context)


def keyed_windows() -> None:
    def windowed() -> WindowedStream:
        return timed().key_by(First()).window(TumblingEventTimeWindows.of(Time.milliseconds(5)))

    assert windowed().get_execution_environment().get_parallelism() >= 1
    windowed().get_input_type()
    late = OutputTag("late")
    assert sorted(
        got(windowed().allowed_lateness(5).side_output_late_data(late).reduce(Sum()))
    ) == [("a", 3), ("b", 7)]
    assert sorted(got(windowed().trigger(EventTimeTrigger.create()).aggregate(Mean()))) == [
        1.5,
        7.0,
    ]
    assert sorted(got(windowed().apply(Count()))) == [("a", 0, 2), ("b", 5, 1)]
    assert sorted(got(windowed().process(Context()))) == [("a", 2, 1), ("b", 1, 1)]
    assert sorted(got(windowed().trigger(Telling()).apply(Count()))) == [("a", 0, 2), ("b", 5, 1)]
    assert sorted(got(timed().key_by(First()).window(Asking(5, 0)).apply(Count()))) == [
        ("a", 0, 2),
        ("b", 5, 1),
    ]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(1)
    ).with_timestamp_assigner(Times())
    # the last one joins two sessions
    apart = (
        env()
        .from_collection([("a", 1), ("a", 5), ("a", 3)])
        .assign_timestamps_and_watermarks(strategy)
    )
    assert got(
        apart.key_by(First())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(3)))
        .aggregate(Mean())
    ) == [3.0]
    assert got(timed().key_by(First()).count_window(2).reduce(Sum())) == [("a", 3)]


def all_windows() -> None:
    def windowed() -> AllWindowedStream:
        return timed().window_all(TumblingEventTimeWindows.of(Time.milliseconds(5)))

    assert windowed().get_execution_environment().get_parallelism() >= 1
    windowed().get_input_type()
    late = OutputTag("late")
    assert got(windowed().allowed_lateness(5).side_output_late_data(late).reduce(Sum())) == [
        ("a", 3),
        ("b", 7),
    ]
    assert got(windowed().trigger(EventTimeTrigger.create()).aggregate(Mean())) == [1.5, 7.0]
    assert got(windowed().apply(CountAll())) == [(0, 2), (5, 1)]
    assert got(windowed().process(ContextAll())) == [(0, 2), (5, 1)]


# -- asynchronous calls ----------------------------------------------------------------------------


class Lookup(AsyncFunction):
    async def async_invoke(self, value: int) -> list[Any]:
        return [value * 10]

    def timeout(self, value: int) -> list[Any]:
        return []


class Never(AsyncFunction):
    async def async_invoke(self, value: int) -> list[Any]:
        import asyncio

        await asyncio.Event().wait()
        return []

    def timeout(self, value: int) -> list[Any]:
        return [-value]


def asynchronous_calls() -> None:
    wait = AsyncDataStream
    second = Time.seconds(1)
    retry = AsyncRetryStrategy.fixed_delay(2, 1, empty_result_predicate, has_exception_predicate)
    assert got(wait.ordered_wait(env().from_collection([1, 2]), Lookup(), second, 10)) == [10, 20]
    assert got(
        wait.ordered_wait_with_retry(env().from_collection([1, 2]), Lookup(), second, retry)
    ) == [10, 20]
    assert sorted(got(wait.unordered_wait(env().from_collection([1, 2]), Lookup(), second))) == [
        10,
        20,
    ]
    assert sorted(
        got(wait.unordered_wait_with_retry(env().from_collection([1, 2]), Lookup(), second, retry))
    ) == [10, 20]
    assert got(wait.ordered_wait(env().from_collection([1]), Never(), Time.milliseconds(1))) == [-1]
    AsyncFunctionDescriptor(Lookup(), second, 10)
    refused(lambda: AsyncFunctionDescriptor(Lookup(), second, 0))


def retries() -> None:
    assert (
        empty_result_predicate([]),
        has_exception_predicate(None),
        exception_type_predicate(ValueError(), ValueError),
    ) == (True, False, True)
    fixed = FixedDelayRetryStrategy(2, 7)
    growing = ExponentialBackoffDelayRetryStrategy(5, 1, 4, 2.0)
    none = NoRetryStrategy()
    assert (fixed.can_retry(1), fixed.can_retry(3), fixed.get_backoff_time_millis(1)) == (
        True,
        False,
        7,
    )
    assert (growing.can_retry(1), none.can_retry(1)) == (True, False)
    assert growing.get_backoff_time_millis(9) == 4
    assert none.get_backoff_time_millis(1) is not None
    for strategy in (
        fixed,
        growing,
        none,
        AsyncRetryStrategy.no_restart(),
        AsyncRetryStrategy.exponential_backoff(5, 1, 4, 2.0),
    ):
        predicate = strategy.get_retry_predicate()
        predicate.result_predicate()
        predicate.exception_predicate()
    assert RetryPredicate(empty_result_predicate, None).exception_predicate() is None


SCENARIOS = [
    keyed_state_and_timers,
    two_inputs,
    broadcast_state,
    keyed_windows,
    all_windows,
    asynchronous_calls,
    retries,
]
