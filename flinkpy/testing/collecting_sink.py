"""A sink whose records the test can read during and after the job, as long as both run in one
process."""

from __future__ import annotations

import threading
import uuid
import weakref
from typing import Any

from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter


class _Collected:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stamped: list[tuple[Any, int | None]] = []


_here: weakref.WeakValueDictionary[str, _Collected] = weakref.WeakValueDictionary()


class CollectingSink(Sink):
    """Keeps the records of all subtasks in the order of arrival. For embedded jobs: on Ray the
    records are in another process.

    >>> from flinkpy.testing import embedded_environment
    >>> env, sink = embedded_environment(), CollectingSink()
    >>> stream = env.from_collection([1, 2]).map(lambda x: x + 1).sink_to(sink)
    >>> result = env.execute()
    >>> sink.values
    [2, 3]
    """

    def __init__(self) -> None:
        self._id = uuid.uuid4().hex
        self._collected = _here[self._id] = _Collected()

    @property
    def values(self) -> list[Any]:
        """The records received so far."""
        return [value for value, _ in self.stamped]

    @property
    def stamped(self) -> list[tuple[Any, int | None]]:
        """(record, event time in milliseconds or None) for each record."""
        with self._collected.lock:
            return list(self._collected.stamped)

    def clear(self) -> None:
        """Forgets the records received so far."""
        with self._collected.lock:
            self._collected.stamped.clear()

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        collected = _here.get(self._id)
        if collected is None:
            raise ProgramError(
                "a CollectingSink collects in the process that made it: run the job with "
                "execution.target: embedded, and keep the sink"
            )
        return _CollectingWriter(collected)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_collected"}

    def __repr__(self) -> str:
        return "CollectingSink()"


class _CollectingWriter(SinkWriter):
    def __init__(self, collected: _Collected) -> None:
        self._collected = collected

    def write_batch(self, batch: Batch) -> None:
        rows = batch.values if isinstance(batch, RowBatch) else batch.data.to_pylist()
        stamps = (
            [None] * len(rows)
            if batch.timestamps is None
            else [int(stamp) for stamp in batch.timestamps]
        )
        with self._collected.lock:
            self._collected.stamped.extend(zip(rows, stamps))
