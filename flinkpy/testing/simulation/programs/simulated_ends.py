"""The ends of simulated programs: a source that gives a few records at a time, and a sink that
commits in two phases to the world outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flinkpy.common import RowKind
from flinkpy.connectors.source_api.enumerators import SplitQueue, SplitShares
from flinkpy.connectors.source_api.readers import (
    NothingYet,
    SequentialReader,
    SideBySideReader,
    SplitReader,
)
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import (
    Committer,
    GlobalCommitter,
    Sink,
    SinkWriter,
    SupportsGlobalCommitter,
)
from flinkpy.testing.simulation.programs.outside_world import world_named
from flinkpy.testing.simulation.programs.standing_rows import Change


@dataclass(frozen=True)
class SimulatedInputSplit:
    """Records of one list, from ``next`` on."""

    split_id: str
    number: int
    next: int = 0


class SimulatedInput(Source[SimulatedInputSplit]):
    """``lists`` of (record, event time), each a split. With ``shares`` every reader has its share
    of them from the beginning and reads them side by side, so that event time goes up together;
    otherwise it takes one after the other. With ``columns`` it gives columns of those names."""

    def __init__(
        self,
        world: str,
        lists: Sequence[Sequence[tuple[Any, int]]],
        shares: bool = False,
        columns: tuple[str, ...] = (),
    ) -> None:
        self._world = world
        self._shares = shares
        self._columns = columns
        self._lists = [list(each) for each in lists]

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def is_columnar(self) -> bool:
        return bool(self._columns)

    def create_enumerator(
        self, context: SplitEnumeratorContext[SimulatedInputSplit], checkpoint: Any = None
    ) -> SplitEnumerator[SimulatedInputSplit]:
        def splits(parallelism: int) -> list[SimulatedInputSplit]:
            return [
                SimulatedInputSplit(f"list {number}", number) for number in range(len(self._lists))
            ]

        return (
            SplitShares(context, splits, checkpoint)
            if self._shares
            else SplitQueue(context, splits, checkpoint)
        )

    def create_reader(self, context: ReaderContext) -> SourceReader[SimulatedInputSplit]:
        def open_split(split: SimulatedInputSplit) -> SplitReader[SimulatedInputSplit]:
            return _ListReader(self._world, split, self._lists[split.number], self._columns)

        return (
            SideBySideReader(context, open_split, awaits_all=True)
            if self._shares
            else SequentialReader(context, open_split)
        )


class _ListReader(SplitReader[SimulatedInputSplit]):
    def __init__(
        self,
        world: str,
        split: SimulatedInputSplit,
        records: list[tuple[Any, int]],
        columns: tuple[str, ...],
    ) -> None:
        self._world = world_named(world)
        self._split = split
        self._records = records
        self._columns, self._has_rested = columns, False

    def next_batch(self, limit: int) -> Batch | NothingYet | None:
        if self._split.next >= len(self._records):
            return None
        if not self._has_rested and self._world.pace_s:
            self._has_rested = True
            return NothingYet(self._world.pace_s * self._world.chance.random())
        self._has_rested = False
        self._world.maybe_fail("the source")
        taken = self._records[self._split.next :][: self._world.chance.randint(1, limit)]
        self._split = replace(self._split, next=self._split.next + len(taken))
        records, times = [record for record, _ in taken], [time for _, time in taken]
        return (
            _column_batch(self._columns, records, times)
            if self._columns
            else RowBatch(records, times)
        )

    def snapshot(self) -> SimulatedInputSplit:
        return self._split


def _column_batch(names: tuple[str, ...], records: list[Any], times: list[int]) -> Batch:
    import numpy as np
    import pyarrow as pa

    data = pa.RecordBatch.from_pydict(
        {name: [record[at] for record in records] for at, name in enumerate(names)}
    )
    return ColumnBatch(data, np.array(times, dtype="int64"))


class TwoPhaseSink(Sink):
    """Writes into transactions of the world outside. They are prepared with each checkpoint, and
    committed when it is complete."""

    def __init__(self, world: str) -> None:
        self._world = world

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _TransactionWriter(self._world, context)

    def create_committer(self, context: OperatorContext) -> Committer:
        return _TransactionCommitter(self._world)


class ChangingTableSink(TwoPhaseSink):
    """Writes changes into such transactions. ``keys`` are the columns by which a row replaces
    another one; without them each change adds a row or takes an equal one back."""

    takes_kinds = True

    def __init__(self, world: str, keys: Sequence[str] = ()) -> None:
        super().__init__(world)
        self._keys = tuple(keys)

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _TransactionWriter(self._world, context, self._changes_of)

    def _changes_of(self, batch: Batch) -> list[Any]:
        assert isinstance(batch, ColumnBatch)
        kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        return [
            Change(
                RowKind(kind), tuple(row.values()), tuple(row[each] for each in self._keys) or None
            )
            for kind, row in zip(kinds, batch.data.to_pylist())
        ]


def _records_of(batch: Batch) -> list[Any]:
    if isinstance(batch, RowBatch):
        return batch.values
    return [tuple(row.items()) for row in batch.data.to_pylist()]


class _TransactionWriter(SinkWriter):
    def __init__(
        self,
        world: str,
        context: OperatorContext,
        records_of: Callable[[Batch], list[Any]] = _records_of,
    ) -> None:
        self._world, self._records_of = world_named(world), records_of
        self._name = f"{context.operator_id} {context.task.attempt_id}"
        self._number, self._has_written = 1, False

    @property
    def _transaction(self) -> str:
        return f"{self._name} #{self._number}"

    def write_batch(self, batch: Batch) -> None:
        self._world.maybe_fail("the sink")
        self._has_written = True
        self._world.write(self._transaction, self._records_of(batch))

    def prepare_commit(self) -> Sequence[str]:
        if not self._has_written:
            return ()
        prepared, self._has_written = self._transaction, False
        self._number += 1
        return (prepared,)


class _TransactionCommitter(Committer):
    def __init__(self, world: str) -> None:
        self._world = world_named(world)

    def commit(self, committables: Sequence[str]) -> None:
        for transaction in committables:
            self._world.maybe_fail("a commit")
            self._world.commit(transaction)


class GloballyCommittedSink(Sink, SupportsGlobalCommitter):
    """Writes into such transactions, too. One committer commits those of all writers."""

    def __init__(self, world: str) -> None:
        self._world = world

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _TransactionWriter(self._world, context)

    def create_global_committer(self, context: OperatorContext) -> GlobalCommitter:
        return _CheckpointCommitter(self._world)


class _CheckpointCommitter(GlobalCommitter):
    def __init__(self, world: str) -> None:
        self._world = world_named(world)

    def commit(self, committables: Sequence[str], checkpoint_id: int | None) -> None:
        self._world.maybe_fail("a commit")
        self._world.commit_together(checkpoint_id, committables)
