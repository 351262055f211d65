from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flinkpy
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, RowBatch
from flinkpy.core.errors import EngineError
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import (
    BatchForm,
    OneInputOperator,
    SourceOperator,
    StreamOperator,
    TwoInputOperator,
)
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.functions import (
    CoMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    TimeDomain,
)
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.process.process_operators import (
    CoMapOperator,
    KeyedCoProcessOperator,
    KeyedProcessOperator,
)
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator
from flinkpy.operators.rows.keyed_stages import KeyedMapOperator
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.state.descriptors import ValueStateDescriptor
from tests.operators.batch_harness import BatchHarness
from tests.operators.harness import ChainHarness, linear

BY_FIRST = KeySpec(lambda pair: pair[0])
PAIRS = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), min_size=1, max_size=8),
    max_size=6,
)


def last_of_each_key(results: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    return dict(results)


OPERATORS: list[Callable[[], StreamOperator]] = [
    lambda: KeyedReduceOperator(lambda a, b: (a[0], a[1] * 3 + b[1]), BY_FIRST),
    *[
        lambda kind=kind: KeyedAggregateOperator(kind, 1, BY_FIRST)
        for kind in ("sum", "min", "max", "min_by", "max_by")
    ],
]


@pytest.mark.parametrize("make", OPERATORS)
@pytest.mark.parametrize("memory", [0, 1 << 20])
@given(batches=PAIRS)
def test_the_one_result_of_a_key_is_its_last_one_in_a_stream(
    make: Callable[[], StreamOperator], memory: int, batches: list[list[Any]]
) -> None:
    stream, batch = ChainHarness(linear(make())), BatchHarness(make(), memory)
    for values in batches:
        stream.push(values)
        batch.push(values)
    assert batch.output == []
    results = batch.end()
    assert last_of_each_key(results) == last_of_each_key(stream.output)
    assert len(results) == len({key for key, _ in results})


class Story(KeyedProcessFunction):
    """Tells what it sees: value, watermark, what its state knows; sets timers."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.seen.update((self.seen.value() or 0) + 1)
        yield (
            ctx.get_current_key(),
            "value",
            value[1],
            self.seen.value(),
            ctx.timer_service().current_watermark() == MIN_TIMESTAMP,
        )
        ctx.timer_service().register_processing_time_timer(1)
        ctx.timer_service().register_event_time_timer(value[1] + 10)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield (
            ctx.get_current_key(),
            "event" if ctx.time_domain() is TimeDomain.EVENT_TIME else "processing",
            timestamp,
            self.seen.value(),
            ctx.timer_service().current_watermark() == MAX_TIMESTAMP,
        )
        ctx.timer_service().register_event_time_timer(timestamp + 1)
        ctx.timer_service().register_processing_time_timer(timestamp + 1)


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_one_key_is_processed_after_the_other_by_time_and_its_timers_fire_at_its_end(
    memory: int,
) -> None:
    harness = BatchHarness(KeyedProcessOperator(Story(), BY_FIRST), memory)
    harness.push([("a", 5), ("b", 4), ("a", 3)], [5, 4, 3])
    harness.timers.advance(1000)
    harness.push([("b", 1)], [1])
    results = harness.end()
    of_key = {key: [result[1:] for result in results if result[0] == key] for key in "ab"}
    assert of_key == {
        "a": [
            ("value", 3, 1, True),
            ("value", 5, 2, True),
            ("event", 13, 2, True),
            ("event", 15, 2, True),
            ("processing", 1, 2, True),
        ],
        "b": [
            ("value", 1, 1, True),
            ("value", 4, 2, True),
            ("event", 11, 2, True),
            ("event", 14, 2, True),
            ("processing", 1, 2, True),
        ],
    }
    assert [result[0] for result in results] in (["a"] * 5 + ["b"] * 5, ["b"] * 5 + ["a"] * 5)


def test_state_of_a_key_is_gone_when_the_next_one_comes() -> None:
    operator = KeyedMapOperator(Counting(), BY_FIRST)
    harness = BatchHarness(operator)
    harness.push([("a", 0), ("b", 0), ("a", 0)])
    assert sorted(harness.end()) == [("a", 1), ("a", 2), ("b", 1)]


class Counting(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def map(self, value: Any) -> Any:
        self.seen.update((self.seen.value() or 0) + 1)
        return value[0], self.seen.value()


class Sides(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value[0], 1, ctx.timestamp()

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value[0], 2, ctx.timestamp()


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_two_keyed_inputs_are_merged_by_key_and_time(memory: int) -> None:
    harness = BatchHarness(KeyedCoProcessOperator(Sides(), BY_FIRST, BY_FIRST), memory, inputs=2)
    harness.push([("a", 0), ("b", 0), ("a", 0)], [5, 1, 2], input_index=1)
    harness.push([("a", 0), ("a", 0), ("b", 0)], [2, 3, 9], input_index=0)
    results = harness.end()
    assert [result[1:] for result in results if result[0] == "a"] == [
        (1, 2),
        (2, 2),
        (1, 3),
        (2, 5),
    ]
    assert [result[1:] for result in results if result[0] == "b"] == [(2, 1), (1, 9)]


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "first", *value

    def map2(self, value: Any) -> Any:
        return "second", *value


def test_functions_of_two_keyed_inputs_without_time_see_the_first_input_of_a_key_first() -> None:
    harness = BatchHarness(CoMapOperator(Both(), (BY_FIRST, BY_FIRST)), inputs=2)
    harness.push([("a", 1)], input_index=1)
    harness.push([("a", 2)], input_index=0)
    assert harness.end() == [("first", "a", 2), ("second", "a", 1)]


def operators_of_flinkpy() -> list[type[StreamOperator]]:
    for module in pkgutil.walk_packages(flinkpy.__path__, "flinkpy."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: dict[type[StreamOperator], None] = {}
    waiting: list[type[StreamOperator]] = [StreamOperator]
    while waiting:
        below = waiting.pop().__subclasses__()
        found |= dict.fromkeys(below)
        waiting += below
    inputs = (OneInputOperator, TwoInputOperator, SourceOperator)
    return [
        each
        for each in found
        if each.__module__.startswith("flinkpy.")
        and issubclass(each, inputs)
        and not inspect.isabstract(each)
    ]


def test_every_operator_says_how_it_runs_in_a_batch_job() -> None:
    operators = operators_of_flinkpy()
    assert len(operators) > 30
    assert [
        each.__name__
        for each in operators
        if not isinstance(getattr(each, "batch_form", None), BatchForm)
    ] == []


def test_no_operator_with_keyed_state_takes_over_the_batch_form_of_one_without() -> None:
    """``distinct`` over columns passes records on as they come, also in a batch job. So do groups
    and regular joins of STREAMING, which no plan of BATCH has."""
    passing = (
        "DistinctRowsOperator",
        "ExpiringDistinctRowsOperator",
        "GlobalGroupsOperator",
        "GroupAggregateOperator",
        "RegularJoinOperator",
    )
    keyed = [
        each
        for each in operators_of_flinkpy()
        if issubclass(each, KeyedStateOperator) and each.__name__ not in passing
    ]
    assert len(keyed) > 10
    assert [each.__name__ for each in keyed if each.batch_form is BatchForm.AS_IN_STREAM] == []


def test_an_operator_that_does_not_say_how_it_runs_in_a_batch_job_is_refused() -> None:
    class Forgetful(OneInputOperator):
        def process_batch(self, batch: Batch) -> None:
            self.output.emit(batch)

    with pytest.raises(
        EngineError,
        match="Forgetful does not say how it runs in a batch job: set its attribute batch_form",
    ):
        batch_form(Forgetful())


def test_operators_without_a_key_run_as_they_are() -> None:
    operator = MapOperator(lambda value: value)
    assert batch_form(operator) is operator


def test_an_operator_with_the_state_of_one_key_takes_no_memory_of_rocksdb() -> None:
    operator = KeyedReduceOperator(lambda a, b: a, BY_FIRST)
    assert operator.memory_weights
    assert batch_form(operator).memory_weights == {MemoryKind.OPERATOR: 1}


def test_the_rest_is_emitted_in_steps() -> None:
    harness = BatchHarness(KeyedReduceOperator(lambda a, b: a, BY_FIRST))
    harness.push([(key, 0) for key in range(5000)])
    steps = 0
    while not harness.chain.finish():
        steps += 1
    assert steps >= 5
    assert len(harness.output) == 5000
    assert all(isinstance(each, RowBatch) for each in harness.writers[0].elements)
