"""The head of a loop: a source that emits what the loop's tail sent back, and knows when no more
will come.

Its enumerator, in the JobMaster, is the one place that sees all subtasks. When all input has ended,
it begins rounds (``flinkpy.operators.loops.feedback``), and it ends the heads after a round in
which no record came back anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.connectors.source_api.source_operator import SourceReaderOperator
from flinkpy.core.elements import BEYOND_TIME, Batch, RowBatch, Watermark
from flinkpy.core.errors import EngineError
from flinkpy.operators.base import InputStatus
from flinkpy.operators.loops.feedback import (
    FeedbackChannel,
    Key,
    RoundPassed,
    attach,
    channel_key,
    detach,
)

# the pause between two rounds, because rounds are useless while the loop is busy
ROUND_PAUSE_S = 0.01


@dataclass(frozen=True)
class LoopSplit:
    """An empty split that every head gets: splits come back when a reader fails, and so the
    enumerator learns of the failure."""

    split_id: str


@dataclass(frozen=True)
class HeadInputEnded:
    """Head to enumerator: the loop's input has ended in this subtask."""


@dataclass(frozen=True)
class HeadRoundPassed:
    """Head to enumerator: ``records`` came back since the round before."""

    number: int
    records: int


@dataclass(frozen=True)
class BeginRound:
    """Enumerator to head: begin this round."""

    number: int


class IterationSource(Source[LoopSplit]):
    """The source of one loop. ``max_wait_s``: for how long no record must come back before the loop
    counts as empty."""

    has_timestamps = True  # where those have some that go into the loop
    gives_valid_times = True

    def __init__(self, max_wait_s: float = 0.0) -> None:
        self.max_wait_s = max_wait_s

    @property
    def boundedness(self) -> Boundedness:
        """Bounded: the loop ends with its input, so whether the job ends depends on the other
        sources."""
        return Boundedness.BOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[LoopSplit], checkpoint: Any = None
    ) -> IterationEnumerator:
        return IterationEnumerator(context)

    def create_reader(self, context: ReaderContext) -> IterationReader:
        return IterationReader(context, self.max_wait_s)


class IterationEnumerator(SplitEnumerator[LoopSplit]):
    """Decides when the loop has ended."""

    def __init__(self, context: SplitEnumeratorContext[LoopSplit]) -> None:
        self._context = context
        self._ended: set[int] = set()  # subtasks whose input has ended
        self._over: set[int] = set()  # subtasks that were told to end
        self._round = 0  # never goes back: a head that did not restart has seen the earlier rounds
        self._reports: dict[int, int] | None = None  # of the current round: subtask -> records

    def add_reader(self, subtask: int) -> None:
        self._context.assign_splits(subtask, [LoopSplit(f"loop {subtask}")])

    def handle_split_request(self, subtask: int, host: str) -> None:
        """Does nothing: heads request no splits."""

    def add_splits_back(self, splits: list[LoopSplit], subtask: int) -> None:
        """The head has failed, and what was in its part of the loop is lost: its input comes
        again."""
        self._ended.discard(subtask)
        self._over.discard(subtask)
        self._reports = None

    def handle_source_event(self, subtask: int, event: Any) -> None:
        if isinstance(event, HeadInputEnded):
            self._ended.add(subtask)
            if self._reports is None and len(self._ended) == self._context.parallelism:
                self._begin_round()
        elif isinstance(event, HeadRoundPassed):
            if self._reports is not None and event.number == self._round:
                self._reports[subtask] = event.records
                self._look_at(self._reports)
        else:
            raise EngineError(f"the head of a loop sent {event!r:.80}")

    @property
    def _running(self) -> list[int]:
        return [
            subtask for subtask in range(self._context.parallelism) if subtask not in self._over
        ]

    def _begin_round(self) -> None:
        self._round += 1
        self._reports = {}
        for subtask in self._running:
            self._context.send_event_to_reader(subtask, BeginRound(self._round))

    def _look_at(self, reports: dict[int, int]) -> None:
        running = self._running
        if len(reports) < len(running):
            return
        if any(reports.values()):
            self._begin_round()
            return
        self._reports = None
        for subtask in running:
            self._over.add(subtask)
            self._context.signal_no_more_splits(subtask)

    def snapshot_state(self, checkpoint_id: int) -> Any:
        return None

    def __repr__(self) -> str:
        return (
            f"<IterationEnumerator: input ended in {len(self._ended)} of "
            f"{self._context.parallelism}, round {self._round}>"
        )


