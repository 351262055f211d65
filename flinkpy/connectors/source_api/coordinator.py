"""The source coordinator: runs a source's enumerator in the JobMaster's thread.

Pure apart from its callbacks: it has no thread, clock or network of its own. It keeps, per subtask, which attempt it talks to, what that
attempt has said (each event once and in order) and which splits it was given; when the attempt fails, they go back to the enumerator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flinkpy.connectors.source_api.event_order import Numbering, Reordering
from flinkpy.connectors.source_api.source import (
    CustomSourceEvent,
    NoMoreSplits,
    ReaderRegistered,
    Source,
    SplitEnumerator,
    SplitRequested,
    SplitsAdded,
)
from flinkpy.connectors.source_api.source_failures import as_user_error
from flinkpy.connectors.source_api.travel import pack, unpack
from flinkpy.connectors.source_api.watermark_alignment import AlignmentGroups, WatermarkReported
from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.core.futures import Future
from flinkpy.core.ids import OperatorId

_LOG = logging.getLogger(__name__)

RunInBackground = Callable[[Callable[[], Any]], "Future[Any]"]


@dataclass
class _Reader:
    """What the coordinator knows of one subtask's present attempt."""

    attempt: int | None = None
    host: str | None = None  # None: not registered
    heard: Reordering = field(default_factory=Reordering)
    said: Numbering = field(default_factory=Numbering)
    held_back: list[Any] = field(default_factory=list)  # events from before its registration
    assigned: list[Any] = field(default_factory=list)
    no_more: bool = False


@dataclass(frozen=True)
class CoordinatorStatistics:
    """Where a source's splits are."""

    registered: int
    splits_assigned: int
    finished_readers: int


