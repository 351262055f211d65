"""Runs expressions over columns whose program has an error policy.

A batch is evaluated as a whole, as without a policy. Only if that raises, its two halves are
evaluated, down to the rows at fault, which become dead letters as Rows. Expressions have no
effects, so evaluating them again shows nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.guarding.dead_letters import is_users
from flinkpy.operators.guarding.guarded_operator import GuardedOperator


class GuardedColumns(GuardedOperator, OneInputOperator):
    """Wraps an operator over columns that has no state."""

    wrapped: OneInputOperator

    parks = False

    def process_batch(self, batch: Batch) -> None:
        if not isinstance(batch, ColumnBatch):
            self.wrapped.process_batch(batch)  # which says what is wrong
            return
        for part, error in self._parts(batch):
            if error is None:
                self.held.keep()
            else:
                self._divert(part, error)
        self.held.emit_gathered()

    def _parts(self, batch: ColumnBatch) -> Iterator[tuple[ColumnBatch, Exception | None]]:
        """The largest parts that can be evaluated, whose results are held, and the rows that
        cannot, with their errors; in order."""
        try:
            self.held.begin()
            self.wrapped.process_batch(batch)
        except Exception as error:
            self.held.drop()
            if not is_users(error):
                raise
            if len(batch) == 1:
                yield batch, error
                return
        else:
            yield batch, None
            return
        middle = len(batch) // 2
        yield from self._parts(batch.slice(0, middle))
        yield from self._parts(batch.slice(middle))

    def _divert(self, row: ColumnBatch, error: Exception) -> None:
        from flinkpy.columns.values.conversion import rows_of_batch

        record: Any = rows_of_batch(row.data, row.kinds)[0]
        timestamp = None if row.timestamps is None else int(row.timestamps[0])
        self.held.add_letter(
            self.letters.side_output, self.letters.letter(error, record, timestamp)
        )
