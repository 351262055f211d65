"""A sink whose results the test sees: exactly once, at a pace or stalled, and failing where the
test says."""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter


class KitFailure(Exception):
    """A failure that the kit makes."""


class _Kept:
    """What the subtasks of one sink share, in this process."""

    def __init__(self, pace: int | None, fail_at: int | None) -> None:
        self.changed = threading.Condition()
        self.visible: list[Any] = []
        self.committed: set[str] = set()  # what was committed; it may come again
        self.pace, self.fail_at = pace, fail_at
        self.stalled = False
        self.given = self.writers = 0
        self.last_writers: dict[int, _KeepingWriter] = {}  # of each subtask


_here: weakref.WeakValueDictionary[str, _Kept] = weakref.WeakValueDictionary()


class KeptSink(Sink):
    """Shows each record once, when a checkpoint has it, in the process that made the sink.

    With ``pace`` each subtask takes no more than so many records before a checkpoint is complete.
    With ``fail_at`` it fails, once, at that record."""

    def __init__(self, pace: int | None = None, fail_at: int | None = None) -> None:
        self._id = uuid.uuid4().hex
        self._kept = _here[self._id] = _Kept(pace, fail_at)

    @property
    def visible(self) -> list[Any]:
        """The records that are seen."""
        with self._kept.changed:
            return list(self._kept.visible)

    @property
    def given(self) -> int:
        """How many records came, counting those that came again."""
        return self._kept.given

    @property
    def writers(self) -> int:
        """How many writers were made: one for each subtask and attempt."""
        return self._kept.writers

    @property
    def has_failed(self) -> bool:
        return self._kept.fail_at is None

    def fail_next(self) -> None:
        """Fails, once, at the next record."""
        self._kept.fail_at = self._kept.given + 1

    def stall(self) -> None:
        """Takes nothing from now on."""
        self._kept.stalled = True

    def go_on(self) -> None:
        """Takes records again."""
        self._kept.stalled = False
        for writer in list(self._kept.last_writers.values()):
            writer.wake()

    def wait_until(self, holds: Callable[[], bool], patience_s: float) -> bool:
        """Waits until that holds; False if it does not in this time."""
        with self._kept.changed:
            return self._kept.changed.wait_for(holds, patience_s)

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _KeepingWriter(_here[self._id], context)

    def create_committer(self, context: OperatorContext) -> Committer:
        return _Showing(_here[self._id], context.task.subtask_index)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_kept"}


class _KeepingWriter(SinkWriter):
    def __init__(self, kept: _Kept, context: OperatorContext) -> None:
        self._kept, self._run_in_task = kept, context.run_in_task
        self._pending: list[Any] = []
        self._since_checkpoint = 0
        self._on_available: Callable[[], None] = lambda: None
        kept.last_writers[context.task.subtask_index] = self
        with kept.changed:
            kept.writers += 1
            kept.changed.notify_all()

    def write_batch(self, batch: Batch) -> None:
        kept, rows = self._kept, rows_of(batch)
        with kept.changed:
            kept.given += len(rows)
            kept.changed.notify_all()
        if kept.fail_at is not None and kept.given >= kept.fail_at:
            kept.fail_at = None
            raise KitFailure("the kit lets the job fail here, once")
        self._pending += rows
        self._since_checkpoint += len(rows)

    @property
    def available(self) -> bool:
        return not self._kept.stalled and (
            self._kept.pace is None or self._since_checkpoint < self._kept.pace
        )

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._on_available = on_available

    def wake(self) -> None:
        """From any thread."""
        self._run_in_task(lambda: self._on_available())

    def begin_again(self) -> None:
        """A checkpoint is complete."""
        self._since_checkpoint = 0
        self._on_available()

    def prepare_commit(self) -> Sequence[Any]:
        pending, self._pending = self._pending, []
        return [(uuid.uuid4().hex, pending)] if pending else []


class _Showing(Committer):
    def __init__(self, kept: _Kept, subtask: int) -> None:
        self._kept, self._subtask = kept, subtask
        kept.last_writers.pop(subtask, None)  # that of an earlier attempt

    def commit(self, committables: Sequence[Any]) -> None:
        with self._kept.changed:
            for name, rows in committables:
                if name not in self._kept.committed:
                    self._kept.committed.add(name)
                    self._kept.visible += rows
            self._kept.changed.notify_all()
        writer = self._kept.last_writers.get(self._subtask)
        if writer is not None:
            writer.begin_again()
