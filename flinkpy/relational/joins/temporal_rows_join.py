"""TemporalJoin of STREAMING: each row of the left meets the row that the right had for its key at
the time of the row.

Rows of both sides wait until the watermark has reached their time, beyond their share of memory on
disk; then no other version can come that would have been met. Of each key the version that stands
is kept, and those ahead of the watermark. A row that is late meets the version that stands, if that
is not newer, as in Flink."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.core.elements import ColumnBatch, Watermark
from flinkpy.core.options.engine import spill_folders
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.column_operators import explained
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.relational.changed_rows import AFTER, INSERT, changed_pieces
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.unending_join import UnendingJoin
from flinkpy.relational.joins.versions_of_keys import NewVersions, VersionsOfKeys
from flinkpy.relational.ordering.sorted_runs import SortedRuns
from flinkpy.relational.relational_operator import empty_batch, pieces
from flinkpy.relational.state.waiting_rows import ARRIVAL, WaitingRows
from flinkpy.sql.rex.rex_nodes import SortKey

REGIONS = ("left", "right")
VERSIONS = "versions"
SORTED_BYTES = 32 << 20  # of rows that go out may be in memory; with less, runs have small blocks
_KIND = "$kind"
_BESIDE = (_KIND, pa.int8()), (ARRIVAL, pa.int64())
# rows that go out, and beside them the kinds, and where rows are numbered the arrivals, of the left
Results: TypeAlias = "tuple[pa.RecordBatch, pa.RecordBatch]"


@dataclass(frozen=True)
class TemporalTimes:
    """The time columns of both sides. With ``ttl_ms`` (0: none) a version that nobody asked for so
    long is forgotten."""

    left: int
    right: int
    ttl_ms: int = 0


class TemporalRowsJoinOperator(UnendingJoin):
    """``spec`` is INNER or LEFT; its keys are the primary key of the right. What goes out has the
    kinds of the left, ``changes``."""

    batch_form = BatchForm.AT_END_OF_TIME
    takes_changes = ALL_CHANGES

    def __init__(
        self,
        spec: JoinSpec,
        times: TemporalTimes,
        left: pa.Schema,
        right: pa.Schema,
        schema: pa.Schema,
        changes: ChangelogMode,
    ) -> None:
        super().__init__(spec, left, right, schema)
        self.times = times
        self.emits_changes: ChangelogMode = changes

    def open(self) -> None:
        super().open()
        times, task = self.times, self.context.task
        self._held = tuple(
            schema.append(pa.field(_KIND, pa.int8())) for schema in (self.left, self.right)
        )
        self._waiting = tuple(
            WaitingRows(task, schema, time, keys, by_time=by_time)
            for schema, time, keys, by_time in zip(
                self._held, (times.left, times.right), self._columns, (False, True)
            )
        )
        for waiting, name in zip(self._waiting, REGIONS):
            waiting.open(self.backend, name)
        keys = self.spec.right_keys
        self._versions = VersionsOfKeys(self.right, keys, times.right, times.ttl_ms, self.context)
        self._versions.open(self.backend, VERSIONS)

    def entries_held(self) -> int:
        return sum(map(len, self._waiting)) + len(self._versions)

    def bytes_held(self) -> int:
        return held_bytes(self._waiting, self._versions)

    def take(self, batch: ColumnBatch, side: int) -> None:
        kinds = np.zeros(len(batch), np.int8) if batch.kinds is None else batch.kinds
        data = batch.data
        if not side and self.times.ttl_ms:
            self._versions.touch(self._keys[0].of(data)[0])
        self._waiting[side].keep(
            pa.RecordBatch.from_arrays([*data.columns, pa.array(kinds)], schema=self._held[side])
        )
        self._waiting[side].relieve()

    # -- time --------------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> None:
        with explained(None, self.context):
            self._advance(watermark.timestamp)
        self.output.emit_control(watermark)

    def _advance(self, until: int) -> None:
        moments = sorted({each for side in self._waiting for each in side.moments(until)})
        results: Iterator[Results] = (
            each for moment in moments for each in self._results_at(moment)
        )
        if len(moments) > 1:
            results = self._as_the_left_came(results)
        for given, beside in results:
            kinds = beside.column(0).to_numpy()
            for each in changed_pieces(given, kinds) if kinds.any() else pieces(given):
                self.output.emit(each)

    def _results_at(self, moment: int) -> Iterator[Results]:
        """What comes of the rows that wait for this moment, in the order of the left's."""
        left, right = (each.take(moment) for each in self._waiting)
        if left is None and right is None:
            return
        left = empty_batch(self._held[0]) if left is None else left
        right = empty_batch(self._held[1]) if right is None else right
        keys, can_meet = self._keys[0].of(left)
        new = NewVersions(
            right.select(self.right.names),
            self._waiting[1].times(right),
            np.isin(right.column(len(self.right)).to_numpy(), (INSERT, AFTER)),
        )
        rows, places = self._versions.at(keys, self._waiting[0].times(left), new)
        if can_meet is not None:
            places[~can_meet.to_numpy(zero_copy_only=False)] = -1
        yield self._joined_rows(left, rows, places)

    def _joined_rows(self, held: pa.RecordBatch, rows: pa.RecordBatch, places: Any) -> Results:
        """The rows of the left with the rows at these places."""
        left, met = held.select(self.left.names), np.flatnonzero(places >= 0)
        passed = self._joined.passing(left.take(pa.array(met)), rows.take(pa.array(places[met])))
        if passed is not None:
            places[met[~passed]] = -1
        if not self.spec.keeps_left:
            stays = np.flatnonzero(places >= 0)
            held, places = held.take(pa.array(stays)), places[stays]
            left = held.select(self.left.names)
        partners = rows.take(pa.array(places, mask=places < 0))
        count = len(self.left)
        return self._joined.joined(left, partners), held.select(range(count, held.num_columns))

    def _as_the_left_came(self, results: Iterable[Results]) -> Iterator[Results]:
        """The same in the order of arrival. What has no room in memory lies in files meanwhile."""
        at = len(self.schema)
        schema = pa.schema([*self.schema, *(pa.field(name, kind) for name, kind in _BESIDE)])
        folders = spill_folders(self.context.configuration)
        memory = OperatorMemory(max(SORTED_BYTES, self._waiting[0].memory()), folders)
        ordered = SortedRuns((SortKey(at + 1),), schema, memory)
        try:
            for given, beside in results:
                if len(given):
                    columns = [*given.columns, *beside.columns]
                    ordered.add(pa.RecordBatch.from_arrays(columns, names=schema.names))
            for data in ordered.batches():
                yield data.select(range(at)), data.select([at])
        finally:
            memory.close()
