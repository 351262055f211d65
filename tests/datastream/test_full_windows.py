"""Calls over whole partitions, and windows that end with the stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from flinkpy.datastream.functions import AggregateFunction, CoGroupFunction, MapPartitionFunction
from flinkpy.datastream.window import GlobalWindows

TINY = {"taskmanager.memory.managed.size": "2 mb", "execution.sorted-inputs.memory": "1 kb"}
NAN = float("nan")


def environment(parallelism: int = 1, mode: str = "BATCH", **more: Any) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.target": "embedded", **more}
    )
    return env.set_parallelism(parallelism).set_runtime_mode(RuntimeExecutionMode[mode])


def results(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise AssertionError


class Count(MapPartitionFunction):
    def map_partition(self, values: Iterator[Any]) -> Iterable[Any]:
        yield sum(1 for _ in values)


class Left(CoGroupFunction):
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any]:
        others = list(second) or [(None, None)]
        return [(*one, other[1]) for one in first for other in others]


PAIRS = [("ab"[number % 2], number) for number in range(1000)]


@pytest.mark.parametrize("options", [{}, TINY])
def test_a_partition_without_keys_is_what_a_subtask_gets(options: dict[str, Any]) -> None:
    env = environment(**options)
    partition = env.from_collection(PAIRS).full_window_partition()
    assert results(partition.reduce(lambda a, b: (a[0], a[1] + b[1]))) == [("a", 499500)]
    assert results(partition.aggregate(Mean())) == [(499500, 1000)]
    assert results(partition.map_partition(Count())) == [1000]
    numbered = results(partition.map_partition(enumerate))
    assert numbered == list(enumerate(PAIRS))
    down = results(partition.sort_partition(lambda pair: pair[1] % 7, descending=True))
    assert down == sorted(PAIRS, key=lambda pair: pair[1] % 7, reverse=True)
    two = environment(2, **options).from_collection(PAIRS).rebalance().full_window_partition()
    assert results(two.map_partition(Count())) == [500, 500]


def test_a_partition_without_records_has_an_aggregate_and_a_call_of_its_function() -> None:
    nothing = environment().from_collection(PAIRS).filter(lambda pair: False)
    partition = nothing.full_window_partition()
    assert results(partition.reduce(max)) == []
    assert results(partition.aggregate(Mean())) == [(0, 0)]
    assert results(partition.map_partition(Count())) == [0]
    assert results(partition.sort_partition(0)) == []


def test_none_sorts_first_and_nan_last_and_fields_have_names() -> None:
    values = [2.0, None, NAN, -1.0, None, 7.5]
    table = pa.table({"x": values, "n": list(range(6))})
    rows = environment().from_arrow(table).full_window_partition().sort_partition("x")
    assert [row["n"] for row in results(rows)] == [1, 4, 3, 0, 5, 2]


@pytest.mark.parametrize("mode", ["BATCH", "STREAMING"])
def test_a_partition_of_a_keyed_stream_is_a_key(mode: str) -> None:
    env = environment(2, mode)
    partition = env.from_collection(PAIRS).key_by(lambda pair: pair[0]).full_window_partition()
    summed = partition.reduce(lambda a, b: (a[0], a[1] + b[1]))
    assert sorted(results(summed)) == [("a", 249500), ("b", 250000)]
    assert sorted(results(partition.aggregate(Mean()))) == [(249500, 500), (250000, 500)]
    assert results(partition.map_partition(Count())) == [500, 500]
    down = results(partition.sort_partition(1, descending=True))
    assert [pair for pair in down if pair[0] == "b"] == PAIRS[::-1][::2]


def test_co_groups_of_whole_inputs_are_outer_joins() -> None:
    env = environment()
    left = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
    right = env.from_collection([("a", 10), ("c", 30), ("a", 20)])
    joined = (
        left.co_group(right)
        .where(lambda pair: pair[0])
        .equal_to(lambda pair: pair[0])
        .window(GlobalWindows.create_with_end_of_stream_trigger())
        .apply(Left())
    )
    assert sorted(results(joined), key=str) == [
        ("a", 1, 10),
        ("a", 1, 20),
        ("a", 3, 10),
        ("a", 3, 20),
        ("b", 2, None),
    ]


def test_what_cannot_be_is_told() -> None:
    stream = environment(mode="STREAMING").from_collection(PAIRS)
    with pytest.raises(JobExecutionError, match="no checkpoint: run in BATCH"):
        results(stream.full_window_partition().sort_partition(0))
    with pytest.raises(ProgramError, match=r"descending=True"):
        stream.full_window_partition().sort_partition(True)
    with pytest.raises(ProgramError, match="takes an AggregateFunction"):
        stream.full_window_partition().aggregate(Mean)
    mixed = environment().from_collection([1, "a"]).full_window_partition()
    with pytest.raises(JobExecutionError, match="not supported between"):
        results(mixed.sort_partition(lambda each: each))
