"""What operators share that keep the last row of each key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.types import RowKind
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.base import BatchForm
from flinkpy.operators.columnar.column_operators import columns, explained
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.changed_rows import changed_pieces, rounds
from flinkpy.relational.relational_operator import RelationalOperator, with_schema
from flinkpy.relational.state.rows_by_key import RowsByKey

ROW = "row"


class KeepsLastRows(KeyedStateOperator, RelationalOperator):
    """``inputs`` is the schema of its input, ``changes`` the kinds of rows that it gives. With
    ``ttl_ms`` (0: none) a key that was not written to for so long is forgotten. ``every_change``:
    also what the next row of a batch replaces goes out; else what is left of the batch."""

    batch_form = BatchForm.AT_END_OF_TIME

    def __init__(
        self,
        inputs: pa.Schema,
        keys: Sequence[int],
        schema: pa.Schema,
        changes: ChangelogMode,
        ttl_ms: int = 0,
        *,
        every_change: bool = False,
    ) -> None:
        super().__init__(schema)
        self.inputs = inputs
        self.keys = tuple(keys)
        self.emits_changes: ChangelogMode = changes
        self.ttl_ms = ttl_ms
        self.every_change = every_change

    @property
    def gives_before(self) -> bool:
        """Whether an update goes out with the row before it."""
        return self.emits_changes.contains(RowKind.UPDATE_BEFORE)

    def open(self) -> None:
        self._kept = RowsByKey(self.inputs, self.keys, self.ttl_ms, self.context)
        self._kept.open(self.backend, ROW)

    def entries_held(self) -> int:
        return len(self._kept)

    def bytes_held(self) -> int:
        return held_bytes(self._kept)

    def process_batch(self, batch: Any) -> None:
        batch = columns(batch, self.context, self.takes_changes)
        with explained(batch.data, self.context):
            data = with_schema(batch.data, self.inputs)
            for part in self.parts_of(batch.with_columns(data)):
                given, kinds = self.changes_of(part)
                for each in changed_pieces(given, kinds):
                    self.output.emit(each)
            self._kept.relieve(len(batch))

    def process_columns(self, batch: ColumnBatch) -> Any:
        raise NotImplementedError("process_batch emits what comes of a batch")

    def parts_of(self, batch: ColumnBatch) -> Iterable[ColumnBatch]:
        """A batch in parts, of each of which the net change goes out."""
        return rounds(batch, self.keys) if self.every_change else (batch,)

    def changes_of(self, batch: ColumnBatch) -> tuple[pa.RecordBatch, Any]:
        """The changes that a batch makes, with their kinds."""
        raise NotImplementedError(type(self).__name__)


def last_positions(codes: Any, count: int) -> Any:
    """The position of the last row of each code."""
    last = np.empty(count, np.int64)
    last[codes] = np.arange(len(codes))  # the last assignment wins
    return last
