"""A function may change what it gave out and give it out again, as where Flink does not reuse
objects: each record is what it was at its time, however many of them share a batch.
``enable_object_reuse`` leaves that out."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flinkpy.common import OutputTag, Row, Time, WatermarkStrategy
from flinkpy.datastream import (
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    DataStream,
    FilterFunction,
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
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from flinkpy.operators.output.output_isolation import copied, private
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


class Growing(  # type: ignore[misc]
    MapFunction,
    FlatMapFunction,
    ProcessFunction,
    CoMapFunction,
    CoFlatMapFunction,
    ProcessJoinFunction,
    CoGroupFunction,
    ProcessWindowFunction,
):
    """Whatever it is called with, it puts that into its one list and gives the list, or what
    ``form`` makes around it."""

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
    "map before other stages": lambda s, f: (
        s.map(f).filter(lambda seen: True).map(lambda seen: seen)
    ),
    "flat_map": lambda s, f: s.flat_map(f),
    "flat_map before another": lambda s, f: (
        s.flat_map(f).flat_map(lambda seen: (seen,)).flat_map(lambda seen: (seen,))
    ),
    "keyed map": lambda s, f: s.key_by(one).map(f),
    "process": lambda s, f: s.process(f),
    "connected map": lambda s, f: s.connect(s).map(f),
    "connected flat_map": lambda s, f: s.connect(s).flat_map(f),
    "window": lambda s, f: s.key_by(one).window(TumblingEventTimeWindows.of(ms(10))).process(f),
    "window of one record": lambda s, f: (
        s.key_by(one)
        .window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(Count.of(1)))
        .process(f)
    ),
    "window over slices": lambda s, f: (
        s.key_by(one).window(TumblingEventTimeWindows.of(ms(1))).reduce(lambda a, b: b, f)
    ),
    "interval join": lambda s, f: (
        s.key_by(time).interval_join(s.key_by(time)).between(ms(0), ms(0)).process(f)
    ),
    "join": lambda s, f: (
        s.join(s)
        .where(time)
        .equal_to(time)
        .window(TumblingEventTimeWindows.of(ms(10)))
        .apply(f.join)
    ),
    "join of any number": lambda s, f: (
        s.join(s)
        .where(time)
        .equal_to(time)
        .window(TumblingEventTimeWindows.of(ms(10)))
        .apply(Flat(f))
    ),
    "join in sessions": lambda s, f: (
        s.join(s)
        .where(time)
        .equal_to(time)
        .window(EventTimeSessionWindows.with_gap(ms(1)))
        .apply(f.join)
    ),
    "co-group": lambda s, f: (
        s.co_group(s).where(one).equal_to(one).window(TumblingEventTimeWindows.of(ms(10))).apply(f)
    ),
}
FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda seen: seen,
    "tuple": lambda seen: ("k", seen),
    "dict": lambda seen: {"n": seen},
    "Row": lambda seen: Row(n=seen),
    "nested": lambda seen: {"a": [(1, seen)]},
    "dataclass": Event,
    "dataclass with slots": Slotted,
    "named tuple": lambda seen: Pair("k", seen),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_is_given_out_again_and_again_is_each_time_what_it_was(call: str) -> None:
    assert run(CALLS[call](numbers(embedded_environment()), Growing())) == [
        [[1], [1, 2], [1, 2, 3]]
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", ["map", "flat_map", "process", "window"])
def test_that_holds_whatever_it_is_part_of(call: str, form: str) -> None:
    make = FORMS[form]
    assert run(CALLS[call](numbers(embedded_environment()), Growing(make))) == [
        [make([1]), make([1, 2]), make([1, 2, 3])]
    ]


def test_that_holds_for_timers_and_side_outputs_too() -> None:
    kept = numbers(embedded_environment()).key_by(one).process(Keyed())
    main, aside = run(kept, kept.get_side_output(SIDE))
    assert aside == [[1], [1, 2], [1, 2, 3]]
    assert main == [*aside, [1, 2, 3, 11], [1, 2, 3, 11, 12], [1, 2, 3, 11, 12, 13]]


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

    records = (
        embedded_environment().from_collection([{"n": 1}, {"n": 2}]).map(lambda record: record)
    )
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


@pytest.mark.finding("first-use 2")
@pytest.mark.parametrize("batch_records", [1, 4096])
def test_a_function_may_begin_to_give_its_list_at_any_record(batch_records: int) -> None:
    env = embedded_environment({"taskmanager.network.batch.max-records": batch_records})
    assert run(env.from_sequence(1, 13).map(Later())) == [
        [*range(1, 11), [11], [11, 12], [11, 12, 13]]
    ]


@pytest.mark.finding("first-use 2")
def test_a_filter_may_keep_what_it_lets_through_and_change_it_later() -> None:
    kept: list[Any] = []

    class Keeping(FilterFunction):
        def filter(self, value: Any) -> bool:
            for each in kept:
                each.append("changed")
            kept.append(value)
            return True

    assert run(numbers(embedded_environment()).map(lambda n: [n]).filter(Keeping())) == [
        [[1], [2], [3]]
    ]


@pytest.mark.finding("first-use 2")
def test_results_of_one_call_that_are_the_same_object_are_records_of_their_own() -> None:
    twice = (
        numbers(embedded_environment()).map(lambda n: [n]).flat_map(lambda value: [value, value])
    )
    assert run(twice.map(Appending())) == [[[n, 0] for n in (1, 1, 2, 2, 3, 3)]]


class Appending(MapFunction):
    def map(self, value: list[int]) -> list[int]:
        value.append(0)
        return value


def test_with_object_reuse_it_is_the_object_itself() -> None:
    env = embedded_environment()
    env.get_config().enable_object_reuse()
    assert run(numbers(env).map(Growing())) == [[[1, 2, 3]] * 3]


def test_what_cannot_change_is_given_out_as_it_is_and_so_is_what_cannot_be_copied() -> None:
    for value in (
        1,
        "text",
        None,
        ("k", 1.5),
        (SIDE, 1),
        ("k", (1, ())),
        len,
        Color.RED,
        threading.Lock(),
        pa.table({"a": [1]}),
    ):
        assert private(value) is value
        assert copied(value) is value


class Color(enum.Enum):
    RED = 1


class Plain:
    """An object of the user's."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and other.parts == self.parts

    __hash__ = None  # type: ignore[assignment]


