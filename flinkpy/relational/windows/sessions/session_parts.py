"""What sessions that are still open have accumulated. Rows that come are cut into fragments, each
of a key and without a gap; fragments and sessions that a later row brings together are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.core.elements import MAX_TIMESTAMP
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.relational_operator import one_record_batch
from flinkpy.relational.windows.partial_groups import PartialGroups, with_places
from flinkpy.relational.windows.sessions.open_sessions import OpenSessions, Tables
from flinkpy.sql.rex.rex_nodes import AggregateCall

if TYPE_CHECKING:
    import numpy.typing as npt

MOMENT = "moment"  # the column behind the rows that says where each lies in time


@dataclass(frozen=True)
class SessionResults:
    """Of each session that has ended: where it begins and ends, its key, and the results."""

    starts: Any
    ends: Any
    columns: list[pa.Array]


class SessionParts(OpenSessions[SessionResults]):
    """The sessions of the columns ``keys`` of rows of this schema; ``results`` are the types of the
    calls. Each row is given with its moment.

    >>> schema = pa.schema([("k", pa.string()), ("n", pa.int64())])
    >>> count = AggregateCall("COUNT", (), BigIntType())
    >>> parts = SessionParts(10, [0], [count], schema, [pa.int64()], "a test")
    >>> rows = pa.record_batch({"k": ["a", "b", "a"], "n": [1, 2, 3]}, schema=schema)
    >>> parts.add(rows, np.array([1, 2, 11]), now=0)
    0
    >>> [ended] = parts.ended(until=19)
    >>> ended.starts.tolist(), ended.ends.tolist(), [each.to_pylist() for each in ended.columns]
    ([2], [12], [['b'], [1]])
    """

    most = 1 << 13  # rows of the tables, before sessions are merged

    def __init__(
        self,
        gap: int,
        keys: Sequence[int],
        calls: Sequence[AggregateCall],
        inputs: pa.Schema,
        results: Sequence[pa.DataType],
        meaning: str,
    ) -> None:
        self._gap, self._keys = gap, tuple(keys)
        # The last moment of a session is one more aggregate
        self._schema = inputs.append(pa.field(MOMENT, pa.int64()))
        last = AggregateCall("MAX", (len(inputs),), BigIntType())
        results = [*results, pa.int64()]
        self.groups = PartialGroups(keys, [*calls, last], self._schema, results, meaning)
        super().__init__(
            self.groups.schemas, [range(1, self.groups.width) for _ in self.groups.schemas]
        )

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._rows = self._merged = 0

    @property
    def rows(self) -> int:
        return self._rows

    # -- rows --------------------------------------------------------------------------------------

    def add(
        self, data: pa.RecordBatch, moments: npt.NDArray[Any], now: int | npt.NDArray[Any]
    ) -> int:
        late = 0
        is_behind = moments + self._gap - 1 <= now
        if is_behind.any():
            kept = self._in_time(data, moments, is_behind)
            late = len(moments) - len(kept)
            data, moments = data.take(pa.array(kept)), moments[kept]
        if len(moments):
            rows = pa.RecordBatch.from_arrays([*data.columns, moments], schema=self._schema)
            keys = GroupNumbers(range(1, self.groups.width)).of(self._placed(data, moments))
            places = _starts_of_sessions(keys, moments, moments, self._gap)
            self.put(self.groups.of(rows, places))
        return late

    def put(self, tables: Tables) -> None:
        if not tables[0].num_rows:
            return
        for held, table in zip(self._tables, tables):
            held.append(table)
            self._rows += table.num_rows
        self._wake = min(self._wake, int(_lasts(tables[0]).min()) + self._gap - 1)
        if self._rows > 2 * self._merged + self.most:
            self._merge()

    def _placed(self, data: pa.RecordBatch, moments: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """Moments and keys of rows, which stand where those of a table do."""
        arrays = [pa.array(moments), *(data.column(at) for at in self._keys)]
        return pa.RecordBatch.from_arrays(arrays, names=self.groups.schemas[0].names[: len(arrays)])

    def _in_time(self, data: pa.RecordBatch, moments: Any, is_behind: Any) -> Any:
        """The positions of the rows that are in time, or near a row that came before and is. One by
        one, for the keys of which a row may be late."""
        groups = GroupNumbers(range(1, self.groups.width))
        ours = groups.of(self._placed(data, moments))
        behind = np.unique(ours[is_behind])
        near: dict[int, list[tuple[int, int]]] = {group: [] for group in behind.tolist()}
        for part in self._tables[0]:
            theirs = groups.of(part)
            of_these = np.isin(theirs, behind)
            spans = zip(_firsts(part)[of_these].tolist(), _lasts(part)[of_these].tolist())
            for group, span in zip(theirs[of_these].tolist(), spans):
                near[group].append(span)
        kept = np.ones(len(moments), np.bool_)
        for row in np.flatnonzero(np.isin(ours, behind)).tolist():
            moment, spans_near = int(moments[row]), near[int(ours[row])]
            if is_behind[row] and not any(
                first - self._gap <= moment <= last + self._gap for first, last in spans_near
            ):
                kept[row] = False
            else:
                spans_near.append((moment, moment))
        return np.flatnonzero(kept)

    # -- sessions ----------------------------------------------------------------------------------

    def _merge(self) -> Tables:
        """Brings fragments together: then each session is one row of the first table."""
        tables = [
            one_record_batch(held, schema)
            for held, schema in zip(self._tables, self.groups.schemas)
        ]
        numbers = GroupNumbers(range(1, self.groups.width))
        keys = [numbers.of(each) for each in tables]
        firsts = _firsts(tables[0])
        starts = _starts_of_sessions(keys[0], firsts, _lasts(tables[0]), self._gap)
        places = [starts]
        places += [
            _starts_near(of, _firsts(table), keys[0], starts)
            for of, table in zip(keys[1:], tables[1:])
        ]
        merged = [
            self.groups.merged(number, with_places(table, at))
            for number, (table, at) in enumerate(zip(tables, places))
        ]
        self._hold(merged)
        return merged

    def _hold(self, tables: Tables) -> None:
        self._tables = [[each] if each.num_rows else [] for each in tables]
        self._rows = self._merged = sum(each.num_rows for each in tables)

    def ended(self, until: int) -> Iterator[SessionResults]:
        if until < self._wake:
            return
        tables = self._merge()
        ends = _lasts(tables[0]) + self._gap
        is_over = ends - 1 <= until
        _, groups = self.groups.numbers_of(tables)  # each row of the first table is one group
        over = [pa.array(is_over[each]) for each in groups]
        gone = [table.filter(each) for table, each in zip(tables, over)]
        self._hold([table.filter(pc.invert(each)) for table, each in zip(tables, over)])
        self._wake = int(ends[~is_over].min()) - 1 if not is_over.all() else MAX_TIMESTAMP
        if not is_over.any():
            return
        starts, keys, (*results, lasts) = self.groups.results(gone)
        ends = lasts.to_numpy() + self._gap
        order = np.argsort(ends, kind="stable")
        columns = [each.take(pa.array(order)) for each in (*keys, *results)]
        yield SessionResults(starts[order], ends[order], columns)

    def taken(self) -> tuple[Tables, Any]:
        tables = self._merge()
        self._begin_anew()
        return tables, _lasts(tables[0]) + self._gap - 1


def _firsts(table: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Where the sessions of these rows begin."""
    found: npt.NDArray[np.int64] = table.column(0).to_numpy()
    return found


