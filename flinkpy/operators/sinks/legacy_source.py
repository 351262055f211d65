"""The operator of a SourceFunction, whose ``run`` may block."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from flinkpy.common.watermark_strategy import watermark_of
from flinkpy.core.elements import CheckpointBarrier, RowBatch, Watermark, WatermarkStatus
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import InputStatus, SourceOperator
from flinkpy.operators.event_time.valid_times import times_of
from flinkpy.operators.function_contexts.checkpointed import CheckpointedFunction
from flinkpy.operators.functions import close_function, open_function
from flinkpy.operators.output.output_isolation import copied
from flinkpy.operators.user_errors import user_code_error
from flinkpy.state.snapshots.saved_state import FrozenState

LOCK_POLL_S = 0.005


class _Stamped:
    """A value with its event time, on its way from the source's thread."""

    __slots__ = ("timestamp", "value")

    def __init__(self, value: Any, timestamp: int) -> None:
        self.value, self.timestamp = value, timestamp


class _Cancelled(BaseException):
    """Raised inside ``collect`` to end a source's ``run``. It is not an Exception, so the user's
    ``except Exception`` does not catch it."""


class BoundedHandOver:
    """A bounded queue from the source's thread to the task's thread. The sender waits for room; the
    receiver never waits.

    The receiver sets ``_hungry`` when it finds nothing, and only then does the sender wake it up,
    so a fast source costs no wake-ups. There is one sender and one receiver; appending to a
    ``deque`` and popping from it are safe without a lock."""

    def __init__(self, capacity: int, wake_up: Callable[[], None]) -> None:
        self._capacity, self._wake_up = capacity, wake_up
        self._items: deque[Any] = deque()
        self._hungry = False
        self._sender_waits = False
        self._room = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: object) -> None:
        """Adds the item, then waits while the queue is full. Ends the source's ``run`` if the
        receiver has gone away."""
        if self._closed:
            raise _Cancelled
        self._items.append(item)
        if self._hungry:
            self._hungry = False
            self._wake_up()
        if len(self._items) >= self._capacity:
            self._wait_for_room()

    def _wait_for_room(self) -> None:
        with self._room:
            self._sender_waits = True
            while len(self._items) >= self._capacity and not self._closed:
                self._room.wait()
            self._sender_waits = False
        if self._closed:
            raise _Cancelled

    def take(self, limit: int) -> list[Any]:
        """At most ``limit`` items, without waiting. If there are none, the next ``put`` wakes the
        receiver."""
        items = self._items
        taken = [items.popleft() for _ in range(min(limit, len(items)))]
        if self._sender_waits:
            with self._room:
                self._room.notify()
        if not taken:
            self._hungry = True
            if items:  # put after the loop above and before ``_hungry`` was set
                self._hungry = False
                return self.take(limit)
        return taken

    def close(self) -> None:
        """The receiver goes away: releases a waiting sender."""
        with self._room:
            self._closed = True
            self._room.notify_all()
        self._items.clear()


class _LegacySourceContext:
    """The context for the user's ``run``. ``own`` copies a value, so that the function can no
    longer change it."""

    def __init__(
        self, queue: BoundedHandOver, lock: threading.RLock, own: Callable[[Any], Any]
    ) -> None:
        self._queue = queue
        self._lock = lock
        self._own = own

    def collect(self, value: object) -> None:
        self._queue.put(self._own(value))

    def get_checkpoint_lock(self) -> threading.RLock:
        return self._lock

    def collect_with_timestamp(self, value: object, timestamp: int) -> None:
        self._queue.put(_Stamped(self._own(value), timestamp))

    def emit_watermark(self, watermark: Watermark | int) -> None:
        self._queue.put(watermark_of(watermark))

    def mark_as_temporarily_idle(self) -> None:
        self._queue.put(WatermarkStatus(idle=True))


