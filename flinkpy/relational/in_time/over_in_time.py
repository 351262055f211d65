"""OverAggregate of STREAMING: each row with aggregates over the rows of its partition before it, by
event time or as rows come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.clock import Turns
from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk
from flinkpy.operators.columnar.tables_by_group import from_bytes, key_of_group
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.in_time.frames_in_time import RowsOfNow
from flinkpy.relational.in_time.kept_frames import KeptFrames
from flinkpy.relational.in_time.partition_rows import PartitionRows
from flinkpy.relational.in_time.rows_in_time import RowsInTime
from flinkpy.relational.in_time.running_frames import RunningFrames, can_run
from flinkpy.relational.joins.keyed_rows import KeyedRows
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.relational_operator import with_schema
from flinkpy.relational.row_times import milliseconds
from flinkpy.relational.state.rows_by_group import rows_by_group
from flinkpy.sql.rex.relational_terms import OverGroup

RUNNING, KEPT, PARTITIONS = "running", "kept", "partitions"
_SPARE_KEYS = 1 << 12
_SWEPT = 1 << 10  # partitions on disk are looked at, at least, with each batch


class OverInTimeOperator(RowsInTime):
    """The row, then the results of the group's calls. Its first sort key is the time; with
    ``is_rowtime`` rows wait for the watermark, and otherwise are taken as they come."""

    def __init__(
        self, group: OverGroup, inputs: pa.Schema, schema: pa.Schema, *, is_rowtime: bool
    ) -> None:
        at = group.keys[0].index
        super().__init__(inputs, at if is_rowtime else None, group.partition, schema)
        if not is_rowtime and group.frame.lower is None:
            # as rows come one after the other, none has peers
            group = replace(group, frame=replace(group.frame, unit="ROWS"))
        self.group = group

    def open(self) -> None:
        super().open()
        group = self.group
        self._functions = OpenedCalls(group.calls, self.context)
        kinds = [field.type for field in self.schema][len(self.inputs) :]
        can = [can_run(group, call, self.inputs) for call in group.calls]
        calls = list(zip(group.calls, kinds, can))
        self._kinds = kinds
        self._can = can
        self._running = RunningFrames(
            group,
            [call for call, _, runs in calls if runs],
            self.inputs,
            [kind for _, kind, runs in calls if runs],
            peers_count=group.frame.unit == "RANGE",
        )
        self._kept = KeptFrames(group, [call for call, _, runs in calls if not runs], self.inputs)
        self._rows = PartitionRows(
            group,
            self.inputs,
            self._running.schema if any(can) else pa.schema([]),
            has_kept=not all(can),
        )
        most = self.context.task.max_parallelism
        disk = RowsOnDisk(self.backend, PARTITIONS, most, self._rows.keys_of)
        self._places = disk.places
        self._begin_anew()
        self._restore_running(self.backend.register_region(RUNNING, self._freeze_running))
        self._restore_kept(self.backend.register_region(KEPT, self._freeze_kept))
        for rows in disk.restored():
            is_new = self._index.find(self._rows.keys_of(rows)) < 0
            self._take_in(rows.filter(pa.array(is_new)))
        self._disk = disk if disk.has_disk and group.partition else None

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    # -- snapshots ---------------------------------------------------------------------------------

    def _freeze_running(self) -> Callable[[Turns], dict[int, bytes]]:
        keys = tuple(range(len(self.group.partition)))
        return self._frozen(self._running.kept, self._running.schema, keys)

    def _freeze_kept(self) -> Callable[[Turns], dict[int, bytes]]:
        return self._frozen(self._kept.kept, self.inputs, self.group.partition)

    def _frozen(
        self, rows: KeyedRows, schema: pa.Schema, keys: tuple[int, ...]
    ) -> Callable[[Turns], dict[int, bytes]]:
        chunks = [(each.data, each.met.copy()) for each in rows.chunks]
        max_parallelism = self.context.task.max_parallelism

        def saved(turns: Turns) -> dict[int, bytes]:
            parts = [data.filter(pa.array(~gone)) for data, gone in chunks]
            found = rows_by_group(parts, schema, keys, max_parallelism, turns)
            return {key_of_group(group, max_parallelism): data for group, data in found.items()}

        return saved

    def _restore_running(self, saved: Mapping[int, bytes]) -> None:
        for each in saved.values():
            data = with_schema(from_bytes(each), self._running.schema)
            ids = self._numbers(data, range(len(self.group.partition)))
            self._running.kept.add(data, ids)

    def _restore_kept(self, saved: Mapping[int, bytes]) -> None:
        for each in saved.values():
            data = with_schema(from_bytes(each), self.inputs)
            ids = self._numbers(data, self.group.partition)
            self._kept.kept.add(data, ids, self._times(data))

    def entries_held(self) -> int:
        return super().entries_held() + len(self._running.kept) + len(self._kept.kept)

    def bytes_held(self) -> int:
        return super().bytes_held() + self._bytes_of_partitions()

    # -- partitions on disk ------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        """Nothing is kept."""
        self._index = KeyIndex(key_names(len(self.group.partition)), self._places)
        self._running.kept = KeyedRows(self._running.schema)
        self._kept.kept = KeyedRows(self.inputs)

    def _bytes_of_partitions(self) -> int:
        return held_bytes(self._index, self._running.kept, self._kept.kept)

    def _bring_back(self, data: pa.RecordBatch) -> None:
        """Has in memory what is on disk of the partitions of these rows."""
        if self._disk is not None and self._disk.holds:
            keys = key_batch([data.column(at) for at in self.group.partition])
            for rows in self._disk.lacked(self._index, keys):
                self._take_in(rows)

    def _take_in(self, rows: pa.RecordBatch) -> None:
        """Partitions that were on disk, of which memory has none."""
        if not rows.num_rows:
            return
        rows = with_schema(rows, self._rows.schema)
        numbers = self._index.numbers(self._rows.keys_of(rows)).ids
        if any(self._can):
            self._running.kept.add(self._rows.running_of(rows), numbers)
        data, owners = self._rows.kept_of(rows, numbers)
        self._kept.kept.add(data, owners, self._times(data))

    def _relieve(self, now: RowsOfNow) -> None:
        """Partitions beyond their share of memory leave it. Those on disk whose rows no later one
        needs are swept there."""
        disk, span = self._disk, self._kept.span
        if disk is None:
            return
        if span is not None and not any(self._can):
            over = int(now.times[-1]) - span - 1
            disk.sweep(max(_SWEPT, len(now.ids)), lambda rows: self._rows.last_times(rows) <= over)
        if disk.is_due(len(now.ids)) and disk.is_too_much(
            len(self._index), self._bytes_of_partitions()
        ):
            index = self._index
            numbers, rows = self._rows.together(self._running.kept, self._kept.kept)
            self._begin_anew()
            disk.leave(index, numbers, rows)

    # -- rows --------------------------------------------------------------------------------------

    def take_in_time(self, data: pa.RecordBatch) -> pa.RecordBatch:
        data = with_schema(data, self.inputs)
        self._bring_back(data)
        ids = self._numbers(data, self.group.partition)
        now = RowsOfNow(data, ids, self._times(data))
        running = [kind for kind, runs in zip(self._kinds, self._can) if runs]
        kept = [kind for kind, runs in zip(self._kinds, self._can) if not runs]
        by_run = iter(self._running.results(now, running) if running else ())
        by_frame = iter(self._kept.results(now, kept) if kept else ())
        results = [next(by_run if runs else by_frame) for runs in self._can]
        if not running and len(self._index) > 2 * len(self._kept.kept) + _SPARE_KEYS:
            self._forget_partitions()
        self._relieve(now)
        return pa.RecordBatch.from_arrays([*data.columns, *results], schema=self.schema)

    def _times(self, data: pa.RecordBatch) -> Any:
        at = self.group.keys[0].index
        return milliseconds(data.column(at), self.inputs.names[at])

    def _numbers(self, data: pa.RecordBatch, keys: Any) -> Any:
        if not self.group.partition:
            return np.zeros(data.num_rows, np.int64)
        return self._index.numbers(key_batch([data.column(at) for at in keys])).ids

    def _forget_partitions(self) -> None:
        """Numbers the partitions anew, when most of them have no rows any more."""
        old = self._kept.kept.chunks
        self._begin_anew()
        for each in old:
            ids = self._numbers(each.data, self.group.partition)
            self._kept.kept.add(each.data, ids, each.times, each.met)
