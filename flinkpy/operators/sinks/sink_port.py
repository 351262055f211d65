"""What a sink is: a recipe that travels, and the writer it makes in each subtask.

A :class:`Sink` is built on the client and pickled into the chain; in the task, ``open`` makes its writer and the other calls go to
that. So whoever runs sinks needs four calls only (``open``, ``write_batch``, ``flush``, ``close``), and may use the rest where it is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from flinkpy.core.elements import Batch
from flinkpy.operators.context import OperatorContext


class SinkWriter(ABC):
    """One subtask's end of a sink. All calls come from the task's thread."""

    @abstractmethod
    def write_batch(self, batch: Batch) -> None:
        """Takes a batch, rows or columns, never empty."""

    @property
    def available(self) -> bool:
        """Whether another batch is welcome. A writer that says False calls its listener when that changes; one that is
        written to all the same waits until there is room: nothing is dropped and nothing grows without bound."""
        return True

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """Who to call, in the task's thread, when ``available`` turns true again."""

    def flush(self) -> None:
        """Hands on what was gathered, and waits until it is out."""

    def finish(self) -> None:
        """The input has ended well: flush and make the result visible (rename files). Not called after a failure."""
        self.flush()

    def close(self) -> None:
        """Gives back what was taken; called whatever happened."""


class Sink(ABC):
    """A recipe for writers; picklable. Subclasses make a writer; everything else is here.

    >>> class Upper(Sink):
    ...     def create_writer(self, context): return UpperWriter(context.task.subtask_index)
    """

    _writer: SinkWriter | None = None
    _listener: Callable[[], None] | None = None

    @abstractmethod
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        """In the task: opens what one subtask writes to."""

    def open(self, context: OperatorContext) -> None:
        self._writer = self.create_writer(context)
        if self._listener is not None:
            self._writer.set_listener(self._listener)

    @property
    def writer(self) -> SinkWriter:
        """The writer, once open."""
        if self._writer is None:
            raise RuntimeError(f"{type(self).__name__} was not opened")
        return self._writer

    def write_batch(self, batch: Batch) -> None:
        self.writer.write_batch(batch)

    @property
    def available(self) -> bool:
        return self._writer is None or self._writer.available

    def set_listener(self, on_available: Callable[[], None]) -> None:
        """May be called before ``open``."""
        self._listener = on_available
        if self._writer is not None:
            self._writer.set_listener(on_available)

    def flush(self) -> None:
        self.writer.flush()

    def finish(self) -> None:
        self.writer.finish()

    def close(self) -> None:
        """Closes the writer if one was made."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_writer", "_listener")}
