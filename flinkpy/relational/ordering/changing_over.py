"""OVER by a column that is no time, in STREAMING: a row that comes or goes changes the results of
all rows behind it. The rows of each partition are kept; for those of a batch the results are
computed before and after it, as in BATCH, and what differs goes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.base import BatchForm
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.changed_rows import are_added
from flinkpy.relational.groups.changed_results import ChangedResults
from flinkpy.relational.ordering.over_frames import bounds_of
from flinkpy.relational.ordering.over_functions import OverRows, over
from flinkpy.relational.ordering.partitioned_rows import partitioned
from flinkpy.relational.relational_operator import RelationalOperator, one_record_batch, with_schema
from flinkpy.relational.state.ordered_rows import OrderedRows
from flinkpy.relational.state.taken_back import contents, taken_back
from flinkpy.sql.rex.relational_terms import OverGroup

ROWS = "rows"


class ChangingOverOperator(KeyedStateOperator, RelationalOperator):
    """The row, then the results of the group's calls, whose frames end at the row. ``inputs`` is
    the schema of its input, ``changes`` are the kinds of rows that it gives. With ``ttl_ms`` (0:
    none) a partition to which no row came for so long is forgotten."""

    batch_form = BatchForm.AT_END_OF_TIME
    takes_changes = ALL_CHANGES
    keeps_timestamps = False

    def __init__(
        self,
        group: OverGroup,
        inputs: pa.Schema,
        schema: pa.Schema,
        changes: ChangelogMode,
        ttl_ms: int = 0,
    ) -> None:
        super().__init__(schema)
        self.group = group
        self.inputs = inputs
        self.emits_changes: ChangelogMode = changes
        self.ttl_ms = ttl_ms

    def open(self) -> None:
        self._functions = OpenedCalls(self.group.calls, self.context)
        self._rows = OrderedRows(self.inputs, self.group.partition, self.ttl_ms, self.context)
        saved = self.backend.register_chunks(ROWS, self._rows.freeze)
        for keyed, rows, _ in self._rows.restore(saved):
            self._rows.first.add(keyed.ids[keyed.codes], rows)

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    def free_memory(self) -> None:
        self._rows.free_memory()

    def entries_held(self) -> int:
        return len(self._rows)

    def bytes_held(self) -> int:
        return held_bytes(self._rows)

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch | None:
        kept, came = self._rows, with_schema(batch.data, self.inputs)
        keyed, places = kept.of(came)
        at, rows = kept.first.pairs(keyed.ids)
        data = one_record_batch([kept.store.take(rows), came], self.inputs)
        keys = np.concatenate([at, keyed.codes])
        places = np.concatenate([kept.places(rows), places])
        was = np.arange(data.num_rows) < len(rows)
        is_now = np.concatenate([was[: len(rows)], are_added(batch)])
        if not is_now.all():
            is_now, _ = taken_back(contents(data), places, is_now)
        before, after = self._results(data, places, was), self._results(data, places, is_now)
        self._keep(data, keyed.ids[keys], places, rows, is_now)
        stays = np.zeros(len(keyed.ids), np.bool_)
        stays[keys[is_now]] = True
        kept.touch(keyed.ids[stays])
        kept.forget(keyed.ids[~stays])
        sends_before = self.emits_changes.contains(RowKind.UPDATE_BEFORE)
        changed = ChangedResults(was, is_now, sends_before=sends_before)
        return changed.rows(data.columns, before, after, self.schema, leaves_out_equal=True)

    def _results(self, data: pa.RecordBatch, places: Any, chosen: Any) -> list[pa.Array]:
        """The results of the chosen rows, in the order in which they came where that decides; null
        for the others."""
        rows = np.flatnonzero(chosen)
        rows = rows[np.argsort(places[rows], kind="stable")]
        taken = data.take(pa.array(rows))
        parts = partitioned(taken, self.group.partition, self.group.keys)
        ordered = taken.take(pa.array(parts.order))
        frames = bounds_of(parts, self.group.frame, self.group.keys, ordered.columns)
        back = np.full(data.num_rows, -1)
        back[rows[parts.order]] = np.arange(len(rows))
        where = pa.array(back, mask=back < 0)
        kinds = [field.type for field in self.schema][len(self.inputs) :]
        over_rows = OverRows(ordered, parts, frames)
        return [
            over(call, over_rows, kind).take(where) for call, kind in zip(self.group.calls, kinds)
        ]

    def _keep(self, data: pa.RecordBatch, ids: Any, places: Any, rows: Any, stays: Any) -> None:
        kept, count = self._rows, len(rows)
        gone = ~stays[:count]
        kept.first.remove(ids[:count][gone], rows[gone])
        kept.store.delete(rows[gone])
        new = count + np.flatnonzero(stays[count:])
        kept.first.add(ids[new], kept.add(data.take(pa.array(new)), places[new], ids[new]))
