"""Groups of BATCH that need not fit into memory.

Where the memory of a group does not depend on its rows, groups are taken into memory until it is
used up. From then on rows of these groups are still accumulated, so what comes often costs no disk;
rows of other groups go to files, by the hash of their key. In the end each file is aggregated like
an input of its own. (Writing partial results instead was rejected: an array by group number cannot
give up some of its numbers, and not every function has a partial form.)

Where a group grows with its rows (DISTINCT, LISTAGG, functions of the program), the rows wait, by
the hash of their key, and are aggregated in the end, so many at a time as fit."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.spilling.key_partitions import KeyPartitions, RowWeight
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.operators.spilling.portions import portions
from flinkpy.relational.hash_groups.group_table import GroupPlan, GroupTable
from flinkpy.relational.relational_operator import with_schema

_WAITING = 3  # times: rows that wait for the groups, one batch of them, rows to be split
_TWICE = RowWeight(copies=2)  # the rows, and what is made of them


class BoundedGroups:
    """Groups in memory, and the rows of those that came too late for it."""

    def __init__(
        self, plan: GroupPlan, memory: OperatorMemory, level: int = 0, *, is_bounded: bool = True
    ) -> None:
        self._plan = plan
        self._memory = memory
        self._level = level
        self._is_bounded = is_bounded and memory.is_limited
        self._table = GroupTable(plan, memory.waiting if self._is_bounded else None)
        self._others: KeyPartitions | None = None

    def take(self, data: pa.RecordBatch) -> None:
        """Takes rows of any groups."""
        if self._others is not None:
            self._take_known(data, self._others)
            return
        if self._has_room(data.num_rows):
            self._table.take(data)
            return
        self._others = KeyPartitions(self._plan.taken_keys, self._memory, self._level)
        self._take_known(data, self._others)

    def _has_room(self, rows: int) -> bool:
        if not self._is_bounded or not len(self._table.groups):
            return True
        return self._memory.fits(self._table.nbytes_with(rows) + _WAITING * self._memory.waiting)

    def _take_known(self, data: pa.RecordBatch, others: KeyPartitions) -> None:
        groups = self._table.groups.find(data)
        is_known = groups >= 0
        if not is_known.all():
            rest = with_schema(data.filter(pa.array(~is_known)), self._plan.taken_schema)
            others.add(rest)
            data, groups = data.filter(pa.array(is_known)), groups[is_known]
        if len(groups):
            self._table.take_of(data, groups)

    def results(self) -> Iterator[ColumnBatch]:
        """One row for each group."""
        yield from self._table.results()
        others = self._others
        if others is None:
            return
        self._memory.freed(self._table.nbytes)
        del self._table
        others.write()
        for rows in others.spilled.values():
            deeper = BoundedGroups(
                self._plan, self._memory, self._level + 1, is_bounded=others.splits_further
            )
            for data in rows:
                deeper.take(data)
            yield from deeper.results()
        others.drop()


class PostponedGroups:
    """The rows of all groups, until all have come."""

    def __init__(self, plan: GroupPlan, memory: OperatorMemory) -> None:
        self._plan = plan
        self._memory = memory
        self._rows = KeyPartitions(plan.taken_keys, memory, keeps=memory.kept, weight=_TWICE)

    def take(self, data: pa.RecordBatch) -> None:
        """Takes rows of any groups."""
        self._rows.add(with_schema(data, self._plan.inputs))

    def results(self) -> Iterator[ColumnBatch]:
        """One row for each group."""
        for rows in portions(self._rows):
            table = GroupTable(self._plan, self._memory.waiting)
            for data in rows:
                table.take(data)
            yield from table.results()
