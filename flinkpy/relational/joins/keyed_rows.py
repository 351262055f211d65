"""One side of a join that never ends: rows that are added batch by batch, found by the number of
their key and, if they have one, by their time.

The rows lie in chunks, each sorted by key and time, so a binary search finds the partners of many
rows at once. A chunk is merged with the one before it when that is not much larger; so there are
few of them, and each row is copied seldom. Chunks are never changed, and so a snapshot only has to
remember which there were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.relational.joins.pair_pieces import pair_pieces
from flinkpy.relational.relational_operator import one_record_batch

_LIMIT = 1 << 62


@dataclass(frozen=True)
class Chunk:
    """Rows by key number, then time. ``codes`` are both as one number, which ascends; key numbers
    alone if the times are too far apart for that. ``met`` says which rows have had a partner: the
    only part that changes."""

    data: pa.RecordBatch
    ids: Any
    times: Any
    met: Any
    codes: Any
    begin: int  # of the times
    span: int  # 0: the codes say nothing about time

    @classmethod
    def of(cls, data: pa.RecordBatch, ids: Any, times: Any, met: Any) -> Chunk:
        """These rows in order."""
        begin = int(times.min())
        span = int(times.max()) - begin + 1
        width = max(span, 1)
        if (int(ids.max()) + 1) * (width + 1) >= _LIMIT:
            begin, span, width = 0, 0, 1
        codes = ids * width + (times - begin if span else 0)
        order = np.argsort(codes, kind="stable")
        if (codes[1:] < codes[:-1]).any():
            data, ids, times = data.take(pa.array(order)), ids[order], times[order]
            met, codes = met[order], codes[order]
        return cls(data, ids, times, met, codes, begin, span)

    def places(self, ids: Any, low: Any, high: Any) -> tuple[Any, Any]:
        """For each key the first place of its rows between two times (both inclusive), and the one
        behind them."""
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
            self.chunks[-2:] = [self._merged(self.chunks[-2:])]

    def _merged(self, chunks: list[Chunk]) -> Chunk:
        return Chunk.of(
            one_record_batch([each.data for each in chunks], self._schema),
            np.concatenate([each.ids for each in chunks]),
            np.concatenate([each.times for each in chunks]),
            np.concatenate([each.met for each in chunks]),
        )

    def pairs(
        self, ids: npt.NDArray[Any], low: Any = 0, high: Any = 0
    ) -> Iterator[tuple[Any, Chunk, Any]]:
        """Positions of these keys, and rows of a chunk with that key and a time from ``low`` to
        ``high``; in pieces of bounded size."""
        for chunk in self.chunks:
            first, behind = chunk.places(ids, low, high)
            for at, within in pair_pieces(np.maximum(behind - first, 0)):
                rows = first[at] + within
                if not chunk.span:
                    times = chunk.times[rows]
                    lows, highs = (each[at] if np.ndim(each) else each for each in (low, high))
                    is_near = (times >= lows) & (times <= highs)
                    at, rows = at[is_near], rows[is_near]
                if len(at):
                    yield at, chunk, rows

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
