"""What OVER of STREAMING keeps of a partition as one row: on its way to disk and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.relational.groups.listed_parts import listed, unlisted
from flinkpy.relational.joins.keyed_rows import KeyedRows
from flinkpy.relational.key_columns import key_batch
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.sql.rex.relational_terms import OverGroup

_LAST, _ROWS = "last", "kept rows"


class PartitionRows:
    """The keys of a partition, what its rows so far come to (``running``, if calls need that), and
    a list of the rows that later ones may need, with the time of the last (``kept``, likewise).
    ``inputs`` is the schema of these, ``running`` that of the former."""

    def __init__(
        self, group: OverGroup, inputs: pa.Schema, running: pa.Schema, *, has_kept: bool
    ) -> None:
        self._partition, self._inputs, self._running = group.partition, inputs, running
        fields = list(running) or [
            inputs.field(at).with_name(f"key {at}") for at in group.partition
        ]
        self._width = len(fields)
        self._list = pa.list_(pa.struct(list(inputs))) if has_kept else None
        if self._list is not None:
            fields += [pa.field(_LAST, pa.int64()), pa.field(_ROWS, self._list)]
        self.schema = pa.schema(fields)

    def keys_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of such rows."""
        return key_batch(rows.columns[: len(self._partition)])

    def last_times(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """When the last row that is kept of each partition was."""
        found: npt.NDArray[np.int64] = rows.column(self._width).to_numpy()
        return found

    def together(
        self, running: KeyedRows, kept: KeyedRows
    ) -> tuple[npt.NDArray[np.int64], pa.RecordBatch]:
        """The number and the row of each partition."""
        data, ids, _ = _all_of(running, self._running)
        rows, owners, times = _all_of(kept, self._inputs)
        if len(self._running):
            order = np.argsort(ids)
            numbers, columns = ids[order], data.take(pa.array(order)).columns
        else:
            numbers, firsts = np.unique(owners, return_index=True)
            columns = [rows.column(at).take(pa.array(firsts)) for at in self._partition]
        if self._list is not None:
            places = np.searchsorted(numbers, owners)
            last = np.full(len(numbers), np.iinfo(np.int64).min)
            np.maximum.at(last, places, times)
            lists = listed(places, rows.columns, self._list, len(numbers))
            columns = [*columns, pa.array(last), lists]
        return numbers, pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def running_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """What the rows of partitions so far come to."""
        return rows.select(range(len(self._running)))

    def kept_of(
        self, rows: pa.RecordBatch, numbers: npt.NDArray[np.int64]
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
        """The rows that are kept of partitions, and the number of the partition of each."""
        if self._list is None:
            return one_record_batch([], self._inputs), np.empty(0, np.int64)
        owners, columns = unlisted(rows.columns[-1], numbers)
        return pa.RecordBatch.from_arrays(columns, schema=self._inputs), owners


def _all_of(kept: KeyedRows, schema: pa.Schema) -> tuple[pa.RecordBatch, Any, Any]:
    """All rows with the numbers of their partitions and their times, the oldest first."""
    parts, ids, times = [], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for chunk in kept.chunks:
        there = ~chunk.met
        parts.append(chunk.data.filter(pa.array(there)))
        ids.append(chunk.ids[there])
        times.append(chunk.times[there])
    return one_record_batch(parts, schema), np.concatenate(ids), np.concatenate(times)
