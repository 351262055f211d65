"""One side of a join that never ends: rows that are added batch by batch, found by the number of
their key and, if they have one, by their time.

The rows lie in chunks. Each knows the order of its rows by key and time, so a binary search finds
the partners of many rows at once. A chunk is merged with the one before it when that is not much
larger; so there are few of them, and each row is copied seldom. Chunks are never changed, and so a
snapshot only has to remember which there were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.relational.pair_pieces import pair_pieces
from flinkpy.relational.relational_operator import one_record_batch

_LIMIT = 1 << 62


@dataclass(frozen=True)
class Chunk:
    """Rows as they came, with their key numbers and times. ``codes`` are both as one number (key
    numbers alone if the times are too far apart for that), in ascending order, and ``rows`` the
    positions of the rows they belong to. ``met`` says which rows have had a partner: the only part
    that changes."""

    data: pa.RecordBatch
    ids: Any
    times: Any
    met: Any
    codes: Any
    rows: Any
    begin: int  # of the times
    span: int  # 0: the codes say nothing about time

    @classmethod
    def of(cls, data: pa.RecordBatch, ids: Any, times: Any, met: Any, rows: Any = None) -> Chunk:
        """These rows. ``rows`` are their positions in an order that is near the one of codes."""
        begin = int(times.min())
        span = int(times.max()) - begin + 1
        if (int(ids.max()) + 1) * (span + 1) >= _LIMIT:
            begin, span = 0, 0
        codes = ids if span < 2 else ids * span + (times - begin)
        if rows is not None:
            codes = codes[rows]
        order = np.argsort(codes, kind="stable")
        return cls(
            data, ids, times, met, codes[order], order if rows is None else rows[order], begin, span
        )

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


class KeyedRows:
    """The rows of this schema. Without times all are at 0."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.chunks: list[Chunk] = []

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
        while len(self.chunks) > 1 and len(self.chunks[-2].ids) <= 2 * len(self.chunks[-1].ids):
            one, other = self.chunks[-2:]
            self.chunks[-2:] = [Chunk.merged(one, other, self._schema)]

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

    def drop(self, is_over: Any) -> None:
        """Drops the rows of each chunk for which this says True: from a chunk of which they are
        half at least."""
        kept = []
        for chunk in self.chunks:
            over = is_over(chunk)
            count = int(over.sum())
            if 2 * count < len(over) or not count:
                kept.append(chunk)
            elif count < len(over):
                rest = ~over
                data = chunk.data.filter(pa.array(rest))
                parts = chunk.ids[rest], chunk.times[rest], chunk.met[rest]
                kept.append(Chunk.of(data, *parts))
        self.chunks = kept
