"""CheckpointedFunction in every kind of operator: state that belongs to no key, before and after a
restore."""

from __future__ import annotations

import doctest
import threading
from typing import Any

import pytest

from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.datastream.verbs.typed_functions import typed
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import InputStatus, StreamOperator
from flinkpy.operators.function_contexts import checkpointed
from flinkpy.operators.function_contexts.checkpointed import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from flinkpy.operators.functions import (
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
)
from flinkpy.operators.process.process_operators import (
    CoMapOperator,
    KeyedProcessOperator,
    ProcessOperator,
)
from flinkpy.operators.rows.keyed import KeyedReduceOperator
from flinkpy.operators.rows.keyed_stages import KeyedMapOperator
from flinkpy.operators.rows.stateless import FilterOperator, FlatMapOperator, MapOperator
from flinkpy.operators.sinks.legacy_source import LegacySourceOperator
from flinkpy.operators.sinks.sink_operator import SinkOperator
from flinkpy.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from flinkpy.state.snapshots.saved_state import SavedState
from tests.operators.harness import ChainHarness, linear

SEEN = ListStateDescriptor("seen", Types.INT())
SELF = KeySpec(selector=lambda value: value)


def barrier(checkpoint_id: int = 1) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint_id, 1000 + checkpoint_id)


class Seen(CheckpointedFunction):
    """Remembers what it saw, across attempts; writes down what is called."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.calls = [f"initialize, {'restored' if context.is_restored() else 'new'}"]
        self.state = context.get_operator_state_store().get_list_state(SEEN)
        self.seen = list(self.state.get())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append("open")

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.calls.append(
            f"snapshot {context.get_checkpoint_id()} of {context.get_checkpoint_timestamp()}"
        )
        self.state.update(self.seen)

    def see(self, value: Any) -> Any:
        self.seen.append(value)
        return value


class SeenMap(Seen, MapFunction):
    def map(self, value: Any) -> Any:
        return self.see(value)


class SeenFilter(Seen, FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(self.see(value))


class SeenFlatMap(Seen, FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        return [self.see(value)]


class SeenReduce(Seen, ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return self.see(value2)


class SeenProcess(Seen, ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self.see(value)


class SeenCoMap(Seen, CoMapFunction):
    def map1(self, value: Any) -> Any:
        return self.see(value)

    def map2(self, value: Any) -> Any:
        return self.see(-value)


class SeenSink(Seen, SinkFunction):
    def invoke(self, value: Any, context: Any = None) -> None:
        self.see(value)


class SeenKeyed(Seen, KeyedProcessFunction):
    """State of both kinds."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        super().initialize_state(context)
        self.count = context.get_keyed_state_store().get_state(
            ValueStateDescriptor("count", Types.INT())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.see(value)
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()


class Writer(Seen):
    """A sink that is no SinkFunction."""

    def write(self, value: Any) -> None:
        self.see(value)

    def open(self) -> None:  # type: ignore[override]  # such a sink's own open has no argument
        self.calls.append("open")


MAKERS: dict[str, Any] = {
    "map": lambda: (function := SeenMap(), MapOperator(function)),
    "filter": lambda: (function := SeenFilter(), FilterOperator(function)),
    "flat_map": lambda: (function := SeenFlatMap(), FlatMapOperator(function)),
    "a map with a declared row type": lambda: (
        function := SeenMap(),
        MapOperator(typed(function, MapFunction, Types.ROW_NAMED(["n"], [Types.INT()]))),
    ),
    "map on keys": lambda: (function := SeenMap(), KeyedMapOperator(function, SELF)),
    "process": lambda: (function := SeenProcess(), ProcessOperator(function)),
    "process on keys": lambda: (function := SeenKeyed(), KeyedProcessOperator(function, SELF)),
    "co_map": lambda: (function := SeenCoMap(), CoMapOperator(function)),
    "co_map on keys": lambda: (function := SeenCoMap(), CoMapOperator(function, (SELF, SELF))),
    "sink function": lambda: (function := SeenSink(), SinkOperator(function)),
    "sink object": lambda: (function := Writer(), SinkOperator(function)),
}


def started(operator: StreamOperator, saved: SavedState | None = None) -> ChainHarness:
    harness = ChainHarness(
        linear(operator, inputs=2 if isinstance(operator, CoMapOperator) else 1), open_it=False
    )
    operator.initialize_state(saved)
    harness.chain.open()
    return harness


@pytest.mark.parametrize("kind", MAKERS)
def test_a_function_finds_again_what_it_saved(kind: str) -> None:
    values: list[Any] = [(1,), (2,)] if "row" in kind else [1, 2]
    function, operator = MAKERS[kind]()
    harness = started(operator)
    harness.push(values)
    saved = operator.freeze_state(barrier(5)).write()
    harness.push(values)  # not part of the snapshot
    assert function.calls == ["initialize, new", "open", "snapshot 5 of 1005"]
    again, operator = MAKERS[kind]()
    started(operator, saved)
    assert again.calls == ["initialize, restored", "open"]
    assert again.seen == values


def test_functions_of_a_fused_run_keep_state_each_for_itself() -> None:
    functions = [SeenMap(), SeenFilter()]
    operators = [MapOperator(functions[0]), FilterOperator(functions[1])]
    harness = ChainHarness(linear(*operators))
    harness.push([0, 1])
    snapshots = [operator.freeze_state(barrier()).write() for operator in operators]
    again = [SeenMap(), SeenFilter()]
    operators = [MapOperator(again[0]), FilterOperator(again[1])]
    harness = ChainHarness(linear(*operators), open_it=False)
    for operator, saved in zip(operators, snapshots):
        operator.initialize_state(saved)
    harness.chain.open()
    harness.push([2])
    assert [function.seen for function in again] == [[0, 1, 2], [0, 1, 2]]
    assert harness.output == [2]


def test_keyed_and_operator_state_are_saved_together() -> None:
    operator = KeyedProcessOperator(SeenKeyed(), SELF)
    started(operator).push([7, 7])
    saved = operator.freeze_state(barrier()).write()
    assert saved.keyed
    assert saved.operator
    again = KeyedProcessOperator(SeenKeyed(), SELF)
    harness = started(again, saved)
    harness.push([7])
    assert harness.output == [(7, 3)]
    assert again.function.seen == [7, 7, 7]


def test_a_function_that_saw_nothing_is_restored_all_the_same() -> None:
    operator = MapOperator(SeenMap())
    started(operator)
    function = SeenMap()
    started(MapOperator(function), operator.freeze_state(barrier()).write())
    assert function.calls[0] == "initialize, restored"


def test_operators_whose_functions_keep_nothing_save_what_they_did_before() -> None:
    operator = MapOperator(lambda value: value)
    started(operator)
    assert operator.freeze_state(barrier()).is_empty
    keyed = KeyedReduceOperator(lambda a, b: a + b, SELF)
    started(keyed).push([1])
    assert keyed.freeze_state(barrier()).operator is None


def test_a_reduce_function_keeps_operator_state_beside_the_running_results() -> None:
    operator = KeyedReduceOperator(SeenReduce(), SELF)
    started(operator).push([1, 1])
    again = KeyedReduceOperator(SeenReduce(), SELF)
    harness = started(again, operator.freeze_state(barrier()).write())
    harness.push([1])
    assert again.function.seen == [1, 1]


class Failing(SeenMap):
    def __init__(self, where: str) -> None:
        self.where = where

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        super().initialize_state(context)
        if self.where == "initialize":
            raise ValueError("no way in")

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        raise ValueError("no way out")


def test_what_the_function_raises_names_the_operator() -> None:
    with pytest.raises(UserCodeError, match="no way in") as error:
        started(MapOperator(Failing("initialize")))
    assert error.value.operator == "op 0"
    operator = MapOperator(Failing("snapshot"))
    started(operator)
    with pytest.raises(UserCodeError, match="no way out") as error:
        operator.freeze_state(barrier()).write()
    assert error.value.operator == "op 0"
    assert [frame.function for frame in error.value.frames] == ["snapshot_state"]


def test_keyed_state_is_refused_on_a_stream_without_keys() -> None:
    class Wrong(SeenMap):
        def initialize_state(self, context: FunctionInitializationContext) -> None:
            context.get_keyed_state_store().get_state(ValueStateDescriptor("count"))

    with pytest.raises(ProgramError, match=r"call key_by\(...\) before it"):
        started(MapOperator(Wrong()))


def test_the_example_runs() -> None:
    assert doctest.testmod(checkpointed).failed == 0


# -- sources ---------------------------------------------------------------------------------------


class Counting(SourceFunction, CheckpointedFunction):
    """0, 1, 2 … under the checkpoint lock, on and on until cancelled; begins where it was."""

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.state = context.get_operator_state_store().get_list_state(SEEN)
        self.next = sum(self.state.get())
        self.cancelled = False

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.state.update([self.next])

    def run(self, ctx: Any) -> None:
        while not self.cancelled:
            with ctx.get_checkpoint_lock():
                ctx.collect(self.next)
                self.next += 1

    def cancel(self) -> None:
        self.cancelled = True


def source_harness(
    saved: SavedState | None,
) -> tuple[LegacySourceOperator, ChainHarness, threading.Event]:
    operator, woken = LegacySourceOperator(Counting()), threading.Event()
    operator.wake_up = woken.set
    harness = ChainHarness(linear(operator, inputs=0), open_it=False)
    operator.initialize_state(saved)
    harness.chain.open()
    return operator, harness, woken


def wait_for_records(
    operator: LegacySourceOperator, harness: ChainHarness, woken: threading.Event, number: int
) -> None:
    while len(harness.output) < number:
        if operator.emit_next() is InputStatus.NOTHING_AVAILABLE:
            assert woken.wait(10)
            woken.clear()


def test_a_source_goes_on_behind_the_last_record_before_the_barrier() -> None:
    saved, before = None, 0
    for _ in range(5):
        operator, harness, woken = source_harness(saved)
        wait_for_records(operator, harness, woken, 20)
        harness.chain.process_barrier(barrier(), lambda barrier: None)
        saved = operator.freeze_state(barrier()).write()
        emitted = harness.output
        # none lost, none twice, though the source is always ahead of the task
        assert emitted == list(range(before, before + len(emitted)))
        before += len(emitted)
        # it goes on after the snapshot; these are not part of it
        wait_for_records(operator, harness, woken, len(emitted) + 10)
        assert harness.chain.close() == []


def test_a_source_that_is_closed_between_barrier_and_snapshot_does_not_hold_its_thread() -> None:
    operator, harness, woken = source_harness(None)
    wait_for_records(operator, harness, woken, 1)
    operator.prepare_snapshot_pre_barrier(1)
    assert harness.chain.close() == []
    assert operator._thread is not None
    operator._thread.join(10)
    assert not operator.running
