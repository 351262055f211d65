"""State and timers inside operators: the current key, snapshots, rich functions, refusals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.common.time import Duration
from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import CheckpointBarrier, RowBatch, Watermark
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    TimeDomain,
)
from flinkpy.operators.guarding.with_policy import with_policy
from flinkpy.operators.process.process_operators import (
    CoFlatMapOperator,
    CoMapOperator,
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
from flinkpy.operators.rows.stateless import FlatMapOperator, MapOperator
from flinkpy.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state.layers.overlay import Overlay
from flinkpy.state.snapshots.saved_state import SavedState
from flinkpy.state.ttl.config import StateTtlConfig
from tests.operators.harness import ChainHarness, linear

FIRST = KeySpec(selector=lambda value: value[0])
BARRIER = CheckpointBarrier(1, 0)


def restarted(operator: StreamOperator, saved: SavedState | None, inputs: int = 1) -> ChainHarness:
    """A new attempt of the operator, from what the last one saved."""
    harness = ChainHarness(linear(operator, inputs=inputs), open_it=False)
    operator.initialize_state(saved)
    harness.chain.open()
    return harness


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


def test_a_process_function_counts_per_key_and_goes_on_after_a_restore() -> None:
    operator = KeyedProcessOperator(Count(), FIRST)
    harness = ChainHarness(linear(operator))
    harness.push(["a1", "b1", "a2"])
    assert harness.output == [("a", 1), ("b", 1), ("a", 2)]
    saved = operator.freeze_state(BARRIER).write()
    harness.push(["a3"])
    again = restarted(KeyedProcessOperator(Count(), FIRST), saved)
    again.push(["a3", "c1", "b2"])
    assert again.output == [("a", 3), ("c", 1), ("b", 2)]


class Counted(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        return value[0], self.count.value()


@pytest.mark.parametrize(
    "policy", [ErrorPolicy.fail(), ErrorPolicy.retry(1)], ids=["no policy", "with a policy"]
)
@pytest.mark.parametrize("fusion", [True, False])
def test_state_of_a_keyed_map_is_a_plain_dict_again_some_batches_after_a_checkpoint(
    fusion: bool, policy: ErrorPolicy
) -> None:
    operator = KeyedMapOperator(Counted(), FIRST)
    harness = ChainHarness(
        linear(with_policy(operator, policy, "op"), MapOperator(lambda value: value)), fusion=fusion
    )
    harness.push(["a1", "b1"])
    backend: Any = operator.backend
    backend._copied_at_once = 0  # as if the state were large
    frozen = operator.freeze_state(BARRIER)
    harness.push(["a2", "c1"])
    assert [type(layers.entries) for layers in backend._unsettled] == [Overlay]
    del frozen
    for _ in range(3):
        harness.push(["b2"])
    assert backend._unsettled == []
    assert harness.output[-1] == ("b", 4)


class CountedOfBoth(CoMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map1(self, value: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        return value[0], self.count.value()

    def map2(self, value: Any) -> Any:
        return self.map1(value)


class CountedReduce(ReduceFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def reduce(self, value1: Any, value2: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        return value1[0], self.count.value()


@pytest.mark.parametrize(
    ("operator", "input_index", "calls"),
    [
        (CoMapOperator(CountedOfBoth(), (FIRST, FIRST)), 0, 5),
        (CoMapOperator(CountedOfBoth(), (FIRST, FIRST)), 1, 5),
        (KeyedReduceOperator(CountedReduce(), FIRST), 0, 4),
    ],
    ids=["co_map, first input", "co_map, second input", "reduce"],
)
def test_so_is_that_of_other_functions_with_a_key(
    operator: Any, input_index: int, calls: int
) -> None:
    harness = ChainHarness(linear(operator, inputs=input_index + 1))
    harness.push(["a1", "b1", "a2", "b2"])
    operator.backend._copied_at_once = 0  # as if the state were large
    frozen = operator.freeze_state(BARRIER)
    harness.push(["a3", "c1"], input_index=input_index)
    assert [type(layers.entries) for layers in operator.backend._unsettled] == [Overlay]
    del frozen
    for _ in range(3):
        harness.push(["b3"], input_index=input_index)
    assert operator.backend._unsettled == []
    assert harness.output[-1] == ("b", calls)


class Alarm(KeyedProcessFunction):
    """Sets timers; a timer says its key, time and domain, and how many have fired for the key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.fired = runtime_context.get_reducing_state(
            ReducingStateDescriptor("fired", lambda a, b: a + b, Types.INT())
        )

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        _, domain, action, when = value
        getattr(ctx.timer_service(), f"{action}_{domain}_time_timer")(when)
        return None

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        self.fired.add(1)
        yield ctx.get_current_key(), timestamp, ctx.time_domain(), self.fired.get()


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["event", "processing"]),
            st.sampled_from(["register", "register", "delete"]),
            st.integers(0, 60),
        ),
        st.integers(0, 60),
        st.just("restart"),
    ),
    max_size=40,
)


