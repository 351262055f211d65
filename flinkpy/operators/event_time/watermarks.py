"""Assigns event times and generates watermarks batch by batch, with exactly the results of one
record at a time.

Watermarks are emitted between batches, which the results do not show. A *periodic* generator is
called by a timer. Timers run between two batches, and the generator's answer depends only on the
records before it, so it may see a batch as a whole (the generator for bounded out-of-orderness
needs only the greatest timestamp). A *punctuated* generator is called after each record. Where it
emits a watermark, the batch is cut: the records after the cut follow the watermark, and may be late
downstream.

Watermarks and idle statuses from upstream end here, because this operator replaces them. Only the
last watermark, which ends event time, and the rounds of loops pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.common.watermark_strategy import (
    BoundedOutOfOrdernessWatermarks,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
    watermark_of,
)
from flinkpy.core.clock import Clock
from flinkpy.core.elements import (
    BEYOND_TIME,
    MIN_TIMESTAMP,
    Batch,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.errors import ProgramError
from flinkpy.core.options import engine as options
from flinkpy.core.options.schema import read
from flinkpy.operators.base import BatchForm, Guarding, OneInputOperator
from flinkpy.operators.context import Output, TimerHandle
from flinkpy.operators.event_time.batch_watermarks import BatchWatermarkGenerator
from flinkpy.operators.event_time.timestamps import (
    TimestampExtractor,
    column_function,
    is_columnar,
    is_expression,
    zone_of,
)
from flinkpy.operators.user_errors import user_code_error

if TYPE_CHECKING:
    import pyarrow as pa


class WatermarkEmitter(WatermarkOutput):
    """Emits watermarks in ascending order, and alternating idle statuses. What the generator emits
    waits for ``release``, after the current batch."""

    def __init__(self) -> None:
        self.watermark, self.idle = MIN_TIMESTAMP, False
        self.waiting: list[Watermark | WatermarkStatus] = []

    def emit_watermark(self, watermark: Watermark | int) -> None:
        self.advance(watermark_of(watermark))

    def advance(self, watermark: Watermark) -> None:
        """The same for one of the engine, which may be a round of a loop."""
        if watermark.timestamp > self.watermark:
            self.watermark = watermark.timestamp
            self.mark_active()
            self.waiting.append(watermark)

    def mark_idle(self) -> None:
        if not self.idle:
            self.idle = True
            self.waiting.append(WatermarkStatus(idle=True))

    def mark_active(self) -> None:
        if self.idle:
            self.idle = False
            self.waiting.append(WatermarkStatus(idle=False))

    def release(self, output: Output) -> None:
        """Emits what waits."""
        waiting, self.waiting = self.waiting, []
        for element in waiting:
            output.emit_control(element)

    def __repr__(self) -> str:
        return f"<WatermarkEmitter at {self.watermark}{', idle' if self.idle else ''}>"


class IdlenessTimer:
    """Detects that no record has come for the timeout. The time counts from the first check without
    records, so the clock need not be read for each record."""

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock, self._timeout_s = clock, timeout_s
        self._active = False
        self._silent_since: float | None = None

    def activity(self) -> None:
        """Notes that records came."""
        self._active = True

    def is_idle(self) -> bool:
        """Whether the stream is idle; called at every periodic emission."""
        if self._active:
            self._active, self._silent_since = False, None
            return False
        now = self._clock.monotonic()
        if self._silent_since is None:
            self._silent_since = now
            return False
        return now - self._silent_since > self._timeout_s


class TimestampsAndWatermarksOperator(OneInputOperator):
    """Applies a WatermarkStrategy, for rows and for columns."""

    batch_form = BatchForm.AS_IN_STREAM
    guarding = Guarding.BY_RECORD
    zone: str | None = None  # the time zone of the column that the assigner reads

    def __init__(self, strategy: WatermarkStrategy) -> None:
        self.strategy = strategy
        self._is_open = False
        self._timer: TimerHandle | None = None

    def check(self, schema: pa.Schema | None, columnar: bool) -> None:
        """Called while the program is built: raises ProgramError for an expression over rows, an
        unknown column, or a column that holds no times."""
        assigner = self.strategy.timestamp_assigner
        if not columnar and is_expression(assigner):
            raise ProgramError(
                f"the timestamp assigner {assigner!r} works on columns, and these are Python "
                "values: "
                "pass a function, or the name of a field"
            )
        if columnar and schema is not None and is_columnar(assigner):
            column_function(assigner, schema)
            self.zone = zone_of(assigner, schema)

    def output_schema(self, schema: pa.Schema) -> Any:
        """The input's schema."""
        return schema

    def open(self) -> None:
        strategy, context = self.strategy, self.context
        assigner = strategy.timestamp_assigner
        self._extractor = None if assigner is None else TimestampExtractor(assigner, context)
        # in a batch job only the last watermark counts
        is_batch = read(context.configuration, options.RUNTIME_MODE) is options.RuntimeMode.BATCH
        self._generator = None if is_batch else strategy.create_generator()
        if isinstance(self._generator, BatchWatermarkGenerator):
            self._generator.open(context)
        self._emitter, self._is_open = WatermarkEmitter(), True
        self._idleness = (
            None
            if is_batch or strategy.idle_timeout is None
            else IdlenessTimer(context.clock, strategy.idle_timeout.total_seconds())
        )
        self._interval_s = read(
            context.configuration, options.AUTO_WATERMARK_INTERVAL
        ).total_seconds()
        is_periodic = not isinstance(self._generator, BatchWatermarkGenerator | None)
        if is_periodic or self._idleness is not None:
            self._arm()

    def process_batch(self, batch: Batch) -> None:
        if self._extractor is not None:
            batch = self._extractor.stamped(batch)
        if self._idleness is not None:
            self._idleness.activity()
        generator = self._generator
        if generator is None:
            self.output.emit(batch)
        elif type(generator) is BoundedOutOfOrdernessWatermarks:
            self.output.emit(batch)
            generator.on_event(None, greatest_timestamp(batch), self._emitter)
        elif isinstance(generator, BatchWatermarkGenerator):
            generator.on_batch(batch, self._emitter)
            self.output.emit(batch)
            self._emitter.release(self.output)
        else:
            self._process_each(generator, batch)

    def _process_each(self, generator: WatermarkGenerator, batch: Batch) -> None:
        """Calls the generator for every record, and cuts the batch where it emits."""
        values, stamps = _records(batch)
        emitter, start, value = self._emitter, 0, None
        try:
            for position, (value, stamp) in enumerate(zip(values, stamps), 1):
                generator.on_event(value, stamp, emitter)
                if emitter.waiting:
                    self.output.emit(_slice(batch, start, position))
                    emitter.release(self.output)
                    start = position
        except BaseException as error:
            raise user_code_error(error, self.context, value) from error
        if start < len(batch):
            self.output.emit(_slice(batch, start, len(batch)) if start else batch)

    # -- periodic emission -------------------------------------------------------------------------

    def _arm(self) -> None:
        if self._interval_s > 0:
            self._timer = self.context.timers.call_later(self._interval_s, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._emit_periodically()
        self._arm()

    def _emit_periodically(self) -> None:
        generator, emitter = self._generator, self._emitter
        if emitter.watermark >= BEYOND_TIME:
            return  # event time has ended
        if self._idleness is not None and self._idleness.is_idle():
            emitter.mark_idle()
        elif generator is not None:
            try:
                generator.on_periodic_emit(emitter)
            except BaseException as error:
                raise user_code_error(error, self.context) from error
        emitter.release(self.output)

    # -- what comes from upstream ------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> None:
        if watermark.timestamp >= BEYOND_TIME:  # the end of event time, or a round of a loop
            self._emitter.advance(watermark)
            self._emitter.release(self.output)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        """Drops it: the operator emits its own."""

    def finish(self) -> None:
        self._emit_periodically()

    def close(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if self._is_open and isinstance(self._generator, BatchWatermarkGenerator):
            self._generator.close()

    @property
    def watermark(self) -> int:
        """The last watermark emitted."""
        return self._emitter.watermark

    @property
    def event_time(self) -> int:
        """The watermark that would be emitted now; with a generator of the program's own, the last
        one emitted."""
        generator = self._generator
        if type(generator) is BoundedOutOfOrdernessWatermarks:
            return max(generator.current, self._emitter.watermark)
        return self._emitter.watermark

    @property
    def idle(self) -> bool:
        """Whether the last status emitted was idle."""
        return self._emitter.idle

    def __repr__(self) -> str:
        where = f" at {self._emitter!r}" if self._is_open else ", not open"
        return f"<TimestampsAndWatermarksOperator{where}>"


def greatest_timestamp(batch: Batch) -> int:
    """The greatest timestamp of the batch; MIN_TIMESTAMP if it has none."""
    stamps = batch.timestamps
    if stamps is None:
        return MIN_TIMESTAMP
    # a list, or an array
    return max(stamps) if isinstance(batch, RowBatch) else int(stamps.max())  # type: ignore[union-attr]


def _records(batch: Batch) -> tuple[list[Any], list[int]]:
    if isinstance(batch, RowBatch):
        return batch.values, batch.timestamps or [MIN_TIMESTAMP] * len(batch)
    from flinkpy.columns.values.conversion import rows_of_batch

    rows = rows_of_batch(batch.data, batch.kinds)
    if batch.timestamps is None:
        return rows, [MIN_TIMESTAMP] * len(rows)
    return rows, batch.timestamps.tolist()


def _slice(batch: Batch, start: int, end: int) -> Batch:
    if isinstance(batch, RowBatch):
        stamps = batch.timestamps
        return RowBatch(batch.values[start:end], None if stamps is None else stamps[start:end])
    return batch.slice(start, end - start)
