"""What is in flight, as a checkpoint stores it; and barriers that overtake in partitions and
gates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import (
    CheckpointBarrier,
    CheckpointOptions,
    ColumnBatch,
    Element,
    EndOfData,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.errors import NetworkProtocolError, ProgramError
from flinkpy.network.channel_state import ElementLog, read_elements
from tests.network.test_writer import Line
from tests.values import KEYS, shown

UNALIGNED = CheckpointOptions(alignment_timeout_ms=0)


def stored(*elements: Element) -> list[Element]:
    log = ElementLog()
    log.extend(elements)
    return list(read_elements(log.to_bytes()))


@given(st.lists(KEYS, min_size=1), st.booleans())
def test_rows_of_any_values_come_back_with_their_times(values: list[Any], has_times: bool) -> None:
    (found,) = stored(RowBatch(values, list(range(len(values))) if has_times else None))
    assert isinstance(found, RowBatch)
    assert shown(found.values) == shown(values)
    assert found.timestamps == (list(range(len(values))) if has_times else None)


def test_columns_come_back_as_columns_also_when_their_schema_changes() -> None:
    one = ColumnBatch(
        pa.record_batch({"n": [1, 2, None], "s": ["a", None, "c"]}),
        np.array([1, 2, 3], dtype="int64"),
    )
    other = ColumnBatch(pa.record_batch({"x": pa.array(["a", "b", "a"]).dictionary_encode()}))
    assert stored(one, RowBatch([1]), other, one) == [one, RowBatch([1]), other, one]


def test_event_time_is_stored_and_what_has_no_meaning_after_a_restart_is_not() -> None:
    found = stored(
        Watermark(5),
        LatencyMarker(1, "op", 0),
        WatermarkStatus(True),
        CheckpointBarrier(1, 2),
        EndOfData(),
        EndOfPartition(),
    )
    assert found == [Watermark(5), WatermarkStatus(True)]


def test_a_record_is_stored_as_it_was_when_it_was_overtaken() -> None:
    log, record = ElementLog(), {"n": 1}
    log.add(RowBatch([record]))
    record["n"] = 2
    assert list(read_elements(log.to_bytes())) == [RowBatch([{"n": 1}])]


def test_records_that_cannot_be_pickled_fail_the_log_and_not_the_task() -> None:
    log = ElementLog()
    log.add(RowBatch([(number for number in range(3))]))
    log.add(RowBatch([1]))
    assert not log.is_empty
    with pytest.raises(ProgramError, match="cannot be sent to another process"):
        log.chunks()


@pytest.mark.parametrize("missing", [1, 5, 30])
def test_bytes_that_end_in_the_middle_are_no_log(missing: int) -> None:
    log = ElementLog()
    log.add(RowBatch(["a", "b"]))
    with pytest.raises(NetworkProtocolError, match="in the middle of an element"):
        list(read_elements(log.to_bytes()[:-missing]))


def test_a_barrier_overtakes_what_is_queued_and_what_waits_for_room() -> None:
    with Line(channels=2, rows_limit=1) as line:
        for number in range(4):
            line.writer.restore(0, RowBatch([number]))
        line.writer.restore(1, RowBatch([9]))
        assert not line.writer.available
        line.writer.emit_control(CheckpointBarrier(7, 0, UNALIGNED))
        assert line.writer.overtake(7) == [
            [RowBatch([number]) for number in range(4)],
            [RowBatch([9])],
        ]
        assert line.writer.holds_barrier(7)
        assert line.read(0) == [
            CheckpointBarrier(7, 0, UNALIGNED),
            *(RowBatch([number]) for number in range(4)),
        ]
        assert line.read(1) == [CheckpointBarrier(7, 0, UNALIGNED), RowBatch([9])]
        assert not line.writer.holds_barrier(7)
        assert line.writer.overtake(7) == [[], []]


def test_the_writer_is_told_when_the_last_consumer_has_taken_a_barrier_or_needs_it_no_more() -> (
    None
):
    with Line(channels=2) as line:
        left: list[int] = []
        line.writer.set_barrier_listener(left.append)
        line.writer.emit_control(CheckpointBarrier(1, 0))
        line.read(0)
        assert left == []
        line.partition.subpartitions[1].release_subpartition()
        assert left == [1]
        line.writer.emit_control(CheckpointBarrier(2, 0))
        line.read(0)
        assert left == [1, 2]


def test_a_gate_gives_a_barrier_before_its_turn_and_what_it_overtook_stays() -> None:
    with Line() as line:
        arrived: list[Element] = []
        line.gates[0].set_barrier_listener(arrived.append)
        barrier = CheckpointBarrier(3, 0, CheckpointOptions(alignment_timeout_ms=50))
        line.writer.restore(0, RowBatch([1]))
        line.writer.emit_control(barrier)
        line.writer.restore(0, RowBatch([2]))
        assert line.gates[0].overtake(0, 2) is None
        assert line.gates[0].overtake(0, 3) == (barrier, [RowBatch([1])])
        assert not line.writer.holds_barrier(3)
        assert line.writer.overtake(3) == [[]]  # the other end was first
        assert line.read() == [RowBatch([1]), RowBatch([2])]
        line.writer.restore(0, RowBatch([3]))
        line.writer.emit_control(CheckpointBarrier(4, 0, UNALIGNED))
        line.writer.overtake(4)
        assert arrived == [CheckpointBarrier(4, 0, UNALIGNED)]


def test_what_is_polled_of_a_recorded_channel_is_taken_down() -> None:
    with Line() as line:
        log = ElementLog()
        line.writer.restore(0, RowBatch([1]))
        line.gates[0].record(0, log)
        line.read()
        line.gates[0].record(0, None)
        line.writer.restore(0, RowBatch([2]))
        line.read()
        assert list(read_elements(log.to_bytes())) == [RowBatch([1])]


def test_a_barrier_can_come_before_the_end_everywhere_only_while_no_consumer_has_taken_it() -> None:
    with Line(channels=2) as line:
        held = [line.writer.holds_ends]
        line.writer.emit_control(EndOfPartition())
        held.append(line.writer.holds_ends)
        line.read(0)
        held.append(line.writer.holds_ends)
        assert held == [False, True, False]
