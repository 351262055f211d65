"""The debugger stops at the user's function of an operator, for each record, timer and window, and
for nothing else."""

from __future__ import annotations

import bdb
import gc
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import pytest

from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import Watermark
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.debugging.debugged_operator import Stops, debugged
from flinkpy.operators.debugging.debugger import DebuggingEnded
from flinkpy.operators.functions import (
    CoMapFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from flinkpy.operators.process.process_operators import (
    CoMapOperator,
    KeyedProcessOperator,
    ProcessOperator,
)
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator
from flinkpy.operators.rows.keyed_stages import KeyedMapOperator
from flinkpy.operators.rows.stateless import FilterOperator, FlatMapOperator, MapOperator
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.windowing.assigners import TumblingEventTimeWindows
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.harness import ChainHarness, linear


@pytest.fixture(autouse=True)
def no_breakpoints() -> Iterator[None]:
    """Those of one debugger are there in the next."""
    yield
    for point in list(filter(None, bdb.Breakpoint.bpbynumber)):
        point.deleteMe()


def first(value: Any) -> Any:
    return value[0]


FIRST = KeySpec(first)
RECORDS = [("a", 1), ("b", 2), ("a", 3)]


def twice(value: Any) -> Iterable[Any]:
    yield value
    yield value


class Counting(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield self.count.value()


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


class Passing(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        return [value]


class Debugging:
    """A debugged operator whose debugger is given these commands."""

    def __init__(
        self,
        operator: StreamOperator,
        commands: str,
        monkeypatch: pytest.MonkeyPatch,
        stops: Stops | None = None,
        inputs: int = 1,
    ) -> None:
        self.written = io.StringIO()
        monkeypatch.setattr(sys, "stdin", io.StringIO(commands))
        monkeypatch.setattr(sys, "stdout", self.written)
        monkeypatch.setenv("HOME", "/nonexistent")  # no .pdbrc
        self.harness = ChainHarness(
            linear(debugged(operator, stops or Stops(), "'op'"), inputs=inputs)
        )

    @property
    def stops(self) -> list[str]:
        """What the debugger said when it stopped."""
        return [
            line.removeprefix("op 0, subtask 0: ")
            for line in self.written.getvalue().splitlines()
            if line.startswith("op 0, ")
        ]


CALLED: dict[str, Callable[[], StreamOperator]] = {
    "map": lambda: MapOperator(lambda value: value),
    "filter": lambda: FilterOperator(lambda value: True),
    "flat_map": lambda: FlatMapOperator(twice),
    "process": lambda: ProcessOperator(Passing()),
}


@pytest.mark.parametrize("name", CALLED)
def test_it_stops_once_for_each_record(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    debugging = Debugging(CALLED[name](), "c\n" * 3, monkeypatch)
    debugging.harness.push(RECORDS)
    assert debugging.stops == [f"record {record}" for record in RECORDS]
    assert debugging.harness.output == (
        [each for record in RECORDS for each in (record, record)] if name == "flat_map" else RECORDS
    )
    assert sys.gettrace() is None or "Debugger" not in repr(sys.gettrace())


KEYED: dict[str, Callable[[], StreamOperator]] = {
    "map": lambda: KeyedMapOperator(lambda value: value, FIRST),
    "process": lambda: KeyedProcessOperator(Counting(), FIRST),
}


@pytest.mark.parametrize("key", ["a", "'a'"])
@pytest.mark.parametrize("name", KEYED)
def test_with_a_key_it_stops_for_records_of_that_key(
    name: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    debugging = Debugging(KEYED[name](), "c\n" * 2, monkeypatch, Stops(key=key))
    debugging.harness.push(RECORDS, [1, 2, 3])
    assert debugging.stops == [
        "record ('a', 1), key 'a', event time 1",
        "record ('a', 3), key 'a', event time 3",
    ]


def test_a_running_result_is_stopped_at_with_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    debugging = Debugging(
        KeyedReduceOperator(lambda one, other: (one[0], one[1] + other[1]), FIRST),
        "p one, other\nc\n",
        monkeypatch,
    )
    debugging.harness.push(RECORDS)  # which is inlined without a debugger
    assert debugging.stops == ["record ('a', 3), key 'a'"]
    assert "(('a', 1), ('a', 3))" in debugging.written.getvalue()
    assert debugging.harness.output == [("a", 1), ("b", 2), ("a", 4)]


def test_it_stops_at_timers_and_shows_the_state_of_their_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    debugging = Debugging(
        KeyedProcessOperator(Counting(), FIRST),
        "c\n" * 3 + "p self.count.value()\nc\n" * 2,
        monkeypatch,
    )
    debugging.harness.push(RECORDS, [1, 2, 3])
    debugging.harness.control(Watermark(20))
    assert debugging.stops[3:] == [
        "a timer or a window of key 'a'",
        "a timer or a window of key 'b'",
    ]
    assert "(Pdb) 2\n(Pdb)" in debugging.written.getvalue()
    assert debugging.harness.output == [*RECORDS, 2, 1]


def test_it_stops_at_the_function_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def total(key: Any, window: Any, elements: Any) -> Any:
        return [(key, sum(number for _, number in elements))]

    debugging = Debugging(
        WindowOperator(
            FIRST, WindowingStrategy(TumblingEventTimeWindows(10)), window_function=total
        ),
        "p elements\nc\n",
        monkeypatch,
        Stops(key="a"),
    )
    debugging.harness.push(RECORDS, [1, 2, 3])
    debugging.harness.control(Watermark(20))
    assert debugging.stops == ["a timer or a window of key 'a'"]
    assert "[('a', 1), ('a', 3)]" in debugging.written.getvalue()
    assert debugging.harness.output == [("a", 4), ("b", 2)]


def test_of_two_inputs_it_stops_at_both(monkeypatch: pytest.MonkeyPatch) -> None:
    debugging = Debugging(CoMapOperator(Both()), "w\nc\nw\nc\n", monkeypatch, inputs=2)
    debugging.harness.push([1], input_index=0)
    debugging.harness.push([2], input_index=1)
    assert debugging.stops == ["record 1", "record 2"]
    assert "map1()" in debugging.written.getvalue()
    assert "map2()" in debugging.written.getvalue()


def test_frames_of_the_engine_are_neither_shown_nor_stepped_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    debugging = Debugging(
        KeyedProcessOperator(Counting(), FIRST),
        "w\ns\ns\ns\ns\ns\nc\nc\nc\n",
        monkeypatch,
        Stops(key="a"),
    )
    debugging.harness.push(RECORDS, [1, 2, 3])
    assert "flinkpy" not in debugging.written.getvalue().replace(__file__, "")


def test_breakpoints_of_the_user_hold_too(monkeypatch: pytest.MonkeyPatch) -> None:
    line = twice.__code__.co_firstlineno + 2
    debugging = Debugging(FlatMapOperator(twice), f"b {__file__}:{line}\n" + "c\n" * 6, monkeypatch)
    debugging.harness.push(RECORDS)
    assert debugging.written.getvalue().count(f"({line})twice()") == 3


def test_stepping_goes_through_a_generator_and_out_of_it_to_the_next_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    debugging = Debugging(FlatMapOperator(twice), "s\n" * 40, monkeypatch)
    debugging.harness.push(RECORDS)
    shown = re.findall(r"> .*\.py\((\d+)\)twice\(\)", debugging.written.getvalue())
    start = twice.__code__.co_firstlineno
    # At each yield it stops once, twice or three times; that differs between versions of Python
    assert [int(line) - start for line, _ in groupby(shown)] == [1, 2] * len(RECORDS)


def test_a_breakpoint_from_before_is_the_only_stop_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = twice.__code__.co_firstlineno + 2
    bdb.Bdb().set_break(__file__, line)
    debugging = Debugging(FlatMapOperator(twice), "c\n" * 3, monkeypatch, Stops(only_errors=True))
    debugging.harness.push(RECORDS)
    assert (
        debugging.written.getvalue().count(f"({line})twice()")
        == debugging.written.getvalue().count("(Pdb)")
        == 3
    )


def test_it_does_not_stop_in_what_the_garbage_collector_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    phases: list[str] = []

    def callback(phase: str, info: dict[str, int]) -> None:
        phases.append(phase)

    gc.callbacks.append(callback)
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)  # at almost every object
    try:
        debugging = Debugging(MapOperator(lambda value: value), "c\n" * 3, monkeypatch)
        debugging.harness.push(RECORDS)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(callback)
    assert phases
    assert debugging.stops == [f"record {record}" for record in RECORDS]


def test_elsewhere_than_in_the_subtask_it_does_not_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    debugging = Debugging(MapOperator(lambda value: value), "", monkeypatch, Stops(subtask=1))
    debugging.harness.push(RECORDS)
    assert (debugging.stops, debugging.harness.output) == ([], RECORDS)


def test_with_only_errors_it_stops_where_the_function_raises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(value: Any) -> Any:
        return 1 // (value[1] - 2)

    debugging = Debugging(MapOperator(fails), "p value\nc\n", monkeypatch, Stops(only_errors=True))
    with pytest.raises(UserCodeError):
        debugging.harness.push(RECORDS)
    written = debugging.written.getvalue()
    assert debugging.stops == []
    assert "modulo by zero, raised here in 'op 0' for record ('b', 2)" in written
    assert "-> return 1 // (value[1] - 2)" in written
    assert "(Pdb) ('b', 2)" in written


@pytest.mark.parametrize("commands", ["q\n", ""], ids=["q", "end of input"])
def test_leaving_the_debugger_ends_the_job(commands: str, monkeypatch: pytest.MonkeyPatch) -> None:
    debugging = Debugging(MapOperator(lambda value: value), commands, monkeypatch)
    with pytest.raises(DebuggingEnded):
        debugging.harness.push(RECORDS)
    assert debugging.harness.chain.close() == []


def test_a_key_that_never_came_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    debugging = Debugging(KeyedProcessOperator(Counting(), FIRST), "", monkeypatch, Stops(key="z"))
    debugging.harness.push(RECORDS, [1, 2, 3])
    assert debugging.harness.chain.close() == []
    assert "no record with the key z came to 'op 0' in subtask 0" in debugging.written.getvalue()


def test_a_function_written_in_c_is_not_stopped_at(monkeypatch: pytest.MonkeyPatch) -> None:
    debugging = Debugging(KeyedAggregateOperator("sum", 1, FIRST), "", monkeypatch)
    debugging.harness.push(RECORDS)
    assert (debugging.stops, debugging.harness.output) == ([], [("a", 1), ("b", 2), ("a", 4)])


def test_sinks_are_not_debugged() -> None:
    from flinkpy.operators.sinks.sink_operator import SinkOperator

    with pytest.raises(ProgramError, match="'op' cannot be debugged"):
        debugged(SinkOperator(print), Stops(), "'op'")
