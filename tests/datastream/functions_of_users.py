"""Every verb that takes a function, each with one that does what a test wants: ``given(record)``
stands in it.

Records are the numbers 1 to 6, which are also their times. A builder returns a stream, or None if
it has given the stream a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from tempfile import mkdtemp
from typing import Any

from flinkpy.common import (
    Encoder,
    Row,
    Time,
    TimestampAssigner,
    Types,
    WatermarkGenerator,
    WatermarkStrategy,
)
from flinkpy.connectors.sources import PythonSource
from flinkpy.datastream import AsyncDataStream, DataStream, StreamExecutionEnvironment
from flinkpy.datastream import functions as f
from flinkpy.datastream.connectors.file_system import BucketAssigner, FileSink
from flinkpy.datastream.state import (
    AggregatingStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
)
from flinkpy.datastream.window import (
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from flinkpy.datastream.windowed.full_windows import PartitionWindowedStream

IN_STREAMS_ONLY = {
    "StreamVerbs.assign_timestamps_and_watermarks with a generator",
    "Sources.add_source",
}
IN_BATCH_ONLY = {
    f"PartitionWindowedStream.{verb} of a subtask"
    for verb in ("map_partition", "sort_partition", "reduce", "aggregate")
}
Given = Callable[[Any], Any]
Build = Callable[[StreamExecutionEnvironment, Given], "DataStream | None"]
BUILDERS: dict[str, Build] = {}
RECORDS = [1, 2, 3, 4, 5, 6]
WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(10))
SLIDING = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))
SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
STATE = MapStateDescriptor("rules", Types.INT(), Types.INT())


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    assigned = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda number: number
    )
    return env.from_collection(RECORDS).assign_timestamps_and_watermarks(assigned)


def embedded(mode: str = "STREAMING") -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", "execution.runtime-mode": mode}
    )
    env.set_parallelism(2)
    return env


def builder(name: str) -> Callable[[Build], Build]:
    def add(build: Build) -> Build:
        BUILDERS[name] = build
        return build

    return add


class Whole(
    f.MapFunction,
    f.FlatMapFunction,
    f.FilterFunction,
    f.KeySelector,
    f.ReduceFunction,
    f.Partitioner,
):
    """Each method asks ``given``."""

    def __init__(self, given: Given) -> None:
        self.given = given

    def map(self, value: Any) -> Any:
        return self.given(value)

    def flat_map(self, value: Any) -> Iterable[Any]:
        return [self.given(value)]

    def filter(self, value: Any) -> bool:
        return bool(self.given(value))

    def get_key(self, value: Any) -> Any:
        return self.given(value)

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self.given(value2)

    def partition(self, key: Any, num_partitions: int) -> int:
        return int(self.given(key)) % num_partitions


class Both(f.CoMapFunction, f.CoFlatMapFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return self.given(value)

    def flat_map1(self, value: Any) -> Iterable[Any]:
        return [self.given(value)]

    def flat_map2(self, value: Any) -> Iterable[Any]:
        return [value]


class Sum(f.AggregateFunction):
    """Adds records; the result is the given one. Accumulators of several records are merged."""

    def __init__(self, given: Given, result: Given = lambda record: record) -> None:
        self.given, self.result = given, result

    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + self.given(value)

    def get_result(self, accumulator: Any) -> Any:
        return self.result(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + self.given(acc_b)


class Process(f.ProcessFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        return [self.given(value)]


class Timers(f.KeyedProcessFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        return [self.given(timestamp)]


class InState(f.KeyedProcessFunction):
    """Functions of state: of a reducing and of an aggregating one."""

    def __init__(self, given: Given) -> None:
        self.given = given

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_reducing_state(
            ReducingStateDescriptor("last", Whole(self.given), Types.INT())
        )
        self.sum = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("sum", Sum(self.given), Types.INT())
        )

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        (self.last if value % 2 else self.sum).add(value)
        return [value]


class CoProcess(f.CoProcessFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        return [value]

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        return [self.given(value)]


class KeyedCoProcess(f.KeyedCoProcessFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        return [self.given(value)]

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        return [value]


class Rules(f.BroadcastProcessFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        return [self.given(value)]

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(STATE).put(value, value)


class Joined(f.ProcessJoinFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterable[Any]:
        return [self.given(left)]


class OfWindow(f.ProcessWindowFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return [self.given(each) for each in list(elements)]


class OfAll(f.ProcessAllWindowFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return [self.given(each) for each in list(elements)]


class Asks(EventTimeTrigger):
    def __init__(self, given: Given) -> None:
        super().__init__()
        self.given = given

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        self.given(element)
        return super().on_element(element, timestamp, window, ctx)


class Evicts(Evictor[Any, Any]):
    def __init__(self, given: Given) -> None:
        self.given = given

    def evict_before(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
        for each in elements:
            self.given(each.value)

    def evict_after(self, elements: Any, size: int, window: Any, evictor_context: Any) -> None:
        pass


class Assigns(WindowAssigner[Any, Any]):
    def __init__(self, given: Given) -> None:
        self.given = given

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        self.given(element)
        return WINDOWS.assign_windows(element, timestamp, context)

    def get_default_trigger(self, env: Any = None) -> Any:
        return WINDOWS.get_default_trigger()

    def get_window_serializer(self) -> Any:
        return WINDOWS.get_window_serializer()

    def is_event_time(self) -> bool:
        return True


class Assigner(TimestampAssigner):
    def __init__(self, given: Given) -> None:
        self.given = given

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(self.given(value))


class Marks(WatermarkGenerator):
    def __init__(self, given: Given) -> None:
        self.given = given

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        self.given(event)


class Reads(PythonSource):
    """Gives its records by an iterator that asks."""

    def __init__(self, given: Given) -> None:
        self.given = given

    def splits(self, parallelism: int) -> list[str]:
        return ["all"]

    def read(self, split: Any, position: Any) -> Iterable[Any]:
        for number in RECORDS[position or 0 :]:
            yield self.given(number)


class Runs(f.SourceFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def run(self, ctx: Any) -> None:
        for number in RECORDS:
            ctx.collect(self.given(number))

    def cancel(self) -> None:
        pass


class Invokes(f.SinkFunction):
    def __init__(self, given: Given) -> None:
        self.given = given

    def invoke(self, value: Any, context: Any = None) -> None:
        self.given(value)


class Writes:
    """An object with ``write`` is a sink."""

    def __init__(self, given: Given) -> None:
        self.given = given

    def write(self, value: Any) -> None:
        self.given(value)


class Buckets(BucketAssigner):
    def __init__(self, given: Given) -> None:
        self.given = given

    def bucket_for(self, now_ms: int) -> str | None:
        return None

    def bucket_of(self, value: Any) -> str:
        return str(self.given(value))


class Encodes(Encoder):
    def __init__(self, given: Given) -> None:
        self.given = given

    def encode(self, value: Any) -> bytes:
        return b"%d\n" % self.given(value)


# -- streams of rows -------------------------------------------------------------------------------


@builder("StreamVerbs.map")
def _map(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).map(lambda number: given(number))


@builder("StreamVerbs.map of a declared type")
def _typed_map(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).map(Whole(given), output_type=Types.INT())


@builder("StreamVerbs.flat_map")
def _flat_map(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).flat_map(lambda number: [given(number)])


@builder("StreamVerbs.flat_map of a declared type")
def _typed_flat_map(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).flat_map(Whole(given), output_type=Types.INT())


@builder("StreamVerbs.flat_map that yields")
def _yielding(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    def each(number: Any) -> Iterable[Any]:
        yield given(number)

    return numbers(env).flat_map(each)


@builder("StreamVerbs.filter")
def _filter(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).filter(Whole(given))


@builder("StreamVerbs.process")
def _process(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).process(Process(given))


@builder("StreamVerbs.partition_custom")
def _partitioner(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).partition_custom(
        lambda key, count: given(key) % count, lambda number: number
    )


@builder("StreamVerbs.partition_custom by key")
def _partition_key(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).partition_custom(lambda key, count: key % count, Whole(given))


def partitions(
    env: StreamExecutionEnvironment, *, by_key: bool
) -> PartitionWindowedStream[DataStream]:
    stream = numbers(env)
    if by_key:
        return stream.key_by(lambda number: 0).full_window_partition()
    return stream.full_window_partition()


def _builders_of_partitions(name: str, *, by_key: bool) -> None:
    @builder(f"PartitionWindowedStream.map_partition{name}")
    def _map(env: StreamExecutionEnvironment, given: Given) -> DataStream:
        return partitions(env, by_key=by_key).map_partition(
            lambda records: [given(number) for number in records]
        )

    @builder(f"PartitionWindowedStream.sort_partition{name}")
    def _sort(env: StreamExecutionEnvironment, given: Given) -> DataStream:
        return partitions(env, by_key=by_key).sort_partition(Whole(given))

    @builder(f"PartitionWindowedStream.reduce{name}")
    def _reduce(env: StreamExecutionEnvironment, given: Given) -> DataStream:
        return partitions(env, by_key=by_key).reduce(Whole(given))

    @builder(f"PartitionWindowedStream.aggregate{name}")
    def _aggregate(env: StreamExecutionEnvironment, given: Given) -> DataStream:
        return partitions(env, by_key=by_key).aggregate(Sum(given))


_builders_of_partitions("", by_key=True)
_builders_of_partitions(" of a subtask", by_key=False)


@builder("TableVerbs.map_batches")
def _map_batches(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    def checked(table: Any) -> Any:
        for number in table["n"].to_pylist():
            given(number)
        return table

    rows = numbers(env).map(
        lambda number: Row(number), output_type=Types.ROW_NAMED(["n"], [Types.LONG()])
    )
    return rows.map_batches(checked)


@builder("StreamVerbs.assign_timestamps_and_watermarks")
def _assigner(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda number: given(number)
    )
    return env.from_collection(RECORDS).assign_timestamps_and_watermarks(strategy)


@builder("StreamVerbs.assign_timestamps_and_watermarks with a TimestampAssigner")
def _whole_assigner(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        Assigner(given)
    )
    return env.from_collection(RECORDS).assign_timestamps_and_watermarks(strategy)


@builder("StreamVerbs.assign_timestamps_and_watermarks with a generator")
def _generator(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    strategy = WatermarkStrategy.for_generator(lambda: Marks(given)).with_timestamp_assigner(
        lambda number: number
    )
    return env.from_collection(RECORDS).assign_timestamps_and_watermarks(strategy)


# -- keys ------------------------------------------------------------------------------------------


@builder("DataStream.key_by")
def _key_by(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).key_by(lambda number: given(number)).map(lambda number: number)


@builder("DataStream.key_by and reduce")
def _key_by_reduce(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).key_by(Whole(given)).reduce(lambda one, other: other)


@builder("DataStream.key_by and sum")
def _key_by_sum(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).map(lambda number: (number, 1)).key_by(lambda pair: given(pair[0])).sum(1)


@builder("DataStream.key_by and a window")
def _key_by_window(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return (
        numbers(env)
        .key_by(lambda number: given(number))
        .window(WINDOWS)
        .apply(lambda key, window, records: list(records))
    )


@builder("DataStream.key_by and a count")
def _key_by_count(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).key_by(lambda number: given(number)).window(WINDOWS).count()


@builder("KeyedVerbs.reduce")
def _reduce(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).key_by(lambda number: 0).reduce(lambda one, other: given(other))


@builder("KeyedVerbs.process")
def _timers(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).key_by(lambda number: 0).process(Timers(given))


@builder("KeyedVerbs.process with functions of state")
def _in_state(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).union(numbers(env)).key_by(lambda number: 0).process(InState(given))


# -- windows ---------------------------------------------------------------------------------------


def windowed(env: StreamExecutionEnvironment, windows: Any = WINDOWS) -> Any:
    return numbers(env).key_by(lambda number: 0).window(windows)


@builder("Windowed.reduce")
def _window_reduce(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env).reduce(lambda one, other: given(other))


@builder("Windowed.reduce of sessions")
def _session_reduce(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env, SESSIONS).reduce(Whole(given))


@builder("Windowed.aggregate")
def _window_aggregate(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env).aggregate(Sum(given))


@builder("Windowed.aggregate of sliding windows")
def _sliding_aggregate(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env, SLIDING).aggregate(Sum(given), lambda key, window, sums: list(sums))


@builder("Windowed.aggregate and its result")
def _aggregate_result(env: StreamExecutionEnvironment, given: Given) -> Any:
    windows = SlidingEventTimeWindows.of(Time.milliseconds(4), Time.milliseconds(2))
    return (
        numbers(env)
        .key_by(lambda number: number)
        .window(windows)
        .aggregate(Sum(lambda record: record, given))
    )


@builder("Windowed.aggregate of sessions that merge")
def _aggregate_merge(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env, SESSIONS).aggregate(Sum(given))


@builder("Windowed.apply")
def _window_apply(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env).apply(lambda key, window, records: [given(record) for record in records])


@builder("Windowed.process")
def _window_process(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env, SLIDING).process(OfWindow(given))


@builder("Windowed.trigger")
def _trigger(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env).trigger(Asks(given)).apply(lambda key, window, records: list(records))


@builder("Windowed.trigger by a difference")
def _delta(env: StreamExecutionEnvironment, given: Given) -> Any:
    trigger = DeltaTrigger.of(1.5, lambda old, new: given(new) - old)
    return (
        windowed(env, GlobalWindows.create())
        .trigger(trigger)
        .apply(lambda key, window, records: list(records))
    )


@builder("Windowed.evictor")
def _evictor(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env).evictor(Evicts(given)).apply(lambda key, window, records: list(records))


@builder("DataStream.window_all")
def _window_all(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).window_all(WINDOWS).process(OfAll(given))


@builder("KeyedStream.window")
def _own_windows(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env, Assigns(given)).apply(lambda key, window, records: list(records))


class Gap(SessionWindowTimeGapExtractor):
    def __init__(self, given: Given) -> None:
        self.given = given

    def extract(self, element: Any) -> int:
        return int(self.given(element))


@builder("KeyedStream.window of dynamic gaps")
def _gaps(env: StreamExecutionEnvironment, given: Given) -> Any:
    return windowed(env, EventTimeSessionWindows.with_dynamic_gap(Gap(given))).apply(
        lambda key, window, records: list(records)
    )


# -- two streams -----------------------------------------------------------------------------------


@builder("Connected.map")
def _co_map(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).connect(numbers(env)).map(Both(given))


@builder("Connected.flat_map")
def _co_flat_map(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).connect(numbers(env)).flat_map(Both(given))


@builder("Connected.process")
def _co_process(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).connect(numbers(env)).process(CoProcess(given))


@builder("Connected.process by key")
def _keyed_co_process(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    both = numbers(env).connect(numbers(env)).key_by(lambda number: 0, lambda number: 0)
    return both.process(KeyedCoProcess(given))


@builder("ConnectedStreams.key_by")
def _co_keys(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    both = numbers(env).connect(numbers(env)).key_by(lambda number: 0, Whole(given))
    return both.process(KeyedCoProcess(lambda record: record))


@builder("BroadcastConnected.process")
def _broadcast(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return numbers(env).connect(numbers(env).broadcast(STATE)).process(Rules(given))


@builder("IntervalJoined.process")
def _interval(env: StreamExecutionEnvironment, given: Given) -> Any:
    first, second = numbers(env).key_by(lambda number: 0), numbers(env).key_by(lambda number: 0)
    return (
        first.interval_join(second)
        .between(Time.milliseconds(-1), Time.milliseconds(1))
        .process(Joined(given))
    )


@builder("JoinedStreams.apply")
def _join(env: StreamExecutionEnvironment, given: Given) -> Any:
    joined = (
        numbers(env).join(numbers(env)).where(lambda number: number).equal_to(lambda number: number)
    )
    return joined.window(WINDOWS).apply(lambda one, other: given(one))


@builder("TwoStreams.where")
def _where(env: StreamExecutionEnvironment, given: Given) -> Any:
    joined = (
        numbers(env)
        .join(numbers(env))
        .where(lambda number: given(number))
        .equal_to(lambda number: number)
    )
    return joined.window(WINDOWS).apply(lambda one, other: one)


@builder("TwoStreams.equal_to")
def _equal_to(env: StreamExecutionEnvironment, given: Given) -> Any:
    joined = numbers(env).join(numbers(env)).where(lambda number: number).equal_to(Whole(given))
    return joined.window(SLIDING).apply(lambda one, other: one)


@builder("TwoStreams.equal_to of sessions")
def _equal_to_sessions(env: StreamExecutionEnvironment, given: Given) -> Any:
    joined = numbers(env).join(numbers(env)).where(lambda number: number).equal_to(Whole(given))
    return joined.window(SESSIONS).apply(lambda one, other: one)


@builder("CoGroupedStreams.apply")
def _co_group(env: StreamExecutionEnvironment, given: Given) -> Any:
    grouped = numbers(env).co_group(numbers(env)).where(lambda number: 0).equal_to(lambda number: 0)
    return grouped.window(WINDOWS).apply(lambda ones, others: [given(each) for each in ones])


@builder("AsyncDataStream.ordered_wait")
def _ordered(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    async def ask(number: Any) -> list[Any]:
        return [given(number)]

    return AsyncDataStream.ordered_wait(numbers(env), ask, Time.seconds(60))


@builder("AsyncDataStream.unordered_wait")
def _unordered(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    class Asks(f.AsyncFunction):
        async def async_invoke(self, value: Any) -> list[Any]:
            return [given(value)]

    return AsyncDataStream.unordered_wait(numbers(env), Asks(), Time.seconds(60))


# -- sources and sinks -----------------------------------------------------------------------------


@builder("Sources.generate")
def _generate(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return env.generate(lambda index: given(index + 1), count=6)


@builder("Sources.from_source")
def _from_source(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return env.from_source(Reads(given))


@builder("Sources.add_source")
def _add_source(env: StreamExecutionEnvironment, given: Given) -> DataStream:
    return env.add_source(Runs(given))


@builder("StreamResults.add_sink")
def _add_sink(env: StreamExecutionEnvironment, given: Given) -> None:
    numbers(env).add_sink(Invokes(given))


@builder("StreamResults.add_sink with a function")
def _add_function(env: StreamExecutionEnvironment, given: Given) -> None:
    numbers(env).add_sink(lambda number: given(number))


@builder("StreamResults.sink_to")
def _sink_to(env: StreamExecutionEnvironment, given: Given) -> None:
    numbers(env).sink_to(Writes(given))


@builder("StreamResults.sink_to files")
def _files(env: StreamExecutionEnvironment, given: Given) -> None:
    numbers(env).sink_to(FileSink.for_row_format(mkdtemp(), Encodes(given)).build())


@builder("WriteVerbs.write_text")
def _buckets(env: StreamExecutionEnvironment, given: Given) -> None:
    numbers(env).write_text(mkdtemp(), buckets=Buckets(given))


@builder("StreamResults.print")
def _print(env: StreamExecutionEnvironment, given: Given) -> None:
    class Shown:
        def __init__(self, number: int) -> None:
            self.number = number

        def __str__(self) -> str:
            return str(given(self.number))

        __repr__ = __str__

    numbers(env).map(lambda number: Row(Shown(number), number)).print()
