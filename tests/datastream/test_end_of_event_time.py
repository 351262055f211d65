"""The end of input and a drain end event time for everybody, whoever was idle then: nothing stays
in a window, a slice, a timer or a join."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.common import Duration, Time, Types, WatermarkStrategy
from flinkpy.core.elements import Watermark
from flinkpy.datastream import (
    DataStream,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from flinkpy.table.expressions import col
from flinkpy.testing import CollectingSink
from flinkpy.testing.scripted_source import ACTIVE, IDLE, At, ScriptedSource
from tests.waiting import eventually

WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(10))
IDLE_AFTER = Duration.of_millis(1)
AT_ITSELF = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda number: number
)

MAY_END = threading.Event()

Make = Callable[[list[DataStream]], DataStream]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", "pipeline.auto-watermark-interval": "1 ms"}
    )


def counted(stream: DataStream) -> Counter[int]:
    """How often each record came out."""
    with stream.execute_and_collect() as collected:
        return Counter(
            record for each in collected for record in (each if isinstance(each, list) else [each])
        )


class AtItsTime(KeyedProcessFunction):
    """Gives each record when its time has come."""

    def process_element(self, value: int, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[int]:
        yield timestamp


def by_timer(streams: list[DataStream]) -> DataStream:
    return union(streams).key_by(lambda number: number).process(AtItsTime())


def by_window(streams: list[DataStream]) -> DataStream:
    return (
        union(streams)
        .key_by(lambda number: number % 3)
        .window(WINDOWS)
        .apply(lambda key, window, records: [list(records)])
    )


def by_session(streams: list[DataStream]) -> DataStream:
    windows = EventTimeSessionWindows.with_gap(Time.milliseconds(7))
    return (
        union(streams)
        .key_by(lambda number: number % 3)
        .window(windows)
        .apply(lambda key, window, records: [list(records)])
    )


def by_slice(streams: list[DataStream]) -> DataStream:
    return (
        union(streams)
        .map(lambda number: (number, 1))
        .key_by(lambda pair: pair[0])
        .window(WINDOWS)
        .sum(1)
        .map(lambda pair: [pair[0]] * pair[1])
    )


def by_slice_of_columns(streams: list[DataStream]) -> DataStream:
    row = Types.ROW_NAMED(["n", "one"], [Types.LONG(), Types.LONG()])
    columns = (
        union(streams)
        .map(lambda number: (number, 1), output_type=row)
        .with_column("twice", col("one") * 2)
    )
    assert columns.is_columnar
    return columns.key_by("n").window(WINDOWS).sum("one").map(lambda found: [found[0]] * found[1])


def by_join(streams: list[DataStream]) -> DataStream:
    """Each record meets itself."""
    left, right = union(streams), union(streams)
    joined = left.join(right).where(lambda number: number).equal_to(lambda number: number)
    return joined.window(WINDOWS).apply(lambda one, other: one)


def union(streams: list[DataStream]) -> DataStream:
    return streams[0].union(*streams[1:])


class FromBoth(KeyedCoProcessFunction):
    """Gives each record of either input when its time has come."""

    def process_element1(self, value: int, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value)

    def process_element2(self, value: int, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[int]:
        yield timestamp


def by_timer_of_two_inputs(streams: list[DataStream]) -> DataStream:
    first, *others = streams
    both = (
        first.connect(union(others))
        if others
        else first.filter(lambda number: True).connect(first.filter(lambda number: False))
    )
    return both.key_by(lambda number: number, lambda number: number).process(FromBoth())


WAYS: list[Make] = [
    by_timer,
    by_window,
    by_session,
    by_slice,
    by_slice_of_columns,
    by_join,
    by_timer_of_two_inputs,
]

# Ascending times with idleness anywhere: how far the next record is, or a status.
scripts = st.lists(st.one_of(st.integers(1, 9), st.sampled_from([IDLE, ACTIVE])), max_size=8)


def played(script: list[Any], number: int) -> list[Any]:
    """Records with their time as value, unlike those of other sources."""
    items: list[Any] = []
    now = number
    for step in script:
        if isinstance(step, int):
            now += 4 * step
            items.append(At(now, now))
        else:
            items.append(step)
    return items


@pytest.mark.finding("bugs 1")
@pytest.mark.parametrize("make", WAYS)
@settings(max_examples=3, deadline=None)
@given(
    drawn=st.lists(scripts, min_size=1, max_size=3), mode=st.sampled_from(["STREAMING", "BATCH"])
)
@example(drawn=[[1, IDLE], [2, IDLE, ACTIVE, 3, IDLE]], mode="STREAMING")
def test_every_record_comes_out_at_the_end_whatever_was_idle(
    make: Make, drawn: list[list[Any]], mode: str
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", "execution.runtime-mode": mode}
    )
    items = [played(script, number) for number, script in enumerate(drawn)]
    streams = [env.from_source(ScriptedSource(script)) for script in items]
    assert counted(make(streams)) == Counter(
        item.value for script in items for item in script if isinstance(item, At)
    )


def ten_seconds(stream: DataStream) -> DataStream:
    return stream.window_all(TumblingEventTimeWindows.of(Time.seconds(10))).apply(
        lambda window, records: [len(list(records))]
    )


@pytest.mark.finding("bugs 1")
def test_a_drain_behind_an_idle_source_fires_every_window(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    seconds, sink = [1_000 * second for second in range(25)], CollectingSink()
    source = ScriptedSource(seconds, bounded=False)
    ten_seconds(env.from_source(source, AT_ITSELF.with_idleness(IDLE_AFTER), "quiet")).sink_to(sink)
    client = env.execute_async("drained")
    eventually(lambda: sink.values == [10, 10])  # so the source has told its time, and is idle soon
    client.stop_with_savepoint(True, str(tmp_path)).result(60)
    client.get_job_execution_result().result(60)
    assert sink.values == [10, 10, 5]


@pytest.mark.finding("bugs 1")
def test_a_source_that_was_paused_for_alignment_and_is_idle_loses_nothing(
    env: StreamExecutionEnvironment,
) -> None:
    aligned = AT_ITSELF.with_watermark_alignment(
        "group", Duration.of_millis(5), Duration.of_millis(2)
    )
    slow = env.from_source(ScriptedSource(list(range(2_000)), batch=1), aligned, "slow")
    # one batch, behind which it waits before it hears of its end
    ahead = ScriptedSource(list(range(10_000, 10_045)))
    paused = env.from_source(ahead, aligned.with_idleness(IDLE_AFTER), "fast")
    assert counted(by_window([slow, paused])) == Counter([*range(2_000), *range(10_000, 10_045)])


@pytest.mark.finding("bugs 1")
def test_a_source_function_that_was_idle_is_listened_to_again_with_its_next_watermark(
    env: StreamExecutionEnvironment,
) -> None:
    first = env.add_source(SaysWhatTimeItIs())
    second = env.from_source(ScriptedSource([At(3, 3), Watermark(5), IDLE], bounded=False))
    with (
        first.union(second)
        .key_by(lambda number: number)
        .process(AtItsTime())
        .execute_and_collect() as records
    ):
        assert sorted([next(records), next(records), next(records)]) == [3, 7, 8]


class SaysWhatTimeItIs(SourceFunction):
    """Goes idle, and comes back with a watermark. It stays."""

    def run(self, ctx: Any) -> None:
        ctx.collect_with_timestamp(7, 7)
        ctx.collect_with_timestamp(8, 8)
        ctx.mark_as_temporarily_idle()
        ctx.emit_watermark(10)
        MAY_END.wait(60)

    def cancel(self) -> None:
        MAY_END.set()


@pytest.mark.finding("bugs 1")
def test_a_reader_that_was_idle_is_active_with_what_it_gives_next(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_source(
        ScriptedSource([At(3, 3), IDLE, At(7, 7), Watermark(10), At(20, 20)], bounded=False)
    )
    with stream.key_by(lambda number: number).process(AtItsTime()).execute_and_collect() as records:
        assert [next(records), next(records)] == [3, 7]
