"""Operators whose functions yield: what they yielded goes on in time, and whatever comes meanwhile
waits its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import MAX_TIMESTAMP, Batch, CheckpointBarrier, RowBatch, Watermark
from flinkpy.core.errors import UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator, StreamOperator, Work
from flinkpy.operators.functions import KeyedProcessFunction, ProcessFunction
from flinkpy.operators.process.process_operators import KeyedProcessOperator, ProcessOperator
from flinkpy.operators.rows.stateless import FilterOperator, FlatMapOperator, MapOperator
from tests.operators.harness import ChainHarness, linear

LIMIT = 4  # records in a batch of these chains


def upwards(value: int) -> Iterator[int]:
    """So many numbers."""
    yield from range(value)


class Yielding(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[int]:
        yield from range(value)


class Keyed(KeyedProcessFunction):
    """Says of each result which key and time it sees, at the moment it is asked for."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value)
        ctx.timer_service().register_processing_time_timer(0)
        for number in range(value):
            yield ctx.get_current_key(), ctx.timestamp(), number

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        for number in range(LIMIT + 1):
            yield "timer", ctx.get_current_key(), ctx.timestamp(), number


def push(harness: ChainHarness, values: list[Any], stamps: list[int] | None = None) -> None:
    """Without doing what is parked then."""
    harness.chain.batch_inputs()[0](RowBatch(values, stamps))


@pytest.mark.parametrize("fusion", [True, False])
@pytest.mark.parametrize(
    "made", [lambda: FlatMapOperator(upwards), lambda: ProcessOperator(Yielding())]
)
def test_a_batch_full_of_results_goes_on_and_the_function_is_asked_for_no_more_of_them(
    made: Callable[[], StreamOperator], fusion: bool
) -> None:
    harness = ChainHarness(linear(made()), fusion=fusion)
    push(harness, [10**12])
    for portions in range(1, 5):
        assert LIMIT * portions <= len(harness.output) < LIMIT * portions + 16 * portions
        assert harness.output == list(range(len(harness.output)))
        assert harness.chain.parked_work.pending()
        harness.chain.parked_work.go_on()
    assert harness.chain.close() == []


@pytest.mark.finding("first-use 12")
@pytest.mark.parametrize("fusion", [True, False])
def test_a_slow_functions_results_go_on_one_by_one(fusion: bool) -> None:
    def slowly(value: int) -> Iterator[int]:
        for number in range(value):
            harness.timers.clock.advance(1)
            yield number

    harness = ChainHarness(
        linear(FlatMapOperator(slowly), MapOperator(lambda value: -value)),
        fusion=fusion,
        batch_records=1000,
    )
    push(harness, [3])
    for seen in (1, 2, 3):
        assert harness.output == [-number for number in range(seen)]
        harness.chain.parked_work.go_on()
    assert not harness.chain.parked_work.pending()


def test_a_function_that_turns_slow_is_noticed_within_a_few_results() -> None:
    def turning(value: int) -> Iterator[int]:
        for number in range(value):
            if number >= 100:
                harness.timers.clock.advance(1)
            yield number

    harness = ChainHarness(linear(FlatMapOperator(turning)), batch_records=1000)
    push(harness, [200])
    assert 100 < len(harness.output) <= 116
    before = len(harness.output)
    harness.chain.parked_work.go_on()
    assert len(harness.output) == before + 1


def test_what_comes_meanwhile_waits_in_order_and_the_key_stays_what_it_is() -> None:
    harness = ChainHarness(linear(KeyedProcessOperator(Keyed(), KeySpec(lambda value: value))))
    push(harness, [40, 41], [7, 8])
    assert harness.chain.parked_work.pending()
    push(harness, [1], [9])
    harness.chain.control(Watermark(40))
    harness.timers.advance(1)
    harness.chain.process_barrier(CheckpointBarrier(1, 0), lambda barrier: None)
    harness.settle()
    assert [value for value in harness.output if value[0] != "timer"] == [
        *((40, 7, number) for number in range(40)),
        *((41, 8, number) for number in range(41)),
        (1, 9, 0),
    ]
    timers = [value[:3] for value in harness.output if value[0] == "timer"]
    assert list(dict.fromkeys(timers)) == [
        ("timer", 1, 1),
        ("timer", 40, 40),
        ("timer", 40, 0),
        ("timer", 41, 0),
        ("timer", 1, 0),
    ]
    assert harness.writers[0].controls == [Watermark(40), CheckpointBarrier(1, 0)]
    last_event_timer = max(
        at
        for at, element in enumerate(harness.writers[0].elements)
        if isinstance(element, RowBatch) and ("timer", 40, 40, LIMIT) in element.values
    )
    assert harness.writers[0].elements.index(Watermark(40)) > last_event_timer


def test_it_is_the_last_operator_that_goes_on_first_so_memory_stays_bounded() -> None:
    taken: list[int] = []

    def noted(value: int) -> Iterator[int]:
        for number in range(value):
            taken.append(number)
            yield 100

    harness = ChainHarness(
        linear(ProcessOperator(Yielding()), FlatMapOperator(upwards), FlatMapOperator(noted))
    )
    push(harness, [10**9])
    for _ in range(200):
        harness.chain.parked_work.go_on()
    push_count = [counter for _, *counter in harness.chain.metrics.of_operators()]
    assert push_count[0][1] <= 2 * (LIMIT + 16)
    assert harness.chain.close() == []