class SourceCoordinator:
    """One source's enumerator and its conversation with the readers. All calls come from the JobMaster's thread.

    ``source`` is a Source, or a function that opens one that has travelled. ``send_event(subtask, event)`` sends to the present attempt of
    the subtask and repeats until answered; ``run_in_background`` gives a future that completes in this thread; ``fail`` fails the job;
    ``schedule(delay_s, action)`` is needed by enumerators that look again from time to time; ``restored`` is what ``snapshot_state`` gave;
    ``alignment`` is shared by all sources of a job.
    """

    def __init__(
        self,
        operator_id: OperatorId,
        source: Source[Any] | Callable[[], Any],
        parallelism: int,
        send_event: Callable[[int, Any], object],
        run_in_background: RunInBackground,
        fail: Callable[[BaseException], object],
        schedule: Callable[[float, Callable[[], None]], object] | None = None,
        name: str = "Source",
        restored: bytes | None = None,
        alignment: AlignmentGroups | None = None,
    ) -> None:
        self._alignment = alignment or AlignmentGroups()
        self.operator_id, self.name, self.parallelism = operator_id, name, parallelism
        self._source, self._restored = source, restored
        self._send_event, self._run_in_background, self._fail, self._schedule = send_event, run_in_background, fail, schedule
        self._readers = [_Reader() for _ in range(parallelism)]
        self._enumerator: SplitEnumerator[Any] | None = None
        self._closed = False
        self.failed = False  # what the enumerator knew is lost: the job begins anew, with another coordinator

    # -- life -----------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Makes the enumerator and starts it."""
        self._guarded(self._start)

    def _start(self) -> None:
        source = self._source if isinstance(self._source, Source) else self._source()
        if not isinstance(source, Source):
            raise ProgramError(f"{source!r:.100} is no flinkpy.connectors.source_api.source.Source")
        self._enumerator = source.create_enumerator(_EnumeratorContext(self), None if self._restored is None else unpack(self._restored))
        self._enumerator.start()

    def close(self) -> None:
        """Ends the enumerator; what still arrives is ignored. An error of its ``close`` is logged: the job has ended, nothing can fail."""
        enumerator, self._enumerator, self._closed = self._enumerator, None, True
        try:
            if enumerator is not None:
                enumerator.close()
        except Exception:
            _LOG.exception("closing the enumerator of %s", self.name)

    def snapshot_state(self, checkpoint_id: int) -> bytes:
        """What the enumerator has not handed out."""
        return pack(self._require_enumerator().snapshot_state(checkpoint_id), f"the enumerator's state of {self.name}")

    def _guarded(self, action: Callable[..., None], *args: Any) -> None:
        """Runs code of the enumerator; what it raises fails the job, and nothing more is asked of it."""
        if self._closed:
            return
        try:
            action(*args)
        except BaseException as error:  # SystemExit too: it is the enumerator's, and not meant for the JobMaster
            self._closed = self.failed = True
            self._fail(as_user_error(error, f"{self.name} (enumerator)"))

    # -- from the readers -----------------------------------------------------------------------------------------------------

    def handle_event(self, subtask: int, event: Any, attempt: int | None = None) -> None:
        """An event of a reader. With ``attempt`` given, events of attempts that were reset are ignored."""
        reader = self._readers[subtask]
        if attempt is not None:
            if reader.attempt is not None and attempt < reader.attempt:
                return
            if reader.attempt is not None and attempt > reader.attempt:
                self._guarded(self._reset, subtask, attempt)
                reader = self._readers[subtask]
            reader.attempt = attempt
        for one in reader.heard.accept(event):
            self._guarded(self._handle, subtask, reader, one)

    def _handle(self, subtask: int, reader: _Reader, event: Any) -> None:
        if isinstance(event, ReaderRegistered):
            self._register(subtask, reader, event.host)
        elif reader.host is None:
            reader.held_back.append(event)
        elif isinstance(event, SplitRequested):
            self._require_enumerator().handle_split_request(subtask, event.host)
        elif isinstance(event, CustomSourceEvent):
            self._require_enumerator().handle_source_event(subtask, unpack(event.event))
        elif isinstance(event, WatermarkReported):
            self._alignment.report((self.operator_id, subtask), event, lambda answer: self._say(subtask, reader, answer))
        else:
            raise EngineError(f"source coordinator {self.name}: subtask {subtask} sent {event!r:.100}")

    def _register(self, subtask: int, reader: _Reader, host: str) -> None:
        if reader.host is not None:
            return  # said twice
        reader.host = host
        self._require_enumerator().add_reader(subtask)
        held_back, reader.held_back = reader.held_back, []
        for event in held_back:
            self._handle(subtask, reader, event)

    def subtask_reset(self, subtask: int, attempt: int | None = None) -> None:
        """The subtask's attempt failed or was cancelled: its splits go back to the enumerator, and what it still says is ignored."""
        reader = self._readers[subtask]
        if attempt is not None and reader.attempt is not None and attempt < reader.attempt:
            return  # an older one: done already
        self._guarded(self._reset, subtask, None if attempt is None else attempt + 1)

    def _reset(self, subtask: int, next_attempt: int | None) -> None:
        given = self._readers[subtask].assigned
        self._readers[subtask] = _Reader(attempt=next_attempt)
        self._alignment.forget((self.operator_id, subtask))
        if given:
            self._require_enumerator().add_splits_back(given, subtask)

    def _require_enumerator(self) -> SplitEnumerator[Any]:
        if self._enumerator is None:
            raise EngineError(f"source coordinator {self.name} was not started")
        return self._enumerator

    # -- to the readers (by way of the context) ---------------------------------------------------------------------------------

    def _registered(self, subtask: int, what: str) -> _Reader:
        if not 0 <= subtask < self.parallelism:
            raise ProgramError(f"{self.name}: {what} for subtask {subtask}, there are {self.parallelism}")
        reader = self._readers[subtask]
        if reader.host is None:
            raise ProgramError(f"{self.name}: {what} for subtask {subtask}, whose reader is not registered; wait for add_reader or a split request")
        return reader

    def _assign(self, subtask: int, splits: list[Any]) -> None:
        reader = self._registered(subtask, "splits assigned")
        if reader.no_more:
            raise ProgramError(f"{self.name}: splits assigned to subtask {subtask} after it was told there are no more")
        if splits:
            reader.assigned.extend(splits)
            self._say(subtask, reader, SplitsAdded(pack(splits, f"a split of {self.name}")))

    def _signal_no_more(self, subtask: int) -> None:
        reader = self._registered(subtask, "no more splits signalled")
        if not reader.no_more:
            reader.no_more = True
            self._say(subtask, reader, NoMoreSplits())

    def _send_custom(self, subtask: int, event: Any) -> None:
        self._say(subtask, self._registered(subtask, "an event sent"), CustomSourceEvent(pack(event, f"an event of {self.name}")))

    def _say(self, subtask: int, reader: _Reader, event: Any) -> None:
        self._send_event(subtask, reader.said.wrap(event))

    # -- slow work ----------------------------------------------------------------------------------------------------------------

    def _call_async(self, function: Callable[[], Any], handler: Callable[[Any, BaseException | None], None], period_s: float | None) -> None:
        if self._closed:
            return
        if period_s is not None and self._schedule is None:
            raise EngineError(f"{self.name}: this coordinator has no timers for a periodic call_async")

        def done(future: Future[Any]) -> None:
            self._guarded(handler, None if future.error is not None else future.result(timeout=0), future.error)
            if period_s is not None and self._schedule is not None and not self._closed:
                self._schedule(period_s, lambda: self._call_async(function, handler, period_s))

        self._run_in_background(function).add_done_callback(done)

    def statistics(self) -> CoordinatorStatistics:
        return CoordinatorStatistics(
            sum(reader.host is not None for reader in self._readers), sum(len(reader.assigned) for reader in self._readers),
            sum(reader.no_more for reader in self._readers),
        )

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._enumerator is not None else "not started"
        numbers = self.statistics()
        return f"<SourceCoordinator of {self.name}: {state}, {numbers.registered}/{self.parallelism} readers, {numbers.splits_assigned} splits out>"


class _EnumeratorContext:
    """The coordinator as its enumerator sees it."""

    def __init__(self, coordinator: SourceCoordinator) -> None:
        self._coordinator = coordinator

    @property
    def parallelism(self) -> int:
        return self._coordinator.parallelism

    @property
    def registered_readers(self) -> dict[int, str]:
        return {index: reader.host for index, reader in enumerate(self._coordinator._readers) if reader.host is not None}

    def assign_splits(self, subtask: int, splits: list[Any]) -> None:
        self._coordinator._assign(subtask, splits)

    def signal_no_more_splits(self, subtask: int) -> None:
        self._coordinator._signal_no_more(subtask)

    def send_event_to_reader(self, subtask: int, event: Any) -> None:
        self._coordinator._send_custom(subtask, event)

    def call_async(self, function: Callable[[], Any], handler: Callable[[Any, BaseException | None], None], period_s: float | None = None) -> None:
        self._coordinator._call_async(function, handler, period_s)
