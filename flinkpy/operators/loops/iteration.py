"""The entry of a loop, where its input comes in, and its tail, which sends records back to the
head."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.core.elements import BEYOND_TIME, MAX_TIMESTAMP, Batch, Watermark, WatermarkStatus
from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.graph.operator_port import ChainingStrategy
from flinkpy.operators.base import BatchForm, OneInputOperator
from flinkpy.operators.loops.feedback import (
    FeedbackChannel,
    InputEnded,
    Key,
    RoundPassed,
    attach,
    channel_key,
    detach,
)
from flinkpy.operators.row_batches import rows


class LoopEnd(OneInputOperator):
    """What entry and tail share: they hold the channel to the head from ``open`` to ``close``."""

    batch_form = BatchForm.AS_IN_STREAM
    chaining = ChainingStrategy.NEVER
    _key: Key | None = None

    def __init__(self, iteration: str) -> None:
        self.iteration = iteration

    def open(self) -> None:
        self._key = channel_key(self.iteration, self.context.task.attempt_id)
        self._channel: FeedbackChannel = attach(self._key)

    def close(self) -> None:
        key, self._key = self._key, None
        if key is not None:
            detach(key)


class IterationEntryOperator(LoopEnd):
    """Passes the input on, and tells the head when it has ended.

    Neither the end of event time nor idleness passes: event time ends in the loop only when the
    loop has ended, and an idle channel would let the heads' watermarks through, which are beyond
    all time."""

    _on_available: Callable[[], None] | None = None

    def open(self) -> None:
        super().open()
        self._channel.call_when_room(lambda: self.context.run_in_task(self._room))

    @property
    def available(self) -> bool:
        return self._channel.has_room

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    def _room(self) -> None:
        if self._on_available is not None:
            self._on_available()

    def process_batch(self, batch: Batch) -> None:
        self.output.emit(batch)

    def process_watermark(self, watermark: Watermark) -> None:
        if watermark.timestamp < MAX_TIMESTAMP:
            self.output.emit_control(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Drops it: see the class."""

    def finish(self) -> None:
        self._channel.put(InputEnded())


class IterationTailOperator(LoopEnd):
    """Sends records, and the rounds that have passed, back to the head."""

    def open(self) -> None:
        super().open()
        self._records = 0

    def process_batch(self, batch: Batch) -> None:
        if self._channel.over:
            raise ProgramError(
                f"{len(batch)} records came back to {self.context.name} when the loop had "
                "ended, as nothing was left in it: a function in it gave "
                "them later, by a timer on processing time or at the end of its input. "
                "Pass iterate() a max_wait_time longer than such timers take"
            )
        self._channel.put(rows(batch))
        self._records += len(batch)

    def process_watermark(self, watermark: Watermark) -> None:
        if BEYOND_TIME <= watermark.timestamp < MAX_TIMESTAMP:
            if not self._channel.has_head:  # the head sent this watermark
                raise EngineError(
                    f"{self.context.task.subtask_name} and the head of its loop are not in "
                    "one process"
                )
            if watermark.timestamp > BEYOND_TIME:
                self._channel.put(RoundPassed(watermark.timestamp - BEYOND_TIME, self._records))
                self._records = 0

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Drops it: nothing follows the tail."""