class Late(OneInputOperator):
    """Emits what goes before a barrier, and says when it was asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.told: list[str] = []

    def process_batch(self, batch: Batch) -> None:
        self.told += [f"{self.name} got {value}" for value in batch.values]  # type: ignore[union-attr]
        self.output.emit(batch)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        self.told.append(f"{self.name} prepares")
        self.output.emit(RowBatch([self.name]))


def test_before_a_barrier_the_first_operator_emits_first_so_that_the_next_has_it_before_it_prepares() -> (
    None
):
    first, second, third = Late("a"), Late("b"), Late("c")
    second.told = third.told = first.told
    harness = ChainHarness(linear(first, second, third))
    harness.chain.process_barrier(CheckpointBarrier(1, 0), lambda barrier: None)
    assert first.told == ["a prepares", "b got a", "c got a", "b prepares", "c got b", "c prepares"]
    assert [type(element) for element in harness.writers[0].elements] == [
        RowBatch,
        RowBatch,
        RowBatch,
        CheckpointBarrier,
    ]


def test_a_barrier_waits_for_what_operators_emit_before_it_and_park() -> None:
    class Counted(Late):
        def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
            self.output.emit(RowBatch([50]))

    harness = ChainHarness(linear(Counted("a"), FlatMapOperator(upwards), Late("b")))
    harness.chain.process_barrier(CheckpointBarrier(1, 0), lambda barrier: None)
    assert harness.chain.parked_work.pending()
    harness.settle()
    assert harness.output == [*range(50), "b"]
    assert harness.writers[0].controls == [CheckpointBarrier(1, 0)]


class AtWatermarks(MapOperator):
    """Parks once at each watermark, and is done at the next step."""

    parks = True

    def process_watermark(self, watermark: Watermark) -> Work:
        yield
        super().process_watermark(watermark)


def test_when_the_last_step_of_parked_work_ends_the_chain_finishes_at_once() -> None:
    """Else the task, which is told of more to do or of room in its outputs, would wait for
    neither."""
    harness = ChainHarness(linear(AtWatermarks(str)))
    harness.chain.control(Watermark(MAX_TIMESTAMP))
    assert harness.chain.parked_work.pending()
    assert harness.chain.finish()
    assert harness.writers[0].controls == [Watermark(MAX_TIMESTAMP)]


def test_closing_ends_the_generators_where_they_stand_before_functions_are_closed() -> None:
    ends: list[str] = []

    class Closing(ProcessFunction):
        def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[int]:
            try:
                yield from range(value)
            finally:
                ends.append("generator")

        def close(self) -> None:
            ends.append("function")

    harness = ChainHarness(linear(ProcessOperator(Closing())))
    push(harness, [1000])
    push(harness, [1000])
    assert harness.chain.close() == []
    assert ends == ["generator", "function"]


@pytest.mark.parametrize("fusion", [True, False])
def test_an_error_midway_names_the_record_and_what_was_handed_on_stays(fusion: bool) -> None:
    def fails(value: int) -> Iterator[int]:
        yield from range(40)
        raise ValueError("that was enough")

    harness = ChainHarness(
        linear(FlatMapOperator(fails), MapOperator(lambda value: value)), fusion=fusion
    )
    with pytest.raises(UserCodeError, match="that was enough") as caught:
        harness.push([3])
    assert (caught.value.operator, caught.value.record, caught.value.frames[-1].function) == (
        "op 0",
        "3",
        "fails",
    )
    assert harness.output == list(range(len(harness.output)))
    assert len(harness.output) >= 20


def of(form: str, values: list[Any]) -> Any:
    if form == "none":
        return None
    if form == "generator":
        return (each for each in values)
    return tuple(values) if form == "tuple" else iter(values) if form == "iterator" else values


FORMS = ("list", "tuple", "iterator", "generator", "none")
GIVEN = st.lists(st.tuples(st.sampled_from(FORMS), st.integers(0, 40)), max_size=12)


def spread(value: tuple[str, int]) -> Any:
    form, count = value
    return of(form, [(form, number) for number in range(count)])


def twice(value: Any) -> Iterator[Any]:
    yield value
    yield "again", value[1]


class Spread(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        return spread(value)


@given(
    GIVEN,
    st.sampled_from([1, 4, 10_000]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["flat_map", "process"]),
)
def test_whatever_results_come_in_the_output_is_that_of_a_loop_over_all_of_them(
    records: list[Any], batch_records: int, fusion: bool, stamped: bool, call: str
) -> None:
    first = FlatMapOperator(spread) if call == "flat_map" else ProcessOperator(Spread())
    operators = [
        first,
        FilterOperator(lambda value: value[1] % 3),
        FlatMapOperator(twice),
        MapOperator(lambda value: (value, 1)),
    ]
    harness = ChainHarness(linear(*operators), fusion=fusion, batch_records=batch_records)
    for start in range(0, len(records), batch_records):
        part = records[start : start + batch_records]
        push(harness, part, [value[1] for value in part] if stamped else None)
        harness.chain.control(Watermark(start))
    harness.settle()
    expected = [
        ((again, 1), record[1] if stamped else None)
        for record in records
        for value in spread(record) or ()
        if value[1] % 3
        for again in twice(value)
    ]
    assert harness.writers[0].stamped == expected
    assert harness.writers[0].controls == [
        Watermark(start) for start in range(0, len(records), batch_records)
    ]
    harness.chain.close()
