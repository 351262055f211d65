"""Rows by number, as columns.

Rows are added in batches, and each gets a number, which it keeps until it is deleted; then another
row gets it. They lie in chunks of Arrow data that nobody changes, so a snapshot only has to
remember which chunks there were, and which of their rows were there. Small chunks are merged into
larger ones, so there are few, and each row is copied seldom; chunks of which half is gone are
written anew. A chunk is a record batch wherever its memory lies, also in a mapped file: RowMemory
decides which chunks do.

A row has an address too: that of its chunk and its place in there. Addresses ascend from chunk to
chunk, so merging two chunks that stand side by side changes none. Numbers and addresses are kept in
32 bits; addresses begin anew when these are used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.picked_rows import filtered, gathered
from flinkpy.relational.relational_operator import empty_batch, one_record_batch, with_schema
from flinkpy.relational.state.row_memory import Chunk, RowMemory

_LARGEST = 1 << 20  # rows of a chunk: merging or writing it anew takes some milliseconds
_NOWHERE = -1
_END = (1 << 31) - 1  # of addresses
_MOST = 1 << 30  # rows: with those that are gone, and still lie there, addresses suffice


@dataclass(frozen=True)
class FrozenPart:
    """A chunk as it was at some moment; ``alive`` says which rows were there, None: all."""

    data: pa.RecordBatch
    alive: Any
    numbers: npt.NDArray[np.int32]
    chunk: Chunk


@dataclass(frozen=True)
class FrozenRows:
    """The rows that were there at some moment, whatever happened since."""

    parts: Sequence[FrozenPart]
    folders: Sequence[str] = ()  # for files of who writes them

    def batches(self) -> list[tuple[pa.RecordBatch, npt.NDArray[np.int32]]]:
        """The rows and their numbers."""
        return [
            (each.data, each.numbers)
            if each.alive is None
            else (filtered(each.data, each.alive), each.numbers[each.alive])
            for each in self.parts
        ]


class RowStore:
    """Rows of this schema, in the memory that they may take.

    >>> store = RowStore(pa.schema([("n", pa.int64())]))
    >>> numbers = store.add(pa.record_batch({"n": [10, 11, 12]}))
    >>> store.delete(numbers[1:2])
    >>> store.take(numbers[[2, 0]]).column(0).to_pylist()
    [12, 10]
    >>> len(store), store.add(pa.record_batch({"n": [13]})).tolist()
    (2, [1])
    """

    def __init__(self, schema: pa.Schema, memory: RowMemory | None = None) -> None:
        self.schema = schema
        self._chunks: list[Chunk] = []
        self._memory = memory or RowMemory()
        self._memory.watch(self._chunks)
        self._starts = np.empty(0, np.int64)
        self._addresses = Grown(np.int32, _NOWHERE, self._memory.arrays.empty)  # by number
        self._unused: list[npt.NDArray[np.int32]] = []  # numbers of rows that are gone
        self._rows = 0
        self.size = 0
        """Every number is below."""

    def __len__(self) -> int:
        return self._rows

    def add(self, data: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Adds rows, and gives their numbers."""
        numbers = self._given(data.num_rows)
        self._rows += data.num_rows
        self._lay(numbers.astype(np.int32), data)
        return numbers

    def replace(self, rows: npt.NDArray[np.int64], data: pa.RecordBatch) -> None:
        """Other rows get the numbers of these, which must be there, and be named once."""
        self._leave(rows)
        self._lay(rows.astype(np.int32), data)

    def _lay(self, numbers: npt.NDArray[np.int32], data: pa.RecordBatch) -> None:
        data, count = with_schema(data, self.schema), len(numbers)
        if not count:
            return
        start = self._chunks[-1].start + len(self._chunks[-1]) if self._chunks else 0
        if start + count > _END:
            start = self._begin_addresses_anew()
        addresses = self._addresses.reach(self.size)
        addresses[numbers] = np.arange(start, start + count)
        self._chunks.append(Chunk(start, data, numbers, np.ones(count, np.bool_)))
        first, together = len(self._chunks) - 1, count
        while first and len(self._chunks[first - 1]) <= together:
            if not self._may_be_one(first - 1, len(self._chunks)):
                break
            first -= 1
            together += len(self._chunks[first])
        self._merge(first, len(self._chunks))

    def take(self, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """The rows with these numbers, which must be there, in this order."""
        if not len(rows):
            return empty_batch(self.schema)
        addresses = self._addresses.values.take(rows)
        return gathered([each.data for each in self._chunks], self._starts, addresses, self.schema)

    def delete(self, rows: npt.NDArray[np.int64]) -> None:
        """Deletes the rows with these numbers, which must be there, and be named once."""
        if not len(rows):
            return
        self._leave(rows)
        self._addresses.values[rows] = _NOWHERE
        self._unused.append(rows.astype(np.int32))
        self._rows -= len(rows)

    def _leave(self, rows: npt.NDArray[np.int64]) -> None:
        """What lies at the addresses of these rows is gone."""
        addresses = self._addresses.values.take(rows)
        addresses.sort()
        begin = 0
        ends = np.searchsorted(addresses, [*self._starts[1:].tolist(), np.iinfo(np.int64).max])
        half_empty = []
        for chunk, end in zip(self._chunks, ends.tolist()):
            if end > begin:
                chunk.drop(addresses[begin:end] - chunk.start)
                if 2 * chunk.gone >= len(chunk):
                    half_empty.append(chunk)
            begin = end
        for chunk in half_empty:
            if chunk in self._chunks:  # not merged with its neighbour just now
                self._compact(self._chunks.index(chunk))

    def all(self) -> npt.NDArray[np.int64]:
        """The numbers of all rows that are there."""
        return np.flatnonzero(self._addresses.values[: self.size] != _NOWHERE)

    def freeze(self) -> FrozenRows:
        """The rows of now."""
        return FrozenRows(
            [FrozenPart(each.data, each.freeze(), each.numbers, each) for each in self._chunks],
            self._memory.folders,
        )

    # -- chunks ------------------------------------------------------------------------------------

    def _chunk_of(self, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
        return (np.searchsorted(self._starts, addresses, side="right") - 1).astype(np.int16)

    def _compact(self, at: int) -> None:
        """Writes a chunk without the rows that are gone, together with its neighbours if they are
        small."""
        first, end = at, at + 1
        together = len(self._chunks[at]) - self._chunks[at].gone
        for side in (-1, 1):
            beside = at + side
            if 0 <= beside < len(self._chunks):
                size = len(self._chunks[beside]) - self._chunks[beside].gone
                wider = min(first, beside), max(end, beside + 1)
                if size <= together and self._may_be_one(*wider):
                    (first, end), together = wider, together + size
        self._merge(first, end)

    def _may_be_one(self, first: int, end: int) -> bool:
        """Whether these chunks together are no larger than a chunk may be."""
        chunks = self._chunks[first:end]
        return (
            sum(len(each) - each.gone for each in chunks) <= _LARGEST
            and sum(each.rest_bytes for each in chunks) <= self._memory.chunk_bytes
        )

    def _merge(self, first: int, end: int) -> None:
        """Makes one chunk of these, without the rows that are gone."""
        chunks = self._chunks[first:end]
        if len(chunks) > 1 or chunks[0].gone:
            rest = [each.rest() for each in chunks]
            numbers = np.concatenate([each for _, each in rest])
            start, size = chunks[0].start, len(numbers)
            if size < chunks[-1].start + len(chunks[-1]) - start:
                self._addresses.values[numbers] = np.arange(start, start + size)
            data = one_record_batch([data for data, _ in rest], self.schema)
            merged = Chunk(start, data, numbers, np.ones(size, np.bool_))
            self._chunks[first:end] = [merged] if size else []
        self._starts = np.array([each.start for each in self._chunks], np.int64)
        self._memory.relieve()

    def _begin_addresses_anew(self) -> int:
        """Leaves out the addresses that no chunk has; gives the first one behind those that do."""
        start = 0
        for chunk in self._chunks:
            chunk.start = start
            alive = np.flatnonzero(chunk.alive)
            self._addresses.values[chunk.numbers[alive]] = start + alive
            start += len(chunk)
        return start

    def _given(self, count: int) -> npt.NDArray[np.int64]:
        """Numbers for new rows."""
        given: list[npt.NDArray[Any]] = []
        while self._unused and count:
            last = self._unused.pop()
            if len(last) > count:
                self._unused.append(last[count:])
                last = last[:count]
            given.append(last)
            count -= len(last)
        if self.size + count > _MOST:
            raise ProgramError(
                f"an operator keeps more than {_MOST:,} rows in one subtask: raise the "
                "parallelism, or let rows be forgotten (table.exec.state.ttl)"
            )
        given.append(np.arange(self.size, self.size + count))
        self.size += count
        return np.concatenate(given)

    def __repr__(self) -> str:
        return f"<RowStore: {len(self)} rows in {len(self._chunks)} chunks>"
