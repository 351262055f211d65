from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import (
    Batch,
    ColumnBatch,
    Element,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    Watermark,
)
from flinkpy.core.memory import MEASURE_EVERY, SizeEstimator, size_of
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.graph.partitioning import BROADCAST, FORWARD, REBALANCE
from flinkpy.network.flow.batch_pieces import pieces
from flinkpy.network.flow.segments import NetworkBufferPool
from flinkpy.network.gate import LocalInputChannel, SingleInputGate
from flinkpy.network.partition import ResultPartition
from flinkpy.network.partitioning.partitioners import make_selector
from flinkpy.network.writer import PartitionWriter
from flinkpy.testing.manual_reactor import ManualReactor
from tests.network.helpers import attempt, cluster, has_room, partition_id, poll_all, records

CONFIG = NetworkConfig(segment_size=1024, batch_records=64, batch_bytes=8192)


class Line:
    """A writer, its partition, and a gate for each channel, without sockets."""

    def __init__(
        self,
        channels: int = 1,
        segments: int = 100,
        timeout_ms: int = -1,
        partitioning: Any = None,
        attached: bool = True,
        rows_limit: int = 1000,
    ) -> None:
        self.clock = ManualClock()
        self.reactor = ManualReactor(self.clock)
        self.pool = NetworkBufferPool(segments)
        self.done: list[ResultPartition] = []
        self.errors: list[BaseException] = []
        local = self.pool.create_pool("partition", 1, segments)
        self.partition = ResultPartition(
            partition_id(attempt("source")),
            channels,
            local,
            rows_limit,
            self.done.append,
            self.errors.append,
        )
        selector = make_selector(
            partitioning or (FORWARD if channels == 1 else REBALANCE), channels
        )
        self.writer = PartitionWriter(self.partition, selector, timeout_ms, CONFIG, self.reactor)
        self.gates = [SingleInputGate(f"gate {i}", self.errors.append) for i in range(channels)]
        self.members = [
            LocalInputChannel(gate, 0, self.writer.key_of(number))
            for number, gate in enumerate(self.gates)
        ]
        for gate, member in zip(self.gates, self.members):
            gate.add_channel(member)
        if attached:
            self.attach()

    def attach(self) -> None:
        for i, member in enumerate(self.members):
            member.attach(self.partition.subpartitions[i])

    def read(self, channel: int = 0) -> list[Element]:
        return [element for _, element in poll_all(self.gates[channel])]

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *raised: object) -> None:
        self.writer.close_writer()
        self.reactor.close()


def test_a_large_batch_goes_by_reference_at_once() -> None:
    with Line() as line:
        batch = RowBatch(list(range(20)))
        line.writer.emit(batch)
        assert line.read()[0] is batch
        assert line.writer.drained
        assert line.pool.in_use == 0


def test_small_batches_are_gathered_until_there_are_enough_records() -> None:
    with Line() as line:
        own = RowBatch([0])
        line.writer.emit(own)
        for i in range(1, 63):
            line.writer.emit(RowBatch([i]))
        assert line.read() == []
        assert not line.writer.drained
        line.writer.emit(RowBatch([63]))
        assert line.read() == [RowBatch(list(range(64)))]
        assert own == RowBatch([0])  # what was emitted still belongs to whoever made it


def test_small_batches_are_gathered_until_there_are_enough_bytes() -> None:
    with Line() as line:
        for _ in range(9):
            line.writer.emit(RowBatch(["x" * 1000]))
        assert len(records(line.read())) == 8


def test_flush_hands_on_what_is_gathered() -> None:
    with Line() as line:
        line.writer.emit(RowBatch([1]))
        line.writer.emit(RowBatch([2]))
        line.writer.flush()
        assert line.read() == [RowBatch([1, 2])]


def test_the_first_batch_after_a_flush_goes_at_once_and_the_next_ones_are_gathered() -> None:
    with Line(timeout_ms=100) as line:
        line.writer.flush()
        line.writer.emit(RowBatch([1]))
        assert line.read() == [RowBatch([1])]
        line.writer.emit(RowBatch([2]))
        line.writer.emit(RowBatch([3]))
        assert line.read() == []
        line.writer.flush()
        assert line.read() == [RowBatch([2, 3])]


def test_the_first_batch_after_a_flush_goes_at_once_to_all_its_channels() -> None:
    with Line(channels=2, timeout_ms=100) as line:
        line.writer.flush()
        line.writer.emit(RowBatch([1, 2, 3]))
        assert (line.read(0), line.read(1)) == ([RowBatch([1, 3])], [RowBatch([2])])


