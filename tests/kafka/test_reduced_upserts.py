"""Upserts that are gathered: when they are written, and which."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.connectors.kafka.writing.reduced_upserts import ReducedUpserts
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter


class Listing(Sink, SinkWriter):
    """A sink that is its own writer: lists keys, values and kinds."""

    def __init__(self) -> None:
        self.written: list[list[tuple[int, str, int]]] = []

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return self

    def write_batch(self, batch: Batch) -> None:
        assert isinstance(batch, ColumnBatch)
        kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        rows = batch.data.to_pydict()
        self.written.append(list(zip(rows["k"], rows["v"], kinds)))


class Timers:
    """One timer, which a test fires."""

    def __init__(self) -> None:
        self.waiting: Callable[[], None] | None = None

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timers:
        assert (seconds, self.waiting) == (60.0, None)
        self.waiting = action
        return self

    @property
    def is_set(self) -> bool:
        return self.waiting is not None

    def cancel(self) -> None:
        self.waiting = None


def rows(*changes: tuple[int, str, int]) -> ColumnBatch:
    keys, values, kinds = zip(*changes)
    data = pa.record_batch({"k": list(keys), "v": list(values)})
    return ColumnBatch(data, None, np.array(kinds, np.int8))


def test_the_last_row_of_each_key_is_written_when_many_came_in_time_or_at_a_checkpoint() -> None:
    inner, timers = Listing(), Timers()
    context: Any = SimpleNamespace(timers=timers)
    writer = ReducedUpserts(inner, ["k"], 4, 60.0).create_writer(context)
    writer.write_batch(rows((1, "a", 0), (2, "b", 0)))
    assert (inner.written, timers.is_set) == ([], True)
    writer.write_batch(rows((1, "c", 2), (2, "b", 3)))  # four have come
    assert (inner.written, timers.is_set) == ([[(1, "c", 2), (2, "b", 3)]], False)
    writer.write_batch(rows((3, "d", 0)))
    assert timers.waiting is not None
    timers.waiting()
    assert (inner.written[1:], timers.is_set) == ([[(3, "d", 0)]], False)
    writer.write_batch(rows((3, "e", 2), (3, "f", 2)))
    writer.flush()
    assert (inner.written[2:], timers.is_set) == ([[(3, "f", 2)]], False)
    writer.finish()
    assert len(inner.written) == 3
