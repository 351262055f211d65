"""Rows of sessions that are still open: a session of a key goes on as long as no two of its rows
that follow each other are further apart than the gap.

Rows are put aside as they come. When the first session could end they are sorted by key and time,
and cut where the gap is larger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.relational_operator import one_record_batch

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class EndedSessions:
    """Rows of sessions, and for each where its session begins and ends."""

    data: pa.RecordBatch
    starts: Any
    ends: Any


class SessionRows:
    """Rows of this schema. ``keys`` are the columns of which each value has sessions of its own;
    without them all rows are in the same ones. ``times`` gives the time of each row.

    >>> schema = pa.schema([("k", pa.string()), ("t", pa.int64())])
    >>> held = SessionRows(10, [0], schema, lambda data: data.column(1).to_numpy())
    >>> held.add(pa.record_batch({"k": ["a", "b", "a"], "t": [1, 2, 11]}, schema=schema))
    0
    >>> [ended] = held.ended(until=19)
    >>> ended.data.to_pylist(), ended.starts.tolist(), ended.ends.tolist()
    ([{'k': 'b', 't': 2}], [2], [12])
    """

    def __init__(
        self,
        gap: int,
        keys: Sequence[int],
        schema: pa.Schema,
        times: Callable[[pa.RecordBatch], npt.NDArray[np.int64]],
    ) -> None:
        self._gap = gap
        self._keys = tuple(keys)
        self._schema = schema
        self._times = times
        self._parts: list[pa.RecordBatch] = []
        self._wake = MAX_TIMESTAMP  # before this no session ends
        self.now = MIN_TIMESTAMP

    @property
    def rows(self) -> int:
        """How many are held."""
        return sum(each.num_rows for each in self._parts)

    @property
    def parts(self) -> list[pa.RecordBatch]:
        """The rows. Batches are never changed, and a list of them only grows."""
        return self._parts

    @property
    def next_moment(self) -> int | None:
        """Before this no session ends; None: there is none."""
        return None if self._wake == MAX_TIMESTAMP else self._wake

    def add(self, data: pa.RecordBatch) -> int:
        """Takes rows; gives how many came too late: after their session had ended."""
        times = self._times(data)
        late = 0
        if len(times) and int(times.min()) + self._gap - 1 <= self.now:
            kept = self._in_time(data, times)
            late = data.num_rows - len(kept)
            data, times = data.take(pa.array(kept)), times[kept]
        if len(times):
            self._parts.append(data)
            self._wake = min(self._wake, int(times.min()) + self._gap - 1)
        return late

    def _in_time(self, data: pa.RecordBatch, times: npt.NDArray[np.int64]) -> Any:
        """The positions of the rows that are in time, or near a row that came before and is. One by
        one, for the keys of which a row may be late."""
        groups = GroupNumbers(self._keys)
        ours = groups.of(data)
        is_behind = times + self._gap - 1 <= self.now
        behind = np.unique(ours[is_behind])
        near: dict[int, list[int]] = {group: [] for group in behind.tolist()}
        for part in self._parts:
            theirs, at = groups.of(part), self._times(part)
            of_these = np.isin(theirs, behind)
            for group, time in zip(theirs[of_these].tolist(), at[of_these].tolist()):
                near[group].append(time)
        kept = np.ones(len(times), np.bool_)
        for row in np.flatnonzero(np.isin(ours, behind)).tolist():
            time, others = int(times[row]), near[int(ours[row])]
            if is_behind[row] and not any(abs(time - each) <= self._gap for each in others):
                kept[row] = False
            else:
                others.append(time)
        return np.flatnonzero(kept)

    def ended(self, until: int) -> Iterator[EndedSessions]:
        """Lets time go on. Gives the rows of the sessions that end, by their ends."""
        self.now = until
        if until < self._wake or not self._parts:
            return
        data = one_record_batch(self._parts, self._schema)
        times, groups = self._times(data), GroupNumbers(self._keys).of(data)
        order = np.lexsort((times, groups))
        times, groups = times[order], groups[order]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (groups[1:] != groups[:-1]) | (np.diff(times) > self._gap)
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], len(order)) - 1
        sessions = np.cumsum(begins) - 1
        ends = times[lasts] + self._gap
        is_over = ends - 1 <= until
        stays = ~is_over[sessions]
        kept = np.sort(order[stays])  # equal rows stay in their order
        self._parts = [data.take(pa.array(kept))] if len(kept) else []
        self._wake = int(ends[~is_over].min()) - 1 if len(kept) else MAX_TIMESTAMP
        gone = np.flatnonzero(~stays)
        gone = gone[np.argsort(ends[sessions[gone]], kind="stable")]
        if len(gone):
            of = sessions[gone]
            rows = data.take(pa.array(order[gone]))
            yield EndedSessions(rows, times[firsts[of]], ends[of])