class LegacySourceOperator(SourceOperator):
    """Runs a SourceFunction. Its ``run`` may block, and so has a thread of its own.

    The thread hands records over through a queue of two batches, and waits when it is full: that is
    back-pressure. The task never waits for the thread. On cancellation the task calls ``cancel()``,
    the next ``collect`` ends ``run``, and the thread itself calls the function's ``close()``.

    A CheckpointedFunction's state must match the records before the barrier. So its ``run`` holds
    the checkpoint lock over ``collect`` and the change of its state. At a barrier the task takes
    the lock, and emits what is in the queue."""

    def __init__(self, source_function: Any) -> None:
        if not callable(getattr(source_function, "run", None)):
            raise ProgramError(
                f"a source function has run(ctx) and cancel(); {source_function!r:.80} has no run"
            )
        self.function = source_function
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        self._error: BaseException | None = None
        self._ended = False
        self._idle = False
        open_function(self.function, self.context)
        self._queue = BoundedHandOver(2 * self.context.batch_records, lambda: self.wake_up())
        self._lock, self._locked = threading.RLock(), False
        self._thread = threading.Thread(
            target=self._run, name=f"source {self.context.task.subtask_name}", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        try:
            self.function.run(
                _LegacySourceContext(
                    self._queue,
                    self._lock,
                    (lambda value: value) if self.context.object_reuse else copied,
                )
            )
        except _Cancelled:
            pass
        except BaseException as error:  # SystemExit too, or it would end this thread unnoticed
            self._error = error
        try:
            close_function(self.function)
        except BaseException as error:
            self._error = self._error or error
        self._ended = True
        self.wake_up()

    @property
    def running(self) -> bool:
        """Whether the source's thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def emit_next(self) -> InputStatus:
        ended = self._ended  # read before the queue: after the end nothing is added to the queue
        items = self._queue.take(min(self.batch_size, self.context.batch_records))
        if items:
            self._emit(items)
            self.rows_emitted += len(items)
            return InputStatus.MORE_AVAILABLE
        if not ended:
            return InputStatus.MORE_AVAILABLE if self._ended else InputStatus.NOTHING_AVAILABLE
        if self._error is not None:
            raise user_code_error(self._error, self.context) from self._error
        return InputStatus.END_OF_INPUT

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        if isinstance(self.function, CheckpointedFunction) and not self._locked:
            # The source may hold it while it waits for room in the queue
            while not self._lock.acquire(timeout=LOCK_POLL_S):
                self._emit_queued()
            self._locked = True
            self._emit_queued()

    def freeze_state(self, barrier: CheckpointBarrier) -> FrozenState:
        try:
            return super().freeze_state(barrier)
        finally:
            self._unlock()

    def _emit_queued(self) -> None:
        while items := self._queue.take(self.context.batch_records):
            self._emit(items)

    def _unlock(self) -> None:
        if self._locked:
            self._locked = False
            self._lock.release()

    def _emit(self, items: list[Any]) -> None:
        start = 0
        for index, item in enumerate(items):
            if isinstance(item, (Watermark, WatermarkStatus)):
                self._emit_records(items[start:index])
                start = index + 1
                self._emit_time(item)
        self._emit_records(items[start:])

    def _emit_time(self, element: Watermark | WatermarkStatus) -> None:
        """A source that emits a watermark is active again, or nobody would listen to it."""
        if isinstance(element, Watermark):
            self._become_active()
        else:
            self._idle = element.idle
        self.output.emit_control(element)

    def _become_active(self) -> None:
        if self._idle:
            self._idle = False
            self.output.emit_control(WatermarkStatus(idle=False))

    def _emit_records(self, items: list[Any]) -> None:
        """Emits records as batches; a batch has either only records with timestamps or only records
        without."""
        if items:
            self._become_active()
        kinds = set(map(type, items))
        if _Stamped not in kinds:
            if items:
                self.output.emit(RowBatch(items))
        elif len(kinds) == 1:
            values, stamps = [item.value for item in items], [item.timestamp for item in items]
            self.output.emit(
                RowBatch(values, times_of(values, stamps, self.context, "collect_with_timestamp()"))
            )
        else:
            half = next(
                index
                for index, item in enumerate(items)
                if (type(item) is _Stamped) != (type(items[0]) is _Stamped)
            )
            self._emit_records(items[:half])
            self._emit_records(items[half:])

    def close(self) -> None:
        if self._thread is not None:
            self._unlock()
        if self._thread is None:
            close_function(self.function)
        elif not self._ended:
            self._queue.close()
            cancel = getattr(self.function, "cancel", None)
            if cancel is not None:
                cancel()
