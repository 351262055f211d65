"""The harnesses: what users' own tests are written with."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Time
from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.core.errors import FlinkpyError, ProgramError
from flinkpy.core.keys import key_group, key_group_range
from flinkpy.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    ReduceFunction,
)
from flinkpy.datastream.window import CountTrigger, EventTimeTrigger, TumblingEventTimeWindows
from flinkpy.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from flinkpy.testing import (
    KeyedOneInputHarness,
    KeyedTwoInputHarness,
    OneInputHarness,
    TwoInputHarness,
)

LATE = OutputTag("late", Types.STRING())
BACKENDS = ["hashmap", "rocksdb"]


class Session(KeyedProcessFunction):
    """Counts per key; emits the count after a second of processing time, or when event time has
    passed; 'late' goes aside."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        timers = ctx.timer_service()
        if ctx.timestamp() is None:
            timers.register_processing_time_timer(timers.current_processing_time() + 1000)
        elif ctx.timestamp() <= timers.current_watermark():
            yield LATE, value
        else:
            timers.register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), self.count.value(), timestamp


@pytest.fixture(params=BACKENDS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "rocksdb":
        pytest.importorskip("rocksdict")
    return {"configuration": {"state.backend.type": request.param}}


def test_timers_fire_when_their_time_is_set(options: dict[str, Any]) -> None:
    with KeyedOneInputHarness(Session(), lambda value: value, start_ms=500, **options) as harness:
        harness.push("a")
        harness.push_all(["b", "a"])
        harness.set_processing_time(1500)
        assert (harness.output, harness.num_processing_time_timers) == ([], 2)
        harness.set_processing_time(1501)
        assert (sorted(harness.output), harness.num_processing_time_timers) == (
            [("a", 2, 1500), ("b", 1, 1500)],
            0,
        )
        assert harness.num_keyed_state_entries("count") == harness.num_keyed_state_entries() == 2
        with pytest.raises(ValueError, match="time does not go back"):
            harness.set_processing_time(1)


def test_watermarks_fire_timers_and_late_elements_go_aside(options: dict[str, Any]) -> None:
    with KeyedOneInputHarness(Session(), lambda value: value, **options) as harness:
        harness.push("a", timestamp=10)
        harness.push_watermark(9)
        assert (harness.output, harness.num_event_time_timers) == ([], 1)
        harness.push_watermark(10)
        harness.push("a", timestamp=10)
        assert harness.stamped_output == [(("a", 1, 10), 10)]
        assert (harness.side_output(LATE), harness.side_output(OutputTag("other"))) == (["a"], [])
        assert harness.watermarks == [9, 10]
        harness.clear_output()
        assert (harness.elements, harness.side_output(LATE)) == ([], [])
        with pytest.raises(ValueError, match="does not go back"):
            harness.push_watermark(9)


def test_what_was_saved_goes_on_in_another_harness_on_any_backend(options: dict[str, Any]) -> None:
    with KeyedOneInputHarness(Session(), lambda value: value, **options) as before:
        before.push("a")
        saved = before.snapshot()
        before.push("a")
    for backend in BACKENDS:
        with before.restore(saved, configuration={"state.backend.type": backend}) as after:
            assert (after.num_processing_time_timers, after.num_keyed_state_entries("count")) == (
                1,
                1,
            )
            after.push("a")
            after.set_processing_time(1001)
            assert after.output == [("a", 2, 1000)]


def test_a_snapshot_is_shared_out_to_several_subtasks_and_back() -> None:
    keys = [f"k{number}" for number in range(40)]
    with KeyedOneInputHarness(Session(), lambda value: value) as one:
        one.push_all(keys)
        saved = one.snapshot()
    parts = [one.restore(saved, parallelism=3, subtask_index=index) for index in range(3)]
    owned = [key_group_range(index, 128, 3) for index in range(3)]
    assert [part.num_processing_time_timers for part in parts] == [
        sum(key_group(key, 128) in groups for key in keys) for groups in owned
    ]
    with one.restore(*(part.snapshot() for part in parts)) as again:
        again.set_processing_time(1001)
        assert sorted(again.output) == sorted((key, 1, 1000) for key in keys)
    for part in parts:
        part.close()


class Split(FlatMapFunction):
    def flat_map(self, value: str) -> Any:
        return value.split()


class Long(FilterFunction):
    def filter(self, value: str) -> bool:
        return len(value) > 2


class Upper(MapFunction):
    def map(self, value: str) -> str:
        return value.upper()


class Clock(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timer_service().current_processing_time()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Split(), ["a", "long", "day"]),
        (Long(), ["a long day"]),
        (Upper(), ["A LONG DAY"]),
        (Clock(), [("a long day", 7)]),
    ],
)
def test_functions_of_one_stream_are_run_by_their_class(function: Any, expected: list[Any]) -> None:
    with OneInputHarness(function, start_ms=7) as harness:
        harness.push("a long day")
        assert harness.output == expected


class Longest(ReduceFunction):
    def reduce(self, value1: str, value2: str) -> str:
        return max(value1, value2, key=len)


