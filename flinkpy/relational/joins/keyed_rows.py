"""One side of a join that never ends: rows that are added batch by batch, found by the number of
their key and, if they have one, by their time.

The rows lie in chunks. Each knows the order of its rows by key and time, so a binary search finds
the partners of many rows at once. A chunk is merged with the one before it when that is not much
larger; so there are few of them, and each row is copied seldom. Chunks are never changed, and so a
snapshot only has to remember which there were. Those beyond the memory of rows lie in mapped files,
with all that finds their rows; only what changes stays in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.relational.pair_pieces import pair_pieces
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.relational.state.row_memory import RowMemory

_LIMIT = 1 << 62


@dataclass(eq=False)
class Chunk:
    """Rows as they came, with their key numbers and times. ``codes`` are both as one number (key
    numbers alone if the times are too far apart for that), in ascending order, and ``rows`` the
    positions of the rows they belong to. ``met`` says which rows have had a partner: the only part
    whose values change."""

    data: pa.RecordBatch
    ids: Any
    times: Any
    met: Any
    codes: Any
    rows: Any
    begin: int  # of the times
    span: int  # 0: the codes say nothing about time
    first: int  # time
    last: int
    given: int = 0  # so many of the earliest rows were given as those that are over
    is_mapped: bool = False
    digest: str = ""  # of the rows, once they were saved as a chunk

    @classmethod
    def of(cls, data: pa.RecordBatch, ids: Any, times: Any, met: Any, rows: Any = None) -> Chunk:
        """These rows. ``rows`` are their positions in an order that is near the one of codes."""
        begin = first = int(times.min())
        last = int(times.max())
        span = last - begin + 1
        if (int(ids.max()) + 1) * (span + 1) >= _LIMIT:
            begin, span = 0, 0
        codes = ids if span < 2 else ids * span + (times - begin)
        if rows is not None:
            codes = codes[rows]
        order = np.argsort(codes, kind="stable")
        rows = order if rows is None else rows[order]
        return cls(data, ids, times, met, codes[order], rows, begin, span, first, last)

    @classmethod
    def merged(cls, one: Chunk, other: Chunk, schema: pa.Schema) -> Chunk:
        """The rows of two chunks, those of the first before those of the other."""
        return cls.of(
            one_record_batch([one.data, other.data], schema),
            np.concatenate((one.ids, other.ids)),
            np.concatenate((one.times, other.times)),
            np.concatenate((one.met, other.met)),
            np.concatenate((one.rows, other.rows + len(one.rows))),  # two runs: cheap to sort
        )

    def places(self, ids: Any, low: Any, high: Any) -> tuple[Any, Any]:
        """For each key the first place among the codes of its rows between two times (both
        inclusive), and the one behind them."""
        if not self.span:
            return np.searchsorted(self.codes, ids), np.searchsorted(self.codes, ids + 1)
        begins = ids * self.span
        from_ = begins + np.clip(low - self.begin, 0, self.span)
        behind = begins + np.clip(high - self.begin + 1, 0, self.span)
        return np.searchsorted(self.codes, from_), np.searchsorted(self.codes, behind)

    # -- time --------------------------------------------------------------------------------------

    @cached_property
    def _by_time(self) -> Any:
        """The positions of the rows in the order of time."""
        return np.argsort(self.times, kind="stable")

    def until(self, time: int) -> int:
        """How many rows are not later. It does not read all times, once they were sorted."""
        if time < self.first:
            return 0
        if time >= self.last:
            return len(self.ids)
        order, times = self._by_time, self.times
        found: int = bisect_right(range(len(order)), time, key=lambda at: times[order[at]])
        return found

    def over(self, time: int) -> Any:
        """The positions of the rows that are not later, without those that were given before."""
        given, self.given = self.given, max(self.given, self.until(time))
        if given == self.given:
            return np.empty(0, np.int64)
        return np.sort(self._by_time[given : self.given])

    # -- memory ------------------------------------------------------------------------------------

    @cached_property
    def data_bytes(self) -> int:
        """How large that is which never changes."""
        size: int = self.data.nbytes + 5 * self.ids.nbytes
        return size

    def lie_in_files(self, memory: RowMemory) -> None:
        """All that never changes goes to a file."""
        schema, arrays = (
            self.data.schema,
            (self.ids, self.times, self.codes, self.rows, self._by_time),
        )
        names = [*schema.names, *map(str, range(len(arrays)))]
        columns = [*self.data.columns, *map(pa.array, arrays)]
        columns = memory.mapped(pa.RecordBatch.from_arrays(columns, names=names)).columns
        self.data = pa.RecordBatch.from_arrays(columns[: len(schema)], schema=schema)
        self.ids, self.times, self.codes, self.rows, self._by_time = (
            each.to_numpy() for each in columns[len(schema) :]
        )
        self.is_mapped = True


class KeyedRows:
    """The rows of this schema, in the memory that they may take. Without times all are at 0."""

    def __init__(self, schema: pa.Schema, memory: RowMemory | None = None) -> None:
        self._schema = schema
        self.chunks: list[Chunk] = []
        self._memory = memory or RowMemory()
        self._memory.watch(self.chunks)
        self.folders = self._memory.folders
        """For files of who writes the chunks."""

    def __len__(self) -> int:
        return sum(len(each.ids) for each in self.chunks)

    def add(self, data: pa.RecordBatch, ids: Any, times: Any = None, met: Any = None) -> None:
        """Adds rows; ``met`` says which of them have a partner already."""
        if not data.num_rows:
            return
        if times is None:
            times = np.zeros(data.num_rows, np.int64)
        if met is None:
            met = np.zeros(data.num_rows, np.bool_)
        self.chunks.append(Chunk.of(data, ids, times, met))
        while len(self.chunks) > 1:
            one, other = self.chunks[-2:]
            if len(one.ids) > 2 * len(other.ids) or not self._may_be_one(one, other):
                break
            self.chunks[-2:] = [Chunk.merged(one, other, self._schema)]
        self._memory.relieve()

    def _may_be_one(self, one: Chunk, other: Chunk) -> bool:
        memory = self._memory
        return memory.limit is None or one.data_bytes + other.data_bytes <= memory.chunk_bytes

    def pairs(
        self, ids: npt.NDArray[Any], low: Any = 0, high: Any = 0
    ) -> Iterator[tuple[Any, Chunk, Any]]:
        """Positions of these keys, and rows of a chunk with that key and a time from ``low`` to
        ``high``; in pieces of bounded size."""
        order = np.argsort(ids)  # what is looked for in order is found several times faster
        ids = ids[order]
        low, high = (each[order] if np.ndim(each) else each for each in (low, high))
        for chunk in self.chunks:
            first, behind = chunk.places(ids, low, high)
            for at, within in pair_pieces(np.maximum(behind - first, 0)):
                rows = chunk.rows[first[at] + within]
                if not chunk.span:
                    times = chunk.times[rows]
                    lows, highs = (each[at] if np.ndim(each) else each for each in (low, high))
                    is_near = (times >= lows) & (times <= highs)
                    at, rows = at[is_near], rows[is_near]
                if len(at):
                    yield order[at], chunk, rows

    def drop(self, is_over: Callable[[Chunk], Any]) -> None:
        """Drops the rows of each chunk for which this says True: from a chunk of which they are
        half at least."""
        self._drop(lambda chunk: int(is_over(chunk).sum()), is_over)

    def drop_until(self, time: int) -> None:
        """The same for the rows up to this time, without a look at all of them."""
        self._drop(lambda chunk: chunk.until(time), lambda chunk: chunk.times <= time)

    def _drop(self, over: Callable[[Chunk], int], is_over: Callable[[Chunk], Any]) -> None:
        kept = []
        for chunk in self.chunks:
            count = over(chunk)
            if 2 * count < len(chunk.ids) or not count:
                kept.append(chunk)
            elif count < len(chunk.ids):
                rest = ~is_over(chunk)
                data = chunk.data.filter(pa.array(rest))
                parts = chunk.ids[rest], chunk.times[rest], chunk.met[rest]
                kept.append(Chunk.of(data, *parts))
        self.chunks[:] = kept
        self._memory.relieve()

    def number_anew(self, numbers: Callable[[pa.RecordBatch], Any]) -> None:
        """The keys have other numbers now: this gives them."""
        chunks = list(self.chunks)
        self.chunks.clear()
        for each in chunks:
            self.add(each.data, numbers(each.data), each.times, each.met)
