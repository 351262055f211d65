"""A function object that a program uses twice is two in the task, and key selectors have a life
wherever they are called."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, ClassVar

import pytest

from flinkpy.core.elements import RowBatch
from flinkpy.core.errors import UserCodeError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.graph.chain_config import ChainConfig, ChainedOperator, NetworkEdge
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.chain.own_functions import (
    functions_in,
    functions_of_writer,
    with_own_functions,
)
from flinkpy.operators.functions import (
    KeySelector,
    MapFunction,
    Partitioner,
    RuntimeContext,
    method_of,
)
from flinkpy.operators.process.interval_join import IntervalJoinOperator
from flinkpy.operators.rows.keyed import KeyedAggregateOperator
from flinkpy.operators.rows.stateless import MapOperator
from tests.operators.harness import ChainHarness, RecordingWriter, linear


class Numbered(MapFunction):
    """Gives each record its number."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = 0

    def map(self, value: Any) -> Any:
        self.seen += 1
        return value, self.seen


class Rich(KeySelector):
    """A selector that works only while it is open."""

    calls: ClassVar[list[str]] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        assert not hasattr(self, "position"), "opened twice"
        self.position = 0
        self.calls.append(f"open in {runtime_context.get_task_name().partition(' ->')[0]}")

    def get_key(self, value: Any) -> Any:
        return value[self.position]

    def close(self) -> None:
        self.calls.append("close")


class ToItsNumber(Partitioner):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.step = 1

    def partition(self, key: Any, num_partitions: int) -> int:
        return int(key * self.step % num_partitions)


class WithModule(Numbered):
    """Travels by cloudpickle only."""

    def __init__(self) -> None:
        self.module = math


@pytest.mark.parametrize("function", [Numbered, WithModule])
def test_one_function_object_in_two_operators_counts_for_each(function: type[Numbered]) -> None:
    shared = function()
    harness = ChainHarness(with_own_functions(linear(MapOperator(shared), MapOperator(shared))))
    harness.push(["a", "b"])
    assert harness.output == [(("a", 1), 1), (("b", 2), 2)]
    harness.chain.close()


def test_where_nothing_is_shared_the_functions_are_those_that_came() -> None:
    first, second = Numbered(), Numbered()
    chain = with_own_functions(linear(MapOperator(first), MapOperator(second), MapOperator(len)))
    operators: list[Any] = [operator.operator for operator in chain.operators]
    assert [operator.function for operator in operators] == [first, second, len]


def test_the_selector_of_an_operator_and_of_the_writer_behind_it_are_two() -> None:
    selector = Rich()
    keyed = KeyedAggregateOperator("sum", 1, KeySpec(selector))
    edge = Partitioning(PartitioningKind.HASH, KeySpec(selector))
    config = ChainConfig(
        (
            ChainedOperator(
                linear(keyed).head.operator_id, "sum", None, keyed, (NetworkEdge(0, edge),)
            ),
        ),
        1,
    )
    chain = with_own_functions(config)
    edge_of_chain: Any = chain.head.edges[0]
    called: Any = functions_of_writer(edge_of_chain.partitioning)[0]
    operator: Any = chain.head.operator
    assert operator.key.selector is selector
    assert called is not selector
    Rich.calls.clear()
    harness = ChainHarness(chain)
    assert called.get_key(("a", 1)) == "a"
    harness.push([("a", 1), ("a", 2)])
    assert harness.output == [("a", 1), ("a", 3)]
    assert harness.chain.close() == []
    assert Counter(Rich.calls) == {"open in task": 2, "close": 2}


def test_a_batch_form_uses_the_selector_its_operator_opens() -> None:
    form = batch_form(KeyedAggregateOperator("sum", 1, KeySpec(Rich())))
    (chained,) = with_own_functions(linear(MapOperator(len), form)).operators[1:]
    assert len(list(functions_in(chained.operator))) == 1


def test_one_selector_for_both_sides_of_a_join_is_opened_once() -> None:
    Rich.calls.clear()
    key = KeySpec(Rich())
    harness = ChainHarness(
        linear(
            IntervalJoinOperator(lambda left, right, ctx: [left[1] + right[1]], key, key, -1, 1),
            inputs=2,
        )
    )
    harness.chain.batch_inputs()[0](RowBatch([("a", 1)], [5]))
    harness.chain.batch_inputs()[1](RowBatch([("a", 2)], [5]))
    assert harness.output == [3]
    harness.chain.close()
    assert Rich.calls == ["open in task", "close"]


def test_a_selector_that_cannot_be_opened_fails_with_the_operator_and_all_are_closed() -> None:
    class Broken(Rich):
        def open(self, runtime_context: RuntimeContext) -> None:
            raise OSError("no route to host")

    Rich.calls.clear()
    edge = NetworkEdge(0, Partitioning(PartitioningKind.HASH, KeySpec(Broken())))
    operator = MapOperator(len)
    config = ChainConfig(
        (ChainedOperator(linear(operator).head.operator_id, "length", None, operator, (edge,)),), 1
    )
    harness = ChainHarness(config, open_it=False)
    with pytest.raises(UserCodeError, match="no route to host") as caught:
        harness.chain.open()
    assert caught.value.operator == "length"
    harness.chain.close()
    assert Rich.calls == ["close"]
    assert isinstance(harness.writers[0], RecordingWriter)


def test_a_writer_calls_the_functions_behind_bound_methods() -> None:
    partitioner, selector = ToItsNumber(), Rich()
    edge = Partitioning(
        PartitioningKind.CUSTOM,
        KeySpec(method_of(selector, "get_key")),
        custom=method_of(partitioner, "partition"),
    )
    assert functions_of_writer(edge) == [selector, partitioner]
    assert (
        functions_of_writer(Partitioning(PartitioningKind.CUSTOM, KeySpec(len), custom=divmod))
        == []
    )


@pytest.mark.parametrize("parallelism", [1, 2])
def test_rich_selectors_and_partitioners_are_open_in_the_tasks_that_send(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded"}
    ).set_parallelism(parallelism)
    numbers = env.from_collection([(number % 3, 1) for number in range(12)])
    selector = Rich()
    with (
        numbers.key_by(selector)
        .sum(1)
        .partition_custom(ToItsNumber(), selector)
        .map(lambda pair: pair)
        .execute_and_collect() as results
    ):
        found = sorted(results)
    assert found == sorted((key, count) for key in range(3) for count in range(1, 5))
