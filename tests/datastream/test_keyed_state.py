"""Keyed state and timers through the API, on the embedded cluster."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from flinkpy.common import Types, WatermarkStrategy
from flinkpy.common.watermark_strategy import TimestampAssigner
from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    SourceFunction,
    StreamExecutionEnvironment,
    TimeDomain,
)
from flinkpy.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

WORDS = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"] * 20


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})


def results(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Everything(KeyedProcessFunction):
    """All kinds of state at once."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.STRING()))
        self.letters = runtime_context.get_map_state(
            MapStateDescriptor("letters", Types.STRING(), Types.INT())
        )
        self.longest = runtime_context.get_reducing_state(
            ReducingStateDescriptor("longest", max, Types.STRING())
        )
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.DOUBLE())
        )

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        self.all.add(value)
        self.letters.put(value[0], (self.letters.get(value[0]) or 0) + 1)
        self.longest.add(value)
        self.mean.add(len(value))
        yield (
            ctx.get_current_key(),
            self.count.value(),
            sorted(self.all),
            dict(self.letters.items()),
            self.longest.get(),
            self.mean.get(),
        )


@pytest.mark.parametrize("parallelism", [1, 2])
def test_every_kind_of_state_counts_per_key(
    env: StreamExecutionEnvironment, parallelism: int
) -> None:
    env.set_parallelism(parallelism)
    last: dict[int, Any] = {}
    for key, count, *rest in results(env.from_collection(WORDS).key_by(len).process(Everything())):
        if count > last.get(key, (0,))[0]:
            last[key] = count, *rest
    assert last.keys() == {len(word) for word in WORDS}
    for key, (count, words, letters, longest, mean) in last.items():
        expected = [word for word in WORDS if len(word) == key]
        assert (count, words, longest, mean) == (
            len(expected),
            sorted(expected),
            max(expected),
            key,
        )
        assert letters == Counter(word[0] for word in expected)


class WordCount(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value: str) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        return value, self.count.value()


@pytest.mark.parametrize(
    "output_type", [None, Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])]
)
def test_a_map_function_on_a_keyed_stream_keeps_state(
    env: StreamExecutionEnvironment, output_type: Any
) -> None:
    found = [
        tuple(result)
        for result in results(
            env.from_collection(WORDS).key_by(lambda word: word).map(WordCount(), output_type)
        )
    ]
    assert sorted(found) == sorted(
        (word, n) for word, count in Counter(WORDS).items() for n in range(1, count + 1)
    )


def test_state_on_a_stream_without_keys_fails_the_job_with_what_to_do(
    env: StreamExecutionEnvironment,
) -> None:
    with pytest.raises(JobExecutionError, match=r"call key_by\(\.\.\.\) before it"):
        results(env.from_collection(WORDS).map(WordCount()))


