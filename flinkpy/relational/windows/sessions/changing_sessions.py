"""WindowAggregate over SESSION and rows that change: they are held with those that take them back
until their session has ended, and what is left of them is grouped. A row that was taken back was in
the session, so it bounds it still, as in Flink; a session of which nothing is left gives none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.columnar.column_operators import columns
from flinkpy.relational.changed_rows import are_added
from flinkpy.relational.relational_operator import empty_batch, with_schema
from flinkpy.relational.windows.changes.net_rows import are_left, are_there, results_of_changes
from flinkpy.relational.windows.held_windows import WindowedInput
from flinkpy.relational.windows.sessions.held_sessions import HeldSessionsOperator
from flinkpy.relational.windows.sessions.session_rows import EndedSessions
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.sql.rex.rex_nodes import AggregateCall

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_IS_ADDED = pa.field("is added", pa.bool_())


class ChangingSessionsOperator(HeldSessionsOperator):
    """Holds behind the columns of each row whether it comes or is taken back."""

    takes_changes = ALL_CHANGES
    results_of = staticmethod(results_of_changes)

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        properties: Sequence[str],
        input: WindowedInput,
        clock: WallClock,
        schema: pa.Schema,
    ) -> None:
        held = replace(input, schema=input.schema.append(_IS_ADDED))
        super().__init__(calls, properties, held, clock, schema)

    def process_batch(self, batch: Batch) -> None:
        taken = columns(batch, self.context, self.takes_changes)
        schema = self.input.schema
        data = with_schema(taken.data, schema.remove(len(schema) - 1))
        marked = [*data.columns, pa.array(are_added(taken))]
        rows = pa.RecordBatch.from_arrays(marked, schema=schema)
        super().process_batch(ColumnBatch(rows, taken.timestamps, None))

    def results(self, ended: EndedSessions) -> pa.RecordBatch:
        *values, is_added = ended.data.columns[: len(self.input.schema)]
        added = is_added.to_numpy(zero_copy_only=False)
        # equal rows of different sessions have nothing to do with each other
        left = are_left([*values, pa.array(ended.starts)], added)
        ended, added = _those(ended, left), added[left]
        numbers, groups = self.groups_of(ended)
        ended = _those(ended, are_there(added, groups, len(numbers)))
        return super().results(ended) if ended.data.num_rows else empty_batch(self.schema)


def _those(ended: EndedSessions, rows: npt.NDArray[np.bool_]) -> EndedSessions:
    return EndedSessions(ended.data.filter(pa.array(rows)), ended.starts[rows], ended.ends[rows])
