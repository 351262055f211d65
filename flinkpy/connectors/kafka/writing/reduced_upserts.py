"""A sink of upserts that gathers rows, and writes only the last one of each key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.operators.context import OperatorContext, TimerHandle
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter


class ReducedUpserts(Sink):
    """Gives the inner sink the last row of each key, when ``most_rows`` have come, ``interval_s``
    after the first one, and at each checkpoint."""

    takes_kinds = True

    def __init__(self, inner: Sink, key: Sequence[str], most_rows: int, interval_s: float) -> None:
        self._inner, self._key = inner, tuple(key)
        self._most_rows, self._interval_s = most_rows, interval_s

    @property
    def owned(self) -> str | None:
        return self._inner.owned

    def check_stream(self, names: Sequence[str] | None, is_columnar: bool) -> None:
        self._inner.check_stream(names, is_columnar)

    def create_committer(self, context: OperatorContext) -> Committer | None:
        return self._inner.create_committer(context)

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        call_later = context.timers.call_later
        return _ReducingWriter(
            self._inner.create_writer(context),
            self._key,
            self._most_rows,
            lambda write: call_later(self._interval_s, write),
        )

    def __repr__(self) -> str:
        return f"ReducedUpserts({self._inner!r})"


class _ReducingWriter(SinkWriter):
    def __init__(
        self,
        inner: SinkWriter,
        key: tuple[str, ...],
        most_rows: int,
        call_later: Callable[[Callable[[], None]], TimerHandle],
    ) -> None:
        self._inner, self._key = inner, key
        self._most_rows, self._call_later = most_rows, call_later
        self._gathered: list[ColumnBatch] = []
        self._timer: TimerHandle | None = None

    def write_batch(self, batch: Batch) -> None:
        assert isinstance(batch, ColumnBatch)
        self._gathered.append(batch)
        if sum(map(len, self._gathered)) >= self._most_rows:
            self._write()
        elif self._timer is None:
            self._timer = self._call_later(self._write)

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._gathered:
            gathered = ColumnBatch.concat(self._gathered)
            self._gathered = []
            self._inner.write_batch(last_of_keys(gathered, self._key))

    @property
    def available(self) -> bool:
        return self._inner.available

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._inner.set_listener(on_available)

    def flush(self) -> None:
        self._write()
        self._inner.flush()

    @property
    def flushed(self) -> bool:
        return self._inner.flushed

    def finish(self) -> None:
        self._write()
        self._inner.finish()

    def prepare_commit(self) -> Sequence[Any]:
        return self._inner.prepare_commit()

    def interrupt(self) -> None:
        self._inner.interrupt()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._inner.close()


def last_of_keys(batch: ColumnBatch, key: Sequence[str]) -> ColumnBatch:
    """The last row of each key, in the order of these rows."""
    index = KeyIndex(key)
    numbers = index.numbers(batch.data).ids
    last = np.zeros(index.size, np.int64)
    last[numbers] = np.arange(len(batch))  # the last assignment wins
    return batch.take(np.sort(last))
