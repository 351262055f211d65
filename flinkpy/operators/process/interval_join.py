"""The interval join: pairs of one key whose right record lies within an interval around the left one's event time.

Both sides are kept per key, sorted by time, so that the partners of a record are found by two bisections. A record goes when the watermark says that
no partner can come any more; which keys have something to throw away at which time is an index beside the state, made anew after a restore.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import repeat
from typing import Any, TypeAlias

from flinkpy.core.elements import MIN_TIMESTAMP, Batch, RowBatch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_key
from flinkpy.core.mutability import could_be_mutated, isolated
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import BatchForm, TwoInputOperator, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.functions import close_function, method_of, open_function
from flinkpy.operators.key_selectors import close_selectors, open_selectors
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.process.join_functions import ProcessJoinContext, never_joins
from flinkpy.operators.process.yielding import emit_results
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.rows.stateless import rows
from flinkpy.operators.user_errors import user_code_error

BUFFERS = "_interval join buffers"  # the name of the state

# Of one key: the times and the values of the left side, then of the right side; times ascend, records of one time stand as they came.
Buffers: TypeAlias = "tuple[list[int], list[Any], list[int], list[Any]]"


class IntervalJoinOperator(DropsLateRecords, KeyedStateOperator, TwoInputOperator):
    """Joins left with right records for which ``left + lower <= right <= left + upper`` (milliseconds, both inclusive). With ``lower > upper``,
    as two exclusive bounds can make it, nothing is joined. ``late_tags``: side outputs for late records of the left and of the right side."""

    batch_form = BatchForm.AT_END_OF_TIME

    def __init__(self, function: Any, key1: KeySpec, key2: KeySpec, lower: int, upper: int,
                 late_tags: tuple[str | None, str | None] = (None, None)) -> None:
        for key in (key1, key2):
            key_function(key)
        self.function, self.keys, self.lower, self.upper, self.late_tags = function, (key1, key2), lower, upper, late_tags

    parks = True

    # -- life ---------------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        open_selectors(self.keys, self.context)
        open_function(self.function, self.context, self.backend)
        self._selects = tuple(key_function(key) for key in self.keys)
        self._process = method_of(self.function, "process_element")
        self._watermark = MIN_TIMESTAMP
        self._expiries = Expiries()
        self._keep_left, self._keep_right = max(0, self.upper), max(0, -self.lower)  # how long after its time a record may find partners
        self._buffers = self.backend.engine_values(BUFFERS)
        self._copies = False
        for key, buffers in self._buffers.items():
            self._look_at(buffers[1] + buffers[3])
            for times, keep in ((buffers[0], self._keep_left), (buffers[2], self._keep_right)):
                for time in times:
                    self._expiries.add(time + keep, key)

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()
            close_selectors(self.keys)

    # -- records ------------------------------------------------------------------------------------------------------------

    def _look_at(self, values: list[Any]) -> None:
        """From the first records on that could be changed in place, the function gets copies: each record may be in more pairs to come."""
        if not self._copies and not self.context.object_reuse and could_be_mutated(values):
            self._copies, self._process = True, isolated(self._process)

    def process_batch1(self, batch: Batch) -> Work:
        return self._join(self._in_time(rows(batch), 0), 0, self.lower, self.upper, self._keep_left)

    def process_batch2(self, batch: Batch) -> Work:
        return self._join(self._in_time(rows(batch), 1), 1, -self.upper, -self.lower, self._keep_right)

    def _in_time(self, batch: RowBatch, side: int) -> RowBatch:
        """Without the late ones: those before the watermark. One exactly at it is not late."""
        stamps = batch.timestamps
        if stamps is None:
            raise ProgramError(f"operator {self.context.name!r}: an interval join needs records with timestamps, and these of the "
                               f"{('left', 'right')[side]} stream have none: call assign_timestamps_and_watermarks(...) before key_by(...)")
        watermark, earliest = self._watermark, min(stamps)
        if earliest == MIN_TIMESTAMP:
            raise ProgramError(f"operator {self.context.name!r}: an interval join needs timestamps that mean something, and one of these is the "
                               "smallest there is: look at the timestamp assigner")
        if earliest >= watermark:
            return batch
        good, late = RowBatch([], []), RowBatch([], [])
        for value, stamp in zip(batch.values, stamps):
            part = late if stamp < watermark else good
            part.values.append(value)
            part.timestamps.append(stamp)  # type: ignore[union-attr]  # made a list two lines above
        tag = self.late_tags[side]
        if tag is None:
            self.drop_late(len(late))
        else:
            self.output.emit_side(tag, late)
        return good

    def _join(self, batch: RowBatch, side: int, low: int, high: int, keep: int) -> Work:
        """Keeps each record, and joins it with those of the other side from ``low`` before to ``high`` after it."""
        self._look_at(batch.values)
        at = _At()
        pairs = self._pairs(batch, side, low, high, keep, at)
        yield from emit_results(self._given, pairs, repeat(None), at, self, endless=True)
        self.backend.after_records(len(batch))

    def _given(self, pair: tuple[Any, Any], at: _At) -> Any:
        at._timestamp = at.time
        return self._process(*pair, at.context)

    def _pairs(self, batch: RowBatch, side: int, low: int, high: int, keep: int, at: _At) -> Iterator[tuple[Any, Any]]:
        """Left and right, with the key set and the times."""
        mine, other = 2 * side, 2 - 2 * side
        select, kept, expire, current, pair = self._selects[side], self._buffers, self._expiries.add, self.backend.current, at.context
        for value, stamp in zip(batch.values, batch.timestamps or ()):
            try:
                key = canonical_key(select(value))
                if never_joins(key):
                    continue
                buffers: Buffers | None = kept.get(key)
            except Exception as error:
                raise user_code_error(error, self.context, value) from error
            if buffers is None:
                buffers = [], [], [], []
            insert(buffers[mine], buffers[mine + 1], stamp, value)
            kept[key] = buffers
            expire(stamp + keep, key)
            times, partners = buffers[other], buffers[other + 1]
            if not times or high < low:
                continue
            first = bisect_left(times, stamp + low)
            last = bisect_right(times, stamp + high, first)
            if first == last:
                continue
            current.key = key
            for partner, time in zip(partners[first:last], times[first:last]):
                left, right, pair._left, pair._right = (partner, value, time, stamp) if side else (value, partner, stamp, time)
                at.time = time if time > stamp else stamp
                yield left, right

    # -- time ---------------------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> None:
        self._watermark = now = watermark.timestamp
        left, right = now - self._keep_left, now - self._keep_right
        kept = self._buffers
        for key in self._expiries.until(now):
            buffers = kept.get(key)
            if buffers is None:
                continue  # its last record went with an earlier entry of the index
            drop_until(buffers[0], buffers[1], left)
            drop_until(buffers[2], buffers[3], right)
            if buffers[0] or buffers[2]:
                kept[key] = buffers
            else:
                del kept[key]
        super().process_watermark(watermark)


class _At:
    """The pair at hand: what the function learns of it, and the event time its results get."""

    def __init__(self) -> None:
        self.context = ProcessJoinContext()
        self.time = self._timestamp = MIN_TIMESTAMP


class Expiries:
    """Which keys have something to throw away, and when."""

    def __init__(self) -> None:
        self._times: list[int] = []  # a heap
        self._keys: dict[int, list[Any]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def add(self, time: int, key: Any) -> None:
        keys = self._keys.get(time)
        if keys is None:
            self._keys[time] = [key]
            heapq.heappush(self._times, time)
        else:
            keys.append(key)

    def until(self, now: int) -> set[Any]:
        """Takes out the keys up to ``now``."""
        found: set[Any] = set()
        while self._times and self._times[0] <= now:
            found.update(self._keys.pop(heapq.heappop(self._times)))
        return found


def insert(times: list[int], values: list[Any], time: int, value: Any) -> None:
    """Puts a record behind those of its time and before."""
    if not times or times[-1] <= time:
        times.append(time)
        values.append(value)
    else:
        at = bisect_right(times, time)
        times.insert(at, time)
        values.insert(at, value)


def drop_until(times: list[int], values: list[Any], time: int) -> None:
    """Drops the records up to that time."""
    if times and times[0] <= time:
        end = bisect_right(times, time)
        del times[:end], values[:end]
