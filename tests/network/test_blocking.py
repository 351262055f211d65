from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import (
    ColumnBatch,
    Element,
    EndOfData,
    EndOfPartition,
    RowBatch,
    Watermark,
)
from flinkpy.core.errors import PartitionNotFoundError, ProgramError, ResourceUnavailableError
from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.graph.deployment import ResultPartitionDescriptor
from flinkpy.graph.job_graph import ResultPartitionType
from flinkpy.graph.partitioning import FORWARD, REBALANCE, Partitioning
from flinkpy.network.blocking import BlockingPartition
from flinkpy.network.port import InputGate, RecordWriter
from tests.network.helpers import SMALL, Cluster, attempt, cluster, partition_id, poll_all, records

SOURCE, SINK = attempt("source"), attempt("sink")
IN_MEMORY = SMALL
# the producer is at a: in the same process, or over TCP
PLACES = pytest.mark.parametrize("consumer_at", ["a", "b"])


def on_disk(folder: Path) -> Any:
    return replace(SMALL, batch_shuffle_memory=0, spill_folders=(str(folder),))


def blocking_writer(
    made: Cluster,
    producer: ExecutionAttemptId = SOURCE,
    channels: int = 1,
    partitioning: Partitioning = FORWARD,
    data_set: str = "data",
) -> RecordWriter:
    descriptor = ResultPartitionDescriptor(
        partition_id(producer, data_set), 0, channels, ResultPartitionType.BLOCKING
    )
    return made.services["a"].create_writers(
        producer, [descriptor], [partitioning], [100], made.errors.append
    )[0]


def written(
    made: Cluster, elements: Sequence[Element], producer: ExecutionAttemptId = SOURCE
) -> RecordWriter:
    """The result of a task that emitted these and ended."""
    writer = blocking_writer(made, producer)
    for element in elements:
        writer.emit(element) if isinstance(
            element, (RowBatch, ColumnBatch)
        ) else writer.emit_control(element)
    end(made, writer, producer)
    return writer


def end(made: Cluster, writer: RecordWriter, producer: ExecutionAttemptId = SOURCE) -> None:
    writer.emit_control(EndOfData())
    writer.emit_control(EndOfPartition())
    made.services["a"].finish_partitions(producer)


def read_all(made: Cluster, gate: InputGate) -> list[Element]:
    got: list[Element] = []

    def finished() -> bool:
        got.extend(element for _, element in poll_all(gate))
        return gate.finished or bool(made.errors)

    made.reactor.run_until(finished, what="the end of the gate")
    assert made.errors == []
    return got


def open_files(folder: Path) -> int:
    """Files of this process in that folder, those without a name too."""
    links = []
    for entry in os.scandir("/proc/self/fd"):
        try:
            links.append(os.readlink(entry.path))
        except OSError:
            continue
    return sum(link.startswith(str(folder)) for link in links)


@PLACES
@pytest.mark.parametrize("spills", [False, True])
def test_everything_is_read_in_order_as_often_as_wanted(
    consumer_at: str, spills: bool, tmp_path: Path
) -> None:
    with cluster("a", "b", config=on_disk(tmp_path) if spills else IN_MEMORY) as made:
        columns = ColumnBatch(
            pa.RecordBatch.from_pydict({"x": [1, None, 3], "y": ["a", "b", None]}),
            np.array([5, 6, 7]),
        )
        large = RowBatch([(number, "x" * 100) for number in range(2000)])
        written(
            made, [RowBatch([1, "two", {"three": [4]}], [1, 2, 3]), Watermark(3), columns, large]
        )
        for number in range(3):
            consumer = SINK._replace(attempt=number)
            got = read_all(made, made.gate(consumer_at, consumer, [("a", SOURCE)]))
            made.services[consumer_at].release(consumer)
            assert got[:3] == [
                RowBatch([1, "two", {"three": [4]}], [1, 2, 3]),
                Watermark(3),
                columns,
            ]
            assert records(got[3:]) == large.values
            assert got[-2:] == [EndOfData(), EndOfPartition()]
        made.reactor.settle()
        assert made.in_use() == {"a": 0, "b": 0}
        assert made.services["a"].statistics().partitions == 1
        assert open_files(tmp_path) == (1 if spills else 0)
        made.services["a"].release_partitions(SOURCE)
        made.services["a"].release_partitions(SOURCE)
        assert made.services["a"].statistics().partitions == 0
        assert open_files(tmp_path) == 0
        assert list(tmp_path.iterdir()) == []


def test_the_producer_may_go_when_all_is_written_and_not_before() -> None:
    with cluster("a") as made:
        writer = blocking_writer(made)
        for _ in range(1000):  # far more than the network's memory: there is always room
            writer.emit(RowBatch(["x" * 1000] * 10))
            assert writer.available
        assert not may_go(writer)
        writer.emit_control(EndOfPartition())
        assert may_go(writer)
        assert made.in_use() == {"a": 0}


def may_go(writer: RecordWriter) -> bool:
    """``writer.consumed``, asked anew (mypy takes a property for a constant)."""
    return writer.consumed


