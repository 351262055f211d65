"""What a sink is: a description that travels to the workers, and the writer that it makes in each subtask.

A :class:`Sink` is built on the client and pickled into the chain. In the task, ``open`` makes its writer, and the
other calls go to the writer. So code that runs sinks needs only ``open``, ``write_batch``, ``flush`` and ``close``,
and may use the other calls if they are there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from flinkpy.core.elements import Batch
from flinkpy.operators.context import OperatorContext


class SinkWriter(ABC):
    """Writes for one subtask of a sink. All calls come from the task's thread."""

    @abstractmethod
    def write_batch(self, batch: Batch) -> None:
        """Writes a batch of rows or columns, which is never empty."""

    @property
    def available(self) -> bool:
        """Whether the writer has room for another batch. When a writer that returned False has room again, it calls
        its listener. If it is given a batch without having room, it waits: it drops nothing, and does not grow
        without bound."""
        return True

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Sets the function to call, in the task's thread, when ``available`` becomes true again."""

    def flush(self) -> None:
        """Writes out what was gathered, and waits until that is done."""

    def finish(self) -> None:
        """Called when the input has ended well, not after a failure: flushes, and makes the result visible (renames
        files)."""
        self.flush()

    def close(self) -> None:
        """Releases the writer's resources; called in any case."""


class Sink(ABC):
    """Describes a sink and makes its writers; can be pickled. Subclasses define ``create_writer``.

    >>> class Upper(Sink):
    ...     def create_writer(self, context): return UpperWriter(context.task.subtask_index)
    """

    _writer: SinkWriter | None = None
    _listener: Callable[[], None] | None = None

    @abstractmethod
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        """Called in the task: opens what this subtask writes to."""

    def open(self, context: OperatorContext) -> None:
        self._writer = self.create_writer(context)
        if self._listener is not None:
            self._writer.set_listener(self._listener)

    @property
    def writer(self) -> SinkWriter:
        """The writer; raises RuntimeError before ``open``."""
        if self._writer is None:
            raise RuntimeError(f"{type(self).__name__} was not opened")
        return self._writer

    def write_batch(self, batch: Batch) -> None:
        self.writer.write_batch(batch)

    @property
    def available(self) -> bool:
        return self._writer is None or self._writer.available

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Sets the writer's listener; may be called before ``open``."""
        self._listener = on_available
        if self._writer is not None:
            self._writer.set_listener(on_available)

    def flush(self) -> None:
        self.writer.flush()

    def finish(self) -> None:
        self.writer.finish()

    def close(self) -> None:
        """Closes the writer if there is one."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_writer", "_listener")}
