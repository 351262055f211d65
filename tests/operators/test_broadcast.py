"""The broadcast state pattern's operators: contexts, timers, side outputs, what may be written
where, snapshots and rescaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import CheckpointBarrier, RowBatch, Watermark
from flinkpy.core.errors import FlinkpyError, ProgramError, UserCodeError
from flinkpy.core.keys import channel_of_key_group, key_group
from flinkpy.graph.chain_config import ChainConfig, ChainedOperator, NetworkEdge
from flinkpy.graph.partitioning import FORWARD, KeySpec
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.context import TaskInfo
from flinkpy.operators.function_contexts.checkpointed import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from flinkpy.operators.functions import RuntimeContext, TimeDomain
from flinkpy.operators.process.broadcast import (
    BroadcastProcessOperator,
    KeyedBroadcastProcessOperator,
)
from flinkpy.operators.process.broadcast_functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from flinkpy.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkpy.state.snapshots.saved_state import SavedState, redistribute_all
from tests.operators import harness as harnesses
from tests.operators.harness import ChainHarness, linear

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())
WAITING = ListStateDescriptor("waiting", Types.STRING())
SIDE = OutputTag("side")
FIRST = KeySpec(selector=lambda value: value[0])
BARRIER = CheckpointBarrier(1, 0)
BACKENDS = ["hashmap", "rocksdb"]


class _Harness(ChainHarness):
    """With a task and options of its own."""

    def __init__(
        self, config: ChainConfig[Any], task: TaskInfo = harnesses.TASK, backend: str = "hashmap"
    ) -> None:
        self._task, self._options = task, {"state.backend.type": backend}
        super().__init__(config, open_it=False)

    def context(self, operator: ChainedOperator[Any]) -> Any:
        return replace(super().context(operator), task=self._task, configuration=self._options)


def started(
    operator: StreamOperator, saved: SavedState | None = None, backend: str = "hashmap"
) -> ChainHarness:
    harness = _Harness(linear(operator, inputs=2), backend=backend)
    operator.initialize_state(saved)
    harness.chain.open()
    return harness


class Lookup(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.get_broadcast_state(RULES).get(value)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(*value)
        yield "rule", value[0]


def test_elements_see_what_broadcast_elements_have_left() -> None:
    harness = started(BroadcastProcessOperator(Lookup(), [RULES]))
    harness.push(["a"])
    harness.push([("a", 1), ("b", 2)], input_index=1)
    harness.push(["a", "c"])
    harness.push([("a", 3)], input_index=1)
    harness.push(["a"])
    assert harness.output == [
        ("a", None),
        ("rule", "a"),
        ("rule", "b"),
        ("a", 1),
        ("c", None),
        ("rule", "a"),
        ("a", 3),
    ]


class Probe(BroadcastProcessFunction):
    """Says what the contexts say."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        yield SIDE, (value, ctx.timestamp(), ctx.current_watermark())
        yield value


def with_side_output(operator: StreamOperator) -> ChainHarness:
    edges = (NetworkEdge(0, FORWARD), NetworkEdge(1, FORWARD, "side"))
    name = linear(operator).head
    return ChainHarness(
        ChainConfig((ChainedOperator(name.operator_id, name.name, None, operator, edges),), 2),
        writers=2,
    )


def test_contexts_know_time_and_results_may_go_to_a_side_output() -> None:
    harness = with_side_output(BroadcastProcessOperator(Probe(), [RULES]))
    harness.timers.advance(1.5)
    harness.control(Watermark(10))
    harness.push(["b"], [12], input_index=1)
    harness.control(Watermark(40))
    harness.push(["e", "f"], [41, 42])
    harness.push(["none"])
    assert harness.writers[0].stamped == [
        ("b", 12),
        (("e", 41, 40, 1500), 41),
        (("f", 42, 40, 1500), 42),
        (("none", None, 40, 1500), None),
    ]
    assert harness.writers[1].stamped == [(("b", 12, 10), 12)]


