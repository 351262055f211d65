"""Event time from the API to the function that asks for it, embedded: files with disorder,
exchanges, fused chains, columns."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Duration, Row, TimestampAssigner, Types, WatermarkStrategy
from flinkpy.connectors.files.reading.text_files import TextFileSource
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment
from flinkpy.table.expressions import col


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})


def results(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


def in_seconds(seconds: int) -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(seconds))


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        return int(value.split(",")[1])


class Stamped(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.get_current_key(), value, ctx.timestamp()


class InOrder(KeyedProcessFunction):
    """Holds records back until their time has come, and says what it saw."""

    def open(self, runtime_context: Any) -> None:
        self.waiting: dict[Any, list[int]] = {}

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.waiting.setdefault(ctx.get_current_key(), []).append(ctx.timestamp())
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        waiting = self.waiting[ctx.get_current_key()]
        for _ in range(waiting.count(timestamp)):
            waiting.remove(timestamp)
            yield ctx.get_current_key(), timestamp


def disordered_file(folder: Path, lines: int) -> list[tuple[str, int]]:
    """Two files of events, each up to two seconds out of order."""
    chance = random.Random(7)
    events = [(f"k{chance.randrange(5)}", 1000 + number * 50) for number in range(lines)]
    events.sort(key=lambda event: event[1] + chance.randrange(2000))
    for name, part in (("a.csv", events[: lines // 2]), ("b.csv", events[lines // 2 :])):
        (folder / name).write_text("".join(f"{key},{at}\n" for key, at in part))
    return events


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_keyed_function_sees_the_timestamps_of_a_disordered_file(
    env: StreamExecutionEnvironment, tmp_path: Path, parallelism: int
) -> None:
    events = disordered_file(tmp_path, 400)
    env.set_parallelism(parallelism)
    lines = env.from_source(
        TextFileSource(str(tmp_path)),
        in_seconds(2).with_timestamp_assigner(SecondField()),
        "events",
    )
    pairs = (
        lines.map(lambda line: line.split(","))
        .filter(lambda pair: pair[0] != "k0")
        .map(lambda pair: (pair[0], int(pair[1])))
    )
    seen = results(pairs.key_by(lambda pair: pair[0]).process(Stamped()))
    assert sorted(seen) == sorted((key, (key, at), at) for key, at in events if key != "k0")


@pytest.mark.parametrize("parallelism", [1, 2])
def test_event_timers_put_a_disordered_stream_in_order(
    env: StreamExecutionEnvironment, tmp_path: Path, parallelism: int
) -> None:
    events = disordered_file(tmp_path, 400)
    env.set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(1)
    stamped = env.read_text_file(str(tmp_path)).assign_timestamps_and_watermarks(
        in_seconds(20).with_timestamp_assigner(lambda line: int(line.split(",")[1]))
    )
    seen = results(stamped.key_by(lambda line: line.split(",")[0]).process(InOrder()))
    for key in {key for key, _ in events}:
        assert [at for each, at in seen if each == key] == sorted(
            at for each, at in events if each == key
        )


def test_columns_are_stamped_by_an_expression_and_keep_their_stamps_as_rows(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_parallelism(2)
    table = pa.table(
        {"k": ["a", "b", "a"], "at": pa.array([1_000, 3_000, 2_000], pa.timestamp("ms"))}
    )
    by_column = env.from_arrow(table).assign_timestamps_and_watermarks(
        in_seconds(1).with_timestamp_assigner("at")
    )
    assert by_column.is_columnar
    seen = results(
        by_column.filter(col("k") == "a").key_by("k").process(Stamped()).map(lambda seen: seen[2])
    )
    assert sorted(seen) == [1_000, 2_000]


def test_declared_rows_are_stamped_by_field_or_expression(env: StreamExecutionEnvironment) -> None:
    declared = Types.ROW_NAMED(["k", "at"], [Types.STRING(), Types.LONG()])
    rows = env.from_collection([Row(k="a", at=5), Row(k="b", at=7)], declared)
    assigners: list[Any] = ["at", col("at") + 0, lambda row: row.at]
    for assigner in assigners:
        stamped = rows.assign_timestamps_and_watermarks(
            in_seconds(0).with_timestamp_assigner(assigner)
        )
        assert sorted(
            results(stamped.key_by("k").process(Stamped()).map(lambda seen: seen[2]))
        ) == [5, 7]


def test_a_function_without_a_key_sees_them_too_and_side_by_side_branches_as_well(
    env: StreamExecutionEnvironment,
) -> None:
    class Stamp(ProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            yield value, ctx.timestamp()

    stamped = env.from_collection([3, 1]).assign_timestamps_and_watermarks(
        in_seconds(0).with_timestamp_assigner(lambda value, before: value * 2)
    )
    again = stamped.assign_timestamps_and_watermarks(
        in_seconds(0).with_timestamp_assigner(lambda value, before: before + 1)
    )
    assert sorted(results(stamped.process(Stamp()).union(again.process(Stamp())))) == [
        (1, 2),
        (1, 3),
        (3, 6),
        (3, 7),
    ]


def test_mistakes_are_refused_at_their_line(env: StreamExecutionEnvironment) -> None:
    numbers, table = env.from_collection([1]), env.from_arrow(pa.table({"k": ["a"], "at": [1]}))
    with pytest.raises(ProgramError, match=r"test_event_time\.py:\d+: .*takes a WatermarkStrategy"):
        numbers.assign_timestamps_and_watermarks("monotonous")  # type: ignore[arg-type]
    with pytest.raises(
        ProgramError, match=r"test_event_time\.py:\d+: .*declare it where the records are"
    ):
        numbers.assign_timestamps_and_watermarks(in_seconds(0).with_timestamp_assigner(col("at")))
    with pytest.raises(ProgramError, match=r"test_event_time\.py:\d+: .*did you mean 'at'"):
        table.assign_timestamps_and_watermarks(in_seconds(0).with_timestamp_assigner("att"))
    with pytest.raises(ProgramError, match=r"test_event_time\.py:\d+: .*is of type string"):
        table.assign_timestamps_and_watermarks(in_seconds(0).with_timestamp_assigner("k"))


def test_a_failing_assigner_ends_the_job_with_its_record_and_where_it_came_from(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "events.csv").write_text("a,1\nb\n")
    source = TextFileSource(str(tmp_path / "events.csv"))
    env.from_source(source, in_seconds(0).with_timestamp_assigner(SecondField()), "events").print()
    with pytest.raises(JobExecutionError, match="IndexError") as caught:
        env.execute()
    text = str(caught.value)
    assert "in operator 'Source: events'" in text
    assert "on record 'b'" in text
    assert "events.csv" in text
