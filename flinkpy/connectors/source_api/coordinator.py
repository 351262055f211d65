"""The source coordinator: runs a source's enumerator in the JobMaster's thread.

Apart from its callbacks it is pure: it has no thread, clock or network of its own. For each subtask
it keeps the attempt it talks to, and the splits it assigned. When the attempt fails, they go back
to the enumerator. The courier between JobMaster and TaskExecutor brings each event once and in
order (``flinkpy.actors.rpc.delivery.courier``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

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
from flinkpy.connectors.source_api.watermark_alignment import AlignmentGroups, WatermarkReported
from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.core.futures import Future
from flinkpy.core.ids import OperatorId
from flinkpy.core.program.code import dumps_data, loads
from flinkpy.core.secrets.engine_logs import engine_logger

_LOG = engine_logger(__name__)


class CoordinatorContext(Protocol):
    """What a coordinator has its JobMaster do."""

    def send_event(self, subtask: int, event: Any) -> None:
        """Sends to the subtask's current attempt, and repeats until it is answered."""
        ...

    def run_in_background(self, function: Callable[[], Any]) -> Future[Any]:
        """Runs it in another thread. The future completes in the coordinator's thread."""
        ...

    def schedule(self, delay_s: float, action: Callable[[], None]) -> object:
        """Runs the action later, in the coordinator's thread."""
        ...

    def fail_job(self, error: BaseException) -> object: ...


@dataclass
class _Reader:
    """What the coordinator knows of a subtask's current attempt."""

    attempt: int | None = None
    host: str | None = None  # None: not registered yet
    held_back: list[Any] = field(default_factory=list)  # events that came before its registration
    assigned: list[Any] = field(default_factory=list)  # since the last checkpoint began
    # checkpoint under way -> what was assigned between the one before and this one
    before: dict[int, list[Any]] = field(default_factory=dict)
    no_more: bool = False

    def splits_since(self, checkpoint_id: int | None) -> list[Any]:
        """What was assigned to it and is not in the reader's state at that checkpoint. None: all of
        it."""
        behind = [
            splits
            for number, splits in self.before.items()
            if checkpoint_id is None or number > checkpoint_id
        ]
        return [split for splits in (*behind, self.assigned) for split in splits]


@dataclass(frozen=True)
class CoordinatorStatistics:
    """Counts of a source's readers and splits."""

    registered: int
    splits_assigned: int
    finished_readers: int


