"""Functions declared with ``async def`` are refused where nobody would await them, while the
program is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import (
    DeserializationSchema,
    Encoder,
    JobListener,
    Time,
    TimestampAssigner,
    Types,
    WatermarkGenerator,
    WatermarkStrategy,
)
from flinkpy.connectors.sinks import Committer, Sink, SinkWriter
from flinkpy.connectors.sources import PythonSource
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.core.program.coroutines import coroutine_in
from flinkpy.datastream import AsyncDataStream, DataStream, StreamExecutionEnvironment
from flinkpy.datastream import functions as f
from flinkpy.datastream.connectors.file_system import BucketAssigner, FileSink
from flinkpy.datastream.connectors.kafka import KafkaSource
from flinkpy.datastream.state import AggregatingStateDescriptor, ReducingStateDescriptor
from flinkpy.datastream.window import (
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    SessionWindowTimeGapExtractor,
    TumblingEventTimeWindows,
)
from flinkpy.operators.functions import SinkFunction
from tests.datastream.functions_of_users import Sum, Timers, embedded, numbers

WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(10))
Build = Callable[[StreamExecutionEnvironment], Any]


async def look_up(*arguments: Any) -> Any:
    return arguments[0]


async def each(*arguments: Any) -> Any:
    yield arguments[0]


def late(base: type, *methods: str, **others: Any) -> Any:
    """An object of a class derived from ``base``, in which these methods are coroutine
    functions."""
    missing = dict.fromkeys(getattr(base, "__abstractmethods__", ()), lambda *arguments: None)
    return type("Late", (base,), {**missing, **others, **dict.fromkeys(methods, look_up)})()


def keyed(env: StreamExecutionEnvironment) -> Any:
    return numbers(env).key_by(lambda number: 0)


def windowed(env: StreamExecutionEnvironment, windows: Any = WINDOWS) -> Any:
    return keyed(env).window(windows)


def assigned(env: StreamExecutionEnvironment, assigner: Any) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    return env.from_collection([1]).assign_timestamps_and_watermarks(strategy)


def kafka(schema: Any) -> Any:
    builder = KafkaSource.builder().set_bootstrap_servers("localhost:1").set_topics("t")
    return builder.set_value_only_deserializer(schema).build()


def joined(env: StreamExecutionEnvironment, where: Any, apply: Any = lambda one, other: one) -> Any:
    return (
        numbers(env)
        .join(numbers(env))
        .where(where)
        .equal_to(lambda number: number)
        .window(WINDOWS)
        .apply(apply)
    )


def nothing(*arguments: Any) -> None:
    """Stands for what is not looked at."""


PLACES: dict[str, Build] = {
    "map": lambda env: numbers(env).map(look_up),
    "flat_map": lambda env: numbers(env).flat_map(each),
    "filter": lambda env: numbers(env).filter(look_up),
    "open of a map": lambda env: numbers(env).map(late(f.MapFunction, "open")),
    "close of a map": lambda env: numbers(env).map(late(f.MapFunction, "close")),
    "map of a MapFunction": lambda env: numbers(env).map(late(f.MapFunction, "map")),
    "process": lambda env: numbers(env).process(late(f.ProcessFunction, "process_element")),
    "a timer": lambda env: keyed(env).process(late(f.KeyedProcessFunction, "on_timer")),
    "the second input": lambda env: (
        numbers(env).connect(numbers(env)).map(late(f.CoMapFunction, "map2"))
    ),
    "a key": lambda env: numbers(env).key_by(look_up).map(lambda number: number),
    "open of a key selector": lambda env: (
        numbers(env).key_by(late(f.KeySelector, "open")).map(lambda number: number)
    ),
    "a reduce": lambda env: keyed(env).reduce(look_up),
    "a partitioner": lambda env: (
        numbers(env).partition_custom(look_up, lambda number: number).map(lambda number: number)  # type: ignore[arg-type]
    ),
    "open of a partitioner": lambda env: (
        numbers(env)
        .partition_custom(late(f.Partitioner, "open"), lambda number: number)
        .map(lambda number: 1)
    ),
    "a timestamp assigner": lambda env: assigned(env, look_up),
    "a TimestampAssigner": lambda env: assigned(env, late(TimestampAssigner, "extract_timestamp")),
    "a class of watermark generators": lambda env: WatermarkStrategy.for_generator(
        type(late(WatermarkGenerator, "on_event"))
    ),
    "an aggregate": lambda env: windowed(env).aggregate(late(f.AggregateFunction, "get_result")),
    "a window function": lambda env: windowed(env).apply(look_up),
    "a process window function": lambda env: windowed(env).process(
        late(f.ProcessWindowFunction, "clear")
    ),
    "a trigger": lambda env: (
        windowed(env).trigger(late(EventTimeTrigger, "on_element")).reduce(max)
    ),
    "a delta": lambda env: (
        windowed(env, GlobalWindows.create()).trigger(DeltaTrigger.of(1.0, look_up)).reduce(max)
    ),
    "an evictor": lambda env: (
        windowed(env).evictor(late(Evictor, "evict_before")).apply(lambda key, window, records: [])
    ),
    "a gap": lambda env: windowed(
        env,
        EventTimeSessionWindows.with_dynamic_gap(late(SessionWindowTimeGapExtractor, "extract")),
    ).reduce(max),
    "a key of a join": lambda env: joined(env, look_up),
    "a join": lambda env: joined(env, lambda number: number, look_up),
    "a source function": lambda env: env.add_source(late(f.SourceFunction, "run")),
    "a source": lambda env: env.from_source(
        late(PythonSource, "read", splits=lambda self, parallelism: ["all"])
    ),
    "generate": lambda env: env.generate(look_up, count=1),
    "a deserializer": lambda env: env.from_source(
        kafka(late(DeserializationSchema, "deserialize"))
    ),
    "a sink function": lambda env: numbers(env).add_sink(late(SinkFunction, "invoke")),
    "a function as a sink": lambda env: numbers(env).add_sink(look_up),
    "an object that writes": lambda env: numbers(env).sink_to(
        type("Late", (), {"write": look_up})()
    ),
    "an encoder": lambda env: numbers(env).sink_to(
        FileSink.for_row_format("out", late(Encoder, "encode")).build()
    ),
    "buckets": lambda env: numbers(env).write_text(
        "out", buckets=late(BucketAssigner, "bucket_of")
    ),
    "map_batches": lambda env: (
        assigned(env, nothing)
        .map(lambda number: (number,), output_type=Types.ROW([Types.INT()]))
        .map_batches(look_up)
    ),
    "a listener": lambda env: env.register_job_listener(late(JobListener, "on_job_executed")),
    "open of an AsyncFunction": lambda env: AsyncDataStream.ordered_wait(
        numbers(env), late(f.AsyncFunction, "open", async_invoke=look_up), Time.seconds(1)
    ),
    "a retry's predicate": lambda env: AsyncDataStream.ordered_wait_with_retry(
        numbers(env),
        look_up,
        Time.seconds(1),
        f.AsyncRetryStrategy.fixed_delay(1, 1, look_up),  # type: ignore[arg-type]
    ),
}


@pytest.mark.finding("bugs 12")
@pytest.mark.parametrize("place", PLACES)
def test_a_coroutine_function_is_refused_with_the_line_and_what_to_do(place: str) -> None:
    with pytest.raises(
        ProgramError,
        match=r"test_coroutine_functions\.py:\d+: .*async def.*AsyncDataStream.unordered_wait",
    ):
        PLACES[place](embedded())


class Sinks(Sink):
    def __init__(self, writes: Any, commits: Any) -> None:
        self.writes, self.commits = writes, commits

    def create_writer(self, context: Any) -> Any:
        return self.writes()

    def create_committer(self, context: Any) -> Any:
        return self.commits()


@pytest.mark.finding("bugs 12")
@pytest.mark.parametrize(
    ("writer", "committer", "told"),
    [
        (lambda: late(SinkWriter, "write_batch"), lambda: None, "create_writer.*Late.write_batch"),
        (lambda: late(SinkWriter, "close"), lambda: None, "create_writer.*Late.close"),
        (
            lambda: late(SinkWriter),
            lambda: late(Committer, "commit"),
            "create_committer.*Late.commit",
        ),
    ],
    ids=["write_batch", "close", "commit"],
)
def test_what_a_sink_makes_in_its_task_is_looked_at_there(
    writer: Any, committer: Any, told: str
) -> None:
    env = embedded()
    numbers(env).sink_to(Sinks(writer, committer))
    with pytest.raises(JobExecutionError, match=f"{told} is declared with 'async def'"):
        env.execute()


@pytest.mark.finding("bugs 12")
def test_a_watermark_generator_that_a_function_makes_is_looked_at_in_its_task() -> None:
    strategy = WatermarkStrategy.for_generator(lambda: late(WatermarkGenerator, "on_event"))
    stream = embedded().from_collection([1]).assign_timestamps_and_watermarks(strategy)
    with pytest.raises(
        JobExecutionError, match=r"for_generator\(\): Late.on_event is declared with 'async def'"
    ):
        stream.take(1)


@pytest.mark.finding("bugs 12")
def test_it_is_refused_in_the_functions_of_state() -> None:
    with pytest.raises(ProgramError, match=r"state 'last': look_up is declared with 'async def'"):
        ReducingStateDescriptor("last", look_up)
    with pytest.raises(ProgramError, match=r"state 'sum': Late\.add is declared with 'async def'"):
        AggregatingStateDescriptor("sum", late(Sum, "add", __init__=nothing))


class Numbers(f.SourceFunction):
    def run(self, ctx: Any) -> Any:
        yield 1

    def cancel(self) -> None: ...


class Opened(f.MapFunction):
    def open(self, runtime_context: Any) -> Any:
        yield runtime_context

    def map(self, value: Any) -> Any:
        return value


class Written:
    def write(self, value: Any) -> Any:
        yield value


@pytest.mark.parametrize(
    ("build", "method"),
    [
        (lambda env: env.add_source(Numbers()), "Numbers.run"),
        (lambda env: numbers(env).map(Opened()), "Opened.open"),
        (lambda env: numbers(env).sink_to(Written()), "Written.write"),
    ],
    ids=["a source function's run", "open", "an object's write"],
)
def test_a_generator_that_nothing_would_run_is_refused(build: Build, method: str) -> None:
    with pytest.raises(ProgramError, match=rf"{method} has a 'yield'.*without 'yield'"):
        build(embedded())


class Parser:
    """A function with generators of its own, whose names are also those of sinks and sources."""

    def __call__(self, value: int) -> int:
        return value + int(next(self.run()))

    def run(self) -> Any:
        yield 1

    write = open = run


class SinkWithHelper:
    def write(self, value: int) -> None:
        list(self.run())

    def run(self) -> Any:
        yield 1


def test_generators_that_a_users_object_has_for_itself_are_its_own_affair() -> None:
    numbers(embedded()).map(Parser()).sink_to(SinkWithHelper())


def test_asynchronous_functions_stay_where_they_are_awaited() -> None:
    client = type("Client", (f.AsyncFunction,), {"async_invoke": look_up, "client": look_up})()
    client.session = look_up
    stream = AsyncDataStream.unordered_wait(numbers(embedded()), client, Time.seconds(1))
    AsyncDataStream.ordered_wait(stream, look_up, Time.seconds(1)).print()


def test_what_a_users_object_holds_is_its_own_affair() -> None:
    function = Timers(look_up)
    assert coroutine_in(function) is None
    keyed(embedded()).process(function)


def test_data_is_not_searched(tmp_path: Path) -> None:
    embedded().from_collection([late(object, "fetch"), 1, tmp_path])
