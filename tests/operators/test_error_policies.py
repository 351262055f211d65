"""With an error policy, results and dead letters are those of a plain loop with ``try``, whatever
the operators, the values and the batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.error_policy import DeadLetter, ErrorPolicy
from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import Types
from flinkpy.common.watermark_strategy import WatermarkGenerator, WatermarkStrategy
from flinkpy.core.elements import Watermark
from flinkpy.core.errors import EngineError, ProgramError, UserCodeError
from flinkpy.core.ids import OperatorId
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge, ChainedOperator, NetworkEdge
from flinkpy.graph.partitioning import FORWARD, KeySpec
from flinkpy.operators.base import Guarding, OneInputOperator, StreamOperator, TwoInputOperator
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator
from flinkpy.operators.functions import (
    CoMapFunction,
    CoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from flinkpy.operators.guarding.guarded_operator import GuardedOperator
from flinkpy.operators.guarding.with_policy import with_policy
from flinkpy.operators.process.interval_join import IntervalJoinOperator
from flinkpy.operators.process.process_operators import (
    CoMapOperator,
    CoProcessOperator,
    KeyedProcessOperator,
    ProcessOperator,
)
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator
from flinkpy.operators.rows.stateless import FilterOperator, FlatMapOperator, MapOperator
from flinkpy.state.descriptors import ListStateDescriptor
from tests.operators.batch_harness import BatchHarness
from tests.operators.harness import ChainHarness, linear
from tests.operators.test_every_operator import operators_of
from tests.values import ATOMS, shown

DEAD = OutputTag("dead")
DIVERT = ErrorPolicy.divert(DEAD)
FIRST = KeySpec(lambda value: value[0])
VALUES = (
    ATOMS
    | st.tuples(ATOMS, ATOMS)
    | st.lists(ATOMS, max_size=3)
    | st.dictionaries(st.sampled_from("ab"), st.integers(-2, 2), max_size=2)
)


def with_letters(operators: list[StreamOperator], inputs: int = 1) -> ChainConfig[Any]:
    """A chain whose results go to network output 0, and its dead letters to 1."""
    last = len(operators) - 1
    return ChainConfig(
        tuple(
            ChainedOperator(
                OperatorId(f"op{at}"),
                f"op {at}",
                f"uid-{at}",
                operator,
                (
                    NetworkEdge(1, FORWARD, side_tag=DEAD.tag_id),
                    ChainedEdge(at + 1) if at < last else NetworkEdge(0, FORWARD),
                ),
            )
            for at, operator in enumerate(operators)
        ),
        inputs,
    )


def yields_first(value: Any) -> Iterator[Any]:
    yield value
    yield value[0]


def changes_it(value: Any) -> Any:
    value.append(1)
    return value[1]


class Adds(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value
        yield OutputTag("other"), value
        yield value + 1


# the operator, and its meaning for one value
FUNCTIONS: dict[str, tuple[Callable[[Any], StreamOperator], Callable[[Any], list[Any]]]] = {
    "add": (lambda _: MapOperator(lambda value: value + 1), lambda value: [value + 1]),
    "first": (lambda _: MapOperator(lambda value: value[0]), lambda value: [value[0]]),
    "length": (lambda _: MapOperator(len), lambda value: [len(value)]),
    "changes it": (lambda _: MapOperator(changes_it), lambda value: [changes_it(value)]),
    "positive": (
        lambda _: FilterOperator(lambda value: value > 0),
        lambda value: [value] if value > 0 else [],
    ),
    "truth": (
        lambda _: FilterOperator(lambda value: value),
        lambda value: [value] if value else [],
    ),
    "each": (
        lambda _: FlatMapOperator(lambda value: value),
        lambda value: [] if value is None else list(value),
    ),
    "lazily": (lambda _: FlatMapOperator(yields_first), lambda value: list(yields_first(value))),
    "process": (lambda _: ProcessOperator(Adds()), lambda value: [value, value + 1]),
}
UNGUARDED: dict[str, tuple[Callable[[], StreamOperator], Callable[[Any], Any]]] = {
    "pair": (lambda: MapOperator(lambda value: (value, value)), lambda value: (value, value)),
    "list": (lambda: MapOperator(lambda value: [value]), lambda value: [value]),
}


def copied(value: Any) -> Any:
    return (
        {**value}
        if isinstance(value, dict)
        else list(map(copied, value))
        if isinstance(value, list)
        else (tuple(map(copied, value)) if isinstance(value, tuple) else value)
    )


def plainly(names: list[str], values: list[Any]) -> tuple[list[Any], list[tuple[str, Any, str]]]:
    """What a loop with ``try`` gives: results, and (operator, record, class of the exception)."""
    letters = []
    for at, name in enumerate(names):
        results: list[Any] = []
        for value in values:
            if name in UNGUARDED:
                results.append(copied(UNGUARDED[name][1](value)))
                continue
            kept = copied(value)
            try:
                results += map(copied, FUNCTIONS[name][1](value))
            except Exception as error:
                letters.append((f"op {at}", shown(kept), type(error).__name__))
        values = results
    return [shown(value) for value in values], sorted(letters, key=str)


def through_chain(
    names: list[str], values: list[Any], sizes: int, *, fusion: bool, stamped: bool
) -> tuple[list[Any], list[tuple[str, Any, str]]]:
    operators = [
        UNGUARDED[name][0]()
        if name in UNGUARDED
        else with_policy(FUNCTIONS[name][0](None), DIVERT, name)
        for name in names
    ]
    harness = ChainHarness(with_letters(operators), writers=2, fusion=fusion)
    for start in range(0, len(values), sizes):
        part = values[start : start + sizes]
        harness.push(part, range(start, start + len(part)) if stamped else None)
    assert harness.chain.close() == []
    letters: list[DeadLetter] = harness.writers[1].values
    diverted = sum(
        metric.value() for metric in harness.accumulators.get("flinkpy.metrics", {}).values()
    )
    assert diverted == len(letters)
    if stamped:
        assert [letter.timestamp for letter in letters] == [
            stamp for _, stamp in harness.writers[1].stamped
        ]
    return list(map(shown, harness.output)), sorted(
        ((one.operator, shown(one.record), one.exception) for one in letters), key=str
    )


@given(
    st.lists(st.sampled_from(sorted(FUNCTIONS) + sorted(UNGUARDED)), min_size=1, max_size=4),
    st.lists(VALUES, max_size=8),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
)
def test_results_and_letters_are_those_of_a_loop_with_try(
    names: list[str], values: list[Any], sizes: int, fusion: bool, stamped: bool
) -> None:
    wanted = plainly(names, [copied(value) for value in values])
    assert through_chain(names, values, sizes, fusion=fusion, stamped=stamped) == wanted


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_is_called_once_for_each_record_and_each_retry(name: str) -> None:
    class Counted(Exception):
        pass

    calls: list[Any] = []

    class Process(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            return fails(value)

    def fails(value: Any) -> Any:
        calls.append(list(value))
        value.append("changed")
        if value[0] == "bad":
            raise Counted("no")
        return [value]

    bare = FUNCTIONS[name][0](None)
    operator = (
        ProcessOperator(Process()) if isinstance(bare, ProcessOperator) else type(bare)(fails)  # type: ignore[call-arg]
    )
    harness = ChainHarness(
        with_letters([with_policy(operator, ErrorPolicy.divert(DEAD, retries=2), "op")]), writers=2
    )
    harness.push([["good"], ["bad"], ["good"]])
    # each time the record as it came
    assert calls == [["good"], ["bad"], ["bad"], ["bad"], ["good"]]
    [letter] = harness.writers[1].values
    assert (letter.record, letter.exception, letter.message, letter.calls) == (
        ["bad"],
        "Counted",
        "no",
        3,
    )
    assert (letter.operator, letter.uid, letter.subtask, letter.timestamp, letter.input) == (
        "op 0",
        "uid-0",
        0,
        None,
        1,
    )
    assert [(frame.function, frame.text) for frame in letter.frames][-1] == (
        "fails",
        'raise Counted("no")',
    )
    assert len(harness.output) == 2


def yields_many(value: int) -> Iterator[int]:
    for number in range(20):
        yield number
        if value == 0 and number == 10:
            raise ValueError("after many")


class YieldsMany(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield from yields_many(value)


@pytest.mark.parametrize(
    "make",
    [lambda: FlatMapOperator(yields_many), lambda: ProcessOperator(YieldsMany())],
    ids=["flat_map", "process"],
)
def test_what_was_yielded_before_is_withheld_even_if_it_is_more_than_a_batch(
    make: Callable[[], StreamOperator],
) -> None:
    harness = ChainHarness(
        with_letters([with_policy(make(), DIVERT, "op")]), writers=2, batch_records=4
    )
    harness.push([1, 0, 2])
    assert harness.output == [*range(20), *range(20)]
    assert [letter.record for letter in harness.writers[1].values] == [0]


def test_a_retry_that_succeeds_leaves_no_letter() -> None:
    left = [2]

    def third_time(value: int) -> int:
        if value == 1 and left[0]:
            left[0] -= 1
            raise OSError("busy")
        return value

    harness = ChainHarness(linear(with_policy(MapOperator(third_time), ErrorPolicy.retry(2), "op")))
    harness.push([0, 1, 2])
    assert (harness.output, harness.accumulators) == ([0, 1, 2], {})


def test_when_retries_are_used_up_the_job_fails_as_without_a_policy() -> None:
    def fails(value: int) -> int:
        raise KeyError(value)

    errors = []
    for operator in (
        MapOperator(fails),
        with_policy(MapOperator(fails), ErrorPolicy.retry(2), "op"),
    ):
        with pytest.raises(UserCodeError) as caught:
            ChainHarness(linear(operator)).push([7])
        errors.append(
            (str(caught.value), caught.value.original, "in fails" in caught.value.traceback)
        )
    assert errors[0] == errors[1]


class Remembers(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_list_state(
            ListStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.seen.add(value[1])
        ctx.timer_service().register_event_time_timer(10)
        yield "withheld, if it raises"
        yield 1 // value[1]

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield list(self.seen.get())


def test_what_a_failed_call_did_to_state_stays() -> None:
    harness = ChainHarness(
        with_letters([with_policy(KeyedProcessOperator(Remembers(), FIRST), DIVERT, "op")]),
        writers=2,
    )
    harness.push([("a", 1), ("a", 0)], [1, 2])
    harness.control(Watermark(20))
    assert harness.output == ["withheld, if it raises", 1, [1, 0]]
    assert [(letter.record, letter.timestamp) for letter in harness.writers[1].values] == [
        (("a", 0), 2)
    ]


def added(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


RUNNING: dict[str, Callable[[], OneInputOperator]] = {
    "reduce, inlined": lambda: KeyedReduceOperator(
        lambda one, other: (one[0], one[1] + other[1]), FIRST
    ),
    "reduce, called": lambda: KeyedReduceOperator(added, FIRST),
    "sum": lambda: KeyedAggregateOperator("sum", 1, FIRST),
}


@pytest.mark.parametrize("name", RUNNING)
def test_a_record_that_fails_leaves_a_running_result_as_it_was(name: str) -> None:
    harness = ChainHarness(with_letters([with_policy(RUNNING[name](), DIVERT, "op")]), writers=2)
    harness.push([("a", 1), ("b", 5), ("a", "x"), ("a", 2), ("b", "y"), ("b", 1)])
    harness.push([("a", 4), ("a", [])])
    assert harness.output == [("a", 1), ("b", 5), ("a", 3), ("b", 6), ("a", 7)]
    assert [letter.record for letter in harness.writers[1].values] == [
        ("a", "x"),
        ("b", "y"),
        ("a", []),
    ]


def test_in_batch_too() -> None:
    class Harness(BatchHarness):
        def __init__(self, operator: StreamOperator) -> None:
            self.memory = 1 << 20
            ChainHarness.__init__(self, with_letters([batch_form(operator)]), writers=2)

    harness = Harness(with_policy(KeyedReduceOperator(added, FIRST), DIVERT, "op"))
    harness.push([("a", 1), ("b", 5), ("a", "x"), ("a", 2)])
    assert sorted(harness.end()) == [("a", 3), ("b", 5)]
    assert [letter.record for letter in harness.writers[1].values] == [("a", "x")]
    process = Harness(with_policy(KeyedProcessOperator(Remembers(), FIRST), DIVERT, "op"))
    process.push([("a", 1), ("b", 0), ("a", 0)])
    # timers, when a key has ended
    assert sorted(map(str, process.end())) == ["1", "[0]", "[1, 0]", "withheld, if it raises"]


def test_a_key_selector_that_raises_fails_the_job_at_any_parallelism() -> None:
    harness = ChainHarness(
        with_letters([with_policy(KeyedReduceOperator(added, FIRST), DIVERT, "op")]), writers=2
    )
    with pytest.raises(UserCodeError, match="on record 7"):
        harness.push([7])


class Two(CoMapFunction, CoProcessFunction):
    def map1(self, value: Any) -> Any:
        return 1 // value

    def map2(self, value: Any) -> Any:
        return -1 // value

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield self.map1(value)

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield self.map2(value)


@pytest.mark.parametrize("operator", [CoMapOperator, CoProcessOperator])
def test_of_two_inputs_a_letter_says_which(operator: Callable[[Any], TwoInputOperator]) -> None:
    harness = ChainHarness(
        with_letters([with_policy(operator(Two()), DIVERT, "op")], inputs=2), writers=2
    )
    harness.push([1, 0], input_index=0)
    harness.push([0, 1], input_index=1)
    assert harness.output == [1, -1]
    assert [(letter.record, letter.input) for letter in harness.writers[1].values] == [
        (0, 1),
        (0, 2),
    ]


def test_errors_of_the_engine_are_not_diverted() -> None:
    def asks(value: int) -> int:
        raise EngineError("a bug")

    with pytest.raises(EngineError, match="a bug"):
        ChainHarness(linear(with_policy(MapOperator(asks), DIVERT, "op"))).push([1])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_errors_of_the_engine_are_not_tried_again(name: str) -> None:
    calls: list[int] = []

    class Process(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            return asks(value)

    def asks(value: int) -> Any:
        calls.append(value)
        raise EngineError("a bug")

    bare = FUNCTIONS[name][0](None)
    operator = ProcessOperator(Process()) if isinstance(bare, ProcessOperator) else type(bare)(asks)  # type: ignore[call-arg]
    with pytest.raises(EngineError, match="a bug"):
        ChainHarness(linear(with_policy(operator, ErrorPolicy.retry(2), "op"))).push([1])
    assert calls == [1]


class AfterEach(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(event_timestamp)


def test_an_error_behind_a_watermark_is_not_one_of_the_operator_that_emitted_it() -> None:
    def fails(value: int) -> int:
        return 1 // (value - 2)

    stamped = with_policy(
        TimestampsAndWatermarksOperator(WatermarkStrategy.for_generator(AfterEach)), DIVERT, "op"
    )
    harness = ChainHarness(with_letters([stamped, MapOperator(fails)]), writers=2)
    with pytest.raises(UserCodeError, match="op 1"):
        harness.push([1, 2, 3], [1, 2, 3])
    assert harness.writers[1].values == []


def test_many_results_go_out_while_the_batch_is_still_processed() -> None:
    harness = ChainHarness(
        linear(with_policy(FlatMapOperator(lambda value: [value] * 5), DIVERT, "op")),
        batch_records=4,
    )
    harness.push([1, 2, 3])
    assert [len(batch) for batch in harness.writers[0].elements] == [5, 5, 5]  # type: ignore[arg-type]


def test_each_operator_takes_a_policy_or_says_why_not() -> None:
    """Those that do are as many as are named here, so that a new operator is thought of."""
    taking = {
        kind.__name__
        for kind in operators_of(StreamOperator)
        if kind.guarding is not Guarding.NONE and not issubclass(kind, GuardedOperator)
    }
    assert taking == {
        "FunctionStageOperator",
        "KeyedStageOperator",
        "MapOperator",
        "FilterOperator",
        "FlatMapOperator",
        "ProjectOperator",
        "KeyedMapOperator",
        "KeyedFilterOperator",
        "KeyedFlatMapOperator",
        "ProcessOperator",
        "KeyedProcessOperator",
        "CoProcessOperator",
        "KeyedCoProcessOperator",
        "CoMapOperator",
        "CoFlatMapOperator",
        "KeyedReduceOperator",
        "KeyedAggregateOperator",
        "TimestampsAndWatermarksOperator",
        "FilterColumnsOperator",
        "SelectColumnsOperator",
        "AlignColumnsOperator",
        "DropColumnsOperator",
        "RenameColumnsOperator",
        "WithColumnsOperator",
        "AsyncWaitOperator",
        "PatternOperator",
        "ColumnPatternOperator",
        "DynamicPatternOperator",
        "WindowOperator",
    }
    join = IntervalJoinOperator(lambda left, right, ctx: [], FIRST, FIRST, 0, 1)
    with pytest.raises(ProgramError, match="pairs records"):
        with_policy(join, DIVERT, "op")
