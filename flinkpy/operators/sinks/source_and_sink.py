"""The operators at both ends of a job: for sources whose ``run`` may block, and for sinks of every
kind."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from itertools import repeat
from typing import Any

from flinkpy.common.watermark_strategy import watermark_of
from flinkpy.core.elements import Batch, CheckpointBarrier, RowBatch, Watermark, WatermarkStatus
from flinkpy.core.errors import ProgramError
from flinkpy.graph.chain_config import ChainingStrategy
from flinkpy.operators.base import BatchForm, InputStatus, OneInputOperator, SourceOperator
from flinkpy.operators.checkpointed import CheckpointedFunction, initialize_function
from flinkpy.operators.event_time.valid_times import times_of
from flinkpy.operators.functions import (
    Function,
    RuntimeContext,
    SinkFunction,
    close_function,
    open_function,
)
from flinkpy.operators.output.output_isolation import copied
from flinkpy.operators.sink_context import SinkContext, takes_context
from flinkpy.operators.sinks.commits import SinkCommits
from flinkpy.operators.sinks.sink_port import Sink
from flinkpy.operators.user_errors import user_code_error
from flinkpy.state.saved_state import FrozenState

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

    def put(self, item: Any) -> None:
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

    def collect(self, value: Any) -> None:
        self._queue.put(self._own(value))

    def get_checkpoint_lock(self) -> threading.RLock:
        return self._lock

    def collect_with_timestamp(self, value: Any, timestamp: int) -> None:
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


class SinkOperator(OneInputOperator):
    """The end of a stream: a connector's sink (``write_batch``), a SinkFunction, a callable, or any
    object with ``write``.

    A :class:`Sink` with a committer shows each record exactly once (``sinks.commits``); all others
    at least once."""

    batch_form = BatchForm.AS_IN_STREAM
    chaining = ChainingStrategy.ALWAYS
    is_sink = True

    def __init__(self, sink: Any) -> None:
        if not (
            hasattr(sink, "write_batch")
            or hasattr(sink, "write")
            or isinstance(sink, SinkFunction)
            or callable(sink)
        ):
            raise ProgramError(
                f"{sink!r:.80} is no sink: pass a Sink, a SinkFunction, a callable, or an "
                "object with write(value)"
            )
        self.sink = sink
        self._has_own_batches = hasattr(sink, "write_batch")
        self._opened = False
        self._listener: Callable[[], None] | None = None
        self._sink_context: SinkContext | None = None
        self._commits: SinkCommits | None = None

    @property
    def owned(self) -> str | None:
        """What only one sink of a job may write with."""
        return self.sink.owned if isinstance(self.sink, Sink) else None

    def open(self) -> None:
        self._opened = True
        if self._has_own_batches:
            initialize_function(self.sink, self.context, RuntimeContext(self.context))
            if isinstance(self.sink, Sink):
                self._commits = SinkCommits(self.sink, self.context)
                self._commits.open()
            else:
                self.sink.open(self.context)
            if self._listener is not None and hasattr(self.sink, "set_listener"):
                self.sink.set_listener(self._listener)
        else:
            open_function(self.sink, self.context)
            if not isinstance(self.sink, Function) and callable(getattr(self.sink, "open", None)):
                self.sink.open()
            self._write = (
                self.sink.invoke
                if isinstance(self.sink, SinkFunction)
                else getattr(self.sink, "write", self.sink)
            )
            if isinstance(self.sink, SinkFunction) and takes_context(self.sink.invoke):
                self._sink_context = SinkContext(self.context)

    @property
    def may_pause(self) -> bool:
        return self._has_own_batches and hasattr(self.sink, "available")

    @property
    def available(self) -> bool:
        return bool(self.sink.available) if self.may_pause else True

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._listener = on_available

    def process_batch(self, batch: Batch) -> None:
        if self._has_own_batches:
            self.sink.write_batch(batch)
            return
        value: Any = None
        write, context = self._write, self._sink_context
        values = batch.values if isinstance(batch, RowBatch) else batch.data.to_pylist()
        try:
            if context is None:
                for value in values:
                    write(value)
            else:
                for value, context._timestamp in zip(values, batch.timestamps or repeat(None)):
                    write(value, context)
        except Exception as error:
            raise user_code_error(error, self.context, value) from error

    def process_watermark(self, watermark: Watermark) -> None:
        if self._sink_context is not None:
            self._sink_context._watermark = watermark.timestamp
        super().process_watermark(watermark)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        if self._commits is None or not self._commits.ended():
            self._flush()

    @property
    def flushed(self) -> bool:
        return bool(getattr(self.sink, "flushed", True)) if self._has_own_batches else True

    @property
    def drained(self) -> bool:
        return self.flushed if self._commits is None else self._commits.ended()

    def _flush(self) -> None:
        flush = getattr(self.sink, "flush", None)
        if callable(flush):
            flush()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._commits is not None:
            self._commits.commit_up_to(checkpoint_id)

    def finish(self) -> None:
        if self._commits is not None:
            self._commits.finish()
        elif self._has_own_batches and hasattr(self.sink, "finish"):
            self.sink.finish()
        else:
            self._flush()

    @property
    def waits_for_final_checkpoint(self) -> bool:
        return self._commits is not None and self._commits.waiting

    def commit_pending(self) -> None:
        """Makes visible what was prepared, without waiting for a checkpoint: for a job that takes
        none any more."""
        if self._commits is not None:
            self._commits.commit_all()

    def close(self) -> None:
        if not self._opened:
            return
        try:
            close = getattr(self.sink, "close", None)
            if callable(close):
                close()
        finally:
            if self._commits is not None:
                self._commits.close()