class AskingLate(
    MapFunction, FlatMapFunction, FilterFunction, ReduceFunction, CoMapFunction, CoFlatMapFunction
):
    """Asks for its state when the first record comes: until then it does not know that it needs
    any."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.context = runtime_context

    def map(self, value: str) -> Any:
        count = self.context.get_state(ValueStateDescriptor("count", Types.LONG()))
        count.update((count.value() or 0) + 1)
        return value[0], count.value()

    def flat_map(self, value: str) -> Any:
        yield self.map(value)

    def filter(self, value: str) -> bool:
        return bool(self.map(value)[1] == int(value[1:]))

    def reduce(self, value1: str, value2: str) -> str:
        letter, count = self.map(value2)
        return f"{letter}{count}"

    map1 = map2 = map
    flat_map1 = flat_map2 = flat_map


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda keyed, f: keyed.map(f), [("a", 1), ("a", 2), ("b", 1)]),
        (
            lambda keyed, f: keyed.map(f, Types.TUPLE([Types.STRING(), Types.LONG()])),
            [("a", 1), ("a", 2), ("b", 1)],
        ),
        (lambda keyed, f: keyed.flat_map(f), [("a", 1), ("a", 2), ("b", 1)]),
        (lambda keyed, f: keyed.filter(f), ["a1", "a2", "b1"]),
        (
            lambda keyed, f: keyed.reduce(f),
            ["a1", "a1", "b1"],
        ),  # it is called for the second one only
        (
            lambda keyed, f: keyed.connect(keyed).map(f),
            [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1), ("b", 2)],
        ),
        (
            lambda keyed, f: keyed.connect(keyed).flat_map(f),
            [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1), ("b", 2)],
        ),
    ],
)
def test_state_may_be_asked_for_when_the_first_record_comes(
    env: StreamExecutionEnvironment, call: Any, expected: list[Any]
) -> None:
    assert (
        sorted(
            results(
                call(
                    env.from_collection(["a1", "b1", "a2"]).key_by(lambda value: value[0]),
                    AskingLate(),
                )
            )
        )
        == expected
    )


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("use", [lambda state: state.value(), lambda state: state.update(7)])
def test_state_is_refused_in_open_where_there_is_no_record_and_so_no_key(
    env: StreamExecutionEnvironment, backend: str, use: Any
) -> None:
    class Hasty(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            use(runtime_context.get_state(ValueStateDescriptor("count", Types.LONG())))

        def map(self, value: str) -> str:
            return value

    env.configure({"state.backend.type": backend})
    with pytest.raises(
        JobExecutionError,
        match=(
            r"test_keyed_state\.py:\d+: there is no record yet, and so no key: open\(\) takes the "
            r"state"
        ),
    ):
        results(env.from_collection(WORDS).key_by(len).map(Hasty()))


class Multiply(CoMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.sums = runtime_context.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG())
        )

    def map1(self, value: int) -> Any:
        self.sums.add(value)
        return value % 2, self.sums.get()

    def map2(self, value: int) -> Any:
        return self.map1(value)


def test_connected_keyed_streams_share_their_state(env: StreamExecutionEnvironment) -> None:
    first, second = env.from_collection(list(range(10))), env.from_collection(list(range(10, 20)))
    found = results(first.connect(second).key_by(lambda x: x % 2, lambda x: x % 2).map(Multiply()))
    assert max(found) == (1, sum(range(1, 20, 2)))
    assert max(result for result in found if result[0] == 0) == (0, sum(range(0, 20, 2)))


# -- timers ----------------------------------------------------------------------------------------


class ItsTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Totals(KeyedProcessFunction):
    """The sum per key and hundred milliseconds of event time, given when it is complete."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sums = runtime_context.get_map_state(
            MapStateDescriptor("sums", Types.LONG(), Types.LONG())
        )

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timestamp = ctx.timestamp()
        assert timestamp == value[1]
        end = value[1] // 100 * 100 + 99
        self.sums.put(end, (self.sums.get(end) or 0) + 1)
        ctx.timer_service().register_event_time_timer(end)  # once per key and time, however often

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        assert ctx.timestamp() == timestamp
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        yield (
            ctx.get_current_key(),
            timestamp,
            self.sums.get(timestamp),
            ctx.timer_service().current_watermark() >= timestamp,
        )
        self.sums.remove(timestamp)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_event_time_timers_fire_and_the_last_ones_at_the_end_of_a_bounded_source(
    env: StreamExecutionEnvironment, parallelism: int
) -> None:
    env.set_parallelism(parallelism)
    events = [(f"k{number % 3}", number * 7) for number in range(300)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ItsTime())
    timed = env.from_collection(events).assign_timestamps_and_watermarks(strategy)
    found = results(timed.key_by(lambda event: event[0]).process(Totals()))
    expected = Counter((key, when // 100 * 100 + 99) for key, when in events)
    assert sorted(found) == sorted(
        (key, end, count, True) for (key, end), count in expected.items()
    )


FIRED = threading.Event()  # in this process, as the embedded cluster is


class UntilTheTimer(SourceFunction):
    """Three records, and then it waits for the timer: the timers of a stream that has ended do not
    fire."""

    def run(self, ctx: Any) -> None:
        for word in ("a", "b", "a"):
            ctx.collect(word)
        assert FIRED.wait(30)

    def cancel(self) -> None:
        FIRED.set()


class Later(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.STRING()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        self.seen.add(value)
        # long ago: fires at once, and once per registration that came after the last firing
        timers.register_processing_time_timer(1)
        timers.register_processing_time_timer(timers.current_processing_time() + 50)
        timers.register_processing_time_timer(2**62)
        timers.delete_processing_time_timer(2**62)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        assert ctx.time_domain() is TimeDomain.PROCESSING_TIME
        if timestamp > 1:
            assert ctx.timer_service().current_processing_time() >= timestamp
            yield ctx.get_current_key(), list(self.seen)
            if ctx.get_current_key() == "b":
                FIRED.set()


def test_processing_time_timers_fire_while_the_stream_is_quiet(
    env: StreamExecutionEnvironment,
) -> None:
    FIRED.clear()
    found = results(env.add_source(UntilTheTimer()).key_by(lambda word: word).process(Later()))
    assert ("b", ["b"]) in found
    assert all(set(seen) == {key} for key, seen in found)