class SourceCoordinator:
    """Runs one source's enumerator and its exchange with the readers. It is itself the enumerator's
    ``SplitEnumeratorContext``. All calls come from the JobMaster's thread.

    ``source`` is a Source, or a function that unpickles one. ``restored`` comes from
    ``snapshot_state``. All sources of a job share ``alignment``."""

    def __init__(
        self,
        operator_id: OperatorId,
        source: Source[Any] | Callable[[], Any],
        parallelism: int,
        context: CoordinatorContext,
        name: str = "Source",
        restored: bytes | None = None,
        alignment: AlignmentGroups | None = None,
    ) -> None:
        self._alignment = alignment or AlignmentGroups()
        self.operator_id = operator_id
        self.name = name
        self.parallelism = parallelism
        self._source, self._restored = source, restored
        self._context = context
        self._readers = [_Reader() for _ in range(parallelism)]
        self._enumerator: SplitEnumerator[Any] | None = None
        self._closed = False
        # if True, the enumerator's state is lost, and the job restarts with another coordinator
        self.failed = False

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Creates the enumerator and starts it."""
        self._guarded(self._start)

    def _start(self) -> None:
        source = self._source if isinstance(self._source, Source) else self._source()
        if not isinstance(source, Source):
            raise ProgramError(f"{source!r:.100} is no flinkpy.connectors.source_api.source.Source")
        self._enumerator = source.create_enumerator(
            self, None if self._restored is None else loads(self._restored)
        )
        self._enumerator.start()

    def close(self) -> None:
        """Closes the enumerator; later events are ignored. An error in its ``close`` is only
        logged, because the job has ended."""
        enumerator, self._enumerator, self._closed = self._enumerator, None, True
        try:
            if enumerator is not None:
                enumerator.close()
        except BaseException:  # SystemExit too, as in ``_guarded``
            _LOG.exception("closing the enumerator of %s", self.name)

    def snapshot_state(self, checkpoint_id: int) -> bytes:
        """The splits that the enumerator has not assigned, pickled. Those that it has are in the
        readers' state at this checkpoint. Raises what the enumerator raises, as an error of its
        program; the enumerator goes on."""
        for reader in self._readers:
            reader.before[checkpoint_id], reader.assigned = reader.assigned, []
        try:
            return dumps_data(
                self._require_enumerator().snapshot_state(checkpoint_id),
                f"the enumerator's state of {self.name}",
            )
        except Exception as error:
            raise as_user_error(error, f"{self.name} (enumerator)") from error

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The readers' splits of this checkpoint never come back."""
        for reader in self._readers:
            reader.before = {
                number: splits for number, splits in reader.before.items() if number > checkpoint_id
            }

    def _guarded(self, action: Callable[..., None], *args: Any) -> None:
        """Runs code of the enumerator. If it raises, the job fails and the enumerator is not called
        again."""
        if self._closed:
            return
        try:
            action(*args)
        except BaseException as error:  # SystemExit too: user code must not end the JobMaster
            self._closed = self.failed = True
            self._context.fail_job(as_user_error(error, f"{self.name} (enumerator)"))

    # -- from the readers --------------------------------------------------------------------------

    def handle_event(self, subtask: int, event: Any, attempt: int | None = None) -> None:
        """Handles an event of a reader. If ``attempt`` is given, events of earlier attempts are
        ignored."""
        reader = self._readers[subtask]
        if attempt is not None:
            if reader.attempt is not None and attempt < reader.attempt:
                return
            if reader.attempt is not None and attempt > reader.attempt:
                self._guarded(self._reset_reader, subtask, attempt)
                reader = self._readers[subtask]
            reader.attempt = attempt
        self._guarded(self._handle_event, subtask, reader, event)

    def _handle_event(self, subtask: int, reader: _Reader, event: Any) -> None:
        if isinstance(event, ReaderRegistered):
            self._register(subtask, reader, event.host)
        elif reader.host is None:
            reader.held_back.append(event)
        elif isinstance(event, SplitRequested):
            self._require_enumerator().handle_split_request(subtask, event.host)
        elif isinstance(event, CustomSourceEvent):
            self._require_enumerator().handle_source_event(subtask, loads(event.event))
        elif isinstance(event, WatermarkReported):
            self._alignment.report(
                (self.operator_id, subtask),
                event,
                lambda answer: self._context.send_event(subtask, answer),
            )
        else:
            raise EngineError(
                f"source coordinator {self.name}: subtask {subtask} sent {event!r:.100}"
            )

    def _register(self, subtask: int, reader: _Reader, host: str) -> None:
        if reader.host is not None:
            return  # registered already
        reader.host = host
        self._require_enumerator().add_reader(subtask)
        held_back, reader.held_back = reader.held_back, []
        for event in held_back:
            self._handle_event(subtask, reader, event)

    def subtask_reset(
        self, subtask: int, attempt: int | None = None, checkpoint_id: int | None = None
    ) -> None:
        """The subtask's attempt failed or was cancelled: its splits go back to the enumerator, but
        for those that the next attempt finds in its state of the checkpoint. Its later events are
        ignored."""
        reader = self._readers[subtask]
        if attempt is not None and reader.attempt is not None and attempt < reader.attempt:
            return  # an older attempt: reset already
        self._guarded(
            self._reset_reader, subtask, None if attempt is None else attempt + 1, checkpoint_id
        )

    def _reset_reader(
        self, subtask: int, next_attempt: int | None, checkpoint_id: int | None = None
    ) -> None:
        given = self._readers[subtask].splits_since(checkpoint_id)
        self._readers[subtask] = _Reader(attempt=next_attempt)
        self._alignment.forget((self.operator_id, subtask))
        if given:
            self._require_enumerator().add_splits_back(given, subtask)

    def _require_enumerator(self) -> SplitEnumerator[Any]:
        if self._enumerator is None:
            raise EngineError(f"source coordinator {self.name} was not started")
        return self._enumerator

    # -- the enumerator's context (``SplitEnumeratorContext``): to the readers ---------------------

    @property
    def registered_readers(self) -> dict[int, str]:
        return {
            index: reader.host
            for index, reader in enumerate(self._readers)
            if reader.host is not None
        }

    def _registered(self, subtask: int, what: str) -> _Reader:
        if not 0 <= subtask < self.parallelism:
            raise ProgramError(
                f"{self.name}: {what} for subtask {subtask}, there are {self.parallelism}"
            )
        reader = self._readers[subtask]
        if reader.host is None:
            raise ProgramError(
                f"{self.name}: {what} for subtask {subtask}, whose reader is not registered; "
                "wait for add_reader or a split request"
            )
        return reader

    def assign_splits(self, subtask: int, splits: list[Any]) -> None:
        reader = self._registered(subtask, "splits assigned")
        if reader.no_more:
            raise ProgramError(
                f"{self.name}: splits assigned to subtask {subtask} after it was told there "
                "are no more"
            )
        if splits:
            reader.assigned.extend(splits)
            self._context.send_event(
                subtask, SplitsAdded(dumps_data(splits, f"a split of {self.name}"))
            )

    def signal_no_more_splits(self, subtask: int) -> None:
        reader = self._registered(subtask, "no more splits signalled")
        if not reader.no_more:
            reader.no_more = True
            self._context.send_event(subtask, NoMoreSplits())

    def send_event_to_reader(self, subtask: int, event: Any) -> None:
        self._registered(subtask, "an event sent")
        self._context.send_event(
            subtask, CustomSourceEvent(dumps_data(event, f"an event of {self.name}"))
        )

    # -- the enumerator's context: slow work -------------------------------------------------------

    def call_async(
        self,
        function: Callable[[], Any],
        handler: Callable[[Any, BaseException | None], None],
        period_s: float | None = None,
    ) -> None:
        """Runs a slow ``function`` in the background (again every ``period_s``), then
        ``handler(result, error)`` in the JobMaster's thread."""
        if self._closed:
            return

        def done(future: Future[Any]) -> None:
            self._guarded(
                handler,
                None if future.error is not None else future.result(timeout=0),
                future.error,
            )
            if period_s is not None and not self._closed:
                self._context.schedule(
                    period_s, lambda: self.call_async(function, handler, period_s)
                )

        self._context.run_in_background(function).add_done_callback(done)

    def statistics(self) -> CoordinatorStatistics:
        return CoordinatorStatistics(
            sum(reader.host is not None for reader in self._readers),
            sum(len(reader.splits_since(None)) for reader in self._readers),
            sum(reader.no_more for reader in self._readers),
        )

    def __repr__(self) -> str:
        state = (
            "closed" if self._closed else "open" if self._enumerator is not None else "not started"
        )
        numbers = self.statistics()
        return (
            f"<SourceCoordinator of {self.name}: {state}, "
            f"{numbers.registered}/{self.parallelism} readers, {numbers.splits_assigned} "
            "splits out>"
        )