class IterationReader(SourceReader[LoopSplit]):
    """Reads what comes back. ``begun_round`` is the round whose watermark is to be emitted when
    there is nothing left to read."""

    def __init__(self, context: ReaderContext, max_wait_s: float) -> None:
        self._context, self._max_wait_s = context, max_wait_s
        self.channel = FeedbackChannel()  # replaced by the channel of this subtask
        self.begun_round: int | None = None
        self._over = False
        self._taken = 0
        self._last_event_s = float("-inf")  # when a record last came back, or the input ended
        # When to send it, the report, and how many records had been taken then
        self._report: tuple[float, RoundPassed, int] | None = None

    def poll(self, limit: int) -> Batch | InputStatus:
        while (item := self.channel.take()) is not None:
            if isinstance(item, RowBatch):
                batch = self.channel.take_batch(item, limit)
                self._taken += len(batch)
                self._last_event_s = self._context.clock.monotonic()
                return batch
            if isinstance(item, RoundPassed):
                self._report_later(item)
            else:
                self._last_event_s = self._context.clock.monotonic()
                self._context.send_source_event(HeadInputEnded())
        if self._report is not None:
            self._report_if_due(*self._report)
        if self._over:
            self.channel.over = True
            return InputStatus.END_OF_INPUT
        return InputStatus.NOTHING_AVAILABLE

    def _report_later(self, passed: RoundPassed) -> None:
        now = self._context.clock.monotonic()
        due = (
            now + ROUND_PAUSE_S
            if passed.records
            else max(now, self._last_event_s + self._max_wait_s)
        )
        self._report = due, passed, self._taken

    def _report_if_due(self, due: float, passed: RoundPassed, taken: int) -> None:
        wait = due - self._context.clock.monotonic()
        if wait > 0 and self._taken == taken:
            self._context.wake_up_after(wait)
            return
        self._report = None
        self._context.send_source_event(
            HeadRoundPassed(passed.number, passed.records + self._taken - taken)
        )

    def handle_source_event(self, event: Any) -> None:
        if not isinstance(event, BeginRound):
            raise EngineError(f"the coordinator of a loop sent {event!r:.80}")
        self.begun_round = event.number

    def notify_no_more_splits(self) -> None:
        self._over = True

    def add_splits(self, splits: list[LoopSplit]) -> None:
        """Does nothing: the split is empty."""

    def snapshot_state(self, checkpoint_id: int) -> list[LoopSplit]:
        return []


class IterationHeadOperator(SourceReaderOperator):
    """Emits what comes back, and the watermarks of the rounds. Its watermark is beyond all times
    from the start, so it holds none back."""

    _key: Key | None = None

    def __init__(self, source: IterationSource, iteration: str) -> None:
        super().__init__(source)
        self.iteration = iteration

    def open(self) -> None:
        self._begun = False
        super().open()
        self._key = channel_key(self.iteration, self.context.task.attempt_id)
        channel = self._reading.channel = attach(self._key)
        channel.listen(lambda: self.wake_up())  # a lambda, because the task sets ``wake_up`` later

    def close(self) -> None:
        super().close()
        key, self._key = self._key, None
        if key is not None:
            detach(key)

    @property
    def _reading(self) -> IterationReader:
        reader = self._opened()
        assert isinstance(reader, IterationReader), "made by IterationSource"
        return reader

    def emit_next(self) -> InputStatus:
        if not self._begun:
            self._begun = True
            self.output.emit_control(Watermark(BEYOND_TIME))
        status = super().emit_next()
        reading = self._reading
        if status is InputStatus.NOTHING_AVAILABLE and reading.begun_round is not None:
            number, reading.begun_round = reading.begun_round, None
            self.output.emit_control(Watermark(BEYOND_TIME + number))
        return status
