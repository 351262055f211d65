"""The interval join: joins records of one key if the right record's event time lies within an
interval around the left one's.

Both sides are kept per key, sorted by time, so two bisections find the partners of a record. A
record is dropped when the watermark shows that no more partners can come. An index beside the state
(``expiries``) says when the first record of each key and side is to be dropped. In a batch job, in
which time stands still, all records stay, in files if need be (``spilled_joins``)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, MutableMapping
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, RowBatch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_key
from flinkpy.core.mutability import could_be_mutated, isolated
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import BatchForm, TwoInputOperator, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.functions import close_function, method_of, open_function
from flinkpy.operators.key_selectors import close_selectors, open_selectors
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.process.expiries import expiries
from flinkpy.operators.process.join_functions import ProcessJoinContext, never_joins
from flinkpy.operators.process.spilled_joins import JOINED, SpilledJoin
from flinkpy.operators.row_batches import rows
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.spilling.spills_in_batch import SpillsInBatch
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.yielding import emit_results

if TYPE_CHECKING:  # it imports Arrow
    from flinkpy.operators.spilling.operator_memory import OperatorMemory

BUFFERS = "_interval join buffers"  # the name of the state
EXPIRIES = "_interval join expiries"  # of what says when they end

# For one key: times and values of the left side, then of the right side. Times ascend; records of
# equal time keep their order.
Buffers: TypeAlias = "tuple[list[int], list[Any], list[int], list[Any]]"


class IntervalJoinOperator(DropsLateRecords, SpillsInBatch, KeyedStateOperator, TwoInputOperator):
    """Joins left and right records with ``left + lower <= right <= left + upper`` (milliseconds,
    both inclusive). If ``lower > upper``, as two exclusive bounds can make it, it joins nothing.
    ``late_tags`` are the side outputs for late records of the left and of the right side."""

    batch_form = BatchForm.AT_END_OF_TIME
    takes_no_policy = "pairs records: catch the exception in the function"

    def __init__(
        self,
        function: object,
        key1: KeySpec,
        key2: KeySpec,
        lower: int,
        upper: int,
        late_tags: tuple[str | None, str | None] = (None, None),
    ) -> None:
        for key in (key1, key2):
            key_function(key)
        self.function = function
        self.keys = (key1, key2)
        self.lower = lower
        self.upper = upper
        self.late_tags = late_tags

    parks = True
    _spilled: SpilledJoin | None = None  # in a batch job
    at_once: ClassVar[int] = 1 << 12  # keys whose records are dropped, or counted, together

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        open_selectors(self.keys, self.context)
        open_function(self.function, self.context, self.backend)
        self._selects = tuple(key_function(key) for key in self.keys)
        self._process = method_of(self.function, "process_element")
        self._watermark = MIN_TIMESTAMP
        # how long after its event time a record of each side may still find partners
        self._keep_left, self._keep_right = max(0, self.upper), max(0, -self.lower)
        self.backend.held_values(BUFFERS, self._rebind, _copy_of_lists)
        self._copies = False
        self._expiries = expiries(self.backend, EXPIRIES)
        if self._expiries.is_empty:
            self._make_expiries()
        elif not self.context.object_reuse:  # nobody looks at all the records that are on disk
            self._copy_from_now_on()

    def spill_to(self, memory: OperatorMemory) -> None:
        self._spilled = SpilledJoin(memory)

    def free_memory(self) -> None:
        if self._spilled is not None:
            self._spill(self._spilled, 0)
        super().free_memory()

    def _spill(self, spilled: SpilledJoin, room: int | None = None) -> None:
        spilled.spill(self._buffers, room)
        if spilled.waits:
            self._expiries.clear()

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()
            close_selectors(self.keys)

    def _make_expiries(self) -> None:
        """Of the records that were restored, if there are some."""
        add = self._expiries.add
        left = iter(self._buffers.items())
        while some := list(islice(left, self.at_once)):
            for key, buffers in some:
                self._look_at(buffers[1] + buffers[3])
                for times, keep in ((buffers[0], self._keep_left), (buffers[2], self._keep_right)):
                    if times:
                        add(times[0] + keep, key)
            self._expiries.after_batch()

    def _rebind(self, buffers: MutableMapping[Any, Buffers]) -> None:
        self._buffers = buffers

    # -- records -----------------------------------------------------------------------------------

    def _look_at(self, values: list[Any]) -> None:
        """Has the function get copies from the first batch on with records that could be changed in
        place, because each record may still be part of later pairs."""
        if not self._copies and not self.context.object_reuse and could_be_mutated(values):
            self._copy_from_now_on()

    def _copy_from_now_on(self) -> None:
        self._copies, self._process = True, isolated(self._process)

    def process_batch1(self, batch: Batch) -> Work:
        return self._take(self._in_time(rows(batch), 0), 0)

    def process_batch2(self, batch: Batch) -> Work:
        return self._take(self._in_time(rows(batch), 1), 1)

    def _in_time(self, batch: RowBatch, side: int) -> RowBatch:
        """The batch without late records, which are those before the watermark. A record exactly at
        the watermark is not late."""
        stamps = batch.timestamps
        if stamps is None:
            raise ProgramError(
                f"operator {self.context.name!r}: an interval join needs records with "
                "timestamps, and these of the "
                f"{('left', 'right')[side]} stream have none: call "
                "assign_timestamps_and_watermarks(...) before key_by(...)"
            )
        watermark, earliest = self._watermark, min(stamps)
        if earliest == MIN_TIMESTAMP:
            raise ProgramError(
                f"operator {self.context.name!r}: an interval join needs timestamps that mean "
                "something, and one of these is the "
                "smallest there is: look at the timestamp assigner"
            )
        if earliest >= watermark:
            return batch
        good, late = RowBatch([], []), RowBatch([], [])
        for value, stamp in zip(batch.values, stamps):
            part = late if stamp < watermark else good
            part.values.append(value)
            # both parts have lists, see above
            part.timestamps.append(stamp)  # type: ignore[union-attr]
        tag = self.late_tags[side]
        if tag is None:
            self.drop_late(len(late))
        else:
            self.output.emit_side(tag, late)
        return good

    def _take(self, batch: RowBatch, side: int) -> Work:
        spilled = self._spilled
        if spilled is None or not spilled.waits:
            yield from self._join(batch, side)
            self._after_batch(len(batch))
            if spilled is not None:
                spilled.note(batch)
        else:
            batch, keys = self._with_keys(batch, side)
            spilled.wait(side, keys, batch)
        if spilled is not None:
            self._spill(spilled)

    def _with_keys(self, batch: RowBatch, side: int) -> tuple[RowBatch, list[Any]]:
        """The records that may find partners, and their keys."""
        select, keys, found = self._selects[side], list[Any](), RowBatch([], [])
        for value, stamp in zip(batch.values, batch.timestamps or ()):
            try:
                key = canonical_key(select(value))
                hash(key)
            except BaseException as error:
                raise user_code_error(error, self.context, value) from error
            if not never_joins(key):
                keys.append(key)
                found.values.append(value)
                found.timestamps.append(stamp)  # type: ignore[union-attr]
        return found, keys

    def _join(self, batch: RowBatch, side: int) -> Work:
        """Keeps each record, and joins it with the records of the other side from ``stamp + low``
        to ``stamp + high``."""
        low, high, keep = (
            (-self.upper, -self.lower, self._keep_right)
            if side
            else (self.lower, self.upper, self._keep_left)
        )
        self._look_at(batch.values)
        at = _At()
        pairs = self._pairs(batch, side, low, high, keep, at)
        yield from emit_results(self._given, pairs, repeat(None), at, self, endless=True)

    def _join_what_waits(self, spilled: SpilledJoin) -> Work:
        """The input has ended: joins the records that are in files, some keys at a time."""
        buffers = self._buffers
        for portion in spilled.portions():
            for side, records in (run for piece in portion for run in piece.runs()):
                if side < JOINED:
                    yield from self._join(RowBatch(records.values, records.stamps), side)
                    continue
                at = 2 * (side - JOINED)
                for key, value, stamp in zip(records.keys, records.values, records.stamps):
                    of_key = buffers.get(key)
                    if of_key is None:
                        of_key = buffers[key] = [], [], [], []
                    insert(of_key[at], of_key[at + 1], stamp, value)
            buffers.clear()
            self._expiries.clear()

    def _after_batch(self, records: int) -> None:
        self.backend.after_records(records)
        self._expiries.after_batch()

    def _given(self, pair: tuple[Any, Any], at: _At) -> Any:
        at._timestamp = at.time
        return self._process(*pair, at.context)

    def _pairs(
        self, batch: RowBatch, side: int, low: int, high: int, keep: int, at: _At
    ) -> Iterator[tuple[Any, Any]]:
        """The pairs of left and right record, with the current key and the times set for each."""
        mine, other = 2 * side, 2 - 2 * side
        select = self._selects[side]
        kept = self._buffers
        expire = self._expiries.add
        current = self.backend.current
        pair = at.context
        for value, stamp in zip(batch.values, batch.timestamps or ()):
            try:
                key = canonical_key(select(value))
                if never_joins(key):
                    continue
                buffers: Buffers | None = kept.get(key)
            except BaseException as error:
                raise user_code_error(error, self.context, value) from error
            if buffers is None:
                buffers = [], [], [], []
            times = buffers[mine]
            if not times or stamp < times[0]:
                expire(stamp + keep, key)
            insert(times, buffers[mine + 1], stamp, value)
            kept[key] = buffers
            times, partners = buffers[other], buffers[other + 1]
            if not times or high < low:
                continue
            first = bisect_left(times, stamp + low)
            last = bisect_right(times, stamp + high, first)
            if first == last:
                continue
            current.key = key
            for partner, time in zip(partners[first:last], times[first:last]):
                left, right, pair._left, pair._right = (
                    (partner, value, time, stamp) if side else (value, partner, stamp, time)
                )
                at.time = time if time > stamp else stamp
                yield left, right

    # -- time --------------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        self._watermark = now = watermark.timestamp
        if now == MAX_TIMESTAMP and self._spilled is not None and self._spilled.waits:
            yield from self._join_what_waits(self._spilled)
        due, keys = iter(self._expiries.until(now)), [None]
        while keys:
            keys = list(islice(due, self.at_once))
            self._drop(keys, now)
            self._after_batch(0)
        super().process_watermark(watermark)

    def _drop(self, keys: list[Any], now: int) -> None:
        """The records of these keys that are over."""
        left, right = now - self._keep_left, now - self._keep_right
        kept, expire = self._buffers, self._expiries.add
        for key in keys:
            buffers = kept.get(key)
            if buffers is None:
                continue  # an earlier entry of the index has dropped its last record
            if drop_until(buffers[0], buffers[1], left) and buffers[0]:
                expire(buffers[0][0] + self._keep_left, key)
            if drop_until(buffers[2], buffers[3], right) and buffers[2]:
                expire(buffers[2][0] + self._keep_right, key)
            if buffers[0] or buffers[2]:
                kept[key] = buffers
            else:
                del kept[key]


class _At:
    """The current pair: what the function can ask about it, and the event time of its results."""

    def __init__(self) -> None:
        self.context = ProcessJoinContext()
        self.time = self._timestamp = MIN_TIMESTAMP


def _copy_of_lists(buffers: Buffers) -> Buffers:
    """Records are only kept, so they need no copy: the function gets copies of those that could be
    changed."""
    return buffers[0].copy(), buffers[1].copy(), buffers[2].copy(), buffers[3].copy()


def insert(times: list[int], values: list[Any], time: int, value: object) -> None:
    """Inserts a record after those of its own time or earlier."""
    if not times or times[-1] <= time:
        times.append(time)
        values.append(value)
    else:
        at = bisect_right(times, time)
        times.insert(at, time)
        values.insert(at, value)


def drop_until(times: list[int], values: list[Any], time: int) -> bool:
    """Drops the records with that time or an earlier one; says whether there were some."""
    if not times or times[0] > time:
        return False
    end = bisect_right(times, time)
    del times[:end], values[:end]
    return True