@given(STEPS)
def test_timers_are_a_sorted_set_per_key_and_survive_restarts(steps: list[Any]) -> None:
    operator = KeyedProcessOperator(Alarm(), FIRST)
    harness = ChainHarness(linear(operator))
    pending: dict[str, set[tuple[int, str]]] = {"event": set(), "processing": set()}
    fired: dict[str, int] = {}
    seen = 0
    for step in steps:
        if step == "restart":
            saved, clock = operator.freeze_state(BARRIER).write(), harness.timers.clock.monotonic()
            harness.chain.close()
            operator = KeyedProcessOperator(Alarm(), FIRST)
            harness = ChainHarness(linear(operator), open_it=False)
            harness.timers.clock.advance(clock)
            operator.initialize_state(saved)
            harness.chain.open()
            seen = 0
            continue
        expected = []
        if isinstance(step, tuple):
            key, domain, action, when = step
            (set.add if action == "register" else set.discard)(pending[domain], (when, key))
            harness.push([step])
        else:
            harness.control(Watermark(step))
            expected = [
                (key, when, TimeDomain.EVENT_TIME) for when, key in due(pending["event"], step + 1)
            ]
        harness.timers.advance(0.005)
        now = harness.timers.now_ms()
        expected += [
            (key, when, TimeDomain.PROCESSING_TIME) for when, key in due(pending["processing"], now)
        ]
        got = harness.output[seen:]
        seen += len(got)
        assert sorted((result[:3] for result in got), key=repr) == sorted(expected, key=repr)
        for domain in TimeDomain:
            times = [when for _, when, of, _ in got if of is domain]
            assert times == sorted(times)
        for key, _, _, count in got:
            fired[key] = fired.get(key, 0) + 1
            assert count == fired[key]
    harness.chain.close()
    assert harness.timers.pending == []


def due(timers: set[tuple[int, str]], now: int) -> list[tuple[int, str]]:
    """Takes out those before ``now``."""
    found = sorted(timer for timer in timers if timer[0] < now)
    timers.difference_update(found)
    return found


def test_restored_processing_timers_fire_in_the_new_attempt() -> None:
    operator = KeyedProcessOperator(Alarm(), FIRST)
    harness = ChainHarness(linear(operator))
    harness.push([("a", "processing", "register", 3000)])
    saved = operator.freeze_state(BARRIER).write()
    assert operator.freeze_state(BARRIER).write() == saved  # saving changes nothing
    again = restarted(KeyedProcessOperator(Alarm(), FIRST), saved)
    again.timers.advance(3)
    assert again.output == []  # the millisecond 3000 is not over
    again.timers.advance(0.001)
    assert again.output == [("a", 3000, TimeDomain.PROCESSING_TIME, 1)]
    harness.timers.advance(3.001)
    assert harness.output == again.output


def test_many_timers_of_one_watermark_go_on_in_batches_not_one_by_one() -> None:
    harness = ChainHarness(linear(KeyedProcessOperator(Alarm(), FIRST)))
    harness.push([(key, "event", "register", 1) for key in "abcdefghij"])
    harness.control(Watermark(1))
    sizes = [
        len(element) for element in harness.writers[0].elements if isinstance(element, RowBatch)
    ]
    assert sizes == [4, 4, 2]  # batch_records of the harness is 4


