"""TemporalJoin of STREAMING: each row of the left meets the row that the right had for its key at
the time of the row.

Rows of both sides wait until the watermark has reached their time; then no other version can come
that would have been met. Of each key the version that stands is kept, and those ahead of the
watermark. A row that is late meets the version that stands, if that is not newer, as in Flink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.core.clock import Turns
from flinkpy.core.elements import ColumnBatch, Watermark
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.column_operators import explained
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.changed_rows import AFTER, INSERT, changed_pieces
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.unending_join import UnendingJoin
from flinkpy.relational.joins.versions_of_keys import NewVersions, VersionsOfKeys
from flinkpy.relational.relational_operator import empty_batch, pieces
from flinkpy.relational.state.group_times import Saved
from flinkpy.relational.state.waiting_rows import WaitingRows

REGIONS = ("left", "right")
VERSIONS = "versions"
_KIND = "$kind"


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
            WaitingRows(task, schema, time, keys)
            for schema, time, keys in zip(self._held, (times.left, times.right), self._columns)
        )
        for waiting, name in zip(self._waiting, REGIONS):
            waiting.restore(self.backend.register_region(name, self._frozen(waiting)))
        keys = self.spec.right_keys
        self._versions = VersionsOfKeys(self.right, keys, times.right, times.ttl_ms, self.context)
        self._versions.open(self.backend, VERSIONS)

    @staticmethod
    def _frozen(waiting: WaitingRows) -> Callable[[], Callable[[Turns], Saved]]:
        return lambda: waiting.freeze()

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

    # -- time --------------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> None:
        with explained(None, self.context):
            self._advance(watermark.timestamp)
        self.output.emit_control(watermark)

    def _advance(self, until: int) -> None:
        left = self._waiting[0].take(until, by_time=False)
        right = self._waiting[1].take(until)
        if left is None and right is None:
            return
        left = empty_batch(self._held[0]) if left is None else left
        right = empty_batch(self._held[1]) if right is None else right
        kinds = _kinds(left)
        keys, can_meet = self._keys[0].of(left)
        new = NewVersions(
            right.select(self.right.names),
            self._waiting[1].times(right),
            np.isin(_kinds(right), (INSERT, AFTER)),
        )
        rows, places = self._versions.at(keys, self._waiting[0].times(left), new)
        if can_meet is not None:
            places[~can_meet.to_numpy(zero_copy_only=False)] = -1
        self._emit(left.select(self.left.names), kinds, rows, places)

    def _emit(self, left: pa.RecordBatch, kinds: Any, rows: pa.RecordBatch, places: Any) -> None:
        """The rows of the left, in the order in which they came, with the rows at these places."""
        met = np.flatnonzero(places >= 0)
        passed = self._joined.passing(left.take(pa.array(met)), rows.take(pa.array(places[met])))
        if passed is not None:
            places[met[~passed]] = -1
        if not self.spec.keeps_left:
            stays = np.flatnonzero(places >= 0)
            left, kinds, places = left.take(pa.array(stays)), kinds[stays], places[stays]
        beside = rows.take(pa.array(places, mask=places < 0))
        given = self._joined.joined(left, beside)
        batches = changed_pieces(given, kinds) if kinds.any() else pieces(given)
        for each in batches:
            self.output.emit(each)


def _kinds(held: pa.RecordBatch) -> Any:
    return held.column(held.num_columns - 1).to_numpy()
