"""The chain: wiring, copies, side outputs, control elements, counters."""

from __future__ import annotations

import datetime
import enum
from typing import Any

import pytest

from flinkpy.core.elements import (
    Batch,
    CheckpointBarrier,
    EndOfData,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.errors import EngineError, ProgramError, UserCodeError
from flinkpy.core.ids import OperatorId
from flinkpy.core.mutability import could_be_mutated, private_copy
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge, ChainedOperator, NetworkEdge
from flinkpy.graph.partitioning import FORWARD, KeySpec
from flinkpy.operators.base import OneInputOperator, StreamOperator
from flinkpy.operators.chain.chain_wiring import fused_positions
from flinkpy.operators.functions import MapFunction, RuntimeContext
from flinkpy.operators.rows.keyed import KeyedReduceOperator
from flinkpy.operators.rows.stateless import FilterOperator, MapOperator, ProjectOperator
from tests.operators.harness import ChainHarness, linear, run


class Split(OneInputOperator):
    """Even numbers on, odd ones to the side."""

    def process_batch(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        self.output.emit(RowBatch([value for value in batch.values if value % 2 == 0]))
        self.output.emit_side("odd", RowBatch([value for value in batch.values if value % 2]))
        self.output.emit_side("nobody", batch)


class Broken(OneInputOperator):
    """Raises what is not the engine's."""

    def process_batch(self, batch: Batch) -> None:
        raise KeyError("columns")

    def finish(self) -> None:
        raise KeyError("finish")


def chained(
    position: int, operator: StreamOperator, *edges: ChainedEdge | NetworkEdge
) -> ChainedOperator[Any]:
    return ChainedOperator(OperatorId(str(position)), f"op {position}", None, operator, edges)


def fan_out(first: Any, second: Any) -> ChainConfig[Any]:
    """One head, two chained consumers, each with a writer, and a writer of the head's own in the
    end."""
    return ChainConfig(
        (
            chained(
                0,
                MapOperator(lambda value: value),
                ChainedEdge(1),
                ChainedEdge(2),
                NetworkEdge(2, FORWARD),
            ),
            chained(1, MapOperator(first), NetworkEdge(0, FORWARD)),
            chained(2, MapOperator(second), NetworkEdge(1, FORWARD)),
        ),
        1,
    )


def spoil(value: list[int]) -> list[int]:
    value.append(0)
    return value


def test_consumers_of_one_output_do_not_see_each_others_changes() -> None:
    harness = ChainHarness(fan_out(spoil, spoil), writers=3)
    harness.push([[1], [2]])
    assert [writer.values for writer in harness.writers] == [
        [[1, 0], [2, 0]],
        [[1, 0], [2, 0]],
        [[1], [2]],
    ]


def test_object_reuse_hands_the_same_object_to_all() -> None:
    harness = ChainHarness(fan_out(spoil, spoil), writers=3, object_reuse=True)
    harness.push([[1]])
    assert harness.writers[2].values == [[1, 0, 0]]


def test_values_that_cannot_change_are_not_copied() -> None:
    harness = ChainHarness(fan_out(lambda value: value, lambda value: value), writers=3)
    record = ("a", 1)
    harness.push([record])
    assert all(writer.values[0] is record for writer in harness.writers)


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("values", "mutable"),
    [
        ([1, "a", None, 2.5, b"x"], False),
        ([("a", 1), ("b", None)], False),
        ([Colour.RED, datetime.date(2020, 1, 1)], False),
        ([], False),
        ([("a", [])], True),
        ([[]], True),
        ([{}], True),
        ([1, set()], True),
        ([object()], True),
        ([(("nested",),)], True),
        ([1, ("a", [])], True),
    ],
)
def test_mutability_is_judged_by_the_first_level(values: list[Any], mutable: bool) -> None:
    assert could_be_mutated(values) is mutable


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, {"a": [1]}, [[1]], ("a", [1]), {1, 2}])
def test_a_private_copy_is_equal_and_its_own(value: Any) -> None:
    copied = private_copy(value)
    assert copied == value
    assert copied is not value


def test_side_outputs_go_to_those_who_asked_and_count_as_output() -> None:
    config = ChainConfig(
        (
            chained(0, Split(), ChainedEdge(1), NetworkEdge(1, FORWARD, side_tag="odd")),
            chained(1, MapOperator(str), NetworkEdge(0, FORWARD)),
        ),
        1,
    )
    harness = ChainHarness(config, writers=2)
    harness.push([1, 2, 3, 4])
    harness.control(Watermark(5))
    assert [writer.values for writer in harness.writers] == [["2", "4"], [1, 3]]
    assert [writer.controls for writer in harness.writers] == [[Watermark(5)], [Watermark(5)]]
    assert harness.chain.metrics.of_operators()[1] == ("1", 2, 2)
    assert harness.chain.metrics.records_out == 4


