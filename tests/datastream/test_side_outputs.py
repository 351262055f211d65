"""Side outputs of every kind of function, near and far: what is sent to a tag reaches all who read
it, and nobody else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Duration, OutputTag, Time, Types, WatermarkStrategy
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import MapStateDescriptor
from flinkpy.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkpy.table.expressions import col
from flinkpy.testing import At, CollectingSink, ScriptedSource, Watermark, embedded_environment

SIDE, OTHER = OutputTag("side", Types.STRING()), OutputTag("other", Types.STRING())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
NUMBERS = list(range(10))
TEN = TumblingEventTimeWindows.of(Time.milliseconds(10))


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    """0 to 9, at these milliseconds."""
    return env.from_collection(NUMBERS, Types.INT()).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_seconds(1)
        ).with_timestamp_assigner(lambda number: number)
    )


def told(number: Any) -> Iterable[Any]:
    """What all functions here give for a number: itself, and text aside."""
    yield number
    yield SIDE, f"side {number}"


class Process(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return told(value)


class Keyed(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return told(value)


class ByTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        return told(timestamp)


class Co(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        return told(value) if value < 5 else None

    def process_element2(self, value: Any, ctx: Any) -> Any:
        return told(value) if value >= 5 else None


class KeyedCo(KeyedCoProcessFunction):
    process_element1 = Co.process_element1
    process_element2 = Co.process_element2


class KeyedCoByTimer(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value)

    process_element2 = process_element1
    on_timer = ByTimer.on_timer


class Told(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return told(value)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        yield OTHER, f"rule {value}"


class KeyedTold(KeyedBroadcastProcessFunction):
    process_element = ByTimer.process_element
    process_broadcast_element = Told.process_broadcast_element
    on_timer = ByTimer.on_timer


class OfWindow(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[int]) -> Any:
        for number in elements:
            yield from told(number)


class OfAll(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Iterable[int]) -> Any:
        for number in elements:
            yield from told(number)


class OfReduced(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[int]) -> Any:
        return told(*elements)


class Pairs(ProcessJoinFunction):
    def process_element(self, left: int, right: int, ctx: Any) -> Any:
        return told(left)


def parity(number: int) -> int:
    return number % 2


def itself(number: int) -> int:
    return number


def smaller(one: int, other: int) -> int:
    return min(one, other)


MILLISECOND = Time.milliseconds(1)
FUNCTIONS: dict[str, Callable[[DataStream], DataStream]] = {
    "process": lambda s: s.process(Process()),
    "keyed process": lambda s: s.key_by(parity).process(Keyed()),
    "timers": lambda s: s.key_by(parity).process(ByTimer()),
    "co-process": lambda s: s.connect(s).process(Co()),
    "keyed co-process": lambda s: s.connect(s).key_by(parity, parity).process(KeyedCo()),
    "timers of two streams": lambda s: (
        s.connect(s).key_by(parity, parity).process(KeyedCoByTimer())
    ),
    "broadcast": lambda s: s.connect(s.broadcast(RULES)).process(Told()),
    "keyed broadcast": lambda s: s.key_by(parity).connect(s.broadcast(RULES)).process(KeyedTold()),
    "window": lambda s: s.key_by(parity).window(TEN).process(OfWindow()),
    "session": lambda s: (
        s.key_by(parity)
        .window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
        .process(OfWindow())
    ),
    "evicting window": lambda s: (
        s.key_by(parity).window(TEN).evictor(CountEvictor.of(100)).process(OfWindow())
    ),
    "reducing window": lambda s: s.key_by(itself).window(TEN).reduce(smaller, OfReduced()),
    "window of all": lambda s: s.window_all(TEN).process(OfAll()),
    "interval join": lambda s: (
        s.key_by(itself)
        .interval_join(s.key_by(itself))
        .between(Time.seconds(0), MILLISECOND)
        .process(Pairs())
    ),
}


@pytest.mark.parametrize("mode", ["one chain", "no chains", "three subtasks", "batch"])
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_what_is_sent_aside_reaches_all_who_read_it_and_nobody_else(kind: str, mode: str) -> None:
    env = embedded_environment(parallelism=3 if mode == "three subtasks" else 1)
    if mode == "no chains":
        env.disable_operator_chaining()
    if mode == "batch":
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    result = FUNCTIONS[kind](numbers(env))
    main, side, again, far, nobody = (CollectingSink() for _ in range(5))
    result.sink_to(main)
    result.get_side_output(SIDE).sink_to(side)
    # a tag is its id
    result.get_side_output(OutputTag("side", Types.STRING())).map(
        lambda text: text.split()[1]
    ).sink_to(again)
    result.get_side_output(SIDE).key_by(lambda text: text).map(lambda text: text).sink_to(far)
    result.get_side_output(OutputTag("nobody's")).sink_to(nobody)
    env.execute()
    assert sorted(main.values) == NUMBERS
    assert sorted(side.values) == sorted(far.values) == [f"side {number}" for number in NUMBERS]
    assert sorted(again.values) == [str(number) for number in NUMBERS]
    assert nobody.values == []


@pytest.mark.parametrize("kind", ["process", "broadcast", "window"])
def test_a_side_output_can_be_read_where_the_main_one_is_not(kind: str) -> None:
    env = embedded_environment()
    side = CollectingSink()
    FUNCTIONS[kind](numbers(env)).get_side_output(SIDE).sink_to(side)
    env.execute()
    assert len(side.values) == len(NUMBERS)


def test_a_function_may_have_several_side_outputs_of_different_types() -> None:
    class Three(ProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            yield SIDE, str(value)
            yield OutputTag("tens", Types.INT()), value * 10
            yield OutputTag("rows", Types.ROW_NAMED(["n"], [Types.INT()])), (value,)
            yield value

    env = embedded_environment()
    sinks = [CollectingSink() for _ in range(4)]
    result = numbers(env).process(Three())
    result.sink_to(sinks[0])
    result.get_side_output(SIDE).sink_to(sinks[1])
    result.get_side_output(OutputTag("tens", Types.INT())).sink_to(sinks[2])
    result.get_side_output(OutputTag("rows", Types.ROW_NAMED(["n"], [Types.INT()]))).map(
        lambda row: row.n
    ).sink_to(sinks[3])
    env.execute()
    assert [sink.values for sink in sinks] == [
        NUMBERS,
        list(map(str, NUMBERS)),
        [10 * number for number in NUMBERS],
        NUMBERS,
    ]


def test_each_operator_has_its_own_even_under_the_same_tag() -> None:
    env = embedded_environment()
    first_side, second_side = CollectingSink(), CollectingSink()
    first = numbers(env).process(Process())
    second = first.filter(lambda number: number > 7).process(Process())
    first.get_side_output(SIDE).sink_to(first_side)
    second.get_side_output(SIDE).sink_to(second_side)
    env.execute()
    assert len(first_side.values) == 10
    assert second_side.values == ["side 8", "side 9"]


def test_side_outputs_are_united_with_each_other_and_with_the_main_one() -> None:
    env = embedded_environment()
    united = CollectingSink()
    result = numbers(env).process(Process(), Types.INT())
    behind = result.process(Process(), Types.INT())
    result.get_side_output(SIDE).union(
        behind.get_side_output(SIDE), behind.map(str, Types.STRING())
    ).sink_to(united)
    env.execute()
    assert sorted(united.values) == sorted(
        [*map(str, NUMBERS), *[f"side {number}" for number in NUMBERS] * 2]
    )


def test_a_side_output_of_a_side_output() -> None:
    env = embedded_environment()
    deep = CollectingSink()
    numbers(env).process(Process()).get_side_output(SIDE).process(Process()).get_side_output(
        SIDE
    ).sink_to(deep)
    env.execute()
    assert deep.values == [f"side side {number}" for number in NUMBERS]


# -- event time ------------------------------------------------------------------------------------


class Times(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


@pytest.mark.parametrize("chained", [True, False])
def test_a_side_output_has_the_records_timestamps_and_the_watermarks_of_its_operator(
    chained: bool,
) -> None:
    env = embedded_environment()
    if not chained:
        env.disable_operator_chaining()
    main, side = CollectingSink(), CollectingSink()
    script = [At(1, 1), Watermark(1), At(5, 5), At(2, 2), Watermark(4), At(9, 9)]
    result = env.from_source(ScriptedSource(script)).process(Process())
    result.process(Times()).sink_to(main)
    result.get_side_output(SIDE).process(Times()).sink_to(side)
    env.execute()
    low = -(2**63)
    assert main.values == [(1, 1, low), (5, 5, 1), (2, 2, 1), (9, 9, 4)]
    assert side.values == [("side 1", 1, low), ("side 5", 5, 1), ("side 2", 2, 1), ("side 9", 9, 4)]


def test_windows_over_a_side_output_end_where_nothing_more_is_sent_there() -> None:
    class FirstOnly(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            return [(SIDE, value)] if value == 1 else []

    env = embedded_environment()
    windows = CollectingSink()
    script = [At(1, 1), At(25, 25), Watermark(25), At(30, 30)]
    aside = env.from_source(ScriptedSource(script)).process(FirstOnly()).get_side_output(SIDE)
    aside.window_all(TEN).process(Ends()).sink_to(windows)
    env.execute()
    assert windows.values == [(10, 25)]


class Ends(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any) -> Any:
        yield context.window().end, context.current_watermark()


def test_results_of_a_window_carry_its_time_to_the_side_output_too() -> None:
    env = embedded_environment()
    side = CollectingSink()
    windowed = (
        numbers(env)
        .key_by(parity)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(5)))
        .process(OfWindow())
    )
    windowed.get_side_output(SIDE).process(Stamped()).sink_to(side)
    env.execute()
    assert sorted(side.values) == [(f"side {number}", 4 if number < 5 else 9) for number in NUMBERS]


class Stamped(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp()


# -- late records ----------------------------------------------------------------------------------

LATE = OutputTag("late")
SCRIPT = [
    At(1, ("a", 1)),
    At(12, ("a", 12)),
    Watermark(9),
    At(3, ("a", 3)),
    At(14, ("b", 14)),
    At(9, ("b", 9)),
    Watermark(30),
    At(11, ("a", 11)),
]


class Count(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield len(list(elements))


def first(pair: Any) -> Any:
    return pair[0]


WINDOWED: dict[str, Callable[[DataStream], Any]] = {
    "process": lambda s: s.key_by(first).window(TEN).side_output_late_data(LATE).process(Count()),
    "reduce by slices": lambda s: (
        s.key_by(first).window(TEN).side_output_late_data(LATE).reduce(lambda a, b: a)
    ),
    "count": lambda s: s.key_by(first).window(TEN).side_output_late_data(LATE).count(),
    "evicting": lambda s: (
        s.key_by(first)
        .window(TEN)
        .side_output_late_data(LATE)
        .evictor(CountEvictor.of(5))
        .process(Count())
    ),
    "sliding": lambda s: (
        s.key_by(first)
        .window(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(10)))
        .side_output_late_data(LATE)
        .process(Count())
    ),
    "of all": lambda s: s.window_all(TEN).side_output_late_data(LATE).count(),
}


@pytest.mark.parametrize("kind", WINDOWED)
def test_late_records_of_every_kind_of_window_go_aside_as_they_are(kind: str) -> None:
    env = embedded_environment()
    late = CollectingSink()
    WINDOWED[kind](env.from_source(ScriptedSource(SCRIPT))).get_side_output(LATE).process(
        Stamped()
    ).sink_to(late)
    env.execute()
    assert late.values == [(("a", 3), 3), (("b", 9), 9), (("a", 11), 11)]


def test_late_records_of_sessions_go_aside_unless_they_join_one_that_is_open() -> None:
    env = embedded_environment()
    late = CollectingSink()
    sessions = (
        env.from_source(ScriptedSource(SCRIPT))
        .key_by(first)
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
    )
    sessions.side_output_late_data(LATE).process(Count()).get_side_output(LATE).sink_to(late)
    env.execute()
    # 3 would be alone until 7, which is over. 9 meets 14, whose session is open. 11 meets nothing
    # that is open still.
    assert late.values == [("a", 3), ("a", 11)]


def test_late_records_of_columns_go_aside_as_rows() -> None:
    env = embedded_environment()
    late, counts = CollectingSink(), CollectingSink()
    named = env.from_source(ScriptedSource(SCRIPT)).map(
        lambda pair: pair, Types.ROW_NAMED(["k", "at"], [Types.STRING(), Types.LONG()])
    )
    counted = (
        named.select(col("k"), col("at"))
        .key_by("k")
        .window(TEN)
        .side_output_late_data(LATE)
        .count()
    )
    assert counted.is_columnar
    counted.map(lambda row: (row.k, row["count"])).sink_to(counts)
    counted.get_side_output(LATE).map(lambda row: (row.k, row.at)).process(Stamped()).sink_to(late)
    env.execute()
    assert sorted(counts.values) == [("a", 1), ("a", 1), ("b", 1)]
    assert late.values == [(("a", 3), 3), (("b", 9), 9), (("a", 11), 11)]


def test_the_functions_own_tag_and_the_late_one_do_not_mix() -> None:
    env = embedded_environment()
    late, aside, main = CollectingSink(), CollectingSink(), CollectingSink()
    windowed = (
        env.from_source(ScriptedSource(SCRIPT))
        .key_by(first)
        .window(TEN)
        .side_output_late_data(LATE)
        .process(Tells())
    )
    windowed.sink_to(main)
    windowed.get_side_output(LATE).sink_to(late)
    windowed.get_side_output(SIDE).sink_to(aside)
    env.execute()
    assert late.values == [("a", 3), ("b", 9), ("a", 11)]
    assert sorted(aside.values) == sorted(main.values) == [("a", 1), ("a", 12), ("b", 14)]


class Tells(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        for each in elements:
            yield each
            yield SIDE, each


# -- objects that can be changed -------------------------------------------------------------------


class SameObject(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value
        yield SIDE, value
        yield OTHER, value


class Spoil(MapFunction):
    def map(self, value: Any) -> Any:
        value.append("spoiled")
        return value


@pytest.mark.parametrize("spoiler", ["main", "side", "other"])
def test_who_changes_what_it_got_changes_it_for_itself_only(spoiler: str) -> None:
    env = embedded_environment()
    sinks = {name: CollectingSink() for name in ("main", "side", "other", "again")}
    result = env.from_collection([[1], [2]]).process(SameObject())
    streams = {
        "main": result,
        "side": result.get_side_output(SIDE),
        "other": result.get_side_output(OTHER),
        "again": result.get_side_output(SIDE),
    }
    for name, stream in streams.items():
        (stream.map(Spoil()) if name == spoiler else stream).map(tuple).sink_to(sinks[name])
    env.execute()
    for name, sink in sinks.items():
        assert sink.values == (
            [(1, "spoiled"), (2, "spoiled")] if name == spoiler else [(1,), (2,)]
        )


# -- mistakes --------------------------------------------------------------------------------------


def test_one_id_cannot_be_two_side_outputs_of_different_types() -> None:
    env = embedded_environment()
    result = numbers(env).process(Process())
    result.get_side_output(SIDE)
    with pytest.raises(
        ProgramError,
        match=(
            r"test_side_outputs\.py:\d+: get_side_output\(\): the side output 'side' was asked "
            r"for as Types\.STRING"
        ),
    ):
        result.get_side_output(OutputTag("side", Types.INT()))


def test_a_value_that_is_not_of_its_tags_type_ends_the_job_with_both() -> None:
    class Wrong(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield (
                OutputTag("rows", Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()])),
                (value,),
            )

    env = embedded_environment()
    numbers(env).process(Wrong()).get_side_output(OutputTag("rows")).print()
    with pytest.raises(JobExecutionError, match=r"\(0,\) has 1 fields, its declared type 2: a, b"):
        env.execute()


def test_a_side_output_is_not_read_from_a_stream_that_no_operator_made() -> None:
    env = embedded_environment()
    with pytest.raises(
        ProgramError,
        match=rf"{Path(__file__).name}:\d+: get_side_output\(\) belongs to an operator",
    ):
        numbers(env).union(numbers(env)).get_side_output(SIDE)
