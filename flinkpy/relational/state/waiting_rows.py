"""Rows that wait until the watermark has reached their time.

Those that an operator has no room for in memory, the latest first, lie in a log on disk
(``state.slice_log``), cut at whole multiples of ``WIDTH``. Of equal times those on disk came
before those in memory, as all rows of a slice leave together.

Where rows have their turn in the order in which they came, slices say nothing about it. With a log
each row has a number then, that of its arrival, in a column behind the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

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
ARRIVAL = "$arrival"


class _Part(NamedTuple):
    times: Any
    data: pa.RecordBatch
    nbytes: int  # where there is a log


class WaitingRows:
    """Rows of this schema by the column ``time``; ``keys`` are the columns by which they came
    here. A row is late if its time is not behind the watermark. If not ``by_time``, rows have their
    turn as they came."""

    def __init__(
        self,
        task: TaskInfo,
        schema: pa.Schema,
        time: int,
        keys: Sequence[int] = (),
        *,
        by_time: bool = True,
    ) -> None:
        self._schema = schema
        self._time = time
        self._keys = tuple(keys)
        self._by_time = by_time
        self._max_parallelism = task.max_parallelism
        self._times = GroupTimes(task)
        self._parts: list[_Part] = []
        self._log: SliceLog | None = None
        self._stay = 0  # so many bytes stay, although they are too many
        self._arrived = 0  # rows, where they are counted

    def __len__(self) -> int:
        return sum(len(part.times) for part in self._parts)

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
            self._append(times, data)
        return len(good) - count

    def keep(self, data: pa.RecordBatch) -> None:
        """Takes rows, also late ones: they have their turn with the next watermark."""
        data = with_schema(data, self._schema)
        self._append(self.times(data), data)

    def _append(self, times: Any, data: pa.RecordBatch) -> None:
        if self._numbers_rows:
            data = _numbered(data, self._arrived)
            self._arrived += data.num_rows
        self._parts.append(self._part(times, data))

    def _part(self, times: Any, data: pa.RecordBatch) -> _Part:
        return _Part(times, data, 0 if self._log is None else data.nbytes)

    def take(self, watermark: int) -> pa.RecordBatch | None:
        """The rows whose time has come, in their order: that of time, and else as they came. With
        the column ``ARRIVAL`` where rows are numbered."""
        self._times.advance(watermark)
        if self._log is not None:
            self._bring_back(self._log, watermark)
        due: list[_Part] = []
        rest: list[_Part] = []
        for part in self._parts:
            is_due = part.times <= watermark
            if is_due.all():
                due.append(part)
            elif is_due.any():
                times, data = part.times, part.data
                due.append(_Part(times[is_due], data.filter(pa.array(is_due)), 0))
                rest.append(self._part(times[~is_due], data.filter(pa.array(~is_due))))
            else:
                rest.append(part)
        self._parts = rest
        if not due:
            return None
        data = one_record_batch([part.data for part in due], self._held)
        if self._by_time:
            return _in_order(data, np.concatenate([part.times for part in due]))
        return self._as_they_came(data)

    def _as_they_came(self, data: pa.RecordBatch) -> pa.RecordBatch:
        return _in_order(data, _arrivals(data)) if self._numbers_rows else data

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

        far = restored_log(backend, f"{name} far", key_of, self._note)
        self._log = far.log
        self._arrived = max((note for note in far.notes.values() if note is not None), default=0)
        saved = backend.register_region(name, self.freeze)
        self._times.restore(saved)
        by_group = {key: [data] for key, (_, data) in saved.items() if data}
        for group, pieces in far.pieces.items():
            if pieces:
                by_group.setdefault(key_of(group), [])[:0] = [piece for _, piece in pieces]
        for of_group in by_group.values():
            self._take_back([from_bytes(each) for each in of_group])

    def _note(self) -> Callable[[int], int | None]:
        """What the log has to know of each key group: the next number."""
        arrived = self._arrived if self._numbers_rows else None
        return lambda group: arrived

    @property
    def _numbers_rows(self) -> bool:
        return self._log is not None and not self._by_time

    @property
    def _held(self) -> pa.Schema:
        return self._schema.append(_ARRIVAL) if self._numbers_rows else self._schema

    def _take_back(self, saved: list[pa.RecordBatch]) -> None:
        """Takes rows of one key group. They lie as they came, or have their numbers."""
        if saved[0].num_columns > len(self._schema):
            data = one_record_batch(saved, self._schema.append(_ARRIVAL))
            data = _in_order(data, _arrivals(data)).select(range(len(self._held)))
        else:
            data = one_record_batch(saved, self._schema)
            if self._numbers_rows:
                self._arrived = max(self._arrived, data.num_rows)
                data = _numbered(data, 0)
        self._parts.append(self._part(self.times(data), data))

    def memory(self) -> int:
        """How many bytes may be in memory where there is a log, by estimate."""
        assert self._log is not None
        return self._log.memory()

    def relieve(self) -> None:
        """Rows beyond their share of memory leave it: slices that the watermark has not come to."""
        log = self._log
        if log is None or self._bytes_in_memory() <= max(log.memory(), self._stay):
            return
        data = one_record_batch([part.data for part in self._parts], self._held)
        times = np.concatenate([part.times for part in self._parts])
        starts = times // WIDTH * WIDTH
        distinct, counts = np.unique(starts, return_counts=True)
        sizes = dict(zip(distinct.tolist(), (counts * data.nbytes // len(times)).tolist()))
        leaving = [s for s in to_leave(sizes, log.memory()) if s > self._times.watermark]
        leaves = np.isin(starts, leaving)
        for start, part in by_group(data.filter(pa.array(leaves)), starts[leaves]):
            log.write(
                start, rows_by_group([part], self._held, self._keys, self._max_parallelism, Turns())
            )
        self._parts = []
        if not leaves.all():
            self._parts.append(self._part(times[~leaves], data.filter(pa.array(~leaves))))
        # what cannot leave is not looked at again before there is much more of it
        self._stay = self._bytes_in_memory() * 3 // 2

    def _bytes_in_memory(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def _bring_back(self, log: SliceLog, until: int) -> None:
        """Has in memory the slices that begin until then."""
        since, self._parts = self._parts, []
        for start in sorted(each for each in log.starts if each <= until):
            for group in log.groups:
                for piece in log.pieces(start, group):
                    data = with_schema(from_bytes(piece), self._held)
                    self._parts.append(self._part(self.times(data), data))
            log.forget(start)
        self._parts += since

    # -- snapshots ---------------------------------------------------------------------------------

    def freeze(self) -> Callable[[Turns], Saved]:
        """What gives the rows of now by key group, with how far time has come. Where some are on
        disk they have their numbers, as what is there has."""
        parts, held = [part.data for part in self._parts], self._held
        schema = held if self._log is not None and self._log.starts else self._schema

        def rows(turns: Turns) -> Mapping[int, bytes]:
            data = self._as_they_came(one_record_batch(parts, held))
            data = data.select(range(len(schema)))
            return rows_by_group([data], schema, self._keys, self._max_parallelism, turns)

        return self._times.freeze(rows)


_ARRIVAL = pa.field(ARRIVAL, pa.int64())


def _arrivals(data: pa.RecordBatch) -> Any:
    return data.column(data.num_columns - 1).to_numpy()


def _numbered(data: pa.RecordBatch, first: int) -> pa.RecordBatch:
    numbers = pa.array(np.arange(first, first + data.num_rows))
    return data.append_column(ARRIVAL, numbers)


def _in_order(data: pa.RecordBatch, by: Any) -> pa.RecordBatch:
    """The rows in the order of these numbers; of equal ones as they are."""
    if (by[1:] >= by[:-1]).all():
        return data
    return data.take(pa.array(np.argsort(by, kind="stable")))
