"""A sink writer that may wait, on a thread of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flinkpy.core.elements import Batch
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import SinkWriter

QUEUED_BATCHES = 4  # from here on the writer says that it has no room
MOST_BATCHES = 64  # a caller who writes nevertheless waits from here on
CLOSING_S = 2.0  # how long the task waits for a writer to close that has nothing else to do


class ThreadedSinkWriter(SinkWriter):
    """Runs a writer whose ``write_batch``, ``flush`` and ``finish`` may wait, on a thread of its
    own. The task's thread hands it a few batches, and goes on with its other work.

    ``prepare_commit`` and ``snapshot_state`` are called behind a flush, in the task's thread, while
    the other thread has nothing to do: so the writer needs no locks. On cancellation its
    ``interrupt`` is called, if it is waiting, and the thread closes it when the call has ended. A
    ``close`` that takes long is interrupted too, and nobody waits for it any more. ::

        def create_writer(self, context):
            return ThreadedSinkWriter(MyWriter(self.address), context)
    """

    def __init__(self, writer: SinkWriter, context: OperatorContext) -> None:
        self._writer, self._run_in_task = writer, context.run_in_task
        self._on_available: Callable[[], None] = lambda: None
        self._changed = threading.Condition()
        self._queue: deque[Callable[[], None]] = deque()  # the first is being called
        self._error: BaseException | None = None
        self._stopped = self._flushing = self._room_is_missed = False
        self._is_behind = False  # whether something was written since the last flush
        self._thread = threading.Thread(
            target=self._run, name=f"sink {context.task.subtask_name}", daemon=True
        )
        self._thread.start()

    # -- the task's thread -------------------------------------------------------------------------

    def write_batch(self, batch: Batch) -> None:
        self._is_behind = True
        self._put(partial(self._writer.write_batch, batch))

    def flush(self) -> None:
        """Begins a flush, if something was written since the last one."""
        if self._is_behind:
            self._begin(self._writer.flush)

    def finish(self) -> None:
        self._begin(self._writer.finish)

    def _begin(self, call: Callable[[], None]) -> None:
        self._flushing, self._is_behind = True, False
        self._put(call)

    def _put(self, call: Callable[[], None]) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._queue) < MOST_BATCHES or self._error is not None
            )
            self._raise_error()
            self._queue.append(call)
            self._changed.notify_all()

    @property
    def available(self) -> bool:
        with self._changed:
            room = self._error is not None or (
                not self._flushing and len(self._queue) < QUEUED_BATCHES
            )
            self._room_is_missed = not room
            return room

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    @property
    def flushed(self) -> bool:
        with self._changed:
            self._raise_error()
            self._room_is_missed = self._room_is_missed or self._flushing
            return not self._flushing

    def prepare_commit(self) -> Sequence[Any]:
        self._wait_until_idle()
        return self._writer.prepare_commit()

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any]:
        self._wait_until_idle()
        return self._writer.snapshot_state(checkpoint_id)

    def _wait_until_idle(self) -> None:
        """Waits for what was written behind the flush, as timers may do; in general for nothing."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queue or self._error is not None)
            self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """If the thread is in a call, it is interrupted, and nobody waits for it; otherwise it has
        closed the writer when this returns, or has not been able to for a while."""
        with self._changed:
            is_idle = not self._queue
            self._stopped = True
            self._changed.notify_all()
        told = self._error
        if is_idle:
            self._thread.join(CLOSING_S)
        if self._thread.is_alive():
            self._writer.interrupt()
        elif is_idle and told is None:
            self._raise_error()

    # -- the writer's thread -----------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while (call := self._next()) is not None:
                call()
                self._done()
        except BaseException as error:  # SystemExit too: this is the only place that can report it
            self._failed(error)
        try:
            self._writer.close()
        except BaseException as error:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        """The first error counts: that a writer which has failed cannot be closed either is no
        news."""
        with self._changed:
            self._error = error if self._error is None else self._error
            self._flushing = False
            self._queue.clear()
            self._changed.notify_all()
        self._run_in_task(self._tell)

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopped)
            return None if self._stopped else self._queue[0]

    def _done(self) -> None:
        with self._changed:
            self._queue.popleft()
            if not self._queue:
                self._flushing = False
            tell = self._room_is_missed and not self._flushing and len(self._queue) < QUEUED_BATCHES
            self._room_is_missed = self._room_is_missed and not tell
            self._changed.notify_all()
        if tell:
            self._run_in_task(self._tell)

    def _tell(self) -> None:
        self._on_available()

    def __repr__(self) -> str:
        return f"<ThreadedSinkWriter of {self._writer!r}: {len(self._queue)} calls waiting>"
