"""Programs run from the API to their results, embedded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from flinkpy.common import JobStatus, OutputTag, Row, Types
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.core.errors import JobExecutionError, UserCodeError
from flinkpy.datastream import (
    CoMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from flinkpy.table.expressions import col


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})


def results(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


def test_words_are_counted_in_two_subtasks(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    words = env.from_collection(["to be or", "not to be"]).flat_map(lambda line: line.split())
    counts = (
        words.map(lambda word: (word, 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    assert sorted(results(counts)) == [
        ("be", 1),
        ("be", 2),
        ("not", 1),
        ("or", 1),
        ("to", 1),
        ("to", 2),
    ]


def test_running_aggregates_of_numbers_tuples_and_rows(env: StreamExecutionEnvironment) -> None:
    assert results(env.from_collection([1, 2, 3]).key_by(lambda x: x % 2).sum()) == [1, 2, 4]
    pairs = env.from_collection([("a", 3, 1), ("a", 1, 2), ("a", 2, 3)]).key_by(lambda p: p[0])
    assert results(pairs.min(1)) == [("a", 3, 1), ("a", 1, 1), ("a", 1, 1)]
    assert results(pairs.min_by(1)) == [("a", 3, 1), ("a", 1, 2), ("a", 1, 2)]
    rows = env.from_collection(
        [Row(k="a", n=1), Row(k="a", n=2)],
        Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()]),
    )
    assert results(rows.key_by("k").sum("n")) == [Row(k="a", n=1), Row(k="a", n=3)]


class Three(SourceFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.place = (
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_number_of_parallel_subtasks(),
        )

    def run(self, ctx: Any) -> None:
        for number in range(3):
            ctx.collect((number, *self.place))

    def cancel(self) -> None:
        pass


def test_one_subtask_runs_a_source_function_unless_the_program_says_otherwise(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_parallelism(2)
    assert sorted(results(env.add_source(Three()).map(lambda found: found))) == [
        (0, 0, 1),
        (1, 0, 1),
        (2, 0, 1),
    ]
    assert sorted(results(env.add_source(Three()).set_parallelism(2))) == [
        (number, at, 2) for number in range(3) for at in range(2)
    ]


def test_side_outputs_and_keys_reach_a_process_function(env: StreamExecutionEnvironment) -> None:
    odd = OutputTag("odd", Types.INT())

    class Split(ProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            yield value if value % 2 == 0 else (odd, value)

    class Tag(KeyedProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            yield ctx.get_current_key(), value, ctx.timestamp()

    split = env.from_collection([1, 2, 3, 4]).process(Split())
    assert sorted(results(split.get_side_output(odd).map(lambda x: -x).union(split))) == [
        -3,
        -1,
        2,
        4,
    ]
    assert results(env.from_collection([5, 6]).key_by(lambda x: x % 2).process(Tag())) == [
        (1, 5, None),
        (0, 6, None),
    ]


def test_two_streams_meet_in_one_function(env: StreamExecutionEnvironment) -> None:
    class Both(CoMapFunction):
        def map1(self, value: int) -> str:
            return f"number {value}"

        def map2(self, value: str) -> str:
            return f"text {value}"

    connected = (
        env.from_collection([1]).connect(env.from_collection(["a"])).map(Both(), Types.STRING())
    )
    assert sorted(results(connected)) == ["number 1", "text a"]


def test_columns_are_filtered_computed_and_aggregated_as_pandas_does(
    env: StreamExecutionEnvironment,
) -> None:
    frame = pd.DataFrame(
        {"carrier": ["UA", "DL", "UA", "AA", "DL"] * 50, "delay": list(range(250))}
    )
    env.set_parallelism(2)
    stream = (
        env.from_pandas(frame, batch_rows=16)
        .filter(col("delay") % 3 == 0)
        .select("carrier", (col("delay") * 2).alias("delay"))
    )
    totals = stream.key_by("carrier").aggregate(
        col("delay").count.alias("flights"),
        col("delay").avg.alias("mean"),
        col("delay").max.alias("worst"),
    )
    last = {row.carrier: (row.flights, row.mean, row.worst) for row in results(totals)}
    kept = frame[frame.delay % 3 == 0].assign(delay=lambda f: f.delay * 2)
    assert last == {
        carrier: (len(group), group.delay.mean(), group.delay.max())
        for carrier, group in kept.groupby("carrier")
    }


def test_a_lambda_on_columns_gets_rows_and_rows_become_columns_again(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_arrow(pa.table({"k": ["a", "b"], "n": [1, 2]}))
    declared = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
    rows = stream.map(lambda row: (row.k.upper(), row.n + 1), declared)
    assert results(rows.map(lambda row: row.n)) == [2, 3]
    assert results(rows.filter(col("n") > 2)) == [Row(k="B", n=3)]
    assert results(stream.key_by("k").reduce(lambda a, b: b)) == [Row(k="a", n=1), Row(k="b", n=2)]
    assert results(stream.key_by("k").sum("n")) == [Row(k="a", n=1), Row(k="b", n=2)]
    assert results(
        stream.map_batches(lambda frame: frame.assign(n=frame.n * 10), "pandas").map(
            lambda row: row.n
        )
    ) == [10, 20]


def test_a_failing_lambda_ends_the_job_with_its_line_operator_and_record(
    env: StreamExecutionEnvironment,
) -> None:
    env.from_collection([1, 0]).map(lambda x: 1 / x).name("inverse").print()
    with pytest.raises(JobExecutionError, match="ZeroDivisionError") as caught:
        env.execute("inverse")
    cause = caught.value.cause
    assert isinstance(cause, UserCodeError)
    assert (cause.operator, cause.record, cause.frames[-1].file) == ("inverse", "0", __file__)
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        results(env.from_collection([0]).map(lambda x: 1 / x))


def test_values_are_printed_as_their_types_say(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    env.from_collection([("hi", 4)], Types.TUPLE([Types.STRING(), Types.INT()])).print()
    env.execute()
    env.from_collection([("hi", 4)]).print("tagged")
    env.execute()
    env.from_arrow(pa.table({"k": ["a"], "x": [1.0]})).print()
    env.execute()
    assert capsys.readouterr().out == "(hi,4)\ntagged> ('hi', 4)\n+I[a, 1.0]\n"


def test_functions_are_opened_with_their_parameters_and_closed(
    env: StreamExecutionEnvironment, tmp_path: Any
) -> None:
    class Greet(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.greeting = runtime_context.get_job_parameter("greeting", "?")

        def map(self, value: str) -> str:
            return f"{self.greeting} {value}"

    class ToFile(SinkFunction):
        def __init__(self, path: str) -> None:
            self.path = path

        def open(self, runtime_context: RuntimeContext) -> None:
            self.values: list[str] = []

        def invoke(self, value: Any, context: Any = None) -> None:
            self.values.append(value)

        def close(self) -> None:
            Path(self.path).write_text("".join(self.values))

    env.get_config().set_global_job_parameters({"greeting": "hello"})
    env.from_collection(["world"]).map(Greet()).add_sink(ToFile(str(tmp_path / "out")))
    result = env.execute("greet")
    assert (tmp_path / "out").read_text() == "hello world"
    assert result.get_net_runtime() >= 0


def test_a_job_runs_in_the_background_and_can_be_cancelled(env: StreamExecutionEnvironment) -> None:
    env.generate(lambda index: index, rate=1000).add_sink(lambda value: None)
    client = env.execute_async("forever")
    assert client.get_job_status().result() in (
        JobStatus.INITIALIZING,
        JobStatus.CREATED,
        JobStatus.RUNNING,
    )
    client.cancel().result()
    assert client.get_job_execution_result().exception() is not None
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_a_limit_ends_an_unbounded_job(env: StreamExecutionEnvironment) -> None:
    assert env.generate(lambda index: index * index).execute_and_collect(limit=3) == [0, 1, 4]


def test_what_one_subtask_makes_is_collected_in_its_order_whatever_the_programs_parallelism(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_parallelism(3)
    numbers, odd = list(range(40)), OutputTag("odd")

    class Aside(ProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            yield (odd, value) if value % 2 else value

    stream = env.from_collection(numbers)
    assert list(stream.execute_and_collect()) == numbers
    assert stream.take(5) == numbers[:5]
    split = stream.process(Aside()).set_parallelism(1)
    assert list(split.get_side_output(odd).execute_and_collect()) == numbers[1::2]
    both = list(stream.union(env.from_collection([100, 101, 102])).execute_and_collect())
    assert [value for value in both if value < 100] == numbers
    assert [value for value in both if value >= 100] == [100, 101, 102]


@pytest.mark.parametrize("call", ["broadcast", "shuffle", "global_"])
def test_a_stream_behind_a_partitioning_is_collected_once(
    env: StreamExecutionEnvironment, call: str
) -> None:
    env.set_parallelism(2)
    stream = getattr(env.from_sequence(1, 20), call)()
    assert sorted(stream.execute_and_collect()) == list(range(1, 21))


def test_an_object_with_write_is_a_sink(env: StreamExecutionEnvironment, tmp_path: Any) -> None:
    class Lines:
        def __init__(self, path: str) -> None:
            self.path = path

        def open(self) -> None:
            self.lines: list[str] = []

        def write(self, value: Row) -> None:
            self.lines.append(f"{value.n}\n")

        def close(self) -> None:
            Path(self.path).write_text("".join(self.lines))

    env.from_arrow(pa.table({"n": [1, 2]})).sink_to(Lines(str(tmp_path / "lines")))
    env.execute()
    assert (tmp_path / "lines").read_text() == "1\n2\n"


def test_a_program_may_have_hundreds_of_steps(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3)
    for _ in range(400):
        stream = stream.map(lambda value: value + 1)
    assert results(stream) == [401, 402, 403]


def test_a_job_that_has_ended_tells_how_many_records_its_subtasks_have_read_and_written(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_parallelism(1)
    env.from_collection([1, 2, 3]).map(lambda value: value).set_parallelism(2).sink_to(
        DiscardingSink()
    )
    client = env.execute_async()
    client.get_job_execution_result().result()
    found = client.get_metrics().result()
    assert (
        sum(
            value
            for name, value in found.items()
            if name.startswith("Map.") and name.endswith("numRecordsIn")
        )
        == 3
    )
    assert not any(name.endswith("PerSecond") for name in found)
