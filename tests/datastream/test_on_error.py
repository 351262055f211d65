"""``on_error`` in whole jobs: each kind of stream that takes a policy, the refusals of the others,
and what does not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import OutputTag, Time, Types, WatermarkStrategy
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    DeadLetter,
    ErrorPolicy,
    FailedWindow,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.env.submission import stream_graph
from flinkpy.datastream.formats.json import JsonRowDeserializationSchema
from flinkpy.datastream.streams.recorded_program import RecordedProgram
from flinkpy.datastream.window import (
    CountTrigger,
    GlobalWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)
from flinkpy.graph.hashes import operator_ids
from flinkpy.table.expressions import col
from flinkpy.testing import CollectingSink, embedded_environment

FAILED = OutputTag("failed")
DIVERT = ErrorPolicy.divert(FAILED)
TEN = TumblingEventTimeWindows.of(Time.milliseconds(10))


def run(stream: DataStream) -> tuple[list[Any], list[DeadLetter]]:
    """The job's results and dead letters."""
    results, letters = CollectingSink(), CollectingSink()
    stream.sink_to(results)
    stream.get_side_output(FAILED).sink_to(letters)
    result = stream.get_execution_environment().execute()
    told = sum(
        count
        for name, count in result.get_metrics().items()
        if name.endswith(".numRecordsDiverted")
    )
    assert told == len(letters.values)
    return results.values, letters.values