def test_without_a_buffer_timeout_small_batches_wait_for_the_flush_always() -> None:
    with Line(timeout_ms=-1) as line:
        line.writer.flush()
        line.writer.emit(RowBatch([1]))
        assert line.read() == []


def test_a_batch_after_a_flush_that_found_no_room_stays_behind_what_is_gathered() -> None:
    with Line(timeout_ms=100, segments=1) as line:
        line.writer.emit(RowBatch(list(range(20))))
        line.writer.emit(RowBatch([20]))
        line.writer.flush()
        line.writer.emit(RowBatch([21]))
        line.writer.flush()
        line.writer.emit(RowBatch([22]))
        assert not line.writer.available
        assert records(line.read() + line.read() + line.read()) == list(range(23))


def test_a_batch_holds_its_segments_until_the_gate_is_asked_for_the_next() -> None:
    with Line() as line:
        line.writer.emit(RowBatch(list(range(20))))
        assert line.gates[0].poll() == (0, RowBatch(list(range(20))))
        assert line.pool.in_use > 0
        assert line.gates[0].poll() is None
        assert line.pool.in_use == 0


def test_a_gate_released_while_its_batch_is_processed_gives_its_segments_back_once() -> None:
    with Line() as line:
        line.writer.emit(RowBatch(list(range(20))))
        assert line.gates[0].poll() is not None
        line.gates[0].release_gate()
        assert line.gates[0].poll() is None
        assert line.pool.in_use == 0


def test_nothing_is_gathered_for_longer_than_the_buffer_timeout() -> None:
    with Line(timeout_ms=100) as line:
        line.writer.emit(RowBatch([1]))
        line.clock.advance(0.099)
        line.reactor.step()
        assert line.read() == []
        line.clock.advance(0.002)
        line.reactor.step()
        assert line.read() == [RowBatch([1])]


def test_a_buffer_timeout_of_zero_hands_on_every_batch() -> None:
    with Line(timeout_ms=0) as line:
        line.writer.emit(RowBatch([1]))
        assert line.read() == [RowBatch([1])]


def test_control_elements_stay_behind_the_records_before_them_on_every_channel() -> None:
    with Line(channels=2) as line:
        line.writer.emit(RowBatch([1, 2, 3]))
        line.writer.emit_control(Watermark(5))
        line.writer.emit(RowBatch([4]))
        line.writer.flush()
        assert line.read(0) == [RowBatch([1, 3]), Watermark(5)]
        assert line.read(1) == [RowBatch([2]), Watermark(5), RowBatch([4])]


def test_rows_and_columns_with_and_without_timestamps_are_never_mixed() -> None:
    columns = [
        ColumnBatch(pa.record_batch({"a": [1]})),
        ColumnBatch(pa.record_batch({"a": [2]})),
        ColumnBatch(pa.record_batch({"b": [3]})),
    ]
    stamped = ColumnBatch(pa.record_batch({"b": [4]}), np.array([9]))
    with Line() as line:
        batches: list[Batch] = [
            RowBatch([1]),
            RowBatch([2], [7]),
            RowBatch([3], [8]),
            *columns,
            stamped,
            RowBatch([5]),
        ]
        for batch in batches:
            line.writer.emit(batch)
        line.writer.flush()
        joined = ColumnBatch(pa.record_batch({"a": [1, 2]}))
        assert line.read() == [
            RowBatch([1]),
            RowBatch([2, 3], [7, 8]),
            joined,
            columns[2],
            stamped,
            RowBatch([5]),
        ]


def test_a_writer_without_room_is_unavailable_keeps_everything_and_resumes_in_order() -> None:
    with Line(segments=4) as line:
        told: list[str] = []
        line.writer.set_listener(lambda: told.append("available"))
        for i in range(10):
            line.writer.emit(RowBatch([i] * 20))
        line.writer.emit_control(Watermark(1))
        line.writer.emit(RowBatch(["last"]))
        line.writer.flush()
        assert not has_room(line.writer)
        assert line.pool.in_use == 4
        got = line.read()
        assert told == ["available"]
        assert has_room(line.writer)
        assert line.writer.drained
        assert got == [*(RowBatch([i] * 20) for i in range(10)), Watermark(1), RowBatch(["last"])]