def test_an_empty_result_is_not_passed_on() -> None:
    harness = ChainHarness(
        linear(FilterOperator(lambda value: False), MapOperator(str)), fusion=False
    )
    harness.push([1, 2])
    assert harness.writers[0].elements == []


def test_control_elements_travel_in_order_with_the_records_and_barriers_and_ends_are_written_by_the_chain() -> (
    None
):
    harness = ChainHarness(linear(MapOperator(str), FilterOperator(bool)))
    marker = LatencyMarker(1, "op", 0)
    harness.push([1])
    for element in (Watermark(1), WatermarkStatus(idle=True), marker):
        harness.control(element)
    harness.push([2])
    harness.chain.process_barrier(CheckpointBarrier(1, 0), lambda barrier: None)
    harness.chain.finish()
    harness.chain.write(EndOfData())
    harness.chain.write(EndOfPartition())
    assert harness.writers[0].elements == [
        RowBatch(["1"]),
        Watermark(1),
        WatermarkStatus(idle=True),
        marker,
        RowBatch(["2"]),
        CheckpointBarrier(1, 0),
        EndOfData(),
        EndOfPartition(),
    ]


def test_checkpoints_pass_by_operators_that_had_finished() -> None:
    harness = ChainHarness(
        linear(KeyedReduceOperator(max, KeySpec(selector=abs))), had_finished=True
    )
    barrier = CheckpointBarrier(1, 0)
    passed: list[CheckpointBarrier] = []
    harness.chain.process_barrier(barrier, passed.append)
    harness.settle()
    assert passed == [barrier]
    assert harness.writers[0].elements == [barrier]
    assert harness.chain.freeze_state(barrier) == {}
    harness.chain.notify_checkpoint(1, is_complete=True)
    assert not harness.chain.waits_for_final_checkpoint
    assert harness.chain.close() == []


def test_runs_of_stages_end_where_a_branch_or_another_operator_begins() -> None:
    keep = [MapOperator(str) for _ in range(3)]
    assert fused_positions(linear(*keep)) == [range(3)]
    assert fused_positions(linear(keep[0], Split(), keep[1], keep[2])) == [range(1), range(2, 4)]
    assert fused_positions(fan_out(str, str)) == [range(1), range(1, 2), range(2, 3)]


def test_a_foreign_exception_gets_the_operators_name_once() -> None:
    harness = ChainHarness(linear(MapOperator(str), Broken(), MapOperator(str)))
    with pytest.raises(UserCodeError) as caught:
        harness.push([1])
    assert (caught.value.operator, caught.value.cause) == ("op 1", "KeyError: 'columns'")
    with pytest.raises(UserCodeError, match="KeyError: 'finish'"):
        harness.chain.finish()


def test_an_edge_to_a_missing_partition_is_refused() -> None:
    with pytest.raises(EngineError, match="network output 0"):
        ChainHarness(linear(MapOperator(str)), writers=0)


class Prefix(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.context = runtime_context
        self.prefix = runtime_context.get_job_parameter("user.word")
        runtime_context.add_accumulator("seen", [])

    def map(self, value: Any) -> Any:
        self.context.get_accumulator("seen").append(value)
        return f"{self.prefix} {value}"


def test_rich_functions_know_where_they_run() -> None:
    function = Prefix()
    harness = ChainHarness(linear(MapOperator(function)))
    harness.push([1])
    assert harness.output == ["hello 1"]
    assert harness.accumulators == {"seen": [1]}
    context = function.context
    assert (context.get_task_name(), context.get_task_name_with_subtasks()) == (
        "task",
        "task (1/1)#0",
    )
    assert (
        context.get_number_of_parallel_subtasks(),
        context.get_max_number_of_parallel_subtasks(),
    ) == (1, 128)
    assert (context.get_index_of_this_subtask(), context.get_attempt_number()) == (0, 0)
    with pytest.raises(ProgramError, match="a name of its own"):
        context.add_accumulator("seen", 1)


def test_project_takes_positions() -> None:
    assert run([ProjectOperator([2, 0])], [(1, 2, 3)]) == [(3, 1)]
    assert run([ProjectOperator([1])], [(1, 2, 3)]) == [(2,)]
    with pytest.raises(ProgramError, match="one or more positions"):
        ProjectOperator([])


def test_what_is_no_function_is_refused_when_the_program_is_built() -> None:
    with pytest.raises(ProgramError, match="neither called"):
        MapOperator(5)
    with pytest.raises(ProgramError, match=r"write Prefix\(\)"):
        MapOperator(Prefix)
