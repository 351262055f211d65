"""Windows by slices: one accumulator per key and slice, shared by the windows that overlap.

The results are those of the general window operator with the default trigger: a window is evaluated
when time has reached its end, and again for every record that comes later but within the allowed
lateness. There is no timer per key: which windows are due is read off the slices that hold
something (``times``). What a slice holds, and how accumulators are put together, is the matter of
its store: of rows or of columns.

Windows that do not overlap are never put together: their records are reduced as they come. In
windows that overlap records meet slice by slice, in order of time, and within a slice as they come.
So where records are out of order and the result depends on their order (a reduce function that is
associative but not commutative, the other fields of ``sum``, which of several equal records
``max_by`` gives), it is by time and not by arrival."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.clock import Turns
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import BatchForm, OneInputOperator, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.spilling.spills_in_batch import SpillsInBatch
from flinkpy.operators.wake_up import WakeUp
from flinkpy.windowing.slices.slices_in_files import in_files
from flinkpy.windowing.slices.store import Evaluated, SliceStore
from flinkpy.windowing.slices.times import SliceTimes, Standing, slices_within
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:  # it imports Arrow, and rows need none
    from flinkpy.operators.spilling.operator_memory import OperatorMemory

NO_TIMESTAMPS = (
    "windows of event time need records with timestamps, and these have none: call "
    "assign_timestamps_and_watermarks(...) before, "
    "or use windows of processing time"
)


class SliceOperator(DropsLateRecords, SpillsInBatch, KeyedStateOperator, OneInputOperator):
    """Results carry the last moment of their window."""

    batch_form = BatchForm.AT_END_OF_TIME
    has_window_phases = True
    parks = True
    takes_no_policy = (
        "reduces or aggregates windows: check records in a map(...) with a policy before it"
    )

    def __init__(
        self,
        store: SliceStore,
        slicing: Slicing,
        event_time: bool,
        allowed_lateness: int = 0,
        late_tag: OutputTag | None = None,
    ) -> None:
        self.store = store
        self.slicing = slicing
        self.event_time = event_time
        self.allowed_lateness = allowed_lateness if event_time else 0
        self.late_tag = late_tag

    @property
    def reads_keys(self) -> bool:
        return True  # its store has the key

    def output_schema(self, schema: Any) -> Any:
        """For columns, the schema of the results."""
        return self.store.output_schema(schema)

    # -- lifecycle ---------------------------------------------------------------------------------

    def open(self) -> None:
        self._times = SliceTimes(self.slicing, self.allowed_lateness)
        self.store.open(self.context, self.backend)
        self._restore()
        self._wake_up = WakeUp(self.context.timers, self._due)
        if not self.event_time:
            self._set_alarm()

    def spill_to(self, memory: OperatorMemory) -> None:
        self.store = in_files(self.store, memory)

    def free_memory(self) -> None:
        self.store.free_memory()
        super().free_memory()

    def close(self) -> None:
        if hasattr(self, "_wake_up"):
            self._wake_up.cancel()
        try:
            super().close()
        finally:
            self.store.close()

    def entries_held(self) -> int:
        return self.store.held

    def bytes_held(self) -> int:
        return self.store.nbytes

    def _frozen(self) -> Callable[[Turns], dict[Any, tuple[int, Any]]]:
        until, saved = self._evaluated_until(), self.store.freeze()
        return lambda turns: {key: (until(share), data) for key, share, data in saved(turns)}

    def _frozen_groups(self) -> dict[int, tuple[int, int]]:
        """Until when the windows of each key group were evaluated, where the backend has saved
        accumulators."""
        if not self.store.is_on_disk:
            return {}
        from flinkpy.operators.columnar.tables_by_group import key_of_group

        now, most = self._times.now, self.context.task.max_parallelism
        return {
            key_of_group(group, most): (group, max(now, self._groups_ahead.get(group, now)))
            for group in self.backend.statistics.groups
        }

    def _evaluated_until(self) -> Callable[[Any], int]:
        """Until when the windows of a share were evaluated, as of now."""
        now, ahead, groups = self._times.now, self._ahead, self._groups_ahead
        if not groups:
            return lambda share: max(now, ahead.get(share, now))
        most, group_of = self.context.task.max_parallelism, self.store.group_of
        return lambda share: max(now, ahead.get(share, now), groups.get(group_of(share, most), now))

    def _restore(self) -> None:
        """Keys may come from several subtasks, not all at the same time: those ahead are left out
        until the others have caught up."""
        name = self.store.state_name
        saved = self.backend.register_region(name, self._frozen)
        groups = self.backend.register_region(f"{name} until", self._frozen_groups).values()
        self._times.now = now = min(
            (until for until, _ in (*saved.values(), *((until, group) for group, until in groups))),
            default=MIN_TIMESTAMP,
        )
        shares = self.store.restore({key: data for key, (_, data) in saved.items()})
        # evaluated until
        self._ahead: dict[Any, int] = {
            shares[key]: until for key, (until, _) in saved.items() if until > now
        }
        # the same of those on disk
        self._groups_ahead = {group: until for group, until in groups if until > now}
        self._times.settle(self.store.starts)

    # -- records -----------------------------------------------------------------------------------

    def process_batch(self, batch: Batch) -> Work | None:
        store = self.store
        if not self._ahead:  # of what is on disk, keys of a group were evaluated until one moment
            store.relieve()
        store.after_batch()
        self.backend.after_records(len(batch))
        records = store.records_of(batch)
        if not self.event_time:
            self._add_now(records)
            return None
        span = store.span(batch)
        if span is None or span[0] == MIN_TIMESTAMP:
            raise ProgramError(f"operator {self.context.name!r}: {NO_TIMESTAMPS}")
        start = self.slicing.slice_of(span[0])
        if span[1] < start + self.slicing.width and self._times.standing(start) is Standing.OPEN:
            self._add(start, records)
            return None
        standings: dict[int, Standing] = {}
        for start, part in store.by_slice(batch, records, self.slicing):
            standings[start] = standing = self._times.standing(start)
            if standing is Standing.OPEN:
                self._add(start, part)
        if set(standings.values()) == {Standing.OPEN}:
            return None
        return self._add_behind_time(batch, records, standings)

    def _add(self, start: int, records: object) -> None:
        if start not in self.store.starts:
            self._times.entered(start)
        self.store.add(start, records)

    def _add_now(self, records: object) -> None:
        # a clock that was set back reopens nothing
        now = max(self.store.local(self.context.timers.now_ms()), self._times.now + 1)
        start = self.slicing.slice_of(now)
        if self._times.standing(start) is not Standing.OUTSIDE:
            self._add(start, records)
            self._set_alarm()

    def _add_behind_time(
        self, batch: Batch, records: object, standings: dict[int, Standing]
    ) -> Work:
        """One by one, as each may make windows be evaluated again."""
        late: list[int] = []
        yield from self.store.emit(
            self._again(batch, records, standings, late), self._times.now, self
        )
        if late and self.late_tag is None:
            self.drop_late(len(late))
        elif late and self.late_tag is not None:
            self.output.emit_side(self.late_tag.tag_id, self.store.late_records(batch, late))

    def _again(
        self, batch: Batch, records: object, standings: dict[int, Standing], late: list[int]
    ) -> Iterator[Evaluated]:
        """Adds each record when it is its turn; gives the windows to evaluate again, for its key
        alone."""
        store, slice_of = self.store, self.slicing.slice_of
        for position, stamp in enumerate(store.stamps(batch)):
            start = slice_of(stamp)
            standing = standings[start]
            if standing is Standing.REOPENED:
                one = store.one(records, position)
                self._add(start, one)
                # in the order the assigner would name them
                for window in reversed(self._times.evaluated(start)):
                    yield window, store.evaluate_key(self._within(window), one)
            elif standing is Standing.OVER or (
                standing is Standing.OUTSIDE and self._times.is_late(stamp)
            ):
                late.append(position)

    # -- time --------------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        is_end = watermark.timestamp == MAX_TIMESTAMP and self.store.fires_at_end
        if self.event_time or is_end:
            until = self.store.passed(watermark.timestamp)
            if until > self._times.now:
                yield from self._advance(until)
        super().process_watermark(watermark)

    def _due(self, moment: int) -> None:
        self.do(self._at_timer(moment))

    def _at_timer(self, moment: int) -> Work:
        yield from self._advance(max(self.store.passed(moment), self._times.now))
        self._set_alarm()

    def _set_alarm(self) -> None:
        wake = self._times.wake
        self._wake_up.at(None if wake is None else self.store.moment(wake))

    def _advance(self, until: int) -> Work:
        """Time goes on: evaluates what is due, and lets go of what is over."""
        times, store = self._times, self.store
        if times.is_quiet(until):
            times.now = until
            return
        yield from store.emit(
            (each for window in times.due(store.starts, until) for each in self._evaluated(window)),
            until,
            self,
        )
        times.now = until
        store.forget(times.over(store.starts), times.is_cleaned_up)
        times.settle(store.starts)
        ahead = (*self._ahead.values(), *self._groups_ahead.values())
        if ahead and until >= max(ahead):
            self._ahead, self._groups_ahead = {}, {}

    def _evaluated(self, window: TimeWindow) -> Iterator[Evaluated]:
        until = self._evaluated_until()
        for contents in self.store.parts(
            self._within(window), lambda start: self._times.survives(start, window)
        ):
            # without the keys for which the window was evaluated before the job was rescaled
            if self._ahead or self._groups_ahead:
                contents = self.store.only(contents, lambda share: until(share) < window.end - 1)
            yield window, contents

    def _within(self, window: TimeWindow) -> list[int]:
        return slices_within(window, self.slicing, self.store.starts)
