"""Streams, built and run: embedded, a few records each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from flinkpy.common import JobStatus, Types, WatermarkStrategy
from flinkpy.common.watermark_strategy import TimestampAssigner
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    DataStream,
    DataStreamSink,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    Partitioner,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.connectors.number_seq import NumberSequenceSource

PAIRS = [("a", 3), ("b", 1), ("a", 2)]
SEEN: list[Any] = []


def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def pairs() -> DataStream:
    return env().from_collection(PAIRS, Types.TUPLE([Types.STRING(), Types.INT()]))


def got(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as results:
        return list(results)


class Times(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


def timed(values: Iterable[Any] = (("a", 1), ("a", 2), ("b", 7))) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())
    return env().from_collection(list(values)).assign_timestamps_and_watermarks(strategy)


class Mapping(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group().add_group("g", "v")
        self.counter = group.counter("n")
        self.meter = group.meter("m")
        self.distribution = group.distribution("d")
        group.gauge("last", lambda: self.last)
        self.last = 0
        context = runtime_context
        assert (
            context.get_index_of_this_subtask(),
            context.get_number_of_parallel_subtasks(),
            context.get_attempt_number(),
        ) == (0, 1, 0)
        assert context.get_max_number_of_parallel_subtasks() >= 1
        assert context.get_task_name() in context.get_task_name_with_subtasks()
        assert context.get_job_parameter("greeting", "") == "hello"

    def map(self, value: Any) -> Any:
        self.counter.inc(2)
        self.counter.dec()
        self.meter.mark_event()
        self.distribution.update(value)
        self.last = value
        assert self.counter.get_count() == self.meter.get_count()
        return value

    def close(self) -> None:
        SEEN.append("closed")


def functions_and_metrics() -> None:
    program = env()
    program.get_config().set_global_job_parameters({"greeting": "hello"})
    program.from_collection([1, 5]).map(Mapping()).print()
    result = program.execute("metrics")
    metrics = result.get_metrics()
    assert (metrics["Map.0.g.v.n"], metrics["Map.0.g.v.last"], metrics["Map.0.g.v.d"]["max"]) == (
        2,
        5,
        5,
    )
    assert (result.get_all_accumulator_results(), result.get_accumulator_result("none")) == (
        {},
        None,
    )
    assert result.get_net_runtime() >= 0
    assert str(result.get_job_id())


class Words(FlatMapFunction):
    def flat_map(self, value: str) -> Iterable[str]:
        return value.split()


class Long(FilterFunction):
    def filter(self, value: str) -> bool:
        return len(value) > 1


class First(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value[0]


class Sum(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


class ByKey(Partitioner):
    def partition(self, key: Any, num_partitions: int) -> int:
        return len(key) % num_partitions


def record_by_record() -> None:
    words = env().from_collection(["to be", "or"]).flat_map(Words(), Types.STRING()).filter(Long())
    assert got(words.union(words.map(str.upper, Types.STRING()))).sort() is None
    assert words.get_type() == Types.STRING()
    assert (
        words.get_execution_config().get_parallelism()
        == words.get_execution_environment().get_parallelism()
    )
    assert got(pairs().project(1)) == [(3,), (1,), (2,)]


def partitionings() -> None:
    for change in (
        DataStream.rebalance,
        DataStream.rescale,
        DataStream.shuffle,
        DataStream.broadcast,
        DataStream.forward,
    ):
        assert sorted(got(change(pairs()).map(lambda pair: pair[1]))) == [1, 2, 3], change
    assert sorted(got(pairs().partition_custom(ByKey(), First()).map(lambda pair: pair[1]))) == [
        1,
        2,
        3,
    ]


def settings() -> None:
    for stream in (pairs().map(lambda pair: pair), pairs().key_by(First()).reduce(Sum())):
        stream.name("n").uid("u").set_uid_hash("0" * 32).set_description("d").set_parallelism(
            1
        ).set_max_parallelism(8).force_non_parallel()
        stream.set_buffer_timeout(1).start_new_chain().disable_chaining().slot_sharing_group("g")
        assert stream.get_name() == "n"
    sink = (
        pairs()
        .print("tag")
        .name("s")
        .uid("u")
        .set_uid_hash("1" * 32)
        .set_description("d")
        .set_parallelism(1)
        .disable_chaining()
    )
    assert isinstance(sink.slot_sharing_group("g"), DataStreamSink)


def keyed_streams() -> None:
    def last(stream: DataStream) -> list[Any]:
        return got(stream)[-1:]

    keyed: Callable[[], Any] = lambda: pairs().key_by(First(), Types.STRING())  # noqa: E731
    assert last(keyed().reduce(Sum())) == [("a", 5)]
    assert [last(keyed().sum(1)), last(keyed().min(1)), last(keyed().max(1))] == [
        [("a", 5)],
        [("a", 2)],
        [("a", 3)],
    ]
    assert [last(keyed().min_by(1)), last(keyed().max_by(1))] == [[("a", 2)], [("a", 3)]]
    assert sorted(got(keyed().map(lambda pair: pair[1]))) == [1, 2, 3]
    assert sorted(got(keyed().flat_map(lambda pair: [pair[1]]))) == [1, 2, 3]
    assert sorted(got(keyed().filter(lambda pair: pair[1] > 1).map(lambda pair: pair[1]))) == [2, 3]
    one = keyed()
    assert len(got(one.union(one.map(lambda pair: pair)))) == 6
    for call in (lambda: keyed().cache(), lambda: keyed().name("x")):
        refused(call)
    keyed().project(0)
    for change in ("rebalance", "rescale", "shuffle", "broadcast", "forward"):
        refused(getattr(keyed(), change))
    refused(lambda: keyed().partition_custom(ByKey(), First()))
    keyed().print()
    keyed().add_sink(lambda value: None)
    keyed().key_by(lambda pair: pair[1])


def refused(call: Callable[[], Any]) -> None:
    try:
        call()
    except ProgramError:
        return
    raise AssertionError("not refused")


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return -value


class Twice(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Iterable[Any]:
        return [value, value]

    def flat_map2(self, value: Any) -> Iterable[Any]:
        return []


def connected_streams() -> None:
    def two() -> Any:
        program = env()
        return program.from_collection([1, 2]).connect(program.from_collection([10]))

    assert sorted(got(two().map(Both()))) == [-10, 1, 2]
    assert sorted(got(two().flat_map(Twice()))) == [1, 1, 2, 2]
    assert sorted(got(two().key_by(lambda value: value, lambda value: value).map(Both()))) == [
        -10,
        1,
        2,
    ]


def caching() -> None:
    with tempfile.TemporaryDirectory() as folder:
        counted = Path(folder, "calls")

        def once(value: int) -> int:
            with counted.open("a") as file:
                file.write(".")
            return value

        cached = env().from_collection([1, 2]).map(once).cache()
        assert [sorted(got(cached.map(str))), sorted(got(cached)), counted.read_text()] == [
            ["1", "2"],
            [1, 2],
            "..",
        ]
        cached.invalidate()
        assert [sorted(got(cached)), counted.read_text()] == [[1, 2], "...."]
        for call in (
            lambda: cached.name("x"),
            lambda: cached.get_name(),
            lambda: cached.uid("x"),
            lambda: cached.set_uid_hash("0" * 32),
            lambda: cached.set_parallelism(1),
            lambda: cached.set_max_parallelism(1),
            cached.force_non_parallel,
            lambda: cached.set_buffer_timeout(1),
            cached.start_new_chain,
            cached.disable_chaining,
            lambda: cached.slot_sharing_group("g"),
        ):
            refused(call)


class Numbers(SourceFunction):
    def run(self, ctx: Any) -> None:
        ctx.collect(1)

    def cancel(self) -> None:
        pass


class Into(SinkFunction):
    def invoke(self, value: Any, context: Any = None) -> None:
        with open(self.path, "a") as file:
            file.write(str(value))

    def __init__(self, path: str) -> None:
        self.path = path


class Writer:
    def write(self, value: Any) -> None:
        """Takes it."""


def running() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = env()
        program.register_cached_file(__file__, "self")
        numbers = program.add_source(Numbers())
        numbers.add_sink(Into(f"{folder}/out"))
        numbers.sink_to(Writer())
        assert '"nodes"' in program.get_execution_plan()
        client = program.execute_async("async")
        execution = client.get_job_execution_result()
        assert execution.result().get_job_id() == client.get_job_id()
        assert (
            execution.done(),
            execution.cancelled(),
            execution.exception(),
            execution.cancel(),
        ) == (True, False, None, False)
        assert client.get_job_status().result() is JobStatus.FINISHED
        assert client.get_accumulators().result() == {}
        client.cancel()
        assert Path(folder, "out").read_text() == "1"
        program.close()
        program.set_default_local_parallelism(1)
    with env().from_collection([1, 2]).execute_and_collect() as results:
        assert [results.next(), next(results)] == [1, 2]
    results.close()


def savepoints() -> None:
    program = env()
    program.from_source(
        NumberSequenceSource(1, 10**12), WatermarkStrategy.no_watermarks(), "numbers"
    ).filter(lambda number: False).print()
    client = program.execute_async()
    with tempfile.TemporaryDirectory() as folder:
        assert (
            client.trigger_savepoint(f"file://{folder}")
            .result()
            .startswith(f"file://{folder}/savepoint-")
        )
        assert (
            client.stop_with_savepoint(False, f"file://{folder}")
            .result()
            .startswith(f"file://{folder}/savepoint-")
        )
    client.get_job_execution_result().result()


def side_outputs() -> None:
    from flinkpy.datastream import ProcessFunction

    tag = OutputTag("odd", Types.INT())

    class Split(ProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Iterable[Any]:
            assert ctx.timestamp() is None
            assert ctx.timer_service().current_processing_time() > 0
            yield (tag, value) if value % 2 else value

    assert got(env().from_collection([1, 2]).process(Split()).get_side_output(tag)) == [1]


SCENARIOS = [
    functions_and_metrics,
    record_by_record,
    partitionings,
    settings,
    keyed_streams,
    connected_streams,
    caching,
    running,
    savepoints,
    side_outputs,
]
