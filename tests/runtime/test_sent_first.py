"""What a task sends before any output of its own: what was in flight, and behind it a barrier where records go another way."""

from __future__ import annotations

from typing import Any, cast

import pytest

from flinkpy.core.elements import CheckpointBarrier, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.network.channel_state import ElementLog
from flinkpy.network.port import RecordWriter
from flinkpy.runtime.checkpointing.sent_first import InFlight, SentFirst, send_first


class Writer:
    """Remembers what it is given, and by which way."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def restore(self, channel: int | None, element: Any) -> None:
        self.sent.append((channel, element.values))

    def emit_control(self, element: Any) -> None:
        self.sent.append(("all", element))


def stored(*records: int) -> bytes:
    log = ElementLog()
    log.add(RowBatch(list(records)))
    return log.to_bytes()


def sent(first: SentFirst, outputs: int) -> list[list[tuple[Any, ...]]]:
    writers = [Writer() for _ in range(outputs)]
    send_first(first, cast("list[RecordWriter]", writers))
    return [writer.sent for writer in writers]


def test_records_go_through_their_channel_again_or_where_their_partitioner_sends_them_now() -> None:
    first = SentFirst(7, (InFlight(0, 2, stored(1, 2)), InFlight(1, None, stored(3))))
    assert sent(first, 2) == [[(2, [1, 2])], [(None, [3])]]


def test_where_records_go_another_way_a_barrier_follows_them_so_that_no_newer_one_overtakes() -> None:
    first = SentFirst(7, (InFlight(0, None, stored(1)), InFlight(1, 0, stored(2))), barred=(0,))
    assert sent(first, 2) == [[(None, [1]), ("all", CheckpointBarrier(7, 0))], [(0, [2])]]


def test_records_that_this_program_cannot_read_are_refused_with_what_to_do() -> None:
    with pytest.raises(ProgramError, match="start a changed program from a savepoint"):
        sent(SentFirst(7, (InFlight(0, 0, b"not a frame" * 10),)), 1)