@pytest.mark.parametrize(
    "write",
    [
        lambda state: state.put("a", 1),
        lambda state: state.remove("a"),
        lambda state: state.clear(),
        lambda state: state.put_all({"a": 1}),
    ],
)
def test_elements_cannot_write_broadcast_state(write: Any) -> None:
    class Wrong(Lookup):
        def process_element(self, value: Any, ctx: Any) -> Any:
            write(ctx.get_broadcast_state(RULES))

    harness = started(BroadcastProcessOperator(Wrong(), [RULES]))
    with pytest.raises(FlinkpyError, match="'rules' is read-only here"):
        harness.push(["a"])


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("keyed", [False, True])
def test_a_state_broadcast_was_not_given_is_refused_and_the_known_ones_named(
    side: int, keyed: bool
) -> None:
    class Wrong(BroadcastProcessFunction):
        descriptor: Any = MapStateDescriptor("rulez", Types.STRING(), Types.INT())

        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(self.descriptor)

        process_broadcast_element = process_element

    descriptors = [RULES, LIMITS]
    operator = (
        KeyedBroadcastProcessOperator(Wrong(), descriptors, FIRST)
        if keyed
        else BroadcastProcessOperator(Wrong(), descriptors)
    )
    harness = started(operator)
    with pytest.raises(
        FlinkpyError, match=r"no broadcast state 'rulez' here: .* 'rules', 'limits'"
    ):
        harness.push(["a"], input_index=side)
    operator.function.descriptor = ValueStateDescriptor("rules")
    with pytest.raises(FlinkpyError, match="takes a MapStateDescriptor"):
        harness.push(["a"], input_index=side)


