"""OVER of STREAMING by the rows of the frame: those that later rows may need are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.relational.in_time.frames_in_time import EVER, RowsOfNow, earlier_rows, in_partitions
from flinkpy.relational.joins.keyed_rows import KeyedRows
from flinkpy.relational.ordering.over_frames import bounds_of
from flinkpy.relational.ordering.over_functions import FUNCTIONS_OF_PLACES, OverRows, over
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.sql.rex.relational_terms import OverGroup
from flinkpy.sql.rex.rex_nodes import AggregateCall


class KeptFrames:
    """Results of these calls of a window. Of each partition it keeps so many of its last rows, and
    those of so many last milliseconds, as the frames reach back."""

    def __init__(self, group: OverGroup, calls: Sequence[AggregateCall], inputs: pa.Schema) -> None:
        self._group = group
        self._calls = tuple(calls)
        self._inputs = inputs
        self.kept = KeyedRows(inputs)
        self._rows = max([0, *(_rows_back(group, each) for each in calls)])
        self._span = _span_back(group)

    @property
    def span(self) -> int | None:
        """For how many milliseconds rows are kept; None: it does not go by time alone."""
        return None if self._rows else self._span

    def results(self, now: RowsOfNow, kinds: Sequence[pa.DataType]) -> list[pa.Array]:
        """A column of each call, for the rows of now."""
        since = -EVER
        if self._span is not None and not self._rows:
            since = int(now.times[0]) - self._span
        earlier = earlier_rows(self.kept, self._inputs, now, since)
        before = len(earlier.ids)
        data = one_record_batch([earlier.data, now.data], self._inputs)
        rows = in_partitions(earlier, now, apart=False)
        ordered = data.take(pa.array(rows.order))
        frames = bounds_of(rows, self._group.frame, self._group.keys, ordered.columns)
        back = np.empty(len(rows.order), np.int64)
        back[rows.order] = np.arange(len(rows.order))
        mine = pa.array(back[before:])
        over_rows = OverRows(ordered, rows, frames)
        found = [over(call, over_rows, kind).take(mine) for call, kind in zip(self._calls, kinds)]
        self._keep(now, rows.ends[back[before:]] - back[before:] <= self._rows)
        return found

    def _keep(self, now: RowsOfNow, is_last: Any) -> None:
        """Keeps those of the rows that are among the last, or in the last time."""
        over = EVER
        if self._span is not None:
            over = int(now.times[-1]) - self._span - 1
            is_last = is_last | (now.times > over)
        data = now.data if is_last.all() else now.data.filter(pa.array(is_last))
        self.kept.add(data, now.ids[is_last], now.times[is_last])
        if self._rows and self._rows < EVER:
            self._mark_surplus(now)
        self.kept.drop(lambda chunk: chunk.met if self._rows else chunk.times <= over)

    def _mark_surplus(self, now: RowsOfNow) -> None:
        """Of the partitions of now, the rows before the last ones are not needed any more."""
        places = [
            (chunk, rows[~chunk.met[rows]])
            for _, chunk, rows in self.kept.pairs(now.partitions, -EVER, EVER)
        ]
        ids = np.concatenate([chunk.ids[rows] for chunk, rows in places])
        order = np.argsort(ids, kind="stable")
        ends = np.searchsorted(ids[order], ids[order], side="right")
        surplus = np.zeros(len(ids), np.bool_)
        surplus[order] = ends - np.arange(len(ids)) > self._rows
        begin = 0
        for chunk, rows in places:
            chunk.met[rows[surplus[begin : begin + len(rows)]]] = True
            begin += len(rows)


def _rows_back(group: OverGroup, call: AggregateCall) -> int:
    """How many rows before its own a call may need."""
    if call.function in FUNCTIONS_OF_PLACES:  # LAG; those that count rows need none of them
        offset = dict(call.constants).get(1, 1 if len(call.arguments) < 2 else EVER)
        return offset if isinstance(offset, int) else EVER
    lower = group.frame.lower
    if lower is None:
        return EVER
    return -lower if group.frame.unit == "ROWS" and isinstance(lower, int) else 0


def _span_back(group: OverGroup) -> int | None:
    """How many milliseconds a frame reaches back; None if it goes by rows."""
    lower = group.frame.lower
    if group.frame.unit == "ROWS" or lower is None:
        return None
    return -int(str(lower))
