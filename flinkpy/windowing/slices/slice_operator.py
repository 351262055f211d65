"""Built-in aggregates over tumbling and sliding windows: one accumulator per key and slice, shared by the windows that overlap.

The results are those of the general window operator with the default trigger: a window is evaluated when time has reached its end, and again for
every record that comes later but within the allowed lateness. There is no timer per key: which windows are due is read off the slices that hold
something (``slice_status``), and their accumulators are put together by generated loops (``slice_loops``).

Windows that do not overlap are never put together: their records are reduced as they come. In windows that overlap records meet slice by slice, in
order of time, and within a slice as they come. So where records are out of order and the result depends on their order (a reduce function that is
associative but not commutative, the other fields of ``sum``, which of several equal records ``max_by`` gives), it is by time and not by arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, CheckpointBarrier, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_key
from flinkpy.core.mutability import could_be_mutated, private_copy
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.functions import close_function, method_of, open_function
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.process.yielding import Results, stamp_new
from flinkpy.operators.rows.aggregates import AGGREGATES, FieldAggregate
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.rows.stateless import rows
from flinkpy.windowing.general.evaluation import check_window_function
from flinkpy.windowing.slices.slice_clock import FollowsTime
from flinkpy.windowing.slices.slice_functions import Evaluated, SliceFunction, can_follow_slices
from flinkpy.windowing.slices.slice_loops import KINDS, SliceLoops, States
from flinkpy.windowing.slices.slice_status import SliceTimes, Standing, slices_within
from flinkpy.windowing.slices.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow

SLICES = "_slices"  # the name of the state: key -> (what was evaluated until, [(slice, accumulator), ...])
NO_TIMESTAMPS = ("windows of event time need records with timestamps, and these have none: call assign_timestamps_and_watermarks(...) before, "
                 "or use windows of processing time")


class SliceWindowOperator(FollowsTime, DropsLateRecords, KeyedStateOperator, OneInputOperator):
    """``kind`` is sum, min, max, min_by, max_by (of the field at ``position``), count or reduce. Results carry the last moment of their window.

    ``sum``, ``min`` and ``max`` give the window's first record of the key with the field replaced, ``min_by`` and ``max_by`` a whole record,
    ``count`` the number of records; a ``window_function`` is called with that one value. Without a key all records are one group.
    """

    def __init__(
        self,
        key: KeySpec | None,
        slicing: Slicing,
        event_time: bool,
        kind: str,
        position: int | str | None = None,
        reduce_function: Any = None,
        window_function: Any = None,
        allowed_lateness: int = 0,
        late_tag: OutputTag | None = None,
    ) -> None:
        if kind not in KINDS:
            raise ProgramError(f"{kind!r} is no aggregate of windows; choose one of {', '.join(KINDS)}")
        if kind in AGGREGATES:
            FieldAggregate(kind, position)  # refuses what is no position
        if key is not None:
            key_function(key)
        if kind == "reduce":
            method_of(reduce_function, "reduce")
        self.key, self.slicing, self.event_time = key, slicing, event_time
        self.kind, self.position, self.reduce_function, self.window_function = kind, position, reduce_function, window_function
        check_window_function(window_function, key is not None)
        if not can_follow_slices(window_function):
            raise ProgramError(f"{type(window_function).__name__} has a clear() of its own, which the general window operator calls, not this one")
        self.allowed_lateness = allowed_lateness if event_time else 0
        self.late_tag = late_tag

    # -- lifecycle -------------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        select = None
        if self.key is not None:
            open_function(self.key.selector, self.context)
            select = key_function(self.key)
        open_function(self.reduce_function, self.context)
        self._select: Callable[[Any], Any] = select or _no_key
        self._function: SliceFunction | None = None
        if self.window_function is not None:
            self._function = SliceFunction(self.window_function, self.key is not None, self.context, self.backend)
        self._loops = SliceLoops(self.kind, self.position, self.reduce_function, select, self.context)
        self._times = SliceTimes(self.slicing, self.allowed_lateness)
        self._slices: dict[int, States] = {}
        self._mutable: dict[int, tuple[int, bool]] = {}
        self._restore()
        self.start_clock()

    def close(self) -> None:
        if hasattr(self, "_loops"):
            self.stop_clock()
            self._loops.forget()
        try:
            super().close()
            close_function(self.reduce_function)
            if getattr(self, "_function", None) is not None:
                close_function(self.window_function)
        finally:
            if self.key is not None:
                close_function(self.key.selector)

    def snapshot_state(self, barrier: CheckpointBarrier) -> bytes | None:
        by_key: dict[Any, list[tuple[int, Any]]] = {}
        for start, states in self._slices.items():
            for key, accumulator in states.items():
                if key in by_key:
                    by_key[key].append((start, accumulator))
                else:
                    by_key[key] = [(start, accumulator)]
        now, ahead = self._times.now, self._ahead
        saved = self.backend.engine_values(SLICES)
        saved.update((key, (ahead.get(key, now), slices)) for key, slices in by_key.items())
        try:
            return super().snapshot_state(barrier)
        finally:
            saved.clear()

    def _restore(self) -> None:
        """Keys may come from several subtasks, not all at the same time: those ahead are left out until the others have caught up."""
        saved = self.backend.engine_values(SLICES)
        self._times.now = now = min((until for until, _ in saved.values()), default=MIN_TIMESTAMP)
        self._ahead: dict[Any, int] = {}
        accumulators: list[Any] = []
        for key, (until, slices) in saved.items():
            if until > now:
                self._ahead[key] = until
            for start, accumulator in slices:
                states = self._slices.get(start)
                if states is None:
                    states = self._slices[start] = self._loops.new_states()
                states[key] = accumulator
                accumulators.append(accumulator)
        saved.clear()
        self._loops.restored(accumulators)
        self._times.settle(self._slices)

    # -- records ---------------------------------------------------------------------------------------------------------------

    def process_batch(self, batch: Batch) -> Work | None:
        batch = rows(batch)
        if not self.event_time:
            self._add_now(batch.values)
            return None
        stamps = batch.timestamps
        low = MIN_TIMESTAMP if stamps is None else min(stamps)
        if stamps is None or low == MIN_TIMESTAMP:
            raise ProgramError(f"operator {self.context.name!r}: {NO_TIMESTAMPS}")
        start = self.slicing.slice_of(low)
        if max(stamps) < start + self.slicing.width and self._times.standing(start) is Standing.OPEN:
            self._add(start, batch.values)
            return None
        return self._add_scattered(batch.values, stamps)

    def _add(self, start: int, values: list[Any]) -> None:
        states = self._slices.get(start)
        if states is None:
            states = self._slices[start] = self._loops.new_states()
            self._times.entered(start)
        self._loops.add(values, states)

    def _add_scattered(self, values: list[Any], stamps: list[int]) -> Work | None:
        """Records of several slices: sorted into them, and each taken as its slice stands."""
        parts = _parts(values, stamps, self.slicing)
        standings = {start: self._times.standing(start) for start in parts}
        for start, part in parts.items():
            if standings[start] is Standing.OPEN:
                self._add(start, part)
        if set(standings.values()) == {Standing.OPEN}:
            return None
        slice_of = self.slicing.slice_of
        placed = [(record, stamp, start) for record, stamp in zip(values, stamps) if standings[start := slice_of(stamp)] is not Standing.OPEN]
        return self._add_behind_time(placed, standings)

    def _add_behind_time(self, placed: Iterable[tuple[Any, int, int]], standings: dict[int, Standing]) -> Work:
        """One by one, as each may make windows be evaluated again."""
        late = RowBatch([], [])
        yield from self._give(self._again(placed, standings, late), self._times.now)
        if late.values and self.late_tag is None:
            self.drop_late(len(late))
        elif late.values and self.late_tag is not None:
            self.output.emit_side(self.late_tag.tag_id, late)

    def _again(self, placed: Iterable[tuple[Any, int, int]], standings: dict[int, Standing], late: RowBatch) -> Iterator[Evaluated]:
        """Adds each record when it is its turn; gives the windows to evaluate again, for its key alone."""
        for record, stamp, start in placed:
            standing = standings[start]
            if standing is Standing.REOPENED:
                self._add(start, [record])
                yield from self._evaluated_again(canonical_key(self._select(record)), start)
            elif late.timestamps is not None and (standing is Standing.OVER or self._times.is_late(stamp)):
                late.values.append(record)
                late.timestamps.append(stamp)

    # -- windows ---------------------------------------------------------------------------------------------------------------

    def _advance(self, until: int) -> Work:
        """Time goes on: evaluates what is due, and lets go of what is over."""
        times = self._times
        if times.is_quiet(until):
            times.now = until
            return
        yield from self._give(map(self._evaluated, times.due(self._slices, until)), until)
        times.now = until
        for start in times.over(self._slices):
            del self._slices[start]
            self._mutable.pop(start, None)
        times.settle(self._slices)
        if self._function is not None:
            self._function.forget(times.is_cleaned_up)
        if self._ahead and until >= max(self._ahead.values()):
            self._ahead = {}

    def _evaluated(self, window: TimeWindow) -> Evaluated:
        starts = slices_within(window, self.slicing, self._slices)
        merged = self._loops.together([self._taken(start, window, is_first=start == starts[0]) for start in starts])
        if self._ahead:
            merged = {key: value for key, value in merged.items() if self._ahead.get(key, MIN_TIMESTAMP) < window.end - 1}
        return window, merged

    def _evaluated_again(self, key: Any, start: int) -> Iterator[Evaluated]:
        """The windows of a slice for one key, in the order the assigner would name them."""
        for window in reversed(self._times.evaluated(start)):
            found = [self._slices[at] for at in slices_within(window, self.slicing, self._slices)]
            merged = self._loops.together([{None: private_copy(states[key])} for states in found if key in states])
            yield window, {key: merged[None]}

    def _give(self, windows: Iterable[Evaluated], now: int) -> Work:
        """Emits the windows' results: in batches of the usual size, if there is no function."""
        if self._function is not None:
            yield from self._function.evaluate(windows, now, self)
            return
        results, limit = Results(True), self.context.batch_records
        for window, merged in windows:
            results.values.extend(merged.values())
            stamp_new(results, window.end - 1)
            if len(results.values) >= limit:
                yield from self._emit(results)
                results = Results(True)
        yield from self._emit(results)

    def _emit(self, results: Results) -> Work:
        values, stamps, limit = results.values, results.stamps or [], self.context.batch_records
        for at in range(0, len(values), limit):
            self.output.emit(RowBatch(values[at : at + limit], stamps[at : at + limit]))
            if at + limit < len(values):
                yield

    def _taken(self, start: int, window: TimeWindow, is_first: bool) -> States:
        """The accumulators of a slice for putting together: what is emitted must not change what later windows are made of."""
        states = self._slices[start]
        if not self._times.survives(start, window):
            return states
        if self._could_be_mutated(start, states):
            return {key: private_copy(value) for key, value in states.items()}
        return dict(states) if is_first else states

    def _could_be_mutated(self, start: int, states: States) -> bool:
        """Looked at again when keys have come: what is made of values that cannot change is of their kind."""
        if self.kind == "count" or (self.context.object_reuse and self.kind != "reduce"):
            return False
        keys, mutable = self._mutable.get(start, (0, False))
        if keys != len(states) and not mutable:
            mutable = could_be_mutated(states.values())
            self._mutable[start] = len(states), mutable
        return mutable


def _no_key(record: Any) -> None:
    return None


def _parts(values: list[Any], stamps: list[int], slicing: Slicing) -> dict[int, list[Any]]:
    """The records of each slice, in their order."""
    width, offset = slicing.width, slicing.offset
    parts: dict[int, list[Any]] = {}
    end = begin = 0
    append: Callable[[Any], None] = [].append
    for record, stamp in zip(values, stamps):
        if not begin <= stamp < end:
            begin = stamp - (stamp - offset) % width
            end = begin + width
            append = parts.setdefault(begin, []).append
        append(record)
    return parts
