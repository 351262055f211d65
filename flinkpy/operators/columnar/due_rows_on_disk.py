"""Rows by key on disk (``rows_on_disk``), each of which is needed again at a moment, whether a
record of its key comes or not. A column says when.

Beside the rows lie their moments, in the order of time. A row that was read is no longer there, so
a key is either in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk
from flinkpy.state.backend import KeyedStateBackend

DUE = "due"  # the column with the moment of each row


class DueRowsOnDisk(RowsOnDisk):
    """Rows that leave are due later than at any moment for which ``due_rows`` was called."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        name: str,
        max_parallelism: int,
        keys_of: Callable[[pa.RecordBatch], pa.RecordBatch],
    ) -> None:
        super().__init__(backend, name, max_parallelism, keys_of)
        moments = f"{name} due"
        self._moments = backend.timed_entries(moments)
        if self._moments is None:
            backend.take_timed(moments)  # the rows say it too
        self._first = self._first_on_disk()

    @property
    def next_moment(self) -> int | None:
        """No row is due before; None: there is none."""
        return None if self._first == MAX_TIMESTAMP else self._first

    def memory(self) -> int:
        assert self._moments is not None
        return super().memory() + self._moments.memory()

    def leave(self, index: KeyIndex, numbers: Any, rows: pa.RecordBatch) -> None:
        super().leave(index, numbers, rows)
        self._first = min(self._first, int(_dues_of(rows).min()))

    def due_rows(self, until: int) -> Iterator[pa.RecordBatch]:
        """The rows that are due until then, some at a time. They belong to memory now."""
        if self._moments is None or until < self._first:
            return
        if (leaving := self._leaving) is not None:
            rest = leaving.rest(leaving.is_gone)
            rest = rest[_dues_of(leaving.rows)[rest] <= until]
            leaving.is_gone[rest] = True
            for start in range(0, len(rest), self.at_once):
                yield leaving.rows.take(pa.array(rest[start : start + self.at_once]))
        until = min(until, MAX_TIMESTAMP - 1)
        while found := self._moments.take_first(self.at_once, until)[0]:
            keys, names = [key for _, key, _ in found], [name for *_, name in found]
            for rows in super()._read(keys, names):
                self.remove(self._keys_of(rows))
                yield rows
        self._first = min(self._first_on_disk(), self._first_that_leaves())

    def _first_on_disk(self) -> int:
        first = None if self._moments is None else self._moments.first_moment()
        return MAX_TIMESTAMP if first is None else first

    def _first_that_leaves(self) -> int:
        if (leaving := self._leaving) is None:
            return MAX_TIMESTAMP
        rest = leaving.rest(leaving.is_gone)
        return int(_dues_of(leaving.rows)[rest].min(initial=MAX_TIMESTAMP))

    def _put(self, rows: pa.RecordBatch, keys: list[int], names: list[bytes]) -> None:
        super()._put(rows, keys, names)
        assert self._moments is not None
        self._moments.put_named(list(zip(_dues_of(rows).tolist(), keys, names)))

    def _is_leaving(self, places: Any) -> Any:
        """What was written is on disk alone."""
        assert self._leaving is not None
        return places >= self._leaving.written

    def _read(self, keys: list[int], names: list[bytes]) -> Iterator[pa.RecordBatch]:
        assert self._moments is not None
        for rows in super()._read(keys, names):
            found = self._keys_of(rows)
            self.remove(found)
            self._moments.remove_named(list(zip(_dues_of(rows).tolist(), *self._places(found))))
            yield rows


def _dues_of(rows: pa.RecordBatch) -> Any:
    return rows.column(DUE).to_numpy()