def timed(env: StreamExecutionEnvironment, values: list[Any]) -> DataStream:
    """The values; the last item of each is its time."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value: value[-1]
    )
    return env.from_collection(values).assign_timestamps_and_watermarks(strategy)


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_records_that_fail_are_dead_letters_and_the_others_go_on(
    parallelism: int, mode: RuntimeExecutionMode
) -> None:
    env = embedded_environment(parallelism=parallelism).set_runtime_mode(mode)
    results, letters = run(
        env.from_collection([4, 0, 2, 0, "x"])
        .map(lambda value: 8 / value)
        .name("ratio")
        .uid("ratio")
        .on_error(DIVERT)
    )
    assert sorted(results) == [2.0, 4.0]
    assert sorted(
        (str(letter.record), letter.exception, letter.operator, letter.uid) for letter in letters
    ) == [
        ("0", "ZeroDivisionError", "ratio", "ratio"),
        ("0", "ZeroDivisionError", "ratio", "ratio"),
        ("x", "TypeError", "ratio", "ratio"),
    ]
    assert {letter.frames[-1].file for letter in letters} == {__file__}


def test_a_letter_that_nobody_reads_is_dropped_and_counted() -> None:
    env = embedded_environment()
    sink = CollectingSink()
    env.from_collection([1, 0]).map(lambda value: 1 // value).on_error(DIVERT).sink_to(sink)
    assert env.execute().get_metrics() == {"Map.0.numRecordsDiverted": 1}
    assert sink.values == [1]


def test_a_timestamp_assigner_that_fails() -> None:
    env = embedded_environment()
    results, letters = run(timed(env, [("a", 1), ("b", None), ("c", 2)]).on_error(DIVERT))
    assert results == [("a", 1), ("c", 2)]
    assert [letter.record for letter in letters] == [("b", None)]


class Fragile(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, "withheld, if it raises"
        yield key, sum(element[1] for element in elements)


def test_of_a_window_whose_function_fails_the_letter_has_key_window_and_elements() -> None:
    values = [("a", 1, 1), ("a", 2, 2), ("b", "x", 3), ("b", 3, 4), ("a", 5, 11)]
    results, letters = run(
        timed(embedded_environment(), values)
        .key_by(lambda value: value[0])
        .window(TEN)
        .process(Fragile())
        .on_error(DIVERT)
    )
    assert [result for result in results if result[1] != "withheld, if it raises"] == [
        ("a", 3),
        ("a", 5),
    ]
    assert len(results) == 4
    [letter] = letters
    assert letter.record == FailedWindow("b", TimeWindow(0, 10), [("b", "x", 3), ("b", 3, 4)])
    assert (letter.exception, letter.timestamp) == ("TypeError", 9)


class Clearing(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for element in elements:
            element.clear()
        raise ValueError("they are empty now")


def test_a_letter_has_the_elements_as_the_window_had_them() -> None:
    windows = timed(embedded_environment(), [["a", 1]]).key_by(lambda value: value[0]).window(TEN)
    _, [letter] = run(windows.process(Clearing()).on_error(ErrorPolicy.divert(FAILED, retries=1)))
    assert (letter.record.elements, letter.calls) == ([["a", 1]], 2)


def test_of_a_window_that_a_record_fires_too() -> None:
    values = [("a", 1, 1), ("a", "x", 2), ("a", 2, 3), ("a", 3, 4)]
    windows = (
        embedded_environment()
        .from_collection(values)
        .key_by(lambda value: value[0])
        .window(GlobalWindows.create())
    )
    results, letters = run(windows.trigger(CountTrigger.of(2)).process(Fragile()).on_error(DIVERT))
    # a trigger that fires and does not purge: the record at fault stays in the window
    assert results == []
    assert [len(letter.record.elements) for letter in letters] == [2, 4]


class Looks(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        given = value.pop()
        if given == 0:
            raise ConnectionError("nobody there")
        return given if given == 3 else [given]


@pytest.mark.parametrize("ordered", [True, False])
def test_asynchronous_calls_that_fail(ordered: bool) -> None:
    wait = AsyncDataStream.ordered_wait if ordered else AsyncDataStream.unordered_wait
    results, letters = run(
        wait(
            embedded_environment().from_collection([[1], [0], [2], [3]]), Looks(), Time.seconds(10)
        ).on_error(DIVERT)
    )
    assert sorted(results) == [1, 2]
    assert sorted((letter.record, letter.exception, letter.calls) for letter in letters) == [
        ([0], "ConnectionError", 1),
        ([3], "TypeError", 1),
    ]


def test_an_asynchronous_call_that_fails_after_its_own_retries() -> None:
    retries = AsyncRetryStrategy.fixed_delay(3, 1, exception_predicate=lambda error: True)
    stream = embedded_environment().from_collection([[0]])
    _, [letter] = run(
        AsyncDataStream.ordered_wait_with_retry(
            stream, Looks(), Time.seconds(10), retries
        ).on_error(DIVERT)
    )
    assert (letter.record, letter.exception, letter.calls) == ([0], "ConnectionError", 4)


def test_of_columns_the_rows_at_fault_are_diverted() -> None:
    import pyarrow as pa

    table = pa.table({"text": ["1", "x", "3", "4", "y", None]})
    stream = (
        embedded_environment()
        .from_arrow(table)
        .select(col("text").cast(Types.LONG()).alias("number"))
        .on_error(DIVERT)
    )
    results, letters = run(stream)
    assert [row["number"] for row in results] == [1, 3, 4, None]
    assert [letter.record.text for letter in letters] == ["x", "y"]


class Ends(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1)
        return []

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        raise ValueError("in a timer")


def test_a_timer_that_raises_fails_the_job() -> None:
    with pytest.raises(JobExecutionError, match="in a timer"):
        run(
            timed(embedded_environment(), [("a", 1)])
            .key_by(lambda value: value[0])
            .process(Ends())
            .on_error(DIVERT)
        )


REFUSED: dict[str, tuple[Callable[[DataStream], Any], str]] = {
    "source": (lambda stream: stream.on_error(DIVERT), "not for a source"),
    "key_by": (
        lambda stream: stream.key_by(lambda value: value).on_error(DIVERT),
        r"not for key_by\(...\)",
    ),
    "rebalance": (lambda stream: stream.rebalance().on_error(DIVERT), "belongs to an operator"),
    "reduce of windows": (
        lambda stream: (
            _timed(stream).key_by(hash).window(TEN).reduce(lambda a, b: a).on_error(DIVERT)
        ),
        "aggregates windows",
    ),
    "aggregate of windows": (
        lambda stream: (
            stream.key_by(lambda value: value)
            .window(GlobalWindows.create())
            .trigger(CountTrigger.of(2))
            .reduce(max)
            .on_error(DIVERT)
        ),
        r"apply\(\) or process\(\)",
    ),
    "join": (
        lambda stream: (
            _timed(stream)
            .join(_timed(stream))
            .where(hash)
            .equal_to(hash)
            .window(TEN)
            .apply(lambda a, b: a)
            .on_error(DIVERT)
        ),
        "pairs records",
    ),
    "batches": (
        lambda stream: (
            stream.get_execution_environment()
            .from_pandas(_frame())
            .map_batches(len)
            .on_error(DIVERT)
        ),
        "gets whole batches",
    ),
    "columns": (
        lambda stream: (
            stream.get_execution_environment()
            .from_pandas(_frame())
            .select("n")
            .on_error(ErrorPolicy.retry(1))
        ),
        "the same each time",
    ),
    "async": (
        lambda stream: AsyncDataStream.ordered_wait(stream, Looks(), Time.seconds(1)).on_error(
            ErrorPolicy.retry(1)
        ),
        "retries of its own",
    ),
    "no policy": (lambda stream: stream.map(str).on_error(FAILED), "takes an ErrorPolicy"),  # type: ignore[arg-type]
    "a tag with a type": (
        lambda stream: ErrorPolicy.divert(OutputTag("failed", Types.INT())),
        "leave its type out",
    ),
    "no tag": (lambda stream: ErrorPolicy.divert("failed"), "takes an OutputTag"),  # type: ignore[arg-type]
    "no number": (lambda stream: ErrorPolicy.divert(FAILED, retries=-1), "retries is a number"),
    "no retry": (lambda stream: ErrorPolicy.retry(0), "at least 1"),
}


def _timed(stream: DataStream) -> DataStream:
    return stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value)
    )


def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame({"n": [1]})


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_sentence(name: str) -> None:
    build, text = REFUSED[name]
    with pytest.raises(ProgramError, match=text) as caught:
        build(embedded_environment().from_collection([1]))
    assert "test_on_error.py" in str(caught.value)


def test_a_policy_changes_no_operator_id() -> None:
    def ids(policy: ErrorPolicy) -> list[str]:
        env = embedded_environment()
        (
            env.from_collection([1])
            .map(str)
            .on_error(policy)
            .key_by(len)
            .reduce(max)
            .on_error(policy)
            .print()
        )
        program: RecordedProgram = env.program
        return sorted(operator_ids(stream_graph(program, None)).values())

    assert ids(ErrorPolicy.fail()) == ids(DIVERT) == ids(ErrorPolicy.retry(2))


def test_the_last_policy_counts_and_fail_takes_it_back() -> None:
    stream = embedded_environment().from_collection([0]).map(lambda value: 1 // value)
    stream.on_error(DIVERT).on_error(ErrorPolicy.retry(1)).on_error(ErrorPolicy.fail())
    assert type(stream.recorded.transformation.operator).__name__ == "MapOperator"  # type: ignore[attr-defined]
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        run(stream)


def test_a_dead_letter_can_be_shown_whatever_the_record_and_the_error_do() -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise RuntimeError

        __repr__ = __str__

    def fail(record: Any) -> Any:
        raise Rude

    stream = (
        embedded_environment()
        .from_collection([1])
        .map(lambda n: Rude())
        .map(fail)
        .on_error(ErrorPolicy.divert(FAILED))
    )
    _, letters = run(stream)
    assert letters[0].message == "whose text raises RuntimeError"
    assert str(letters[0]).endswith("\n  on record <Rude, whose repr raises RuntimeError>")


@pytest.mark.parametrize("text", [": in front", ", in front", "  in front", ""])
def test_a_dead_letter_has_the_text_of_the_error_as_it_is(text: str) -> None:
    def fail(record: Any) -> Any:
        raise ValueError(text)

    _, letters = run(
        embedded_environment().from_collection([1]).map(fail).on_error(ErrorPolicy.divert(FAILED))
    )
    assert (letters[0].exception, letters[0].message) == ("ValueError", text)


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_a_message_that_cannot_be_decoded_is_diverted(mode: RuntimeExecutionMode) -> None:
    read = (
        JsonRowDeserializationSchema.builder()
        .type_info(Types.ROW_NAMED(["n"], [Types.LONG()]))
        .build()
    )
    env = embedded_environment().set_runtime_mode(mode)
    decoded = (
        env.from_collection([b'{"n": 1}', b'{"n": "x"}', b"{"])
        .map(read.deserialize, read.get_produced_type())
        .on_error(DIVERT)
    )
    kept, letters = run(decoded)
    assert [row.n for row in kept] == [1]
    assert [(letter.record, letter.exception) for letter in letters] == [
        (b'{"n": "x"}', "MalformedMessageError"),
        (b"{", "MalformedMessageError"),
    ]
    assert letters[0].message.startswith(
        "the message cannot be decoded: field 'n': 'x' (str) is no value of Types.LONG()"
    )


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("policy", [None, DIVERT, ErrorPolicy.divert(FAILED, retries=2)])
@pytest.mark.parametrize("verb", ["map", "flat_map", "process"])
def test_a_function_that_exits_fails_the_job_with_its_record_whatever_the_policy_and_it_is_not_restarted(
    verb: str, policy: ErrorPolicy | None, error: type[BaseException], tmp_path: Path
) -> None:
    calls = tmp_path / "calls"

    def exits(value: int) -> int:
        with calls.open("a") as file:
            file.write(f"{value} ")
        if value == 2:
            raise error("enough")
        return value

    class Process(ProcessFunction):
        def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterable[int]:
            yield exits(value)

    function: Any = Process() if verb == "process" else exits
    env = embedded_environment({"restart-strategy.type": "fixed-delay"})
    stream = getattr(env.from_collection([1, 2, 3]), verb)(
        (lambda value: [exits(value)]) if verb == "flat_map" else function
    ).name("step")
    if policy is not None:
        stream.on_error(policy)
    with pytest.raises(JobExecutionError) as caught:
        run(stream)
    text = str(caught.value)
    assert f"{error.__name__}: enough, which ends programs; raise an Exception instead" in text
    assert "in operator 'step'" in text
    assert "on record 2" in text
    assert isinstance(caught.value.__cause__, error)
    assert calls.read_text() == "1 2 "
