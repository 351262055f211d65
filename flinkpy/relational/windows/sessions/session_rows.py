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

from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.relational.windows.sessions.open_sessions import OpenSessions, Tables

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class EndedSessions:
    """Rows of sessions, and for each where its session begins and ends."""

    data: pa.RecordBatch
    starts: Any
    ends: Any


@dataclass(frozen=True)
class _Cut:
    """Rows as sessions: ``order`` has their positions by key and time, ``times`` and ``sessions``
    what belongs to each of these; ``firsts`` and ``ends`` are by session."""

    order: Any
    times: Any
    sessions: Any
    firsts: Any
    ends: Any


class SessionRows(OpenSessions[EndedSessions]):
    """Rows of this schema. ``partition`` are the columns of which each value has sessions of its
    own; without them all rows are in the same ones. ``keys`` are these columns in the order in
    which they say the key group. ``times`` gives the time of each row.

    >>> schema = pa.schema([("k", pa.string()), ("t", pa.int64())])
    >>> held = SessionRows(10, [0], [0], schema, lambda data: data.column(1).to_numpy())
    >>> rows = pa.record_batch({"k": ["a", "b", "a"], "t": [1, 2, 11]}, schema=schema)
    >>> held.add(rows, np.array([1, 2, 11]), now=0)
    0
    >>> [ended] = held.ended(until=19)
    >>> ended.data.to_pylist(), ended.starts.tolist(), ended.ends.tolist()
    ([{'k': 'b', 't': 2}], [2], [12])
    """

    def __init__(
        self,
        gap: int,
        partition: Sequence[int],
        keys: Sequence[int],
        schema: pa.Schema,
        times: Callable[[pa.RecordBatch], npt.NDArray[np.int64]],
    ) -> None:
        self._gap = gap
        self._partition = tuple(partition)
        self._schema = schema
        self._times = times
        super().__init__([schema], [keys])

    def add(
        self, data: pa.RecordBatch, moments: npt.NDArray[Any], now: int | npt.NDArray[Any]
    ) -> int:
        late = 0
        is_behind = moments + self._gap - 1 <= now
        if is_behind.any():
            kept = self._in_time(data, moments, is_behind)
            late = data.num_rows - len(kept)
            data, moments = data.take(pa.array(kept)), moments[kept]
        if len(moments):
            self._tables[0].append(data)
            self._wake = min(self._wake, int(moments.min()) + self._gap - 1)
        return late

    def put(self, tables: Tables) -> None:
        [data] = tables
        if data.num_rows:
            self._tables[0].append(data)
            self._wake = min(self._wake, int(self._cut(data).ends.min()) - 1)

    def _in_time(self, data: pa.RecordBatch, times: Any, is_behind: Any) -> Any:
        """The positions of the rows that are in time, or near a row that came before and is. One by
        one, for the keys of which a row may be late."""
        groups = GroupNumbers(self._partition)
        ours = groups.of(data)
        behind = np.unique(ours[is_behind])
        near: dict[int, list[int]] = {group: [] for group in behind.tolist()}
        for part in self._tables[0]:
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
        if until < self._wake or not self._tables[0]:
            return
        data = one_record_batch(self._tables[0], self._schema)
        cut = self._cut(data)
        is_over = cut.ends - 1 <= until
        stays = ~is_over[cut.sessions]
        kept = np.sort(cut.order[stays])  # equal rows stay in their order
        self._tables = [[data.take(pa.array(kept))] if len(kept) else []]
        self._wake = int(cut.ends[~is_over].min()) - 1 if len(kept) else MAX_TIMESTAMP
        gone = np.flatnonzero(~stays)
        gone = gone[np.argsort(cut.ends[cut.sessions[gone]], kind="stable")]
        if len(gone):
            of = cut.sessions[gone]
            rows = data.take(pa.array(cut.order[gone]))
            yield EndedSessions(rows, cut.times[cut.firsts[of]], cut.ends[of])

    def taken(self) -> tuple[Tables, Any]:
        data = one_record_batch(self._tables[0], self._schema)
        self._begin_anew()
        cut = self._cut(data)
        last_moments = np.empty(data.num_rows, np.int64)
        last_moments[cut.order] = cut.ends[cut.sessions] - 1
        return [data], last_moments

    def _cut(self, data: pa.RecordBatch) -> _Cut:
        times, groups = self._times(data), GroupNumbers(self._partition).of(data)
        order = np.lexsort((times, groups))
        times, groups = times[order], groups[order]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (groups[1:] != groups[:-1]) | (np.diff(times) > self._gap)
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], len(order)) - 1
        return _Cut(order, times, np.cumsum(begins) - 1, firsts, times[lasts] + self._gap)
