"""A function may change what it gave out and give it out again, as where Flink does not reuse objects: each record is what it was at its time,
however many of them share a batch. ``enable_object_reuse`` leaves that out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from flinkpy.common import OutputTag, Row, Time, WatermarkStrategy
from flinkpy.datastream import (
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    DataStream,
    FlatJoinFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    SourceFunction,
)
from flinkpy.datastream.window import CountTrigger as Count
from flinkpy.datastream.window import EventTimeSessionWindows, GlobalWindows, PurgingTrigger, TumblingEventTimeWindows
from flinkpy.operators.given_out import LookedAfter, copied, private
from flinkpy.testing import CollectingSink, embedded_environment

ms = Time.milliseconds
SIDE = OutputTag("side")


@dataclass
class Event:
    n: Any


@dataclass(frozen=True, slots=True)
class Slotted:
    n: Any


class Pair(NamedTuple):
    key: str
    n: Any


class Growing(MapFunction, FlatMapFunction, ProcessFunction, CoMapFunction, CoFlatMapFunction, ProcessJoinFunction, CoGroupFunction,  # type: ignore[misc]
              ProcessWindowFunction):
    """Whatever it is called with, it puts that into its one list and gives the list, or what ``form`` makes around it."""

    def __init__(self, form: Callable[[list[Any]], Any] = lambda seen: seen) -> None:
        self.seen: list[Any] = []
        self.form = form

    def map(self, value: Any) -> Any:
        self.seen.append(value[0] if isinstance(value, tuple) else value)
        return self.form(self.seen)

    map1 = map

    def map2(self, value: Any) -> Any:
        return None

    def flat_map(self, value: Any) -> Any:
        yield self.map(value)

    flat_map1 = flat_map

    def flat_map2(self, value: Any) -> Any:
        return []

    def process_element(self, value: Any, ctx: Any, *of_join: Any) -> Any:  # type: ignore[override]
        return [self.map(value)]

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Any:
        return (self.map(each) for each in first)

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Any:
        return (self.map(each) for each in elements)


    def join(self, first: Any, second: Any) -> Any:
        return self.map(first)


class Flat(FlatJoinFunction):
    def __init__(self, growing: Growing) -> None:
        self.growing = growing

    def join(self, first: Any, second: Any) -> Any:
        yield self.growing.map(first)


class Keyed(KeyedProcessFunction):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.seen.append(value)
        ctx.timer_service().register_event_time_timer(10 + value)
        yield self.seen
        yield SIDE, self.seen

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        self.seen.append(timestamp)
        yield self.seen


class Source(SourceFunction):
    def run(self, ctx: Any) -> None:
        seen: list[int] = []
        for number in (1, 2, 3):
            seen.append(number)
            ctx.collect(seen)

    def cancel(self) -> None:
        pass


def one(value: Any) -> int:
    return 1


def time(value: Any) -> int:
    return value  # type: ignore[no-any-return]


def numbers(env: Any) -> DataStream:
    stamped = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time)
    return env.from_collection([1, 2, 3]).assign_timestamps_and_watermarks(stamped)  # type: ignore[no-any-return]


def run(*streams: DataStream) -> list[list[Any]]:
    sinks = [CollectingSink() for _ in streams]
    for stream, sink in zip(streams, sinks):
        stream.sink_to(sink)
    streams[0].get_execution_environment().execute()
    return [sink.values for sink in sinks]


CALLS: dict[str, Callable[[DataStream, Growing], DataStream]] = {
    "map": lambda s, f: s.map(f),
    "bound method": lambda s, f: s.map(f.map),
    "map before other stages": lambda s, f: s.map(f).filter(lambda seen: True).map(lambda seen: seen),
    "flat_map": lambda s, f: s.flat_map(f),
    "flat_map before another": lambda s, f: s.flat_map(f).flat_map(lambda seen: (seen,)).flat_map(lambda seen: (seen,)),
    "keyed map": lambda s, f: s.key_by(one).map(f),
    "process": lambda s, f: s.process(f),
    "connected map": lambda s, f: s.connect(s).map(f),
    "connected flat_map": lambda s, f: s.connect(s).flat_map(f),
    "window": lambda s, f: s.key_by(one).window(TumblingEventTimeWindows.of(ms(10))).process(f),
    "window of one record": lambda s, f: s.key_by(one).window(GlobalWindows.create()).trigger(PurgingTrigger.of(Count.of(1))).process(f),
    "window over slices": lambda s, f: s.key_by(one).window(TumblingEventTimeWindows.of(ms(1))).reduce(lambda a, b: b, f),
    "interval join": lambda s, f: s.key_by(time).interval_join(s.key_by(time)).between(ms(0), ms(0)).process(f),
    "join": lambda s, f: s.join(s).where(time).equal_to(time).window(TumblingEventTimeWindows.of(ms(10))).apply(f.join),
    "join of any number": lambda s, f: s.join(s).where(time).equal_to(time).window(TumblingEventTimeWindows.of(ms(10))).apply(Flat(f)),
    "join in sessions": lambda s, f: s.join(s).where(time).equal_to(time).window(EventTimeSessionWindows.with_gap(ms(1))).apply(f.join),
    "co-group": lambda s, f: s.co_group(s).where(one).equal_to(one).window(TumblingEventTimeWindows.of(ms(10))).apply(f),
}
FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda seen: seen, "tuple": lambda seen: ("k", seen), "dict": lambda seen: {"n": seen}, "Row": lambda seen: Row(n=seen),
    "nested": lambda seen: {"a": [(1, seen)]}, "dataclass": Event, "dataclass with slots": Slotted, "named tuple": lambda seen: Pair("k", seen)}


@pytest.mark.parametrize("call", CALLS)
def test_what_is_given_out_again_and_again_is_each_time_what_it_was(call: str) -> None:
    assert run(CALLS[call](numbers(embedded_environment()), Growing())) == [[[1], [1, 2], [1, 2, 3]]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", ["map", "flat_map", "process", "window"])
def test_that_holds_whatever_it_is_part_of(call: str, form: str) -> None:
    make = FORMS[form]
    assert run(CALLS[call](numbers(embedded_environment()), Growing(make))) == [[make([1]), make([1, 2]), make([1, 2, 3])]]


def test_that_holds_for_timers_and_side_outputs_too() -> None:
    kept = numbers(embedded_environment()).key_by(one).process(Keyed())
    given, aside = run(kept, kept.get_side_output(SIDE))
    assert aside == [[1], [1, 2], [1, 2, 3]]
    assert given == [*aside, [1, 2, 3, 11], [1, 2, 3, 11, 12], [1, 2, 3, 11, 12, 13]]


def test_that_holds_for_a_source_function() -> None:
    assert run(embedded_environment().add_source(Source())) == [[[1], [1, 2], [1, 2, 3]]]


def test_a_record_that_was_kept_and_is_changed_later_went_out_as_it_was() -> None:
    class Linking(MapFunction):
        last: Any = None

        def map(self, value: Any) -> Any:
            if self.last is not None:
                self.last["next"] = value["n"]
            self.last = value
            return value

    records = embedded_environment().from_collection([{"n": 1}, {"n": 2}]).map(lambda record: record)
    assert run(records.map(Linking())) == [[{"n": 1}, {"n": 2}]]


class Later(MapFunction):
    """Numbers first, and from the eleventh record on its list."""

    def open(self, runtime_context: Any) -> None:
        self.seen: list[int] = []

    def map(self, value: int) -> Any:
        if value <= 10:
            return value
        self.seen.append(value)
        return self.seen


def test_a_function_that_begins_to_give_its_list_is_looked_after_from_the_next_batch_on() -> None:
    env = embedded_environment({"taskmanager.network.batch.max-records": 1})
    assert run(env.from_sequence(1, 13).map(Later())) == [[*range(1, 11), [11], [11, 12], [11, 12, 13]]]


def test_with_object_reuse_it_is_the_object_itself() -> None:
    env = embedded_environment()
    env.get_config().enable_object_reuse()
    assert run(numbers(env).map(Growing())) == [[[1, 2, 3]] * 3]


@pytest.mark.parametrize("form", FORMS)
def test_what_was_made_to_be_given_out_is_not_copied(form: str) -> None:
    made: list[int] = []

    def new(record: Any = None) -> Any:
        value = FORMS[form]([1])
        made.append(id(value))
        return value

    alone = LookedAfter(new, False)
    assert id(alone.call("record")) == made[-1] or form == "dataclass with slots"
    assert (alone.was_called, alone.gave_mutable, alone.made_copies) == (True, True, form == "dataclass with slots")
    many = LookedAfter(lambda record: (new() for _ in range(2)), True)
    assert [id(each) for each in [*many.call("record")]] == made[-2:] or form == "dataclass with slots"


def test_what_cannot_change_or_is_not_known_is_given_out_as_it_is() -> None:
    for value in (1, "text", None, ("k", 1.5), (SIDE, 1), object(), len):
        assert private(value) is value
        assert copied(value) is value


def test_an_object_that_holds_itself_is_copied() -> None:
    ring: dict[str, Any] = {}
    ring["me"] = ring
    found = private(ring)
    assert found is not ring
    assert found["me"] is found