def test_timers_that_are_set_and_deleted_over_and_over_take_no_room() -> None:
    operator = KeyedProcessOperator(Alarm(), FIRST)
    harness = ChainHarness(linear(operator))
    for when in range(1000, 3000):
        harness.push([("a", "event", "register", when), ("a", "event", "delete", when - 1)])
    queue = operator.timer_service.event_timers
    assert len(queue) == 1
    assert len(queue._heap) < 100
    harness.control(Watermark(5000))
    assert [result[1] for result in harness.output] == [2999]


# -- rich functions on keyed streams ---------------------------------------------------------------


class Number(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.STRING()))

    def map(self, value: str) -> Any:
        self.seen.add(value)
        return list(self.seen)


class Distinct(FilterFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_map_state(
            MapStateDescriptor("seen", Types.STRING(), Types.BOOLEAN())
        )

    def filter(self, value: str) -> bool:
        new = value not in self.seen
        self.seen[value] = True
        return new


class Pairs(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("last", Types.STRING())
        descriptor.enable_time_to_live(
            StateTtlConfig.new_builder(Duration.of_seconds(10))
            .cleanup_incrementally(100, True)
            .build()
        )
        self.last = runtime_context.get_state(descriptor)

    def flat_map(self, value: str) -> Iterable[Any]:
        if self.last.value() is not None:
            yield self.last.value(), value
        self.last.update(value)


@pytest.mark.parametrize("fusion", [True, False])
def test_map_filter_and_flat_map_keep_state_per_key_fused_or_not(fusion: bool) -> None:
    mapped = ChainHarness(
        linear(KeyedMapOperator(Number(), FIRST), MapOperator(len)), fusion=fusion
    )
    mapped.push(["a1", "b1", "a2"])
    assert mapped.output == [1, 1, 2]
    filtered = ChainHarness(
        linear(
            KeyedFilterOperator(Distinct(), FIRST), FlatMapOperator(lambda value: [value, value])
        ),
        fusion=fusion,
    )
    filtered.push(["a1", "b1", "a1"])
    assert filtered.output == ["a1", "a1", "b1", "b1"]
    paired = ChainHarness(linear(KeyedFlatMapOperator(Pairs(), FIRST)), fusion=fusion)
    paired.push(["a1", "b1", "a2"])
    paired.timers.advance(10)
    paired.push(["a3", "b2", "a4"])
    assert paired.output == [("a1", "a2"), ("a3", "a4")]


def test_the_state_of_a_keyed_map_is_restored() -> None:
    operator = KeyedMapOperator(Number(), FIRST)
    ChainHarness(linear(operator)).push(["a1", "b1"])
    again = restarted(KeyedMapOperator(Number(), FIRST), operator.freeze_state(BARRIER).write())
    again.push(["a2"])
    assert again.output == [["a1", "a2"]]


class Rates(CoMapFunction, CoFlatMapFunction):
    """The first input sets a rate per key, the second uses it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.rate = runtime_context.get_state(ValueStateDescriptor("rate", Types.INT()))

    def map1(self, value: Any) -> Any:
        self.rate.update(value[1])

    def map2(self, value: Any) -> Any:
        return value[0], value[1] * (self.rate.value() or 0)

    def flat_map1(self, value: Any) -> Any:
        self.map1(value)

    def flat_map2(self, value: Any) -> Any:
        yield self.map2(value)


def test_co_functions_of_keyed_streams_share_state_between_their_inputs() -> None:
    for operator in (
        CoMapOperator(Rates(), (FIRST, FIRST)),
        CoFlatMapOperator(Rates(), (FIRST, FIRST)),
    ):
        harness = ChainHarness(linear(operator, inputs=2))
        harness.push([("a", 2), ("b", 3)], [1, 2])
        harness.push([("a", 10), ("b", 10), ("c", 10)], [5, 6, 7], input_index=1)
        assert harness.output == [("a", 20), ("b", 30), ("c", 0)]
        assert harness.writers[0].stamped[-1] == (("c", 0), 7)
        again = restarted(
            type(operator)(Rates(), (FIRST, FIRST)),
            operator.freeze_state(BARRIER).write(),
            inputs=2,
        )
        again.push([("b", 1)], input_index=1)
        assert again.output == [("b", 3)]


class Join(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = runtime_context.get_list_state(ListStateDescriptor("left"))

    def process_element1(self, value: Any, ctx: Any) -> None:
        self.left.add(value[1])

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        for left in self.left:
            yield ctx.get_current_key(), left, value[1]


def test_a_keyed_co_process_function_sees_one_state_from_both_sides() -> None:
    operator = KeyedCoProcessOperator(Join(), FIRST, FIRST)
    harness = ChainHarness(linear(operator, inputs=2))
    harness.push([("a", 1), ("b", 2), ("a", 3)])
    harness.push([("a", "x"), ("c", "y")], input_index=1)
    assert harness.output == [("a", 1, "x"), ("a", 3, "x")]


class CountingSum(ReduceFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls = runtime_context.get_state(ValueStateDescriptor("calls", Types.INT()))

    def reduce(self, value1: Any, value2: Any) -> Any:
        self.calls.update((self.calls.value() or 0) + 1)
        return value1[0], value1[1] + value2[1], self.calls.value()


def test_a_reduce_function_may_have_state_of_its_own() -> None:
    harness = ChainHarness(linear(KeyedReduceOperator(CountingSum(), FIRST)))
    harness.push([("a", 1), ("b", 5), ("a", 2), ("b", 1), ("a", 3)])
    assert harness.output == [("a", 1), ("b", 5), ("a", 3, 1), ("b", 6, 1), ("a", 6, 2)]


@pytest.mark.parametrize("values", [[("a", 1), ("a", 2), ("b", 9)], [["a", 1], ["a", 2], ["b", 9]]])
def test_running_results_go_on_after_a_restore(values: list[Any]) -> None:
    for make in (
        lambda: KeyedAggregateOperator("sum", 1, FIRST),
        lambda: KeyedReduceOperator(lambda a, b: type(a)((a[0], a[1] + b[1])), FIRST),
    ):
        operator = make()
        whole = ChainHarness(linear(operator))
        whole.push(values)
        saved = operator.freeze_state(BARRIER).write()
        whole.push(values)
        again = restarted(make(), saved)
        again.push(values)
        assert again.output == whole.output[len(values) :]


def test_a_sum_restored_from_another_shape_of_record_still_adds() -> None:
    operator = KeyedAggregateOperator("sum", 1, FIRST)
    ChainHarness(linear(operator)).push([["a", 1]])
    again = restarted(
        KeyedAggregateOperator("sum", 1, FIRST), operator.freeze_state(BARRIER).write()
    )
    again.push([("b", 1), ("a", 2), ("b", 3)])
    assert again.output == [("b", 1), ["a", 3], ("b", 4)]


# -- refusals --------------------------------------------------------------------------------------


class WantsState(ProcessFunction, MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        return None

    def map(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize("operator", [ProcessOperator(WantsState()), MapOperator(WantsState())])
def test_state_without_a_key_is_refused_with_what_to_do(operator: StreamOperator) -> None:
    with pytest.raises(
        ProgramError, match=r"state 'count': .*stream without keys; call key_by\(\.\.\.\) before it"
    ):
        ChainHarness(linear(operator))


def test_a_descriptor_for_another_kind_of_state_is_refused() -> None:
    class Mistaken(Count):
        def open(self, runtime_context: RuntimeContext) -> None:
            wrong: Any = ListStateDescriptor("n", Types.INT())
            runtime_context.get_state(wrong)

    with pytest.raises(
        ProgramError,
        match=r"get_state\(\) takes a ValueStateDescriptor, this is <ListStateDescriptor 'n'",
    ):
        ChainHarness(linear(KeyedProcessOperator(Mistaken(), FIRST)))


def test_a_key_that_is_no_dict_key_fails_with_its_record() -> None:
    harness = ChainHarness(
        linear(KeyedProcessOperator(Count(), KeySpec(selector=lambda value: [value])))
    )
    with pytest.raises(UserCodeError, match="unhashable type: 'list'") as caught:
        harness.push(["a1"])
    assert caught.value.record == "'a1'"
