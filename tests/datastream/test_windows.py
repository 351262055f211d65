"""Windows from the API to their results, embedded: one subtask or four, and what is refused while
the program is built."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import (
    Duration,
    OutputTag,
    Row,
    Time,
    Types,
    WatermarkGenerator,
    WatermarkStrategy,
)
from flinkpy.connectors.sources import (
    CollectionSource,
    HybridSource,
    NumberSequenceSource,
    PythonSource,
    Source,
)
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    AggregateFunction,
    AllWindowedStream,
    AllWindowFunction,
    MapFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowedStream,
    WindowFunction,
)
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

LATE = OutputTag("late")
TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(100))


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})


def results(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


def events() -> list[tuple[str, int, int]]:
    """(key, number, time), a little out of order."""
    chance = random.Random(3)
    made = [(f"k{chance.randrange(6)}", chance.randrange(100), number * 3) for number in range(300)]
    made.sort(key=lambda event: event[2] + chance.randrange(40))
    return made


def stamped(env: StreamExecutionEnvironment, records: Iterable[Any], disorder_ms: int = 50) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(disorder_ms)
    ).with_timestamp_assigner(lambda event, before: event[2])
    return env.from_collection(list(records)).assign_timestamps_and_watermarks(strategy)


def first(event: Any) -> Any:
    return event[0]


class Spread(AggregateFunction):
    def create_accumulator(self) -> Any:
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        low, high = accumulator or (value[1], value[1])
        return min(low, value[1]), max(high, value[1])

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[1] - accumulator[0]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return min(acc_a[0], acc_b[0]), max(acc_a[1], acc_b[1])


class Gather(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, tuple(context.window()), sorted(elements)


class GatherAll(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield tuple(context.window()), sorted(elements)


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1], 0


def windowed(stream: Any) -> dict[str, Any]:
    """One of many kinds of calls. What they give does not depend on the order of records."""
    keyed = stream.key_by(first)
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(30))
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(20))
    return {
        "reduce": keyed.window(TUMBLING).reduce(add, Gather()),
        "aggregate": keyed.window(sliding).aggregate(
            Spread(), lambda key, window, spread: [(key, window.end, *spread)]
        ),
        "process": keyed.window(sliding).process(Gather()),
        "sessions": keyed.window(sessions).process(Gather()),
        "count": keyed.window(TUMBLING).count(),
        "max": keyed.window(sliding).max(1).map(lambda record: record[:2]),
        "evicted": keyed.window(TUMBLING)
        .evictor(CountEvictor.of(1000))
        .aggregate(Spread(), lambda key, window, spread: [(key, *spread)]),
        "continuous": keyed.window(TUMBLING)
        .trigger(PurgingTrigger.of(ContinuousEventTimeTrigger.of(Time.seconds(1))))
        .process(Gather()),
        "all": stream.window_all(TUMBLING).process(GatherAll()),
    }


def expected(kind: str) -> list[Any]:
    """Straight from the definition."""
    groups: dict[Any, list[Any]] = {}
    step, size = (30, 100) if kind in ("aggregate", "process", "max") else (100, 100)
    for event in events():
        for start in range(event[2] // step * step, event[2] - size, -step):
            groups.setdefault(
                (event[0] if kind != "all" else None, start, start + size), []
            ).append(event)
    numbers = {key: [event[1] for event in group] for key, group in groups.items()}
    made: dict[str, list[Any]] = {
        "reduce": [
            (key[0], key[1:], [(key[0], sum(group), 0 if len(group) > 1 else groups[key][0][2])])
            for key, group in numbers.items()
        ],
        "aggregate": [(key[0], key[2], max(group) - min(group)) for key, group in numbers.items()],
        "process": [(key[0], key[1:], sorted(group)) for key, group in groups.items()],
        "count": [len(group) for group in groups.values()],
        "max": [(key[0], max(group)) for key, group in numbers.items()],
        "evicted": [(key[0], max(group) - min(group)) for key, group in numbers.items()],
        "continuous": [(key[0], key[1:], sorted(group)) for key, group in groups.items()],
        "all": [(key[1:], sorted(group)) for key, group in groups.items()],
    }
    if kind == "sessions":
        return sessions()
    return sorted(made[kind])


def sessions() -> list[Any]:
    made = []
    for name in sorted({event[0] for event in events()}):
        group: list[Any] = []
        for event in sorted(
            (event for event in events() if event[0] == name), key=lambda event: event[2]
        ):
            if group and event[2] > group[-1][2] + 20:
                made.append((name, (group[0][2], group[-1][2] + 20), sorted(group)))
                group = []
            group.append(event)
        made.append((name, (group[0][2], group[-1][2] + 20), sorted(group)))
    return sorted(made)


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize(
    "kind",
    ["reduce", "aggregate", "process", "sessions", "count", "max", "evicted", "continuous", "all"],
)
def test_results_are_those_of_the_definition_whatever_the_parallelism(
    env: StreamExecutionEnvironment, kind: str, parallelism: int
) -> None:
    env.set_parallelism(parallelism)
    # Split over four subtasks, each slower or faster than the others: so late that no record is
    # late.
    seen = sorted(results(windowed(stamped(env, events(), disorder_ms=10_000))[kind]))
    assert seen == expected(kind)


def test_count_windows_are_full_windows(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    numbers = env.from_collection([("a", number) for number in range(7)] + [("b", 9)])
    numbered = (
        numbers.key_by(first)
        .count_window(3)
        .process(Gather())
        .map(lambda seen: [number for _, number in seen[2]])
    )
    assert results(numbered) == [[0, 1, 2], [3, 4, 5]]
    assert results(
        numbers.key_by(first).count_window(3, 2).reduce(lambda a, b: (a[0], a[1] + b[1]))
    ) == [("a", 3), ("a", 9), ("a", 15)]
    assert results(numbers.count_window_all(4).sum(1)) == [("a", 6), ("a", 24)]
    assert results(numbers.count_window_all(6, 4).count()) == [6]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("sum", ("a", 9, 5)),
        ("min", ("a", 1, 5)),
        ("max", ("a", 5, 5)),
        ("min_by", ("a", 1, 7)),
        ("max_by", ("a", 5, 6)),
    ],
)
@pytest.mark.parametrize("keyed", [True, False])
def test_built_in_aggregates(
    env: StreamExecutionEnvironment, call: str, expected: Any, keyed: bool
) -> None:
    env.set_parallelism(1)
    stream = stamped(env, [("a", 3, 5), ("a", 5, 6), ("a", 1, 7)])
    windows = stream.key_by(first).window(TUMBLING) if keyed else stream.window_all(TUMBLING)
    assert results(getattr(windows, call)(1)) == [expected]


def test_plain_numbers_are_added_up_without_a_position(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    assert results(env.from_collection([1, 2, 3, 4]).count_window_all(2).sum()) == [3, 7]
    assert results(env.from_collection([1, 2, 3, 4], Types.INT()).count_window_all(4).max()) == [4]


def test_late_records_go_to_the_side_output(env: StreamExecutionEnvironment) -> None:
    class Slowly(MapFunction):
        """Nothing but a step between the source and the watermarks."""

        def map(self, value: Any) -> Any:
            return value

    env.set_parallelism(1)
    env.get_config().set_auto_watermark_interval(0)
    records = env.from_collection([("a", 1, 5), ("a", 2, 500), ("b", 3, 6), ("a", 4, 510)]).map(
        Slowly()
    )
    strategy = WatermarkStrategy.for_generator(PerRecord).with_timestamp_assigner(
        lambda event, before: event[2]
    )
    windows = (
        records.assign_timestamps_and_watermarks(strategy)
        .key_by(first)
        .window(TUMBLING)
        .side_output_late_data(LATE)
    )
    sums = windows.reduce(add, lambda key, window, inputs: [(key, inputs[0][1])])
    both = sums.union(sums.get_side_output(LATE).map(lambda record: ("late", *record)))
    assert sorted(results(both)) == [("a", 1), ("a", 6), ("late", "b", 3, 6)]


class PerRecord(WatermarkGenerator):
    """A watermark generator: a watermark behind each record."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None: ...