def test_what_is_put_and_what_is_got_are_nobody_elses() -> None:
    rule = [1]

    class Careless(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            got = ctx.get_broadcast_state(RULES).get("a")
            got.append(value)
            yield got

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(RULES).put("a", rule)
            rule.append(2)

    harness = started(BroadcastProcessOperator(Careless(), [RULES]))
    harness.push(["x"], input_index=1)
    harness.push([7, 8])
    assert harness.output == [[1, 7], [1, 8]]


def test_keyed_state_is_refused_where_there_are_no_keys() -> None:
    class Wrong(Lookup):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_list_state(WAITING)

    with pytest.raises(ProgramError, match=r"call key_by\(...\) before it"):
        started(BroadcastProcessOperator(Wrong(), [RULES]))


def test_each_state_is_its_own() -> None:
    class Two(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield ctx.get_broadcast_state(RULES).items(), ctx.get_broadcast_state(LIMITS).items()

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(LIMITS if value[1] > 9 else RULES).put(*value)

    operator = BroadcastProcessOperator(Two(), [RULES, LIMITS])
    started(operator).push([("a", 1), ("a", 10), ("b", 11)], input_index=1)
    again = started(
        BroadcastProcessOperator(Two(), [RULES, LIMITS]), operator.freeze_state(BARRIER).write()
    )
    again.push(["x"])
    assert again.output == [([("a", 1)], [("a", 10), ("b", 11)])]


def test_what_the_function_raises_names_operator_and_element() -> None:
    class Raises(Lookup):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            raise ValueError("no rule")

    with pytest.raises(UserCodeError, match="no rule") as error:
        started(BroadcastProcessOperator(Raises(), [RULES])).push([("a", 1)], input_index=1)
    assert error.value.record == "('a', 1)"


# -- on keys ---------------------------------------------------------------------------------------


class Waiting(KeyedBroadcastProcessFunction):
    """Elements wait, by key, until a rule names their key; then all that waited go out."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_list_state(WAITING)

    def process_element(self, value: Any, ctx: Any) -> Any:
        assert ctx.get_current_key() == value[0]
        if ctx.get_broadcast_state(RULES).contains(value[0]):
            yield value
        else:
            self.waiting.add(value)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value, 1)
        released: list[str] = []

        def release(key: str, state: Any) -> None:
            if key == value:
                released.extend(state.get())
                state.clear()

        ctx.apply_to_keyed_state(WAITING, release)
        return released


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_broadcast_side_goes_through_the_keyed_state_of_all_keys(backend: str) -> None:
    seen: dict[str, list[str]] = {}

    class Look(Waiting):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.apply_to_keyed_state(WAITING, lambda key, state: seen.update({key: state.get()}))

    harness = started(KeyedBroadcastProcessOperator(Look(), [RULES], FIRST), backend=backend)
    harness.push(["a1", "b1", "a2", "c1"])
    harness.push(["look"], input_index=1)
    assert seen == {"a": ["a1", "a2"], "b": ["b1"], "c": ["c1"]}
    assert harness.chain.close() == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_keyed_state_can_be_changed_while_going_through_it(backend: str) -> None:
    operator = KeyedBroadcastProcessOperator(Waiting(), [RULES], FIRST)
    harness = started(operator, backend=backend)
    harness.push(["a1", "b1", "a2"])
    harness.push(["a", "a"], input_index=1)
    harness.push(["a3", "b2"])
    assert harness.output == ["a1", "a2", "a3"]
    assert list(operator.backend.keys("waiting")) == ["b"]
    assert harness.chain.close() == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_keyed_state_without_a_key_is_refused(backend: str) -> None:
    class Wrong(Waiting):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            if value == "after":
                ctx.apply_to_keyed_state(WAITING, lambda key, state: None)
            self.waiting.add(value)

    harness = started(KeyedBroadcastProcessOperator(Wrong(), [RULES], FIRST), backend=backend)
    harness.push(["a1"])
    for value in ("before", "after"):
        with pytest.raises(
            FlinkpyError, match=r"a broadcast element has no key.*apply_to_keyed_state"
        ):
            harness.push([value], input_index=1)
    harness.push(["a2"])  # the element side has its key again
    assert harness.chain.close() == []


def test_what_apply_to_keyed_state_takes_is_checked() -> None:
    class Wrong(Waiting):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.apply_to_keyed_state("waiting", lambda key, state: None)

    with pytest.raises(FlinkpyError, match="takes a state descriptor"):
        started(KeyedBroadcastProcessOperator(Wrong(), [RULES], FIRST)).push(["a"], input_index=1)


class Timers(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(41)
        ctx.timer_service().register_processing_time_timer(3000)
        yield "element", value, ctx.current_watermark()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        assert not hasattr(ctx, "timer_service"), "a timer belongs to a key"
        ctx.get_broadcast_state(RULES).put("rule", value)
        yield "broadcast", value, ctx.current_watermark()
        yield SIDE, value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        with pytest.raises(ProgramError, match="read-only"):
            ctx.get_broadcast_state(RULES).put("rule", "changed")
        yield (
            "timer",
            timestamp,
            ctx.get_current_key(),
            ctx.time_domain(),
            ctx.timestamp(),
            ctx.get_broadcast_state(RULES).get("rule"),
        )


def test_timers_fire_for_their_key_and_may_read_broadcast_state() -> None:
    harness = with_side_output(KeyedBroadcastProcessOperator(Timers(), [RULES], FIRST))
    harness.control(Watermark(10))
    harness.push([5], [12], input_index=1)
    harness.control(Watermark(40))
    harness.push(["k1", "k2"], [13, 15])
    harness.push([6], [16], input_index=1)
    harness.control(Watermark(50))
    harness.timers.advance(3.001)
    assert harness.writers[0].stamped == [
        (("broadcast", 5, 10), 12),
        (("element", "k1", 40), 13),
        (("element", "k2", 40), 15),
        (("broadcast", 6, 40), 16),
        (("timer", 41, "k", TimeDomain.EVENT_TIME, 41, 6), 41),
        (("timer", 3000, "k", TimeDomain.PROCESSING_TIME, 3000, 6), None),
    ]
    assert harness.writers[1].values == [5, 6]


def test_timers_keyed_and_broadcast_state_survive_together() -> None:
    operator = KeyedBroadcastProcessOperator(Timers(), [RULES], FIRST)
    harness = started(operator)
    harness.push(["k1"], [1])
    harness.push([8], [2], input_index=1)
    again = started(
        KeyedBroadcastProcessOperator(Timers(), [RULES], FIRST),
        operator.freeze_state(BARRIER).write(),
    )
    again.chain.control(Watermark(41))
    assert again.output == [("timer", 41, "k", TimeDomain.EVENT_TIME, 41, 8)]


def test_the_functions_own_operator_state_lies_beside_the_broadcast_state() -> None:
    class Both(Lookup, CheckpointedFunction):
        def initialize_state(self, context: FunctionInitializationContext) -> None:
            self.rules = context.get_operator_state_store().get_broadcast_state(RULES)
            self.more = context.get_operator_state_store().get_list_state(
                ListStateDescriptor("more", Types.INT())
            )

        def snapshot_state(self, context: FunctionSnapshotContext) -> None:
            self.more.update([len(list(self.rules.keys()))])

    operator = BroadcastProcessOperator(Both(), [RULES])
    started(operator).push([("a", 1), ("b", 2)], input_index=1)
    again = BroadcastProcessOperator(Both(), [RULES])
    started(again, operator.freeze_state(BARRIER).write())
    assert again.function.more.get() == [2]
    assert again.function.rules.items() == [("a", 1), ("b", 2)]


# -- rescaling -------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rule"), st.sampled_from("abc")),
        st.tuples(st.just("element"), st.sampled_from("abcdef")),
    ),
    max_size=20,
)


class Subtasks:
    """All subtasks of one operator: elements go by key, broadcast elements to all."""

    def __init__(self, parallelism: int, saved: Sequence[SavedState | None]) -> None:
        self.operators = [
            KeyedBroadcastProcessOperator(Waiting(), [RULES], FIRST) for _ in range(parallelism)
        ]
        self.harnesses = []
        for subtask, (operator, state) in enumerate(zip(self.operators, saved)):
            attempt = harnesses.ATTEMPT._replace(subtask_index=subtask)
            task = TaskInfo("job", "task", attempt, parallelism, 128)
            harness = _Harness(linear(operator, inputs=2), task)
            operator.initialize_state(state)
            harness.chain.open()
            self.harnesses.append(harness)

    def push(self, step: tuple[str, str], number: int) -> None:
        kind, key = step
        if kind == "rule":
            for harness in self.harnesses:
                harness.push([key], input_index=1)
        else:
            subtask = channel_of_key_group(key_group(key, 128), 128, len(self.harnesses))
            self.harnesses[subtask].push([f"{key}{number}"])

    @property
    def output(self) -> list[str]:
        return [value for harness in self.harnesses for value in harness.output]


@given(STEPS, STEPS, st.integers(1, 4), st.integers(1, 4))
def test_a_rescaled_operator_gives_what_one_gives_that_never_stopped(
    first: list[tuple[str, str]], then: list[tuple[str, str]], before: int, after: int
) -> None:
    never_stopped = Subtasks(1, [None])
    subtasks = Subtasks(before, [None] * before)
    for number, step in enumerate(first):
        never_stopped.push(step, number)
        subtasks.push(step, number)
    saved = redistribute_all(
        [operator.freeze_state(BARRIER).write() for operator in subtasks.operators], 128, after
    )
    assert all(each.operator for each in saved)
    rescaled = Subtasks(after, saved)
    for number, step in enumerate(then, len(first)):
        never_stopped.push(step, number)
        rescaled.push(step, number)
    assert sorted(subtasks.output + rescaled.output) == sorted(never_stopped.output)


def test_batches_are_of_rows() -> None:
    harness = started(BroadcastProcessOperator(Lookup(), [RULES]))
    harness.chain.batch_inputs()[1](RowBatch([("a", 1)]))
    assert harness.output == [("rule", "a")]