class Word(str):
    __slots__ = ()


class Bag(dict):  # type: ignore[type-arg]
    """A dict of the user's own class."""


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.decimals(allow_nan=False),
    st.dates(),
    st.just(np.int64(3)),
    st.just(Color.RED),
    st.builds(Word, st.text(max_size=3)),
)
VALUES = st.recursive(
    ATOMS,
    lambda parts: st.one_of(
        st.lists(parts, max_size=3),
        st.lists(parts, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), parts, max_size=3),
        st.dictionaries(st.text(max_size=2), parts, max_size=3).map(Bag),
        parts.map(Event),
        parts.map(Slotted),
        parts.map(Plain),
        parts.map(lambda part: Pair("k", part)),
        parts.map(lambda part: Row(n=part)),
        st.sets(st.integers(), max_size=3),
        parts.map(lambda part: [part, part]),
        st.binary(max_size=3).map(bytearray),
    ),
    max_leaves=8,
)


def mutable_parts(value: Any, found: dict[int, Any] | None = None) -> dict[int, Any]:
    """Every object within that could be changed in place, by id."""
    found = {} if found is None else found
    if id(value) in found:
        return found
    if isinstance(value, (list, dict, set, bytearray, Event, Plain, Row)):
        found[id(value)] = value
    parts = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, (list, tuple))
        else value._values
        if isinstance(value, Row)
        else [value.n]
        if isinstance(value, (Event, Slotted))
        else [value.parts]
        if isinstance(value, Plain)
        else ()
    )
    for part in parts:
        mutable_parts(part, found)
    return found


def is_plain(value: Any) -> bool:
    """Whether it is text, numbers and tuples of these, and no object of a derived class, which
    could have attributes."""
    return (
        all(map(is_plain, value))
        if type(value) is tuple
        else type(value) in (str, int, float, bool, bytes, type(None))
    )


@given(VALUES)
@example((Pair("k", ()),))
@example((Word(""),))
def test_a_copy_is_equal_and_shares_nothing_that_can_change(value: Any) -> None:
    copy = private(value)
    assert copy == value
    assert isinstance(copy, type(value))
    assert not mutable_parts(copy).keys() & mutable_parts(value).keys()
    # what it holds twice, the copy holds twice
    assert len(mutable_parts(copy)) == len(mutable_parts(value))
    if is_plain(value):
        assert copy is value


def test_an_object_that_holds_itself_is_copied() -> None:
    ring: dict[str, Any] = {}
    ring["me"] = ring
    found = private(ring)
    assert found is not ring
    assert found["me"] is found
