"""What a task sends before any output of its own: what was in flight, and behind it a barrier where
records go another way."""

from __future__ import annotations

from typing import Any, cast

import pytest

from flinkpy.core.elements import CheckpointBarrier, RowBatch, WatermarkStatus
from flinkpy.core.errors import ProgramError
from flinkpy.network.channel_state import ElementLog
from flinkpy.network.port import RecordWriter
from flinkpy.runtime.checkpointing.sent_first import InFlight, SentFirst, send_first


class Writer:
    """Remembers what it is given, and by which way."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def restore(self, channel: int | None, element: Any) -> None:
        self.sent.append((channel, element.values if isinstance(element, RowBatch) else element))

    def emit_control(self, element: Any) -> None:
        self.sent.append(("all", element))


def stored(*records: int, then: tuple[WatermarkStatus, ...] = ()) -> bytes:
    log = ElementLog()
    log.add(RowBatch(list(records)))
    for status in then:
        log.add(status)
    return log.to_bytes()


def sent(first: SentFirst, outputs: int) -> list[list[tuple[Any, ...]]]:
    writers = [Writer() for _ in range(outputs)]
    send_first(first, cast("list[RecordWriter]", writers))
    return [writer.sent for writer in writers]


def test_records_go_through_their_channel_again_or_where_their_partitioner_sends_them_now() -> None:
    first = SentFirst(7, (InFlight(0, 2, stored(1, 2)), InFlight(1, None, stored(3))))
    assert sent(first, 2) == [[(2, [1, 2])], [(None, [3])]]


def test_where_records_go_another_way_a_barrier_follows_them_so_that_no_newer_one_overtakes() -> (
    None
):
    first = SentFirst(7, (InFlight(0, None, stored(1)), InFlight(1, 0, stored(2))), barred=(0,))
    assert sent(first, 2) == [[(None, [1]), ("all", CheckpointBarrier(7, 0))], [(0, [2])]]


@pytest.mark.finding("bugs 1")
def test_a_channel_that_was_idle_in_it_is_active_behind_it_because_the_task_begins_as_an_active_one() -> (
    None
):
    idle, active = WatermarkStatus(idle=True), WatermarkStatus(idle=False)
    first = SentFirst(
        7, (InFlight(0, 2, stored(1, then=(idle,))), InFlight(1, 0, stored(2, then=(idle, active))))
    )
    assert sent(first, 2) == [
        [(2, [1]), (2, idle), ("all", active)],
        [(0, [2]), (0, idle), (0, active)],
    ]


def test_records_that_this_program_cannot_read_are_refused_with_what_to_do() -> None:
    with pytest.raises(ProgramError, match="start a changed program from a savepoint"):
        sent(SentFirst(7, (InFlight(0, 0, b"not a frame" * 10),)), 1)
