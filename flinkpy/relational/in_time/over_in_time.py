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
from flinkpy.operators.columnar.tables_by_group import from_bytes, key_of_group
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.in_time.frames_in_time import RowsOfNow
from flinkpy.relational.in_time.kept_frames import KeptFrames
from flinkpy.relational.in_time.rows_in_time import RowsInTime
from flinkpy.relational.in_time.running_frames import RunningFrames, can_run
from flinkpy.relational.joins.keyed_rows import KeyedRows
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.relational_operator import with_schema
from flinkpy.relational.row_times import milliseconds
from flinkpy.relational.state.rows_by_group import rows_by_group
from flinkpy.sql.rex.relational_terms import OverGroup

RUNNING, KEPT = "running", "kept"
_SPARE_KEYS = 1 << 12


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
        self._index = KeyIndex(key_names(len(group.partition)))
        self._running = RunningFrames(
            group,
            [call for call, _, runs in calls if runs],
            self.inputs,
            [kind for _, kind, runs in calls if runs],
            peers_count=group.frame.unit == "RANGE",
        )
        self._kept = KeptFrames(group, [call for call, _, runs in calls if not runs], self.inputs)
        self._restore_running(self.backend.register_region(RUNNING, self._freeze_running))
        self._restore_kept(self.backend.register_region(KEPT, self._freeze_kept))

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

    # -- rows --------------------------------------------------------------------------------------

    def take_in_time(self, data: pa.RecordBatch) -> pa.RecordBatch:
        data = with_schema(data, self.inputs)
        ids = self._numbers(data, self.group.partition)
        now = RowsOfNow(data, ids, self._times(data))
        running = [kind for kind, runs in zip(self._kinds, self._can) if runs]
        kept = [kind for kind, runs in zip(self._kinds, self._can) if not runs]
        by_run = iter(self._running.results(now, running) if running else ())
        by_frame = iter(self._kept.results(now, kept) if kept else ())
        results = [next(by_run if runs else by_frame) for runs in self._can]
        if not running and len(self._index) > 2 * len(self._kept.kept) + _SPARE_KEYS:
            self._forget_partitions()
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
        self._index = KeyIndex(key_names(len(self.group.partition)))
        old, self._kept.kept = self._kept.kept.chunks, KeyedRows(self.inputs)
        for each in old:
            ids = self._numbers(each.data, self.group.partition)
            self._kept.kept.add(each.data, ids, each.times, each.met)
