"""Rows that wait until the watermark has reached their time.

Those that an operator has no room for in memory, the latest first, lie in a log on disk
(``state.slice_log``), cut at whole multiples of ``WIDTH``. Of equal times those on disk came
before those in memory, as all rows of a slice leave together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.tables_by_group import by_group, from_bytes, key_of_group
from flinkpy.operators.context import TaskInfo
from flinkpy.relational.relational_operator import one_record_batch, with_schema
from flinkpy.relational.row_times import milliseconds
from flinkpy.relational.state.group_times import GroupTimes, Saved
from flinkpy.relational.state.rows_by_group import rows_by_group
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.slice_log import SliceLog, restored_log, to_leave

WIDTH = 1 << 13  # milliseconds of rows that leave memory and come back together


class WaitingRows:
    """Rows of this schema by the column ``time``; ``keys`` are the columns by which they came
    here. A row is late if its time is not behind the watermark."""

    def __init__(
        self, task: TaskInfo, schema: pa.Schema, time: int, keys: Sequence[int] = ()
    ) -> None:
        self._schema = schema
        self._time = time
        self._keys = tuple(keys)
        self._max_parallelism = task.max_parallelism
        self._times = GroupTimes(task)
        self._parts: list[tuple[Any, pa.RecordBatch]] = []  # the times of the rows, and the rows
        self._log: SliceLog | None = None
        self._bytes = 0  # of the rows in memory, where there is a log
        self._stay = 0  # so many bytes stay, although they are too many

    def __len__(self) -> int:
        return sum(len(times) for times, _ in self._parts)

    def times(self, data: pa.RecordBatch) -> Any:
        """The times of rows in milliseconds."""
        return milliseconds(data.column(self._time), self._schema.names[self._time])

    def add(self, data: pa.RecordBatch) -> int:
        """Takes rows, but for those that are late; gives the number of these."""
        data = with_schema(data, self._schema)
        times = self.times(data)
        good = times > self._times.of(data, self._keys)
        count = int(good.sum())
        if count < len(times):
            data, times = data.filter(pa.array(good)), times[good]
        if count:
            self._parts.append((times, data))
            self._bytes += data.nbytes
        return len(good) - count

    def keep(self, data: pa.RecordBatch) -> None:
        """Takes rows, also late ones: they have their turn with the next watermark."""
        data = with_schema(data, self._schema)
        self._parts.append((self.times(data), data))

    def take(self, watermark: int, *, by_time: bool = True) -> pa.RecordBatch | None:
        """The rows whose time has come, in the order of time (if not ``by_time`` as they came), and
        else as they came."""
        self._times.advance(watermark)
        if self._log is not None:
            self._bring_back(self._log, watermark)
        due: list[tuple[Any, pa.RecordBatch]] = []
        rest: list[tuple[Any, pa.RecordBatch]] = []
        for times, data in self._parts:
            is_due = times <= watermark
            if is_due.all():
                due.append((times, data))
            elif is_due.any():
                due.append((times[is_due], data.filter(pa.array(is_due))))
                rest.append((times[~is_due], data.filter(pa.array(~is_due))))
            else:
                rest.append((times, data))
        self._parts = rest
        self._count_bytes()
        if not due:
            return None
        data = one_record_batch([each for _, each in due], self._schema)
        times = np.concatenate([each for each, _ in due])
        if not by_time or (times[1:] >= times[:-1]).all():
            return data
        return data.take(pa.array(np.argsort(times, kind="stable")))

    def moments(self, watermark: int) -> list[int]:
        """For which moments ``take`` is called on the way to this watermark, so that rows on disk
        come back a slice at a time."""
        starts = () if self._log is None else self._log.starts
        ends = sorted(start + WIDTH - 1 for start in starts)
        return [*(end for end in ends if end < watermark), watermark]

    # -- rows on disk ------------------------------------------------------------------------------

    def open(self, backend: KeyedStateBackend, name: str) -> None:
        """Takes back what was saved under this name. From now on what is here is saved there."""

        def key_of(group: int) -> int:
            return key_of_group(group, self._max_parallelism)

        far = restored_log(backend, f"{name} far", key_of, lambda: lambda group: None)
        for pieces in far.pieces.values():
            for _, piece in pieces:
                self._put(piece)
        self.restore(backend.register_region(name, self.freeze))
        self._log = far.log
        self._count_bytes()

    def relieve(self) -> None:
        """Rows beyond their share of memory leave it: slices that the watermark has not come to."""
        log = self._log
        if log is None or self._bytes <= max(log.memory(), self._stay):
            return
        data = one_record_batch([each for _, each in self._parts], self._schema)
        times = np.concatenate([each for each, _ in self._parts])
        starts = times // WIDTH * WIDTH
        distinct, counts = np.unique(starts, return_counts=True)
        sizes = dict(zip(distinct.tolist(), (counts * data.nbytes // len(times)).tolist()))
        leaving = [s for s in to_leave(sizes, log.memory()) if s > self._times.watermark]
        leaves = np.isin(starts, leaving)
        for start, part in by_group(data.filter(pa.array(leaves)), starts[leaves]):
            log.write(
                start,
                rows_by_group([part], self._schema, self._keys, self._max_parallelism, Turns()),
            )
        self._parts = []
        if not leaves.all():
            self._parts.append((times[~leaves], data.filter(pa.array(~leaves))))
        self._count_bytes()
        # what cannot leave is not looked at again before there is much more of it
        self._stay = self._bytes + self._bytes // 2

    def _bring_back(self, log: SliceLog, until: int) -> None:
        """Has in memory the slices that begin until then."""
        since, self._parts = self._parts, []
        for start in sorted(each for each in log.starts if each <= until):
            for group in log.groups:
                for piece in log.pieces(start, group):
                    self._put(piece)
            log.forget(start)
        self._parts += since

    def _put(self, saved: bytes) -> None:
        data = with_schema(from_bytes(saved), self._schema)
        self._parts.append((self.times(data), data))

    def _count_bytes(self) -> None:
        if self._log is not None:
            self._bytes = sum(data.nbytes for _, data in self._parts)

    # -- snapshots ---------------------------------------------------------------------------------

    def freeze(self) -> Callable[[Turns], Saved]:
        """What gives the rows of now by key group, with how far time has come."""
        parts = [data for _, data in self._parts]
        return self._times.freeze(
            lambda turns: rows_by_group(
                parts, self._schema, self._keys, self._max_parallelism, turns
            )
        )

    def restore(self, saved: Mapping[int, tuple[int, bytes]]) -> None:
        """Takes back what ``freeze`` has given."""
        for each in self._times.restore(saved):
            self._put(each)
