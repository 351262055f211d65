"""A hash join of BATCH whose kept side need not fit into memory.

Both sides are split by the hash of the key. As many partitions of the kept side stay in memory as
fit; rows of the other side that belong to them are joined at once, and the rest of both sides lies
in files. In the end each pair of files is a join of its own, which keeps the smaller side. What
hashes cannot split, the rows of one key on both sides, is joined block by block: each block of the
kept side meets all rows of the other. (A sort-merge join was rejected for these: it would have to
go back over the rows of a key just as often.)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.operators.spilling.batch_file import BatchFile
from flinkpy.operators.spilling.key_partitions import KeyPartitions, RowWeight, partition_numbers
from flinkpy.operators.spilling.operator_memory import OperatorMemory
from flinkpy.operators.spilling.spilled_rows import SpilledRows
from flinkpy.relational.joins.join_of_tables import JoinOfTables, JoinSpec
from flinkpy.relational.joins.joined_rows import JoinedRows
from flinkpy.relational.relational_operator import with_schema

_KEPT_ROWS = RowWeight(copies=2, each=176)  # sealing copies them; what finds them by key


@dataclass(frozen=True)
class JoinPlan:
    """What is joined, of rows with the schemas ``left`` and ``right``; ``pair`` makes the
    results."""

    spec: JoinSpec
    left: pa.Schema
    right: pa.Schema
    pair: JoinedRows

    @property
    def kept_schema(self) -> pa.Schema:
        """Of the side that is kept."""
        return self.left if self.spec.builds_left else self.right

    @property
    def passing_schema(self) -> pa.Schema:
        """Of the other side."""
        return self.right if self.spec.builds_left else self.left

    @property
    def kept_keys(self) -> tuple[int, ...]:
        """The key columns of the side that is kept."""
        return self.spec.left_keys if self.spec.builds_left else self.spec.right_keys

    @property
    def passing_keys(self) -> tuple[int, ...]:
        """Those of the other side."""
        return self.spec.right_keys if self.spec.builds_left else self.spec.left_keys

    @property
    def is_by_key(self) -> bool:
        """Whether only rows of one key matter to each other. In NOT IN a null matters to all."""
        return bool(self.spec.left_keys) and not self.spec.null_aware

    def swapped(self) -> JoinPlan:
        """The same with the other side kept."""
        return replace(self, spec=replace(self.spec, builds_left=not self.spec.builds_left))

    def in_memory(self) -> JoinOfTables:
        """The join, for as many rows as fit."""
        return JoinOfTables(self.spec, self.left, self.right, self.pair)


class JoinByPartitions:
    """``add`` all rows of the kept side, ``seal`` it, ``probe`` with the others, take the
    ``rest``."""

    def __init__(self, plan: JoinPlan, memory: OperatorMemory, level: int = 0) -> None:
        self._plan = plan
        self._memory = memory
        self._kept = KeyPartitions(
            plan.kept_keys, memory, level, keeps=memory.kept, weight=_KEPT_ROWS
        )
        self._passing = KeyPartitions(plan.passing_keys, memory, level)
        self._here = plan.in_memory()  # the partitions in memory
        self._is_here: Any = None  # for each partition: whether it is in memory; None: all are

    def add(self, data: pa.RecordBatch) -> None:
        """Takes rows of the kept side."""
        self._kept.add(with_schema(data, self._plan.kept_schema))

    def seal(self) -> None:
        """All rows of the kept side are there."""
        for data in self._kept.seal():
            self._here.add(data)
        self._here.seal()
        if self._kept.spilled:
            self._is_here = self._kept.is_resident

    def probe(self, data: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What rows of the other side make with kept ones that are in memory."""
        if self._is_here is not None:
            data = with_schema(data, self._plan.passing_schema)
            numbers = partition_numbers(data, self._plan.passing_keys, self._kept.level)
            is_here = self._is_here[numbers]
            if not is_here.all():
                self._passing.add(data.filter(pa.array(~is_here)))
                data = data.filter(pa.array(is_here))
        if data.num_rows:
            yield from self._here.probe(data)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What is left to give when all others have passed by."""
        yield from self._here.rest()
        del self._here  # its memory is that of the next
        self._passing.write()
        for number, kept in self._kept.spilled.items():
            yield from self._joined(kept, self._passing.spilled.get(number))
            self._memory.freed(_KEPT_ROWS.of(kept.nbytes, kept.rows))
        self._kept.drop()
        self._passing.drop()

    def _joined(self, kept: SpilledRows, passing: SpilledRows | None) -> Iterator[pa.RecordBatch]:
        """The join of two files."""
        plan: JoinPlan = self._plan
        sides: tuple[Iterable[pa.RecordBatch], Iterable[pa.RecordBatch]] = kept, passing or ()
        if passing is not None and passing.nbytes < kept.nbytes:
            plan, sides = plan.swapped(), (passing, kept)
        splits = self._kept.splits_further
        join = spilling_join(plan, self._memory, self._kept.level + 1, splits=splits)
        for data in sides[0]:
            join.add(data)
        join.seal()
        for data in sides[1]:
            yield from join.probe(data)
        yield from join.rest()


class JoinByBlocks:
    """The same for rows that no key splits: each block of the kept side meets all others."""

    def __init__(self, plan: JoinPlan, memory: OperatorMemory) -> None:
        self._plan = plan
        self._memory = memory
        self._waiting: list[pa.RecordBatch] = []
        self._size = 0
        self._file: BatchFile | None = None
        self._blocks: list[SpilledRows] = []  # of the kept side
        self._passing: SpilledRows | None = None
        self._here = plan.in_memory()

    def add(self, data: pa.RecordBatch) -> None:
        """Takes rows of the kept side."""
        data = with_schema(data, self._plan.kept_schema)
        self._waiting.append(data)
        self._size += _KEPT_ROWS.of(data.nbytes, data.num_rows)
        if not self._memory.fits(self._size):
            if self._file is None:
                self._file = self._memory.file()
            block = SpilledRows(self._file)
            self._blocks.append(block)
            for each in self._waiting:
                block.append(each)
            self._waiting, self._size = [], 0

    def seal(self) -> None:
        """All rows of the kept side are there."""
        waiting, self._waiting = self._waiting, []
        self._here = self._table_of(waiting)
        if self._file is not None:
            self._passing = SpilledRows(self._file)

    def _table_of(self, rows: Iterable[pa.RecordBatch]) -> JoinOfTables:
        table = self._plan.in_memory()
        for data in rows:
            table.add(data)
        table.seal()
        return table

    def probe(self, data: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Takes rows of the other side; gives what they make, if all kept rows are in memory."""
        if self._passing is None:
            yield from self._here.probe(data)
        else:
            self._passing.append(with_schema(data, self._plan.passing_schema))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What is left to give when all others have passed by."""
        passing = self._passing
        if passing is None:
            yield from self._here.rest()
            return
        met = np.zeros(passing.rows, np.bool_)
        yield from self._met_by_all(passing, met)
        for block in self._blocks:
            del self._here  # its memory is that of the next
            self._here = self._table_of(block)
            yield from self._met_by_all(passing, met)
        for data, of_data in _beside(passing, met):
            yield from self._here.alone(data, of_data)

    def _met_by_all(self, passing: SpilledRows, met: Any) -> Iterator[pa.RecordBatch]:
        for data, of_data in _beside(passing, met):
            yield from self._here.meet(data, of_data)
        yield from self._here.rest()


def _beside(rows: SpilledRows, values: Any) -> Iterator[tuple[pa.RecordBatch, Any]]:
    """The batches, and the values of their rows as views."""
    at = 0
    for data in rows:
        yield data, values[at : at + data.num_rows]
        at += data.num_rows


def spilling_join(
    plan: JoinPlan, memory: OperatorMemory, level: int = 0, *, splits: bool = True
) -> JoinByPartitions | JoinByBlocks:
    """The join in this memory; ``splits`` says whether bits of the hash from ``level`` on tell rows
    apart."""
    if splits and plan.is_by_key:
        return JoinByPartitions(plan, memory, level)
    return JoinByBlocks(plan, memory)
