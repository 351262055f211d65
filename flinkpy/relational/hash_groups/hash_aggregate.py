"""HashAggregate of BATCH: one row for each group when the input has ended.

In two phases the senders give what they have accumulated, and the rest is done behind the exchange:
a LOCAL aggregate gives its keys and then the partial columns of each call, whatever the plan's
schema says, and GLOBAL merges them. What does not fit into the operator's memory is spilled; a
LOCAL aggregate gives its groups away instead, and also when there are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.hash_groups.group_table import GroupPlan, GroupTable
from flinkpy.relational.hash_groups.spilling_groups import BoundedGroups, PostponedGroups
from flinkpy.relational.relational_operator import BlockingOperator
from flinkpy.sql.physical.physical_nodes import Phase
from flinkpy.sql.rex.rex_nodes import AggregateCall

_LOCAL_GROUPS = 1 << 20


class HashAggregateOperator(BlockingOperator):
    """Aggregates groups by columns ``keys``. ``inputs`` is the schema of the rows that are
    aggregated: for GLOBAL, those that LOCAL has taken."""

    def __init__(
        self,
        keys: Sequence[int],
        calls: Sequence[AggregateCall],
        phase: Phase,
        inputs: pa.Schema,
        schema: pa.Schema,
    ) -> None:
        super().__init__(schema)
        self.keys = tuple(keys)
        self.calls = tuple(calls)
        self.phase = phase
        self.inputs = inputs

    def open(self) -> None:
        super().open()
        self._functions = OpenedCalls(self.calls, self.context)
        self._plan = GroupPlan(self.keys, self.calls, self.phase, self.inputs, self.schema)
        self._groups = self._no_groups()

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    def _no_groups(self) -> GroupTable | BoundedGroups | PostponedGroups:
        memory = self._memory
        if not memory.is_limited or not self.keys:
            return GroupTable(self._plan)
        if self.phase is Phase.LOCAL:
            return GroupTable(self._plan, memory.waiting)
        return (PostponedGroups if self._plan.grows else BoundedGroups)(self._plan, memory)

    def take(self, data: pa.RecordBatch) -> None:
        self._groups.take(data)

    def process_columns(self, batch: ColumnBatch) -> Batch | None:
        self.take(batch.data)
        if self.phase is Phase.LOCAL and self._has_many():
            for each in self._groups.results():
                self.output.emit(each)
            self._groups = self._no_groups()
        return None

    def _has_many(self) -> bool:
        groups = self._groups
        assert isinstance(groups, GroupTable)
        return len(groups.groups) > _LOCAL_GROUPS or not self._memory.fits(2 * groups.nbytes)

    def last_batches(self) -> Iterator[ColumnBatch]:
        yield from self._groups.results()
