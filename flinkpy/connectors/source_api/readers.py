"""Source readers made of split readers. They read splits one after the other, or all concurrently;
in the task's thread or, if reading may block, on threads of their own.

A :class:`SplitReader` reads one split and knows its position. Everything else is implemented here
once: requests for splits, the end of input, snapshots, threads."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from flinkpy.connectors.source_api.source import (
    BeginReading,
    InputStatus,
    ReaderContext,
    SourceReader,
    SourceSplit,
)
from flinkpy.core.elements import Batch, RowBatch

S = TypeVar("S", bound=SourceSplit)

QUEUED_BATCHES = 4  # how many batches a thread reads ahead
JOINED_RECORDS = 1024  # short batches that wait for the task are joined up to this many records


@dataclass(frozen=True)
class NothingYet:
    """The split has no batch at the moment, and has not ended.

    ``retry_after_s``: the reader is asked again after this many seconds. None: it calls
    ``context.wake_up`` itself when there is a batch."""

    retry_after_s: float | None = None


UNTIL_WOKEN = NothingYet()


class Acknowledgements(Generic[S]):
    """Tells how far splits were read in a checkpoint that is complete: those that were being read,
    and those that ended since the one before.

    ``tell`` gets each split once, as the newest of these checkpoints has it.
    """

    def __init__(self, tell: Callable[[list[S]], None]) -> None:
        self._tell = tell
        self._ended: list[S] = []
        self._pending: dict[int, list[S]] = {}

    def split_ended(self, split: S) -> None:
        self._ended.append(split)

    def begin(self, checkpoint_id: int, being_read: Iterable[S]) -> None:
        self._pending[checkpoint_id] = [*self._ended, *being_read]
        self._ended = []

    def complete(self, checkpoint_id: int) -> None:
        newest: dict[str, S] = {}
        for number in sorted(number for number in self._pending if number <= checkpoint_id):
            newest.update((split.split_id, split) for split in self._pending.pop(number))
        if newest:
            self._tell(list(newest.values()))


def _nobody(splits: list[Any]) -> None:
    """Nobody wants to know how far splits were read."""


class SplitReader(ABC, Generic[S]):
    """Reads one split."""

    @abstractmethod
    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        """The next batch, of at most about ``limit`` records; ``NothingYet`` while there is none;
        None at the end of the split."""

    @abstractmethod
    def snapshot(self) -> S:
        """The split, with its position after the last batch that ``next_batch`` returned."""

    def position(self) -> str | None:
        """Where the last batch came from, for error messages; None if that is not known."""
        return None

    def interrupt(self) -> None:
        """Called from another thread: makes a blocked ``next_batch`` return or raise."""

    def close(self) -> None:
        """Releases what the reader opened."""


class SequentialReader(SourceReader[S]):
    """Reads one split after the other in the task's thread, and requests another when it has none.

    ``acknowledge`` is called in the task's thread when a checkpoint is complete, with the splits
    that were begun, as they are in it: what was read of them never comes again."""

    def __init__(
        self,
        context: ReaderContext,
        open_split: Callable[[S], SplitReader[S]],
        acknowledge: Callable[[list[S]], None] = _nobody,
    ) -> None:
        self._context = context
        self._open_split = open_split
        self._acknowledgements = Acknowledgements(acknowledge)
        self._splits: deque[S] = deque()
        self._current: SplitReader[S] | None = None
        self._asked = self._no_more = False

    def poll(self, limit: int) -> Batch | InputStatus:
        while True:
            current = self._current
            if current is None:
                if not self._splits:
                    return self._without_split()
                self._current = current = self._open_split(self._splits.popleft())
            batch = current.next_batch(limit)
            if batch is None:
                self._current = None
                self._acknowledgements.split_ended(current.snapshot())
                current.close()
            elif isinstance(batch, NothingYet):
                if batch.retry_after_s is not None:
                    self._context.wake_up_after(batch.retry_after_s)
                return InputStatus.NOTHING_AVAILABLE
            elif len(batch):
                return batch

    def _without_split(self) -> InputStatus:
        if self._no_more:
            return InputStatus.END_OF_INPUT
        if not self._asked:
            self._asked = True
            self._context.request_split()
        return InputStatus.NOTHING_AVAILABLE

    def add_splits(self, splits: list[S]) -> None:
        self._asked = False
        self._splits.extend(splits)

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def snapshot_state(self, checkpoint_id: int) -> list[S]:
        being_read = [] if self._current is None else [self._current.snapshot()]
        self._acknowledgements.begin(checkpoint_id, being_read)
        return [*being_read, *self._splits]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._acknowledgements.complete(checkpoint_id)

    def position(self) -> str | None:
        return self._current.position() if self._current is not None else None

    def close(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.close()

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {len(self._splits)} splits "
            f"waiting{', one open' if self._current is not None else ''}>"
        )


class SideBySideReader(SourceReader[S]):
    """Reads all its splits concurrently, a batch of each in turn. For splits without end: one after
    the other, the second would never be read.

    With ``awaits_all`` it reads nothing before its enumerator has said that no more splits will
    come. So the event time of splits that it was restored with does not pass a split that had not
    been assigned at the checkpoint. ``SplitShares`` says it at once; ``SplitDiscovery`` says when
    all that were there at the beginning are assigned. ``acknowledge`` is that of
    ``SequentialReader``."""

    def __init__(
        self,
        context: ReaderContext,
        open_split: Callable[[S], SplitReader[S]],
        acknowledge: Callable[[list[S]], None] = _nobody,
        *,
        awaits_all: bool = False,
    ) -> None:
        self._context, self._awaits_all = context, awaits_all
        self._open_split = open_split
        self._acknowledgements = Acknowledgements(acknowledge)
        self._splits: deque[S] = deque()
        self._open: deque[tuple[str, SplitReader[S]]] = deque()  # the next one to read comes first
        self._last: tuple[str, SplitReader[S]] | None = None  # the split of the last batch
        self._no_more = False

    def poll(self, limit: int) -> Batch | InputStatus:
        if self._awaits_all:
            return InputStatus.NOTHING_AVAILABLE
        while self._splits:
            split = self._splits.popleft()
            self._open.append((split.split_id, self._open_split(split)))
            self._context.split_begun(split.split_id)
        retries: list[float] = []
        for _ in range(len(self._open)):
            self._open.rotate(-1)
            split_id, reader = self._last = self._open[-1]
            batch = reader.next_batch(limit)
            if batch is None:
                self._open.pop()
                self._acknowledgements.split_ended(reader.snapshot())
                reader.close()
                self._context.split_finished(split_id)
            elif isinstance(batch, NothingYet):
                if batch.retry_after_s is not None:
                    retries.append(batch.retry_after_s)
            elif len(batch):
                return batch
            else:
                retries.append(0.0)
        if not self._open and self._no_more:
            return InputStatus.END_OF_INPUT
        if retries:
            self._context.wake_up_after(min(retries))
        return InputStatus.NOTHING_AVAILABLE

    def add_splits(self, splits: list[S]) -> None:
        self._splits.extend(splits)

    def notify_no_more_splits(self) -> None:
        self._no_more, self._awaits_all = True, False

    def handle_source_event(self, event: Any) -> None:
        if isinstance(event, BeginReading):
            self._awaits_all = False

    def snapshot_state(self, checkpoint_id: int) -> list[S]:
        being_read = [reader.snapshot() for _, reader in self._open]
        self._acknowledgements.begin(checkpoint_id, being_read)
        return [*being_read, *self._splits]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._acknowledgements.complete(checkpoint_id)

    def split_of_batch(self) -> str | None:
        return self._last[0] if self._last is not None else None

    def position(self) -> str | None:
        return self._last[1].position() if self._last is not None else None

    def close(self) -> None:
        with ExitStack() as closing:  # all of them, even if one of them raises
            while self._open:
                closing.callback(self._open.pop()[1].close)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {len(self._splits)} splits waiting, {len(self._open)} open>"
        )


@dataclass(frozen=True)
class _Read(Generic[S]):
    """What the reading thread hands to the task: a batch and the split positioned after it, or the
    end of the split, or an error."""

    batch: Batch | None
    split: S
    position: str | None
    error: BaseException | None = None


class ThreadedSplitReader(SplitReader[S]):
    """Runs a blocking split reader on a thread of its own, a few batches ahead. The task's thread
    never waits for it."""

    def __init__(
        self,
        split: S,
        open_split: Callable[[S], SplitReader[S]],
        limit: int,
        wake_up: Callable[[], None],
        name: str,
    ) -> None:
        self._split = split
        self._position: str | None = None
        self._open_split = open_split
        self._limit = limit
        self._wake_up = wake_up
        self._queue: deque[_Read[S]] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._inner: SplitReader[S] | None = None
        # a daemon, so that a read that cannot be interrupted does not keep the process alive
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # -- the task's thread -------------------------------------------------------------------------

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        with self._changed:
            if not self._queue:
                return UNTIL_WOKEN
            read = self._queue.popleft()
            self._changed.notify_all()
        self._split, self._position = read.split, read.position
        if read.error is not None:
            raise read.error
        return read.batch

    def snapshot(self) -> S:
        return self._split

    def position(self) -> str | None:
        return self._position

    def close(self) -> None:
        with self._changed:
            self._stopped = True
            inner = self._inner
            self._changed.notify_all()
        if inner is not None:
            # nobody waits for the thread, which closes the reader when its read returns
            inner.interrupt()

    # -- the reading thread ------------------------------------------------------------------------

    def _run(self) -> None:
        split = self._split
        try:
            inner = self._open_split(split)
            with self._changed:
                self._inner = inner
            try:
                self._read_all(inner)
            finally:
                inner.close()
        except BaseException as error:  # SystemExit too: this is the only place that can report it
            self._put(_Read(None, self._split, None, error))

    def _read_all(self, inner: SplitReader[S]) -> None:
        while not self._stopped:
            batch = inner.next_batch(self._limit)
            if isinstance(batch, NothingYet):
                raise TypeError(
                    "a blocking split reader waits by itself; it does not return NothingYet"
                )
            if not self._put(_Read(batch, inner.snapshot(), inner.position())) or batch is None:
                return

    def _put(self, read: _Read[S]) -> bool:
        """Waits for room in the queue; returns False once the reader is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or len(self._queue) < QUEUED_BATCHES)
            if self._stopped:
                return False
            was_empty = not self._queue
            if not self._joined_to_last(read):
                self._queue.append(read)
        if was_empty:  # otherwise the task is still taking batches from the queue
            self._wake_up()
        return True

    def _joined_to_last(self, read: _Read[S]) -> bool:
        """Appends a short row batch to the last one that still waits, so that a fast stream of
        single records moves in batches."""
        last = self._queue[-1] if self._queue else None
        if (
            last is None
            or not isinstance(last.batch, RowBatch)
            or not isinstance(read.batch, RowBatch)
        ):
            return False
        of_last, of_read = last.batch.timestamps, read.batch.timestamps
        if (of_last is None) is not (of_read is None) or len(last.batch) + len(
            read.batch
        ) > JOINED_RECORDS:
            return False
        last.batch.values.extend(read.batch.values)
        if of_last is not None and of_read is not None:
            of_last.extend(of_read)
        self._queue[-1] = _Read(last.batch, read.split, last.position)
        return True
