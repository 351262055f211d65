"""Programs in BATCH mode, from the API to their results, embedded."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Duration, Time, Types
from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.core.options.engine import RUNTIME_MODE
from flinkpy.core.program.launch_context import ProgramAborted
from flinkpy.datastream import (
    BroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flinkpy.datastream.window import SlidingEventTimeWindows, TumblingProcessingTimeWindows
from flinkpy.table.expressions import col
from tests.waiting import eventually

LINES = ["to be or", "not to be", "that is", "the question"] * 50
COUNTS = {
    word: 50 * " ".join(LINES[:4]).split().count(word) for word in " ".join(LINES[:4]).split()
}
TINY = {
    "execution.sorted-inputs.memory": "1 kb",
    "taskmanager.memory.framework.off-heap.batch-shuffle.size": "1 kb",
}


def environment(parallelism: int = 1, **options: Any) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", **options}
    )
    return env.set_parallelism(parallelism).set_runtime_mode(RuntimeExecutionMode.BATCH)


def results(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


def word_count(env: StreamExecutionEnvironment) -> Any:
    words = env.from_collection(LINES).rebalance().flat_map(lambda line: line.split())
    return words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("options", [{}, TINY, {"taskmanager.numberOfTaskSlots": 1}])
def test_each_word_is_counted_once(parallelism: int, options: dict[str, Any]) -> None:
    found = results(word_count(environment(parallelism, **options)))
    assert len(found) == len(COUNTS)
    assert dict(found) == COUNTS


def test_the_mode_may_come_from_the_configuration() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", "execution.runtime-mode": "BATCH"}
    )
    assert len(results(word_count(env))) == len(COUNTS)


@pytest.mark.parametrize("bounded", [True, False])
def test_automatic_is_batch_where_every_source_ends(
    bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[Any] = []

    def submit(graph: Any, values: Any) -> Any:
        submitted.append(graph)
        raise ProgramAborted("nothing runs")

    monkeypatch.setattr("flinkpy.cluster.launch.submit", submit)
    env = environment().set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    env.from_collection([1]).print()
    if not bounded:
        env.socket_text_stream("localhost", 1).print()
    with pytest.raises(ProgramAborted):
        env.execute_async()
    assert submitted[0].configuration[RUNTIME_MODE.key].name == (
        "BATCH" if bounded else "STREAMING"
    )


def test_a_source_that_never_ends_is_refused_with_its_line() -> None:
    env = environment()
    env.socket_text_stream("localhost", 1).print()
    with pytest.raises(
        ProgramError, match=r"BATCH needs bounded sources, but .*test_batch\.py:\d+.* never ends"
    ):
        env.execute()


@pytest.mark.parametrize("slots", [1, 2])
def test_a_job_runs_with_fewer_slots_than_it_has_stages_and_subtasks(slots: int) -> None:
    """As a stream it would need four slots in each of two sharing groups."""
    options = {"slotmanager.number-of-slots.max": slots, "taskmanager.numberOfTaskSlots": 1}
    words = word_count(environment(4, **options)).slot_sharing_group("counting")
    turned = words.map(lambda pair: (pair[1], pair[0])).slot_sharing_group("rest")
    first_words = turned.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], min(a[1], b[1])))
    assert sorted(results(first_words)) == sorted(
        (n, min(word for word, count in COUNTS.items() if count == n)) for n in set(COUNTS.values())
    )


def test_a_chain_alone_runs_with_fewer_slots_than_subtasks() -> None:
    env = environment(
        3, **{"slotmanager.number-of-slots.max": 1, "taskmanager.numberOfTaskSlots": 1}
    )
    assert sorted(results(env.from_sequence(1, 10).map(lambda x: x * 2))) == list(range(2, 21, 2))


class Visits(KeyedProcessFunction):
    """Per user: the pages in order of time, told at the end of the day."""

    def open(self, runtime_context: Any) -> None:
        self.pages = runtime_context.get_state(
            ValueStateDescriptor("pages", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.pages.update([*(self.pages.value() or []), value[1]])
        ctx.timer_service().register_event_time_timer(86_400_000)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), self.pages.value()


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("options", [{}, TINY])
def test_a_process_function_sees_each_key_by_time_and_nothing_is_late(
    parallelism: int, options: dict[str, Any]
) -> None:
    env = environment(parallelism, **options)
    visits = [(f"user {number % 7}", 1000 - number) for number in range(500)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda visit, _: visit[1]
    )
    stamped = env.from_collection(visits).assign_timestamps_and_watermarks(strategy)
    found = dict(results(stamped.key_by(lambda visit: visit[0]).process(Visits())))
    assert found == {
        user: sorted(page for who, page in visits if who == user) for user, _ in visits
    }


def test_event_time_windows_give_what_they_give_in_a_stream() -> None:
    def windows(mode: RuntimeExecutionMode) -> list[Any]:
        env = environment(2).set_runtime_mode(mode)
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_seconds(1)
        ).with_timestamp_assigner(lambda value, _: value[1])
        stamped = env.from_collection(
            [("a" if n % 3 else "b", 10 * n) for n in range(200)]
        ).assign_timestamps_and_watermarks(strategy)
        window = SlidingEventTimeWindows.of(Time.milliseconds(500), Time.milliseconds(100))
        return sorted(
            results(
                stamped.key_by(lambda value: value[0])
                .window(window)
                .reduce(lambda a, b: (a[0], a[1] + b[1]))
            )
        )

    assert windows(RuntimeExecutionMode.BATCH) == windows(RuntimeExecutionMode.STREAMING) != []


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("options", [{}, TINY])
def test_windows_of_a_count_take_the_records_of_a_key_by_time(
    parallelism: int, options: dict[str, Any]
) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    values = [("abc"[n % 3], n * 7 % 60) for n in range(60)]
    stamped = (
        environment(parallelism, **options)
        .from_collection(values)
        .assign_timestamps_and_watermarks(strategy)
    )
    windows = (
        stamped.key_by(lambda value: value[0])
        .count_window(5)
        .reduce(lambda a, b: (a[0], f"{a[1]} {b[1]}"))
    )
    ordered = {key: sorted(time for each, time in values if each == key) for key in "abc"}
    fives = [
        (key, of_key[at : at + 5]) for key, of_key in ordered.items() for at in range(0, 20, 5)
    ]
    assert sorted(results(windows)) == sorted(
        (key, " ".join(map(str, times))) for key, times in fives
    )


def test_windows_of_processing_time_fire_at_the_end() -> None:
    keyed = (
        environment().from_collection([("a", 1), ("a", 2), ("b", 3)]).key_by(lambda pair: pair[0])
    )
    window = keyed.window(TumblingProcessingTimeWindows.of(Time.days(1000)))
    assert sorted(results(window.reduce(lambda a, b: (a[0], a[1] + b[1])))) == [("a", 3), ("b", 3)]


def test_a_broadcast_stream_is_read_first() -> None:
    rates = MapStateDescriptor("rates", Types.STRING(), Types.INT())

    class Convert(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
            yield value[0], value[1] * ctx.get_broadcast_state(rates).get(value[0])

        def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
            ctx.get_broadcast_state(rates).put(*value)
            return ()

    env = environment(2)
    orders = env.from_collection([("x", 1), ("y", 2), ("x", 3)]).rebalance()
    converted = orders.connect(
        env.from_collection([("x", 10), ("y", 100)]).broadcast(rates)
    ).process(Convert())
    assert sorted(results(converted)) == [("x", 10), ("x", 30), ("y", 200)]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_columns_give_the_last_row_of_each_key(parallelism: int) -> None:
    table = pa.table({"k": ["a", "b", "a", None] * 500, "n": list(range(2000))})
    env = environment(parallelism, **TINY)
    summed = results(env.from_arrow(table).key_by("k").sum("n"))
    expected = {
        key: sum(n for k, n in zip(*table.to_pydict().values()) if k == key)
        for key in ("a", "b", None)
    }
    assert sorted(((row[0], row[1]) for row in summed), key=str) == sorted(
        expected.items(), key=str
    )
    counted = results(
        env.from_arrow(table)
        .key_by("k")
        .aggregate(col("n").count.alias("count"), col("n").max.alias("most"))
    )
    assert sorted((tuple(row) for row in counted), key=str) == sorted(
        [("a", 1000, 1998), ("b", 500, 1997), (None, 500, 1999)], key=str
    )


def spill_files(folder: Path) -> int:
    """Open files of this process in the folder, those without a name too; and what lies in it."""
    links = []
    for entry in os.scandir("/proc/self/fd"):
        try:
            links.append(os.readlink(entry.path))
        except OSError:
            continue
    return sum(link.startswith(str(folder)) for link in links) + len(list(folder.iterdir()))


class FailLate(MapFunction):
    def __init__(self, folder: Path, failing: bool) -> None:
        self.folder, self.failing = folder, failing

    def map(self, value: Any) -> Any:
        assert spill_files(self.folder), "nothing was spilled"
        if self.failing:
            raise ValueError("too late")
        return value


@pytest.mark.parametrize("failing", [True, False])
def test_no_spill_file_outlives_its_job(tmp_path: Path, failing: bool) -> None:
    env = environment(
        2,
        **{
            "taskmanager.memory.framework.off-heap.batch-shuffle.size": "0",
            "io.tmp.dirs": str(tmp_path),
        },
    )
    counted = word_count(env).rebalance().map(FailLate(tmp_path, failing))
    if failing:
        with pytest.raises(JobExecutionError, match="too late"):
            results(counted)
    else:
        assert len(results(counted)) == len(COUNTS)
    # the workers' threads give them back: soon, not at once
    eventually(lambda: not spill_files(tmp_path))


def test_a_folder_that_cannot_be_made_fails_the_job_naming_the_option(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file is in its place")
    env = environment(1, **{**TINY, "io.tmp.dirs": str(tmp_path / "taken")})
    with pytest.raises(JobExecutionError, match=r"io\.tmp\.dirs"):
        results(word_count(env))


class FailOnce(MapFunction):
    """Fails in its first attempt."""

    def open(self, runtime_context: Any) -> None:
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value: Any) -> Any:
        if self.attempt == 0:
            raise ValueError("once")
        return value


def test_a_stage_that_fails_reads_the_results_before_it_again(tmp_path: Path) -> None:
    seen = tmp_path / "runs"

    class Note(MapFunction):
        def open(self, runtime_context: Any) -> None:
            with seen.open("a") as file:
                file.write("x")

        def map(self, value: Any) -> Any:
            return value

    env = environment(
        1, **{"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0 ms"}
    )
    assert sorted(
        results(env.from_collection([1, 2, 3]).map(Note()).rebalance().map(FailOnce()))
    ) == [1, 2, 3]
    assert seen.read_text() == "x", "the first stage ran once"


def test_managed_memory_that_is_too_little_is_refused_where_only_its_size_is_given() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.runtime-mode": "BATCH", "taskmanager.memory.managed.size": "600 kb"}
    )
    env.set_parallelism(1)
    numbers = env.from_collection(list(range(10)))
    sums = numbers.key_by(lambda number: number % 3).reduce(lambda one, other: one + other)
    with pytest.raises(JobExecutionError, match=r"raise taskmanager\.memory\.managed\.size"):
        list(sums.execute_and_collect())