@PLACES
def test_a_consumer_that_comes_early_waits_for_the_end_of_the_result(consumer_at: str) -> None:
    with cluster("a", "b") as made:
        writer = blocking_writer(made)
        gate = made.gate(consumer_at, SINK, [("a", SOURCE)])
        writer.emit(RowBatch([1, 2, 3]))
        writer.flush()
        made.reactor.settle()
        assert poll_all(gate) == []
        end(made, writer)
        assert records(read_all(made, gate)) == [1, 2, 3]


@PLACES
def test_a_consumer_that_waits_is_told_when_the_producer_fails(consumer_at: str) -> None:
    with cluster("a", "b") as made:
        writer = blocking_writer(made)
        made.gate(consumer_at, SINK, [("a", SOURCE)])
        made.reactor.settle()
        writer.emit(RowBatch([1]))
        made.services["a"].release(SOURCE, ValueError("broken"))
        made.reactor.run_until(lambda: bool(made.errors), what="the failure")
        assert "broken" in str(made.errors[0])
        assert made.services["a"].statistics().partitions == 0


@PLACES
def test_whoever_reads_when_the_result_is_released_is_told(consumer_at: str) -> None:
    with cluster("a", "b") as made:
        written(made, [RowBatch(list(range(5000)))] * 4)
        made.gate(consumer_at, SINK, [("a", SOURCE)])
        made.reactor.settle()
        made.services["a"].release_partitions(SOURCE)
        made.reactor.run_until(lambda: bool(made.errors), what="the failure")
        assert isinstance(made.errors[0], PartitionNotFoundError)


def test_a_cancelled_producer_leaves_nothing(tmp_path: Path) -> None:
    with cluster("a", config=on_disk(tmp_path)) as made:
        blocking_writer(made).emit(RowBatch(list(range(5000))))
        assert open_files(tmp_path) == 1
        made.services["a"].release(SOURCE)
        assert open_files(tmp_path) == 0
        assert made.services["a"].statistics().partitions == 0


def test_a_service_that_stops_leaves_nothing(tmp_path: Path) -> None:
    with cluster("a", config=on_disk(tmp_path)) as made:
        written(made, [RowBatch([1, 2])])
        assert open_files(tmp_path) == 1
    assert open_files(tmp_path) == 0


def test_beyond_the_allowance_the_largest_holder_spills() -> None:
    with cluster("a", config=replace(SMALL, batch_shuffle_memory=50_000)) as made:
        first, second = SOURCE, attempt("other")
        written(made, [RowBatch(["x" * 100] * 400)], first)
        written(made, [RowBatch(["y" * 50] * 400)], second)
        memory = made.services["a"].partitions.batch_memory
        partitions = [
            made.services["a"].partitions.find_partition(partition_id(each))
            for each in (first, second)
        ]
        assert 0 < memory.used <= 50_000
        assert [
            isinstance(each, BlockingPartition) and each.spilled > 0 for each in partitions
        ] == [True, False]
        for producer, value in ((first, "x" * 100), (second, "y" * 50)):
            gate = made.gate(
                "a", SINK._replace(subtask_index=producer is second), [("a", producer)]
            )
            assert records(read_all(made, gate)) == [value] * 400
        for producer in (first, second):
            made.services["a"].release_partitions(producer)
        assert memory.used == 0


def test_a_result_may_be_spilled_while_it_is_read() -> None:
    with cluster("a") as made:
        written(made, [RowBatch([number] * 64) for number in range(20)])
        gate = made.gate("a", SINK, [("a", SOURCE)])
        first = [gate.poll() for _ in range(5)]
        partition = made.services["a"].partitions.find_partition(partition_id(SOURCE))
        assert isinstance(partition, BlockingPartition)
        partition.spill_frames()
        rest = read_all(made, gate)
        assert records([polled[1] for polled in first if polled is not None] + rest) == [
            number for number in range(20) for _ in range(64)
        ]


def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    with cluster("a", config=on_disk(tmp_path / "missing")) as made:
        writer = blocking_writer(made)
        with pytest.raises(
            ResourceUnavailableError, match=r"cannot spill to .*missing.*io\.tmp\.dirs"
        ):
            writer.emit(RowBatch(list(range(5000))))


def test_records_that_do_not_pickle_are_the_programs_mistake() -> None:
    with cluster("a") as made:
        writer = blocking_writer(made)
        with pytest.raises(ProgramError, match="cannot be sent"):
            writer.emit(RowBatch([(number for number in range(3))] * 5000))


@given(
    st.lists(st.lists(st.integers(), min_size=1, max_size=200), max_size=8),
    st.sampled_from([0, 2000, 1 << 20]),
    st.booleans(),
)
def test_each_consumer_reads_its_part_wherever_it_lies(
    batches: list[list[int]], memory: int, remote: bool
) -> None:
    with cluster("a", "b", config=replace(SMALL, batch_shuffle_memory=memory)) as made:
        writer = blocking_writer(made, channels=3, partitioning=REBALANCE)
        for batch in batches:
            writer.emit(RowBatch(list(batch)))
        end(made, writer)
        read: list[Any] = []
        for index in range(3):
            gate = made.gate("b" if remote else "a", attempt("sink", index), [("a", SOURCE)], index)
            read += records(read_all(made, gate))
        assert sorted(read) == sorted(value for batch in batches for value in batch)
