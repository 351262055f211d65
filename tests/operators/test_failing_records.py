"""Whatever the operator: the error of a batch names the record at fault, and nothing of that batch
is passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flinkpy.common.typeinfo import Types
from flinkpy.core.errors import TaskInterrupted, UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from flinkpy.operators.process.interval_join import IntervalJoinOperator
from flinkpy.operators.process.process_operators import (
    CoFlatMapOperator,
    CoMapOperator,
    CoProcessOperator,
    KeyedCoProcessOperator,
    KeyedProcessOperator,
    ProcessOperator,
)
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator
from flinkpy.operators.rows.keyed_stages import (
    KeyedFilterOperator,
    KeyedFlatMapOperator,
    KeyedMapOperator,
)
from flinkpy.operators.rows.stateless import FilterOperator, FlatMapOperator, MapOperator
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.windowing.assigners import TumblingEventTimeWindows
from flinkpy.windowing.general.contents import ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.harness import ChainHarness, linear
from tests.windowing.slice_harness import row_windows

FIRST = KeySpec(lambda value: value[0])
GOOD = [("a", number) for number in range(1, 6)]


def checked(value: Any) -> Any:
    if value[1] == 0:
        raise ValueError("no")
    return value


class Every(ProcessFunction, CoMapFunction, CoFlatMapFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield checked(value)

    def map1(self, value: Any) -> Any:
        return checked(value)

    map2 = map1

    def flat_map1(self, value: Any) -> Iterable[Any]:
        yield checked(value)

    flat_map2 = flat_map1


class CoProcess(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield checked(value)

    process_element2 = process_element1


class Keyed(KeyedProcessFunction, KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(
            ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.last.update(checked(value))
        yield value

    def map(self, value: Any) -> Any:
        return checked(value)

    process_element1 = process_element2 = process_element


def added(left: Any, right: Any) -> Any:
    return left[0], left[1] + 1 // right[1]


OPERATORS: dict[str, Callable[[], StreamOperator]] = {
    "map": lambda: MapOperator(checked),
    "map written out": lambda: MapOperator(lambda value: 1 // value[1]),
    "filter": lambda: FilterOperator(checked),
    "flat_map": lambda: FlatMapOperator(lambda value: [checked(value)]),
    "process": lambda: ProcessOperator(Every()),
    "keyed map": lambda: KeyedMapOperator(checked, FIRST),
    "keyed filter": lambda: KeyedFilterOperator(checked, FIRST),
    "keyed flat_map": lambda: KeyedFlatMapOperator(lambda value: [checked(value)], FIRST),
    "keyed process": lambda: KeyedProcessOperator(Keyed(), FIRST),
    "key selector": lambda: KeyedProcessOperator(Keyed(), KeySpec(lambda value: 1 // value[1])),
    "reduce": lambda: KeyedReduceOperator(added, FIRST),
    "sum": lambda: KeyedAggregateOperator("sum", 2, KeySpec(lambda value: 1 // value[1])),
    "co-map": lambda: CoMapOperator(Every()),
    "co-flat_map": lambda: CoFlatMapOperator(Every()),
    "co-process": lambda: CoProcessOperator(CoProcess()),
    "keyed co-process": lambda: KeyedCoProcessOperator(Keyed(), FIRST, FIRST),
    "interval join": lambda: IntervalJoinOperator(
        lambda left, right, ctx: [left], KeySpec(lambda value: 1 // value[1]), FIRST, -1, 1
    ),
    "windows": lambda: WindowOperator(
        FIRST, WindowingStrategy(TumblingEventTimeWindows(10)), ReduceContents(added)
    ),
    "slices": lambda: row_windows(FIRST, Slicing(10, 10, 0), True, "reduce", None, added),
}


@pytest.mark.parametrize("fault", range(1, 5))
@pytest.mark.parametrize("fusion", [True, False])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_record_at_fault_is_named_and_nothing_of_its_batch_goes_on(
    name: str, fusion: bool, fault: int
) -> None:
    made = OPERATORS[name]()
    harness = ChainHarness(
        linear(made, inputs=2 if hasattr(made, "process_batch1") else 1),
        fusion=fusion,
        batch_records=10,
    )
    values: list[Any] = list(GOOD) if name != "sum" else [(*value, 1) for value in GOOD]
    values[fault] = ("a", 0) if name != "sum" else ("a", 0, 1)
    with pytest.raises(UserCodeError) as caught:
        harness.push(values, range(5))
    assert caught.value.record == repr(values[fault])
    assert caught.value.operator == "op 0"
    assert harness.output == []
    assert harness.chain.close() == []


class Exits:
    """In a comparison or a division it raises what is no Exception."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        raise self.error(3)

    def __rfloordiv__(self, other: object) -> int:
        raise self.error(3)

    def __repr__(self) -> str:
        return "<exits>"


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("fusion", [True, False])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_record_is_named_too_if_what_was_raised_is_no_exception(
    name: str, fusion: bool, error: type[BaseException]
) -> None:
    made = OPERATORS[name]()
    harness = ChainHarness(
        linear(made, inputs=2 if hasattr(made, "process_batch1") else 1), fusion=fusion
    )
    bad: Any = ("a", Exits(error), 1)
    with pytest.raises(UserCodeError, match=f"{error.__name__}: 3, which ends programs") as caught:
        harness.push([("a", 1, 1), bad], range(2))
    assert caught.value.record == "('a', <exits>, 1)"
    assert caught.value.operator == "op 0"
    assert harness.output == []
    assert harness.chain.close() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, TaskInterrupted])
@pytest.mark.parametrize("name", OPERATORS)
def test_ctrl_c_and_the_interruption_of_a_cancelled_task_are_no_error_of_the_record(
    name: str, error: type[BaseException]
) -> None:
    made = OPERATORS[name]()
    harness = ChainHarness(linear(made, inputs=2 if hasattr(made, "process_batch1") else 1))
    with pytest.raises(error):
        harness.push([("a", 1, 1), ("a", Exits(error), 1)], range(2))


def test_ctrl_c_in_another_thread_than_the_main_one_was_raised_by_the_function() -> None:
    harness = ChainHarness(linear(MapOperator(checked)))
    with ThreadPoolExecutor(1) as threads:
        pushed = threads.submit(harness.push, [("a", Exits(KeyboardInterrupt))])
        with pytest.raises(UserCodeError, match="KeyboardInterrupt: 3, which ends programs"):
            pushed.result()


@pytest.mark.parametrize("fusion", [True, False])
def test_within_a_chain_it_is_the_record_as_that_operator_got_it(fusion: bool) -> None:
    operators = [
        MapOperator(lambda value: value + 1),
        FilterOperator(lambda value: value % 2 == 0),
        FlatMapOperator(lambda value: [value, -value]),
        MapOperator(lambda value: 1 // (value + 6)),
    ]
    harness = ChainHarness(linear(*operators), fusion=fusion)
    with pytest.raises(UserCodeError, match="ZeroDivisionError") as caught:
        harness.push([1, 2, 3, 4, 5, 6, 7])
    assert (caught.value.record, caught.value.operator, harness.output) == ("-6", "op 3", [])