def _lasts(table: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The last moments in the sessions of the first table."""
    found: npt.NDArray[np.int64] = table.columns[-1].to_numpy()
    return found


def _starts_of_sessions(
    keys: npt.NDArray[np.int64],
    firsts: npt.NDArray[np.int64],
    lasts: npt.NDArray[np.int64],
    gap: int,
) -> npt.NDArray[np.int64]:
    """For each span of a key: where the session begins that it is in.

    >>> spans = np.array([1, 30, 14]), np.array([5, 31, 20])
    >>> _starts_of_sessions(np.array([0, 0, 0]), *spans, gap=10).tolist()
    [1, 1, 1]
    >>> _starts_of_sessions(np.array([0, 0, 1]), *spans, gap=10).tolist()
    [1, 30, 14]
    """
    order = np.lexsort((firsts, keys))
    ordered, begun = keys[order], firsts[order]
    # the latest last moment of the key so far: keys ascend, so one running maximum serves all
    latest, ranks = np.unique(lasts, return_inverse=True)
    ranks = ranks[order] + ordered * len(latest)
    so_far = latest[np.maximum.accumulate(ranks) - ordered * len(latest)]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]) | (begun[1:] - so_far[:-1] > gap)
    starts = np.empty(len(order), np.int64)
    starts[order] = begun[begins][np.cumsum(begins) - 1]
    return starts


def _starts_near(
    keys: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    keys_of_sessions: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """For each place in a session of a key: where that session begins.

    >>> keys, starts = np.array([0, 0, 1]), np.array([1, 30, 14])
    >>> _starts_near(np.array([1, 0, 0]), np.array([20, 5, 30]), keys, starts).tolist()
    [14, 1, 30]
    """
    known = np.unique(starts)
    sessions = np.unique(keys_of_sessions * len(known) + np.searchsorted(known, starts))
    wanted = keys * len(known) + np.searchsorted(known, places, side="right") - 1
    found: npt.NDArray[np.int64] = known[
        sessions[np.searchsorted(sessions, wanted, side="right") - 1] % len(known)
    ]
    return found
