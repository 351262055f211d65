"""Joins through the API, embedded: any parallelism gives the same, rows and columns too, and
mistakes are refused where they stand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Duration, Row, Time, Types, WatermarkStrategy
from flinkpy.common.watermark_strategy import WatermarkGenerator
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    CoGroupFunction,
    CoMapFunction,
    DataStream,
    FlatJoinFunction,
    JoinFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

TEN = TumblingEventTimeWindows.of(Time.milliseconds(10))
LATE = OutputTag("late")

Event = tuple[str, int, int]  # key, time, number


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})


def results(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


def strategy(assigner: Any) -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(8)
    ).with_timestamp_assigner(assigner)


def events(count: int, seed: int) -> list[Event]:
    """Up to 8 ms out of order."""
    chance = random.Random(seed)
    made = [(f"k{chance.randrange(6)}", at, at) for at in range(count)]
    return sorted(made, key=lambda event: event[1] + chance.randrange(8))


LEFT, RIGHT = events(120, 1), events(90, 2)


def key(event: Event) -> str:
    return event[0]


def stream_of(env: StreamExecutionEnvironment, made: list[Event]) -> DataStream:
    return env.from_collection(made).assign_timestamps_and_watermarks(
        strategy(lambda event: event[1])
    )


def columns_of(env: StreamExecutionEnvironment, made: list[Event], *names: str) -> DataStream:
    table = pa.table(dict(zip(names, map(list, zip(*made)))))
    return env.from_arrow(table).assign_timestamps_and_watermarks(strategy(names[1]))


def both(first: Event, second: Event) -> Any:
    return first, second


def in_windows(size: int, slide: int) -> Counter[Any]:
    return Counter(
        (one, other)
        for one in LEFT
        for other in RIGHT
        for start in range(-size, 200, 1)
        if start % slide == 0
        and one[0] == other[0]
        and start <= one[1] < start + size
        and start <= other[1] < start + size
    )


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize(
    "windows", [TEN, SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4))]
)
def test_a_window_join_gives_all_pairs_of_a_window(
    env: StreamExecutionEnvironment, parallelism: int, windows: Any
) -> None:
    env.set_parallelism(parallelism)
    joined = (
        stream_of(env, LEFT)
        .join(stream_of(env, RIGHT))
        .where(key)
        .equal_to(key)
        .window(windows)
        .apply(both)
    )
    assert joined.get_name() == "Join"
    assert Counter(results(joined)) == in_windows(10, getattr(windows, "slide", 10))


@pytest.mark.parametrize("parallelism", [1, 4])
def test_the_general_form_gives_the_same(env: StreamExecutionEnvironment, parallelism: int) -> None:
    env.set_parallelism(parallelism)
    joined = (
        stream_of(env, LEFT)
        .join(stream_of(env, RIGHT))
        .where(key)
        .equal_to(key)
        .window(TEN)
        .evictor(CountEvictor.of(1000))
        .apply(both)
    )
    assert Counter(results(joined)) == in_windows(10, 10)


class FirstField(KeySelector):
    def get_key(self, value: Event) -> str:
        return value[0]


class Sizes(CoGroupFunction):
    def co_group(self, first: list[Event], second: list[Event]) -> Any:
        (name,) = {each[0] for each in first + second}
        yield Row(name, len(first), len(second))


@pytest.mark.parametrize(
    "windows",
    [
        TumblingEventTimeWindows.of(Time.seconds(1)),
        EventTimeSessionWindows.with_gap(Time.seconds(1)),
    ],
)
def test_a_co_group_sees_all_of_a_key_with_a_selector_object_and_a_declared_type(
    env: StreamExecutionEnvironment, windows: Any
) -> None:
    env.set_parallelism(2)
    declared = Types.ROW_NAMED(["key", "left", "right"], [Types.STRING(), Types.INT(), Types.INT()])
    only_left = [*LEFT, ("solo", 5, 5)]
    grouped = (
        stream_of(env, only_left)
        .co_group(stream_of(env, RIGHT))
        .where(FirstField())
        .equal_to(FirstField())
        .window(windows)
    )
    found = {row.key: (row.left, row.right) for row in results(grouped.apply(Sizes(), declared))}
    left, right = Counter(map(key, only_left)), Counter(map(key, RIGHT))
    assert found == {name: (left[name], right[name]) for name in left}


class Doubled(FlatJoinFunction):
    def join(self, first: Event, second: Event) -> Any:
        yield first[2], second[2]
        yield first[2], second[2]


def test_triggers_and_flat_joins_see_both_streams(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    left = stream_of(env, [("a", 1, 1), ("a", 2, 2)])
    right = stream_of(env, [("a", 3, 3), ("a", 4, 4)])
    windowed = (
        left.join(right)
        .where(key)
        .equal_to(key)
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
    )
    trigger: Any = PurgingTrigger.of(CountTrigger.of(4))
    assert Counter(results(windowed.trigger(trigger).apply(Doubled()))) == Counter(
        {(1, 3): 2, (1, 4): 2, (2, 3): 2, (2, 4): 2}
    )


def test_windows_of_processing_time_take_records_without_timestamps(
    env: StreamExecutionEnvironment,
) -> None:
    left, right = env.from_collection([("a", 1)]), env.from_collection([("a", 2)])
    windowed = (
        left.join(right)
        .where(key)
        .equal_to(key)
        .window(TumblingProcessingTimeWindows.of(Time.days(1)))
    )
    assert results(windowed.trigger(CountTrigger.of(2)).apply(lambda one, other: (one, other))) == [
        (("a", 1), ("a", 2))
    ]


class Between(ProcessJoinFunction):
    def process_element(self, left: Event, right: Event, ctx: Any) -> Any:
        assert ctx.get_timestamp() == max(left[1], right[1])
        yield left, right


@pytest.mark.parametrize("parallelism", [1, 4])
def test_an_interval_join_gives_all_pairs_within_the_interval(
    env: StreamExecutionEnvironment, parallelism: int
) -> None:
    env.set_parallelism(parallelism)
    joined = (
        stream_of(env, LEFT)
        .key_by(key)
        .interval_join(stream_of(env, RIGHT).key_by(key))
        .between(Time.milliseconds(-3), Time.milliseconds(5))
        .upper_bound_exclusive()
        .process(Between())
    )
    assert Counter(results(joined)) == Counter(
        (one, other)
        for one in LEFT
        for other in RIGHT
        if one[0] == other[0] and -3 <= other[1] - one[1] < 5
    )


class OnEvent(WatermarkGenerator):
    """Behind each record, its own time."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(event_timestamp)


