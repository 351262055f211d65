"""The sink's upsert materialiser: rows of one primary key come from several rows of the query, in
an order of their own. All that are there are kept, and the last of them stands in the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.changed_rows import AFTER, DELETE, INSERT, are_added, changed_pieces
from flinkpy.relational.relational_operator import RelationalOperator, one_record_batch, with_schema
from flinkpy.relational.state.ordered_rows import OrderedRows
from flinkpy.relational.state.taken_back import contents, taken_back

ROWS = "rows"
_NONE = -1


class MaterialiserOperator(KeyedStateOperator, RelationalOperator):
    """``keys`` are the columns of the primary key. What is taken back and does not stand changes
    nothing; where what stands is taken back, the last one before it stands again."""

    batch_form = BatchForm.AT_END_OF_TIME
    takes_changes = ALL_CHANGES
    emits_changes = ChangelogMode.upsert()

    def __init__(self, schema: pa.Schema, keys: Sequence[int], ttl_ms: int = 0) -> None:
        super().__init__(schema)
        self.keys = tuple(keys)
        self.ttl_ms = ttl_ms

    def open(self) -> None:
        self._rows = OrderedRows(self.schema, self.keys, self.ttl_ms, self.context)
        saved = self.backend.register_chunks(ROWS, self._rows.freeze)
        for keyed, rows, _ in self._rows.restore(saved):
            self._rows.first.add(keyed.ids[keyed.codes], rows)

    def free_memory(self) -> None:
        self._rows.free_memory()

    def entries_held(self) -> int:
        return len(self._rows)

    def bytes_held(self) -> int:
        return held_bytes(self._rows)

    def process_batch(self, batch: Any) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            data = with_schema(batch.data, self.schema)
            for each in self._changes_of(batch.with_columns(data)):
                self.output.emit(each)

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits what comes of a batch")

    def _changes_of(self, batch: ColumnBatch) -> Any:
        kept = self._rows
        keyed, places = kept.of(batch.data)
        ids = keyed.ids
        at, rows = kept.first.pairs(ids)
        data = one_record_batch([kept.store.take(rows), batch.data], self.schema)
        keys = np.concatenate([at, keyed.codes])
        places = np.concatenate([kept.places(rows), places])
        is_added = np.concatenate([np.ones(len(rows), np.bool_), are_added(batch)])
        stay = is_added
        if not is_added.all():
            stay, _ = taken_back(contents(data), places, is_added)
        order = np.lexsort((places, keys))
        before = _last(order, keys, np.arange(len(keys)) < len(rows), len(ids))
        after = _last(order, keys, stay, len(ids))
        self._keep(data, ids[keys], places, rows, stay)
        kept.touch(ids[after != _NONE])
        kept.forget(ids[after == _NONE])
        return _given(data, before, after)

    def _keep(self, data: pa.RecordBatch, ids: Any, places: Any, rows: Any, stay: Any) -> None:
        kept, count = self._rows, len(rows)
        gone = ~stay[:count]
        kept.first.remove(ids[:count][gone], rows[gone])
        kept.store.delete(rows[gone])
        new = count + np.flatnonzero(stay[count:])
        kept.first.add(ids[new], kept.add(data.take(pa.array(new)), places[new], ids[new]))


def _last(order: Any, keys: Any, mask: Any, count: int) -> Any:
    """The position of the last row of each key for which this is true."""
    found = np.full(count, _NONE)
    chosen = order[mask[order]]
    found[keys[chosen]] = chosen  # the last assignment wins
    return found


def _given(data: pa.RecordBatch, before: Any, after: Any) -> Any:
    changes = before != after
    before, after = before[changes], after[changes]
    kinds = np.where(after == _NONE, DELETE, np.where(before == _NONE, INSERT, AFTER))
    taken = np.where(after == _NONE, before, after)
    return changed_pieces(data.take(pa.array(taken)), kinds)
