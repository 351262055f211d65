"""The first phase of windows by slices: records are put together per key and slice before the
exchange (Flink's local window aggregate).

A record is held back only while no window of its slice is due by the sender's own watermark. The
receivers' watermark is never ahead of that one, so nobody waits for what is held: it goes before
the watermark at which the first window is due.

Everything else goes at once and alone, as an accumulator of one record: what is late here, because
a receiver, whose time is that of its slowest sender, may still count it; and what cannot be put
together exactly (``LocalSlices.can_hold``).

What is held goes early before a barrier, so that there is no state here; when it becomes much; and
before the sender turns idle. Then the receivers' time may pass its own, so from then on it holds
nothing, also when it is active again."""

from __future__ import annotations

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, Watermark, WatermarkStatus
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import BatchForm, OneInputOperator, Work, run_to_end
from flinkpy.windowing.slices.operator import NO_TIMESTAMPS
from flinkpy.windowing.slices.store import LocalSlices
from flinkpy.windowing.slices.times import SliceTimes
from flinkpy.windowing.slicing import Slicing

_MOST_HELD = 1 << 17  # accumulators


class LocalSliceOperator(OneInputOperator):
    """What it emits has a timestamp in the slice it belongs to."""

    batch_form = BatchForm.AS_IN_STREAM
    takes_changes = INSERT_ONLY
    parks = True

    def __init__(self, store: LocalSlices, slicing: Slicing, allowed_lateness: int) -> None:
        self.store = store
        self.slicing = slicing
        self.allowed_lateness = allowed_lateness

    def open(self) -> None:
        self._times = SliceTimes(self.slicing, self.allowed_lateness)
        self._was_idle = False
        self.store.open(self.context, None)

    def close(self) -> None:
        self.store.close()

    def process_batch(self, batch: Batch) -> Work | None:
        store = self.store
        records = store.records_of(batch)
        span = store.span(batch)
        if span is None or span[0] == MIN_TIMESTAMP:
            raise ProgramError(f"operator {self.context.name!r}: {NO_TIMESTAMPS}")
        if self._was_idle or not store.can_hold(records):
            return self._all_alone(batch, records)
        start = self.slicing.slice_of(span[0])
        if span[1] < start + self.slicing.width and self._times.is_before_all_windows(start):
            store.add(start, records)
        else:
            closed: set[int] = set()
            for start, part in store.by_slice(batch, records, self.slicing):
                if self._times.is_before_all_windows(start):
                    store.add(start, part)
                else:
                    closed.add(start)
            if closed:
                slice_of = self.slicing.slice_of
                self.output.emit(
                    store.alone(
                        batch,
                        records,
                        [
                            at
                            for at, stamp in enumerate(store.stamps(batch))
                            if slice_of(stamp) in closed
                        ],
                    )
                )
        return self._release(list(store.starts)) if store.held > _MOST_HELD else None

    def process_watermark(self, watermark: Watermark) -> Work:
        if watermark.timestamp > self._times.now:
            self._times.now = watermark.timestamp
            yield from self._release(
                [
                    start
                    for start in self.store.starts
                    if not self._times.is_before_all_windows(start)
                ]
            )
        super().process_watermark(watermark)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        if status.idle:
            self._was_idle = True
            self._release_at_once()
        super().process_watermark_status(status)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        self._release_at_once()

    def finish(self) -> None:
        self._release_at_once()

    def _all_alone(self, batch: Batch, records: object) -> Work:
        """What is held goes before: records of one key and slice stay in their order."""
        yield from self._release(list(self.store.starts))
        self.output.emit(self.store.alone(batch, records))

    def _release(self, starts: list[int]) -> Work:
        for start in starts:
            for batch in self.store.taken_out(start):
                self.output.emit(batch)
                yield

    def _release_at_once(self) -> None:
        run_to_end(self._release(list(self.store.starts)))