def test_rows_wait_behind_the_limit_of_their_channel_though_the_pool_has_room_and_go_on_when_the_reader_has_read() -> (
    None
):
    with Line(segments=100, rows_limit=2) as line:
        for i in range(5):
            line.writer.emit(RowBatch([i] * 20))
        assert not has_room(line.writer)
        assert line.pool.in_use == 2
        line.gates[0].poll()
        assert line.pool.in_use == 2  # the one that is being processed is not given back yet
        line.gates[0].poll()
        assert line.pool.in_use == 2
        assert not has_room(line.writer)
        assert line.read() == [RowBatch([i] * 20) for i in (2, 3, 4)]
        assert has_room(line.writer)


def test_columns_and_control_elements_queue_as_far_as_the_pool_reaches() -> None:
    with Line(segments=100, rows_limit=1) as line:
        columns = ColumnBatch(pa.record_batch({"a": list(range(64))}))
        for _ in range(10):
            line.writer.emit(columns)
        line.writer.emit_control(Watermark(1))
        assert has_room(line.writer)
        assert line.read() == [ColumnBatch.concat([columns] * 10), Watermark(1)]


def test_a_consumer_that_goes_away_frees_rows_that_waited_behind_the_limit_of_its_channel() -> None:
    with Line(channels=2, segments=100, partitioning=BROADCAST, rows_limit=2) as line:
        for i in range(5):
            line.writer.emit(RowBatch([i] * 20))
            line.read(0)
        assert not has_room(line.writer)
        line.gates[1].release_gate()
        assert records(line.read(0)) != []
        assert has_room(line.writer)


def test_a_batch_larger_than_the_limit_is_cut_and_one_larger_than_the_pool_passes_alone() -> None:
    with Line(segments=3) as line:
        values = ["x" * 1000 for _ in range(40)]
        line.writer.emit(RowBatch(values))
        line.writer.emit(RowBatch(["y" * 50_000]))
        line.writer.flush()
        assert line.pool.in_use <= 3
        got = line.read()
        assert records(got) == [*values, "y" * 50_000]
        assert len(got) >= 6
        assert line.pool.in_use == 0


def test_what_is_written_before_a_reader_came_waits_for_it() -> None:
    with Line(attached=False) as line:
        line.writer.emit(RowBatch([1] * 20))
        assert line.pool.in_use == 1
        line.attach()
        assert line.read() == [RowBatch([1] * 20)]


def test_a_consumer_that_went_away_does_not_hold_the_others_up() -> None:
    with Line(channels=2, segments=4, partitioning=BROADCAST) as line:
        for i in range(20):
            line.writer.emit(RowBatch([i] * 20))
            line.read(0)
        assert not has_room(line.writer)
        assert line.read(0) == []
        line.gates[1].release_gate()
        assert len(records(line.read(0))) > 0
        assert has_room(line.writer)


def test_a_partition_goes_when_every_consumer_has_read_its_end() -> None:
    with Line(channels=2) as line:
        line.writer.end_partition()
        line.writer.end_partition()
        assert line.read(0) == [EndOfPartition()]
        assert line.gates[0].finished
        assert line.done == []
        line.read(1)
        assert line.done == [line.partition]


def test_releasing_a_partition_tells_its_readers_why_and_gives_everything_back() -> None:
    with Line(channels=2) as line:
        line.writer.emit(RowBatch([1] * 40))
        cause = RuntimeError("the producer failed")
        line.partition.release_partition(cause)
        line.partition.release_partition(cause)
        assert line.errors == [cause, cause]
        assert line.pool.statistics().in_use == line.pool.statistics().pools == 0
        line.writer.emit(RowBatch([1] * 40))  # a task that did not notice yet
        assert line.read() == []


Step = tuple[str, int]
kinds = st.sampled_from(["rows", "columns", "control", "flush", "read", "block", "unblock", "tick"])
steps = st.lists(st.tuples(kinds, st.integers(1, 70)), max_size=40)