def test_results_carry_the_time_of_their_window_for_windows_behind(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_parallelism(2)
    stream = stamped(env, events(), 10_000).key_by(first).window(TUMBLING).reduce(add)
    per_window = (
        stream.window_all(TUMBLING)
        .process(GatherAll())
        .map(lambda seen: (seen[0], sum(number for _, number, _ in seen[1])))
    )
    totals: dict[Any, int] = {}
    for _, number, time in events():
        start = time // 100 * 100
        totals[start, start + 100] = totals.get((start, start + 100), 0) + number
    assert sorted(results(per_window)) == sorted(totals.items())


def test_declared_rows_come_out_as_rows(env: StreamExecutionEnvironment) -> None:
    class Says(WindowFunction):
        def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
            return [(key, len(list(inputs)))]

    class SaysMore(ProcessWindowFunction):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            yield LATE, "aside"
            yield key, len(list(elements))

    env.set_parallelism(1)
    row = Types.ROW_NAMED(["who", "many"], [Types.STRING(), Types.INT()])
    keyed = stamped(env, events(), 10_000).key_by(first)
    for call in (
        keyed.window(TUMBLING).apply(Says(), row),
        keyed.window(TUMBLING).process(SaysMore(), row),
        keyed.window(TUMBLING).aggregate(Spread(), Says(), output_type=row),
    ):
        seen = results(call.key_by("who").sum("many"))
        assert all(isinstance(each, Row) for each in seen)
        assert {each.who for each in seen} == {event[0] for event in events()}
    assert set(results(keyed.window(TUMBLING).process(SaysMore(), row).get_side_output(LATE))) == {
        "aside"
    }


def test_columns_are_windowed_as_rows(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    table = pa.table(
        {"k": ["a", "b", "a"], "n": [1, 2, 3], "at": pa.array([1, 3, 150], pa.timestamp("ms"))}
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(1)
    ).with_timestamp_assigner("at")
    stream = env.from_arrow(table).assign_timestamps_and_watermarks(strategy)
    assert sorted(row.n for row in results(stream.key_by("k").window(TUMBLING).sum("n"))) == [
        1,
        2,
        3,
    ]
    assert sorted(
        results(
            stream.window_all(TUMBLING).apply(lambda window, inputs: [sum(row.n for row in inputs)])
        )
    ) == [3, 3]


def test_window_state_and_global_state_are_there(env: StreamExecutionEnvironment) -> None:
    class Numbered(ProcessWindowFunction):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            seen = context.global_state().get_state(ValueStateDescriptor("windows", Types.INT()))
            own = context.window_state().get_state(ValueStateDescriptor("firings", Types.INT()))
            seen.update((seen.value() or 0) + 1)
            own.update((own.value() or 0) + 1)
            yield key, seen.value(), own.value()

    env.set_parallelism(1)
    stream = stamped(env, [("a", 1, 5), ("a", 1, 105), ("b", 1, 205), ("a", 1, 305)])
    assert sorted(results(stream.key_by(first).window(TUMBLING).process(Numbered()))) == [
        ("a", 1, 1),
        ("a", 2, 1),
        ("a", 3, 1),
        ("b", 1, 1),
    ]


def test_windows_of_the_clock_need_no_timestamps(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    numbers = env.from_collection(list(range(10)))
    fired = (
        numbers.key_by(lambda number: 0)
        .window(TumblingProcessingTimeWindows.of(Time.days(1)))
        .trigger(PurgingTrigger.of(CountTrigger.of(5)))
    )
    assert results(fired.reduce(lambda a, b: a + b)) == [10, 35]


def test_window_all_runs_in_one_subtask_and_stays_there(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(4)
    stream = stamped(env, events())
    windows = stream.window_all(TUMBLING)
    assert isinstance(windows, AllWindowedStream)
    counts = windows.count().name("counts")
    assert counts.recorded.transformation.parallelism == 1
    assert counts.set_parallelism(1) is counts
    with pytest.raises(
        ProgramError,
        match=(
            r"test_windows\.py:\d+: counts sees the records of all keys, its parallelism must be "
            r"1, not 2"
        ),
    ):
        counts.set_parallelism(2)
    with pytest.raises(ProgramError, match="max parallelism must be 1"):
        counts.set_max_parallelism(128)
    assert counts.force_non_parallel() is counts
    assert counts.map(lambda count: count).recorded.transformation.parallelism is None


def test_windows_know_where_they_come_from(env: StreamExecutionEnvironment) -> None:
    declared = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])).key_by(
        first
    )
    windows = declared.window(GlobalWindows.create())
    assert isinstance(windows, WindowedStream)
    assert windows.get_execution_environment() is env
    assert windows.get_input_type() == Types.TUPLE([Types.STRING(), Types.INT()])
    summed = windows.trigger(CountTrigger.of(1)).sum(1)
    assert summed.get_type() == windows.get_input_type()
    assert summed.get_name() == "GlobalWindows"
    assert (
        summed.recorded.transformation.description
        == "Window(GlobalWindows(), CountTrigger(1), sum)"
    )


# -- mistakes --------------------------------------------------------------------------------------


def test_event_time_without_timestamps_is_refused_where_it_is_certain(
    env: StreamExecutionEnvironment,
) -> None:
    numbers = env.from_collection([("a", 1)]).map(lambda record: record)
    with pytest.raises(
        ProgramError, match=r"test_windows\.py:\d+: window\(\): .*needs records with timestamps"
    ):
        numbers.key_by(first).window(TUMBLING)
    with pytest.raises(
        ProgramError, match=r"test_windows\.py:\d+: window_all\(\): .*needs records with timestamps"
    ):
        numbers.union(numbers).window_all(TUMBLING)
    # some have: the others are found when they come
    numbers.union(stamped(env, events())).key_by(first).window(TUMBLING)


class Ones(PythonSource):
    def read(self, split: Any, position: int) -> Iterable[Any]:
        yield "a", 1


@pytest.mark.parametrize(
    "source", [Ones(), HybridSource([NumberSequenceSource(1, 2), CollectionSource([3])])]
)
def test_sources_whose_records_have_no_timestamps_need_a_strategy(
    env: StreamExecutionEnvironment, source: Source[Any]
) -> None:
    with pytest.raises(ProgramError, match="needs records with timestamps"):
        env.from_source(source).window_all(TUMBLING)
    env.from_source(
        source,
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record: 0),
    ).window_all(TUMBLING)


