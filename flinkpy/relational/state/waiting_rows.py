"""Rows that wait until the watermark has reached their time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.tables_by_group import from_bytes
from flinkpy.operators.context import TaskInfo
from flinkpy.relational.relational_operator import one_record_batch, with_schema
from flinkpy.relational.row_times import milliseconds
from flinkpy.relational.state.group_times import GroupTimes, Saved
from flinkpy.relational.state.rows_by_group import rows_by_group


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
        return len(good) - count

    def keep(self, data: pa.RecordBatch) -> None:
        """Takes rows, also late ones: they have their turn with the next watermark."""
        data = with_schema(data, self._schema)
        self._parts.append((self.times(data), data))

    def take(self, watermark: int, *, by_time: bool = True) -> pa.RecordBatch | None:
        """The rows whose time has come, in the order of time (if not ``by_time`` as they came), and
        else as they came."""
        self._times.advance(watermark)
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
        if not due:
            return None
        data = one_record_batch([each for _, each in due], self._schema)
        times = np.concatenate([each for each, _ in due])
        if not by_time or (times[1:] >= times[:-1]).all():
            return data
        return data.take(pa.array(np.argsort(times, kind="stable")))

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
            data = with_schema(from_bytes(each), self._schema)
            self._parts.append((self.times(data), data))