@given(
    steps,
    st.integers(1, 3),
    st.integers(1, 12),
    st.sampled_from([-1, 0, 10]),
    st.sampled_from([1, 3, 1000]),
)
@settings(deadline=None, max_examples=200)
def test_every_record_arrives_in_order_per_channel_whatever_the_availability(
    script: list[Step], channels: int, segments: int, timeout_ms: int, rows_limit: int
) -> None:
    with Line(channels, segments, timeout_ms, BROADCAST, rows_limit=rows_limit) as line:
        sent: list[Any] = []
        got: list[list[Any]] = [[] for _ in range(channels)]

        def read(channel: int, limit: int) -> None:
            for _ in range(limit):
                polled = line.gates[channel].poll()
                if polled is None:
                    return
                element = polled[1]
                got[channel] += (
                    [element]
                    if isinstance(element, (Watermark, EndOfPartition))
                    else [row["a"] if isinstance(row, dict) else row for row in records([element])]
                )

        for step, number in script:
            if step == "rows":
                values = list(range(len(sent), len(sent) + number))
                sent += values
                line.writer.emit(RowBatch(values))
            elif step == "columns":
                values = list(range(len(sent), len(sent) + number))
                sent += values
                line.writer.emit(ColumnBatch(pa.record_batch({"a": values})))
            elif step == "control":
                sent.append(Watermark(number))
                line.writer.emit_control(Watermark(number))
            elif step == "flush":
                line.writer.flush()
            elif step == "read":
                read(number % channels, number % 5)
            elif step == "block":
                line.gates[number % channels].block(0)
            elif step == "unblock":
                line.gates[number % channels].unblock(0)
            else:
                line.clock.advance(number / 1000)
                line.reactor.step()
            assert line.pool.in_use <= segments
            assert line.pool.in_use == line.partition.queued
        line.writer.end_partition()
        while not all(gate.finished for gate in line.gates):
            for channel, gate in enumerate(line.gates):
                gate.unblock(0)
                read(channel, 100)
        assert all(received == [*sent, EndOfPartition()] for received in got)
        assert line.pool.in_use == 0
        assert line.writer.drained


def test_a_gate_reads_its_channels_in_turn_and_leaves_blocked_ones_out() -> None:
    with cluster("a") as made:
        sources = [attempt("source", i) for i in range(3)]
        writers = [made.writer("a", source) for source in sources]
        gate = made.gate("a", attempt("sink"), [("a", source) for source in sources])
        for writer in writers:
            for _ in range(3):
                writer.emit(RowBatch([0] * 20))
        assert [channel for channel, _ in poll_all(gate)] == [0, 1, 2] * 3
        gate.block(1)
        for writer in writers:
            writer.emit(RowBatch([0] * 20))
        assert [channel for channel, _ in poll_all(gate)] == [0, 2]
        told: list[int] = []
        gate.set_listener(lambda: told.append(1))
        gate.unblock(1)
        assert told == [1]
        assert [channel for channel, _ in poll_all(gate)] == [1]


@pytest.mark.parametrize(
    "value",
    [1, "abc" * 100, (1, "x", 2.0), {"a": [1, 2, 3]}, [b"x" * 10] * 1000, np.arange(1000), None],
)
def test_the_estimate_of_a_record_is_of_the_right_order(value: Any) -> None:
    import pickle

    assert size_of(value) >= len(pickle.dumps(value, 5)) * 0.5


def measured(sizes: SizeEstimator, value: str) -> float:
    """Bytes of a record by the estimate, after such ones were looked at once."""
    for _ in range(MEASURE_EVERY + 1):
        size = sizes.bytes_of(RowBatch([value] * 2))
    return size / 2


def test_an_estimate_goes_up_at_once_and_down_slowly() -> None:
    sizes = SizeEstimator()
    small = measured(sizes, "x")
    assert measured(sizes, "x" * 10_000) > 10_000
    assert measured(sizes, "x") > 10 * small


def test_a_single_record_is_measured_by_itself() -> None:
    sizes = SizeEstimator()
    sizes.bytes_of(RowBatch(["x"] * 100))
    assert sizes.bytes_of(RowBatch(["x" * 10_000])) == size_of("x" * 10_000)
    assert sizes.bytes_of(RowBatch(["x"])) == size_of("x")


@given(st.integers(1, 50), st.integers(1, 60))
def test_pieces_are_nearly_equal_and_lose_nothing(rows: int, count: int) -> None:
    values, stamps = list(range(rows)), list(range(rows))
    parts = pieces(RowBatch(values, stamps), count)
    assert [
        value for part in parts if isinstance(part, RowBatch) for value in part.values
    ] == values
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert min(map(len, parts)) >= 1


def test_a_latency_marker_goes_to_one_channel_in_turn_behind_what_was_emitted() -> None:
    with Line(channels=3) as line:
        line.writer.emit(RowBatch([1, 2, 3]))
        for number in range(4):
            line.writer.emit_control(LatencyMarker(number, "source", 0))
        line.writer.flush()
        read = [line.read(channel) for channel in range(3)]
        assert [
            [element.marked_ms for element in elements if isinstance(element, LatencyMarker)]
            for elements in read
        ] == [[0, 3], [1], [2]]
        assert all(isinstance(elements[0], RowBatch) for elements in read)