def test_a_reduce_is_run_on_a_keyed_stream() -> None:
    with KeyedOneInputHarness(Longest(), lambda value: value[0]) as harness:
        harness.push_all(["a", "abc", "b", "ab"])
        assert harness.output == ["a", "abc", "b", "abc"]


def test_a_piece_of_stream_runs_as_one() -> None:
    def build(stream: Any) -> Any:
        return (
            stream.flat_map(str.split)
            .key_by(lambda word: word)
            .process(Session())
            .map(lambda found: found[:2])
        )

    with OneInputHarness.of(build) as harness:
        harness.push("a b a")
        harness.set_processing_time(1001)
        assert sorted(harness.output) == [("a", 2), ("b", 1)]
        with harness.restore(harness.snapshot()) as again:
            again.push("a")
            again.set_processing_time(2002)
            assert again.output == [("a", 3)]


class Match(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.left = runtime_context.get_state(ValueStateDescriptor("left"))

    def process_element1(self, value: Any, ctx: Any) -> Any:
        self.left.update(value)
        ctx.timer_service().register_event_time_timer(100)

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield self.left.value(), value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "end of", ctx.get_current_key()


def test_two_inputs_share_state_and_see_the_lower_watermark() -> None:
    with KeyedTwoInputHarness(Match(), lambda pair: pair[0], lambda pair: pair[0]) as harness:
        harness.push1(("k", 1), timestamp=1)
        harness.push2(("k", 2), timestamp=2)
        harness.push_watermark1(200)
        assert (harness.output, harness.watermarks) == ([(("k", 1), ("k", 2))], [])
        harness.push_watermark2(150)
        assert harness.output[1:] == [("end of", "k")]
        assert harness.watermarks == [150]
        harness.end_input()
        assert harness.watermarks == [150, MAX_TIMESTAMP]


def test_a_mistake_of_the_function_is_shown_as_in_a_job() -> None:
    with (
        OneInputHarness.of(lambda stream: stream.map(lambda value: 1 // value)) as harness,
        pytest.raises(FlinkpyError, match="ZeroDivisionError"),
    ):
        harness.push(0)


class Closes(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.calls = ["open"]

    def map(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        self.calls.append("close")


def test_the_function_in_the_harness_is_a_copy_that_lives_through_open_and_close() -> None:
    mine = Closes()
    harness = OneInputHarness(mine)
    inside = harness.function
    harness.close()
    harness.close()
    assert inside.calls == ["open", "close"]
    assert not hasattr(mine, "calls")


NUMBER: Any = lambda stream: 3  # noqa: E731  # a mistake that a type checker would find


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OneInputHarness(lambda value: value), r"use OneInputHarness.of"),
        (lambda: OneInputHarness(Session()), "Session is a function of a keyed stream"),
        (lambda: OneInputHarness.of(lambda stream: stream), "no operator to test"),
        (lambda: OneInputHarness.of(NUMBER), "gives a DataStream"),
        (
            lambda: OneInputHarness.of(
                lambda stream: stream.map(str).union(
                    stream.get_execution_environment().from_collection(["a"])
                )
            ),
            "run it in a job",
        ),
        (lambda: TwoInputHarness(Upper()), "cannot be run|CoMapFunction"),
        (
            lambda: OneInputHarness(Upper()).restore(
                OneInputHarness.of(lambda stream: stream.map(str).map(str)).snapshot()
            ),
            "2 operators, this harness has 1",
        ),
    ],
)
def test_mistakes_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        make()


# -- pieces of stream of every shape ---------------------------------------------------------------

SECOND = TumblingEventTimeWindows.of(Time.seconds(1))
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


@pytest.mark.finding("hunts 14")
def test_event_time_windows_take_the_timestamps_that_are_pushed() -> None:
    def build(stream: Any) -> Any:
        return (
            stream.key_by(lambda pair: pair[0])
            .window(SECOND)
            .reduce(lambda one, other: (one[0], one[1] + other[1]))
        )

    with OneInputHarness.of(build) as harness:
        harness.push_all([("a", 1), ("b", 2), ("a", 3)], timestamps=[1, 2, 999])
        harness.push_watermark(999)
        assert sorted(harness.stamped_output) == [(("a", 4), 999), (("b", 2), 999)]


@pytest.mark.finding("hunts 14")
@pytest.mark.parametrize(
    "trigger", [None, CountTrigger.of(1), EventTimeTrigger.create()], ids=["grid", "union", "own"]
)
def test_window_joins_run_however_they_are_built(trigger: Any) -> None:
    def build(left: Any, right: Any) -> Any:
        joined = (
            left.join(right)
            .where(lambda pair: pair[0])
            .equal_to(lambda pair: pair[0])
            .window(SECOND)
        )
        return (joined if trigger is None else joined.trigger(trigger)).apply(
            lambda one, other: (one[1], other[1])
        )

    with TwoInputHarness.of(build) as harness:
        harness.push1(("a", 1), timestamp=1)
        harness.push1(("b", 2), timestamp=2)
        harness.push2(("a", 3), timestamp=3)
        harness.push_watermark1(999)
        assert harness.output == [] or trigger is not None
        harness.push_watermark2(999)
        assert harness.stamped_output == [((1, 3), 999)]
        assert harness.watermarks == [999]


class Limited(BroadcastProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Any:
        limit = ctx.get_broadcast_state(RULES).get("limit")
        if limit is not None and value <= limit:
            yield value

    def process_broadcast_element(self, value: int, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put("limit", value)


@pytest.mark.finding("hunts 14")
def test_broadcast_state_is_fed_by_the_second_input() -> None:
    with TwoInputHarness.of(
        lambda left, right: left.connect(right.broadcast(RULES)).process(Limited())
    ) as harness:
        harness.push1(1)
        harness.push2(5)
        harness.push1(5)
        saved = harness.snapshot()
        harness.push1(6)
        assert harness.output == [5]
        with harness.restore(saved) as again:
            again.push1(4)
            assert again.output == [4]


@pytest.mark.finding("hunts 14")
def test_interval_joins_and_co_groups_have_both_inputs() -> None:
    def joined(left: Any, right: Any) -> Any:
        return (
            left.key_by(lambda pair: pair[0])
            .interval_join(right.key_by(lambda pair: pair[0]))
            .between(Time.milliseconds(-5), Time.milliseconds(5))
            .process(Both())
        )

    with TwoInputHarness.of(joined) as harness:
        harness.push1(("a", 1), timestamp=10)
        harness.push2(("a", 2), timestamp=15)
        harness.push2(("a", 3), timestamp=16)
        assert harness.output == [(("a", 1), ("a", 2))]


class Both(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield left, right


class Later(AsyncFunction):
    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0)
        return [value * 2]


@pytest.mark.finding("hunts 14")
def test_the_end_of_the_input_waits_for_asynchronous_functions() -> None:
    def build(stream: Any) -> Any:
        return AsyncDataStream.ordered_wait(stream, Later(), Time.seconds(5), 2).map(
            lambda value: value + 1
        )

    with OneInputHarness.of(build) as harness:
        harness.push_all(range(20))
        harness.push_watermark(7)
        harness.end_input()
        assert harness.output == [number * 2 + 1 for number in range(20)]
        assert harness.watermarks[-1] == MAX_TIMESTAMP


@pytest.mark.finding("hunts 14")
def test_an_asynchronous_function_that_does_not_end_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flinkpy.testing.harness_mail.PATIENCE_S", 0)
    with OneInputHarness.of(
        lambda stream: AsyncDataStream.ordered_wait(stream, Never(), Time.seconds(5), 2)
    ) as harness:
        harness.push(1)
        with pytest.raises(
            ProgramError,
            match=r"AsyncWaitOperator has not ended .* set_processing_time\(\) has yet to set",
        ):
            harness.end_input()


class Never(AsyncFunction):
    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.Event().wait()
        return []


def test_streams_part_and_meet_again_and_side_outputs_are_streams() -> None:
    def build(stream: Any) -> Any:
        sorted_out = stream.process(OddAside())
        doubled = sorted_out.map(add_to_it("even"))
        return doubled.union(
            sorted_out.map(add_to_it("also")), sorted_out.get_side_output(ODD).map(add_to_it("odd"))
        )

    with OneInputHarness.of(build) as harness:
        harness.push_all([[1], [2]], timestamps=[1, 2])
        harness.push_watermark(2)
        assert sorted(harness.output) == [[1, "odd"], [2, "also"], [2, "even"]]
        assert harness.watermarks == [2]


ODD = OutputTag("odd")


class OddAside(ProcessFunction):
    def process_element(self, value: list[Any], ctx: Any) -> Any:
        yield (ODD, value) if value[0] % 2 else value


def add_to_it(what: str) -> Any:
    """A function that changes the record it gets."""

    def change(record: list[Any]) -> list[Any]:
        record.append(what)
        return record

    return change


def test_a_class_in_place_of_its_object_is_told_what_to_write() -> None:
    with pytest.raises(
        ProgramError, match=r"a harness takes a function object, not a class: write Split\(\)"
    ):
        OneInputHarness(Split)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("forgets", "told"),
    [("", ""), ("; env.from_collection([1]).map(str)", "ended without execute()")],
)
def test_a_script_with_a_harness_has_forgotten_no_execute(
    tmp_path: Path, forgets: str, told: str
) -> None:
    script = tmp_path / "check.py"
    script.write_text(f"""from flinkpy.datastream import MapFunction, StreamExecutionEnvironment
from flinkpy.testing import OneInputHarness
env = StreamExecutionEnvironment.get_execution_environment(){forgets}
class Double(MapFunction):
    def map(self, value):
        return 2 * value
with OneInputHarness(Double()) as harness:
    harness.push(4)
    print(harness.output)
""")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "[8]\n"
    assert told in ended.stderr if told else not ended.stderr
