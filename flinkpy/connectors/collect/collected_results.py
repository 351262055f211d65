"""The results that one thread of the client has received and the other has not taken yet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from flinkpy.connectors.collect.held_results import HeldResults
from flinkpy.core.files.spool import Spooled, contents
from flinkpy.network.wire.client_channel import UNKNOWN, Frame, IncomingChannel


class Taken(NamedTuple):
    """A batch of a subtask. Without a payload, the batches taken of the subtask so far came from an
    earlier attempt and are void. ``made_room`` in a queue that was full."""

    subtask: int
    payload: bytes | None
    made_room: bool


class CollectedResults:
    """A queue of about ``most_bytes`` between the thread that reads from the sinks and the one that
    iterates. What waits for a checkpoint may lie in files under ``folders``."""

    def __init__(self, most_bytes: int, folders: Sequence[str] = ()) -> None:
        self._most_bytes = most_bytes
        # Taken directly and not through the condition, in which Ctrl-C could interrupt and leave it
        # locked.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # (subtask, payload); None: the records given of the subtask are void
        self._queue: deque[tuple[int, Spooled | None]] = deque()
        self._attempts: dict[int, int] = {}  # subtask -> the latest
        # subtasks of whose latest attempt something was taken from the queue
        self._given: set[int] = set()
        self._held = HeldResults(folders)
        self._error: BaseException | None = None
        # of a job that has failed: the newest that is complete
        self._checkpoint_id: int | None = None
        self.batches = 0
        self.queued_bytes = 0
        self.job_ended = False
        self.closed = False
        self.complete = False  # nothing more comes

    @property
    def has_failed(self) -> bool:
        """Whether the job has ended with an error."""
        return self._error is not None

    @property
    def is_full(self) -> bool:
        return self.queued_bytes >= self._most_bytes

    # -- any thread --------------------------------------------------------------------------------

    def end_job(self, error: BaseException | None, checkpoint_id: int | None) -> None:
        """The job has ended, which counts the first time."""
        with self._lock:
            if not self.job_ended:
                self.job_ended = True
                self._error = error
                self._checkpoint_id = checkpoint_id

    def close(self) -> bool:
        """Iterating ends; answers whether it had been closed before."""
        with self._lock:
            already, self.closed = self.closed, True
            self._changed.notify_all()
        return already

    # -- the iterating thread ----------------------------------------------------------------------

    def take(self) -> Taken | None:
        """Waits for the next batch. None at the end; raises the job's error there."""
        with self._lock:
            self._changed.wait_for(lambda: self._queue or self.complete or self.closed)
            if not self._queue:
                if self._error is not None:
                    raise self._error
                return None
            subtask, payload = self._queue.popleft()
            was_full = self.is_full
            if payload is not None:
                self.queued_bytes -= len(payload)
                self._given.add(subtask)
            made_room = was_full and not self.is_full
        return Taken(subtask, None if payload is None else contents(payload), made_room)

    # -- the reading thread ------------------------------------------------------------------------

    def is_later(self, connection: IncomingChannel) -> bool:
        """Whether it is that of a later attempt of its subtask than those seen so far."""
        return connection.attempt > self._attempts.get(connection.subtask, UNKNOWN)

    def add(self, connection: IncomingChannel, frames: list[Frame]) -> None:
        """These frames came over the connection."""
        subtask, attempt, begin = connection.subtask, connection.attempt, connection.begin
        with self._lock:
            if self.is_later(connection):
                self._attempts[subtask] = attempt
                if begin is None or not begin.restored:
                    self._begin_again(subtask)
            if begin is not None:
                self._show(self._held.take(subtask, attempt, begin.parallelism, frames))
            elif attempt == self._attempts.get(subtask, UNKNOWN):
                self._show([(subtask, frame) for frame in frames if isinstance(frame, bytes)])

    def _begin_again(self, subtask: int) -> None:
        """Drops the records of the subtask's earlier attempts."""
        self._held.forget(subtask)
        self._queue = deque(each for each in self._queue if each[0] != subtask)
        self.queued_bytes = sum(len(payload) for _, payload in self._queue if payload is not None)
        if subtask in self._given:
            self._given.discard(subtask)
            self._queue.append((subtask, None))
            self._changed.notify_all()

    def _show(self, batches: Sequence[tuple[int, Spooled]]) -> None:
        if batches:
            self.batches += len(batches)
            self._queue.extend(batches)
            self.queued_bytes += sum(len(payload) for _, payload in batches)
            self._changed.notify_all()

    def all_is_read(self) -> None:
        """The sinks send nothing more: what the job's last checkpoint has is shown too."""
        with self._lock:
            if self._checkpoint_id is not None:
                self._show(self._held.job_failed(self._checkpoint_id))
        self.complete = True

    def reading_failed(self, error: BaseException) -> None:
        """A bug: the iterating thread must see it."""
        self._error = self._error or error

    def reading_ends(self) -> None:
        with self._lock:
            self.complete = True
            self._changed.notify_all()