def test_late_records_of_an_interval_join_are_read_from_the_side_output(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_parallelism(1)
    strict = WatermarkStrategy.for_generator(OnEvent).with_timestamp_assigner(
        lambda event: event[1]
    )
    made = (
        env.from_collection([("a", 100, 1), ("a", 1, 2), ("a", 100, 3)])
        .assign_timestamps_and_watermarks(strict)
        .key_by(key)
    )
    joined = (
        made.interval_join(made)
        .between(Time.milliseconds(0), Time.milliseconds(0))
        .side_output_left_late_data(LATE)
        .side_output_right_late_data(LATE)
        .process(Between())
    )
    # on the side that is read last at least
    assert set(results(joined.get_side_output(LATE))) == {("a", 1, 2)}


# -- columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 4])
def test_columns_are_joined_to_columns_with_the_results_of_rows(
    env: StreamExecutionEnvironment, parallelism: int
) -> None:
    env.set_parallelism(parallelism)
    left = columns_of(env, LEFT, "seller", "at", "price")
    right = columns_of(env, RIGHT, "id", "at", "name")
    windowed = left.join(right).where("seller").equal_to("id").window(TEN)
    whole = windowed.apply()
    assert whole.is_columnar
    expected = Counter((*one, *other) for one, other in in_windows(10, 10).elements())
    assert Counter(tuple(row) for row in results(whole)) == expected
    assert Counter(tuple(row) for row in results(windowed.select("price", "name"))) == Counter(
        (row[2], row[5]) for row in expected.elements()
    )
    rows = windowed.apply(lambda one, other: (*one, *other))
    assert Counter(results(rows)) == expected


def test_an_interval_join_takes_columns_as_rows(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    left = columns_of(env, LEFT, "k", "at", "n").key_by("k")
    right = columns_of(env, RIGHT, "k", "at", "n").key_by("k")

    class Numbers(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
            yield left.n, right.n

    found = results(
        left.interval_join(right)
        .between(Time.milliseconds(0), Time.milliseconds(2))
        .process(Numbers())
    )
    assert Counter(found) == Counter(
        (one[2], other[2])
        for one in LEFT
        for other in RIGHT
        if one[0] == other[0] and 0 <= other[1] - one[1] <= 2
    )


# -- mistakes --------------------------------------------------------------------------------------


class Upper(MapFunction):
    def map(self, value: Any) -> Any:
        return value


class Pass(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


class First(JoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return first


HERE = r"test_joins\.py:\d+: .*"
MISTAKES: list[tuple[str, Callable[[DataStream, DataStream], Any]]] = [
    (r"join\(\) takes a stream", lambda a, b: a.join([1])),  # type: ignore[arg-type]
    (r"where\(\) takes a function, a lambda or a KeySelector", lambda a, b: a.join(b).where(3)),
    (r"where\(\) calls its function with 1 argument", lambda a, b: a.join(b).where(lambda x, y: x)),
    (r"where\(\) takes one function", lambda a, b: a.join(b).where(key, key)),
    (
        r"where\(\): the first stream's key is known already",
        lambda a, b: a.join(b).where(key).where(key),
    ),
    (r"equal_to\(\): say the first stream's key before", lambda a, b: a.join(b).equal_to(key)),
    (
        r"equal_to\(\): the second stream's key is known",
        lambda a, b: a.join(b).where(key).equal_to(key).equal_to(key),
    ),
    (
        r"equal_to\(\): where\(...\) names 2 fields, this names 1",
        lambda a, b: a.join(b).where("a", "b").equal_to("a"),
    ),
    (r"window\(\): say where\(key\) before", lambda a, b: a.join(b).window(TEN)),
    (r"window\(\): say equal_to\(key\) before", lambda a, b: a.co_group(b).where(key).window(TEN)),
    (
        r"window\(\) takes a WindowAssigner",
        lambda a, b: a.join(b).where(key).equal_to(key).window(10),
    ),
    (
        r"window\(\): the windows are known already",
        lambda a, b: a.join(b).where(key).equal_to(key).window(TEN).window(TEN),
    ),
    (
        r"apply\(\): say window\(assigner\) before",
        lambda a, b: a.join(b).where(key).equal_to(key).apply(both),
    ),
    (
        r"trigger\(\): say window\(assigner\) before",
        lambda a, b: a.join(b).where(key).equal_to(key).trigger(CountTrigger.of(1)),
    ),
    (
        r"trigger\(\) takes a Trigger",
        lambda a, b: a.join(b).where(key).equal_to(key).window(TEN).trigger(CountTrigger),
    ),
    (
        r"evictor\(\) takes an Evictor",
        lambda a, b: a.join(b).where(key).equal_to(key).window(TEN).evictor(CountTrigger.of(1)),
    ),
    (
        r"the allowed lateness is a Time or a Duration",
        lambda a, b: a.join(b).where(key).equal_to(key).window(TEN).allowed_lateness(5),  # type: ignore[arg-type]
    ),
    (
        (
            r"apply\(\) behind join\(...\) takes a JoinFunction or a FlatJoinFunction; _Strange "
            r"is none"
        ),
        lambda a, b: _join(a, b).apply(_Strange()),
    ),
    (
        r"apply\(\) takes a JoinFunction, a Upper has no join",
        lambda a, b: _join(a, b).apply(Upper()),
    ),
    (r"apply\(\) takes a function object, not a class", lambda a, b: _join(a, b).apply(First)),
    (r"apply\(\) calls its function with 2 arguments", lambda a, b: _join(a, b).apply(lambda x: x)),
    (
        r"apply\(\) takes a CoGroupFunction, a First has no co_group",
        lambda a, b: a.co_group(b).where(key).equal_to(key).window(TEN).apply(First()),
    ),
    (r"the output type .* is no type", lambda a, b: _join(a, b).apply(both, Types.STRING)),
    (r"apply\(\) without a function joins columns, and not both", lambda a, b: _join(a, b).apply()),
    (r"interval_join\(\) takes a keyed stream", lambda a, b: a.key_by(key).interval_join(b)),  # type: ignore[arg-type]
    (
        r"the lower bound \(2 ms\) is above the upper bound \(1 ms\)",
        lambda a, b: _interval(a, b).between(Time.milliseconds(2), Time.milliseconds(1)),
    ),
    (
        r"the upper bound is a Time or a Duration",
        lambda a, b: _interval(a, b).between(Time.seconds(1), 5),
    ),
    (
        r"interval joins work on event time only",
        lambda a, b: (
            _interval(a, b).in_processing_time().between(Time.milliseconds(1), Time.milliseconds(2))
        ),
    ),
    (r"process\(\): say the interval first", lambda a, b: _interval(a, b).process(Between())),
    (
        r"side_output_left_late_data\(\) takes an OutputTag",
        lambda a, b: (
            _interval(a, b)
            .between(Time.seconds(0), Time.seconds(1))
            .side_output_left_late_data("late")
        ),
    ),
    (
        r"process\(\) takes a ProcessJoinFunction, a First has no process_element",
        lambda a, b: _interval(a, b).between(Time.seconds(0), Time.seconds(1)).process(First()),
    ),
]


class _Strange(Sizes):
    """Has a join(), and is no JoinFunction."""

    def join(self, first: Any, second: Any) -> Any:
        return first


def _join(a: DataStream, b: DataStream) -> Any:
    return a.join(b).where(key).equal_to(key).window(TEN)


def _interval(a: DataStream, b: DataStream) -> Any:
    return a.key_by(key).interval_join(b.key_by(key))


@pytest.mark.parametrize(("message", "mistake"), MISTAKES)
def test_mistakes_are_refused_at_their_line(
    env: StreamExecutionEnvironment, message: str, mistake: Callable[[DataStream, DataStream], Any]
) -> None:
    with pytest.raises(ProgramError, match=HERE + message):
        mistake(stream_of(env, LEFT), stream_of(env, RIGHT))


def test_mistakes_with_columns_are_refused_at_their_line(env: StreamExecutionEnvironment) -> None:
    left = columns_of(env, LEFT, "seller", "at", "price")
    right = columns_of(env, RIGHT, "id", "at", "name")
    windowed = left.join(right).where("seller").equal_to("id").window(TEN)
    with pytest.raises(ProgramError, match=HERE + "without allowed lateness"):
        windowed.allowed_lateness(Time.seconds(1)).apply()
    with pytest.raises(ProgramError, match=HERE + "tumbling or sliding windows of event time"):
        left.join(right).where("seller").equal_to("id").window(
            EventTimeSessionWindows.with_gap(Time.seconds(1))
        ).select("name")
    with pytest.raises(
        ProgramError, match=HERE + "the key 'seller' is string and the key 'name' is int64"
    ):
        left.join(right).where("seller").equal_to("name").window(TEN).apply()
    with pytest.raises(ProgramError, match=HERE + "did you mean 'seller'"):
        left.join(right).where("sellr")
    with pytest.raises(ProgramError, match=HERE + "not both streams are columnar"):
        left.join(right).where(lambda row: row.seller).equal_to("id").window(TEN).select("name")


def test_streams_of_different_environments_are_refused(env: StreamExecutionEnvironment) -> None:
    other = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(ProgramError, match=HERE + "different environments"):
        stream_of(env, LEFT).join(stream_of(other, RIGHT))


def test_streams_that_cannot_have_timestamps_are_refused_and_others_end_the_job(
    env: StreamExecutionEnvironment,
) -> None:
    bare, stamped = env.from_collection(LEFT), stream_of(env, RIGHT)
    with pytest.raises(
        ProgramError, match=HERE + r"window\(\): .*those of the second stream have none"
    ):
        _join(stamped, bare)
    with pytest.raises(
        ProgramError, match=HERE + r"between\(\): .*those of the left stream have none"
    ):
        _interval(bare, stamped).between(Time.seconds(0), Time.seconds(1))
    unknown = bare.connect(bare).map(Pass())
    with pytest.raises(JobExecutionError, match="call assign_timestamps_and_watermarks"):
        results(_join(unknown, unknown).apply(both))
