"""Where a program declares that rows come out, rows with these names come out, whatever kind of
function gives them and in whatever form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from flinkpy.common import OutputTag, Row, Time, Types, WatermarkStrategy
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    AllWindowFunction,
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
)
from flinkpy.datastream.state import MapStateDescriptor
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.testing import CollectingSink, embedded_environment

ROWS = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()])
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
SECOND = TumblingEventTimeWindows.of(Time.seconds(1))
SIDE = OutputTag("side", ROWS)
FORMS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda pair: (pair[0], pair[1]),
    "Row without names": lambda pair: Row(pair[0], pair[1]),
    "dict": lambda pair: {"n": pair[1], "k": pair[0]},
    "Row of other names": lambda pair: Row(a=pair[0], b=pair[1]),
    "Row of these names in another order": lambda pair: Row(n=pair[1], k=pair[0]),
    "Row of these names and others": lambda pair: Row(x=None, n=pair[1], k=pair[0]),
}


class Every(  # type: ignore[misc]
    ProcessFunction,
    CoMapFunction,
    CoFlatMapFunction,
    CoProcessFunction,
    BroadcastProcessFunction,
    AsyncFunction,
    CoGroupFunction,
):
    """All functions without a key that give what they got, in that form, to the main output."""

    def __init__(self, form: Callable[[Any], Any]) -> None:
        self.form = form

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self.form(value)

    process_element1 = process_element2 = process_element

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return []

    def map1(self, value: Any) -> Any:
        return self.form(value)

    def map2(self, value: Any) -> Any:
        return None

    def flat_map1(self, value: Any) -> Any:
        yield self.form(value)

    def flat_map2(self, value: Any) -> Any:
        return []

    async def async_invoke(self, value: Any) -> list[Any]:
        return [self.form(value)]

    def co_group(self, first: list[Any], second: list[Any]) -> Any:
        return map(self.form, first)


class Keyed(KeyedProcessFunction):
    def __init__(self, form: Callable[[Any], Any]) -> None:
        self.form = form

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield self.form((ctx.get_current_key(), timestamp))


class KeyedCo(KeyedCoProcessFunction):
    form: Any
    __init__ = Keyed.__init__
    process_element1 = process_element2 = Keyed.process_element
    on_timer = Keyed.on_timer


class KeyedBroadcast(KeyedBroadcastProcessFunction):
    form: Any
    __init__ = Keyed.__init__
    process_element = Keyed.process_element
    process_broadcast_element = Every.process_broadcast_element
    on_timer = Keyed.on_timer


class Joined(ProcessJoinFunction):
    form: Any
    __init__ = Keyed.__init__

    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield self.form(left)


class OfWindow(ProcessWindowFunction):
    form: Any
    __init__ = Keyed.__init__

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Any:
        return map(self.form, elements)


class OfAll(AllWindowFunction):
    form: Any
    __init__ = Keyed.__init__

    def apply(self, window: Any, inputs: Iterable[Any]) -> Any:
        return map(self.form, inputs)


def name(pair: Any) -> Any:
    return pair[0]


CALLS: dict[str, Callable[[DataStream, Callable[[Any], Any]], DataStream]] = {
    "map": lambda s, form: s.map(form, ROWS),
    "flat_map": lambda s, form: s.flat_map(lambda pair: [form(pair)], ROWS),
    "process": lambda s, form: s.process(Every(form), ROWS),
    "keyed process": lambda s, form: s.key_by(name).process(Keyed(form), ROWS),
    "connect map": lambda s, form: s.connect(s).map(Every(form), ROWS),
    "connect flat_map": lambda s, form: s.connect(s).flat_map(Every(form), ROWS),
    "connect process": lambda s, form: s.connect(s.filter(lambda pair: False)).process(
        Every(form), ROWS
    ),
    "keyed connect process": lambda s, form: (
        s.connect(s).key_by(name, name).process(KeyedCo(form), ROWS)
    ),
    "broadcast": lambda s, form: s.connect(s.broadcast(RULES)).process(Every(form), ROWS),
    "keyed broadcast": lambda s, form: (
        s.key_by(name).connect(s.broadcast(RULES)).process(KeyedBroadcast(form), ROWS)
    ),
    "asynchronous": lambda s, form: AsyncDataStream.ordered_wait(
        s, Every(form), Time.seconds(10), output_type=ROWS
    ),
    "window": lambda s, form: s.key_by(name).window(SECOND).process(OfWindow(form), ROWS),
    "window of all": lambda s, form: s.window_all(SECOND).apply(OfAll(form), ROWS),
    "join": lambda s, form: (
        s.join(s)
        .where(name)
        .equal_to(name)
        .window(SECOND)
        .apply(lambda left, right: form(left), ROWS)
    ),
    "co-group": lambda s, form: (
        s.co_group(s).where(name).equal_to(name).window(SECOND).apply(Every(form), ROWS)
    ),
    "interval join": lambda s, form: (
        s.key_by(name)
        .interval_join(s.key_by(name))
        .between(Time.seconds(0), Time.seconds(0))
        .process(Joined(form), ROWS)
    ),
}


def pairs(batch: bool = False) -> DataStream:
    env = embedded_environment()
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return env.from_collection([("a", 1), ("b", 2)]).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda pair: pair[1])
    )


def run(stream: DataStream) -> list[Any]:
    sink = CollectingSink()
    stream.sink_to(sink)
    stream.get_execution_environment().execute()
    return sink.values


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", CALLS)
def test_a_declared_row_has_its_names_behind_every_kind_of_function(call: str, form: str) -> None:
    seen = run(
        CALLS[call](pairs(batch=form == "tuple"), FORMS[form])
        .key_by("k")
        .map(lambda row: (row.k, row.n, row))
    )
    assert sorted(each[:2] for each in seen) == [("a", 1), ("b", 2)]
    assert all(each[2] == Row(k=each[0], n=each[1]) for each in seen)


@pytest.mark.parametrize("form", FORMS)
def test_what_goes_aside_is_of_its_tags_type_and_the_rest_of_the_functions(form: str) -> None:
    class Both(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield SIDE, FORMS[form](value)
            yield value[1], value[0]

    both = pairs().process(
        Both(), Types.ROW_NAMED(["number", "name"], [Types.INT(), Types.STRING()])
    )
    assert run(both.get_side_output(SIDE).map(lambda row: (row.k, row.n))) == [("a", 1), ("b", 2)]
    assert run(both.map(lambda row: (row.name, row.number))) == [("a", 1), ("b", 2)]


def test_values_of_a_collection_are_taken_by_name_too() -> None:
    rows = embedded_environment().from_collection(
        [Row(n=1, k="a"), {"n": 2, "k": "b"}, ("c", 3)], ROWS
    )
    assert run(rows) == [Row(k="a", n=1), Row(k="b", n=2), Row(k="c", n=3)]


def test_a_row_that_lacks_one_of_the_names_ends_the_job_with_it() -> None:
    with pytest.raises(
        JobExecutionError, match=r"Row\(n=1, m='a'\) has no 'k', a field of its declared type"
    ):
        run(pairs().map(lambda pair: Row(n=pair[1], m=pair[0]), ROWS))
    with pytest.raises(
        ProgramError, match=r"value 0 is not of the declared type: Row\(n=1, m='a'\) has no 'k'"
    ):
        embedded_environment().from_collection([Row(n=1, m="a")], ROWS)


@pytest.mark.parametrize("single", ["ab", b"ab", 5])
def test_a_single_value_is_no_declared_row_and_a_text_is_not_its_letters(single: Any) -> None:
    with pytest.raises(
        JobExecutionError,
        match=r"(5|'ab') is no row of k, n: give a Row, a tuple, a list or a dict of its fields",
    ):
        run(pairs().map(lambda pair: single, ROWS))


def test_without_a_declared_row_values_stay_as_they_are() -> None:
    given = pairs().process(Every(FORMS["Row without names"]), Types.PICKLED_BYTE_ARRAY())
    assert run(given) == [Row("a", 1), Row("b", 2)]
    assert run(
        pairs().process(Every(FORMS["tuple"]), Types.TUPLE([Types.STRING(), Types.INT()]))
    ) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("call", ["process", "keyed process", "connect process", "asynchronous"])
def test_a_value_that_is_not_of_the_declared_type_ends_the_job_with_it_and_the_operator(
    call: str,
) -> None:
    with pytest.raises(
        JobExecutionError, match=r"\('a',\) has 1 fields, its declared type 2: k, n"
    ) as caught:
        run(CALLS[call](pairs(), lambda pair: pair[:1]).name("the odd one"))
    assert "in operator 'the odd one'" in str(caught.value)
    assert "on record ('a',)" in str(caught.value)