def test_a_record_without_a_timestamp_ends_the_job_with_advice(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_parallelism(1)
    mixed = env.from_collection([("a", 1, 1)]).union(stamped(env, events()))
    mixed.key_by(first).window(TUMBLING).sum(1).print()
    with pytest.raises(
        JobExecutionError,
        match=r"needs? records with timestamps, and .* none: call assign_timestamps_and_watermarks",
    ):
        env.execute()


def test_mistakes_are_refused_at_their_line(env: StreamExecutionEnvironment) -> None:
    class All(AllWindowFunction):
        def apply(self, window: Any, inputs: Iterable[Any]) -> Any: ...

    stream = stamped(env, events())
    keyed = stream.key_by(first)

    def windows() -> Any:
        return keyed.window(TUMBLING)

    wrong: list[tuple[str, Any]] = [
        (r"takes a window assigner", lambda: keyed.window(5)),
        (r"write TumblingEventTimeWindows.of", lambda: keyed.window(TumblingEventTimeWindows)),
        (r"a count window's size is a whole number from 1 on", lambda: keyed.count_window(0)),
        (r"the slide is a whole number", lambda: stream.count_window_all(3, -1)),
        (r"takes a Trigger object", lambda: windows().trigger(CountTrigger)),
        (
            r"merge, and DeltaTrigger\(1\) cannot",
            lambda: keyed.window(EventTimeSessionWindows(5)).trigger(
                DeltaTrigger(1, lambda a, b: 1)
            ),
        ),
        (r"takes an Evictor object", lambda: windows().evictor(3)),
        (r"the lateness cannot be negative", lambda: windows().allowed_lateness(-1)),
        (r"takes milliseconds or a Time", lambda: windows().allowed_lateness("1 s")),
        (r"takes an OutputTag", lambda: windows().side_output_late_data("late")),
        (
            r"late records go to OutputTag\('late'\) already",
            lambda: windows().side_output_late_data(LATE).side_output_late_data(OutputTag("other")),
        ),
        (r"reduce\(\) calls its function with 2 arguments", lambda: windows().reduce(lambda a: a)),
        (r"takes an AggregateFunction object", lambda: windows().aggregate(add)),
        (r"write Spread\(\)|AggregateFunction object", lambda: windows().aggregate(Spread)),
        (
            r"apply\(\) takes a WindowFunction here, .*for windows without keys",
            lambda: windows().apply(All()),
        ),
        (r"apply\(\) takes a WindowFunction", lambda: windows().apply(Gather())),
        (
            r"process\(\) takes a ProcessWindowFunction",
            lambda: windows().process(lambda key, context, elements: []),
        ),
        (
            r"process\(\) takes a ProcessAllWindowFunction here, .*of a keyed stream",
            lambda: stream.window_all(TUMBLING).process(Gather()),
        ),
        (r"write Gather\(\)", lambda: windows().process(Gather)),
        (
            r"reduce\(\) takes a WindowFunction or a ProcessWindowFunction",
            lambda: windows().reduce(add, 5),
        ),
        (
            r"apply\(\) calls its function with 3 arguments",
            lambda: windows().apply(lambda window, inputs: []),
        ),
        (r"is no type", lambda: windows().apply(lambda key, window, inputs: [], output_type=int)),
        (r"takes the position or the name of a field", lambda: windows().sum(1.5)),
    ]
    for match, call in wrong:
        with pytest.raises(ProgramError, match=rf"test_windows\.py:\d+: .*{match}"):
            call()


def test_lateness_may_be_a_time(env: StreamExecutionEnvironment) -> None:
    windows = (
        stamped(env, events()).key_by(first).window(TUMBLING).allowed_lateness(Time.seconds(2))
    )
    assert windows.count().recorded.transformation.operator.allowed_lateness == 2000
