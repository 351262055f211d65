"""The operator that runs a source's reader at the head of a task.

Splits and custom events travel between the enumerator and the readers as data (``dumps_data``). Ten
thousand splits must not each be pickled like user code, for which all loaded modules are searched.
"""

from __future__ import annotations

import copy
import socket
from collections.abc import Callable
from typing import Any

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.connectors.source_api.broken_records import BrokenRecords
from flinkpy.connectors.source_api.reader_timer import ReaderTimer
from flinkpy.connectors.source_api.source import (
    CustomSourceEvent,
    NoMoreSplits,
    ReaderContext,
    ReaderRegistered,
    Source,
    SourceReader,
    SplitRequested,
    SplitsAdded,
)
from flinkpy.connectors.source_api.source_failures import as_user_error
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch, Watermark, WatermarkStatus
from flinkpy.core.errors import EngineError, FlinkpyError, ProgramError
from flinkpy.core.program.code import dumps_data, loads
from flinkpy.core.remaining_rows import RemainingRows
from flinkpy.operators.base import InputStatus, SourceOperator
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.event_time.valid_times import checked_times
from flinkpy.operators.functions import RuntimeContext
from flinkpy.state.snapshots.saved_state import SavedState

_MORE = InputStatus.MORE_AVAILABLE
# The name of the state: one element per split, so that splits can be redistributed if the
# parallelism changes
SPLITS = "_splits"


def _nothing_more(limit: int) -> InputStatus:
    """Stands in for a reader's ``poll`` once the reader is closed."""
    return InputStatus.END_OF_INPUT


class SourceReaderOperator(SourceOperator):
    """Polls the reader once per call, and passes its batch on by reference. It exchanges operator
    events with the source's coordinator."""

    _emit_batch: Callable[[Batch], None]  # where the reader's batches go; set in setup()

    error_policy: ErrorPolicy | None = None

    def __init__(self, source: Source[Any]) -> None:
        self.source, self.is_columnar = source, source.is_columnar
        self._reader: SourceReader[Any] | None = None
        self._rest: RemainingRows | None = (
            None  # the rest of a batch that is larger than ``batch_size``
        )
        self._timer: ReaderTimer | None = None
        # whether the reader did; with the next that it gives it is active, as in Flink
        self._said_idle = False
        self._lags: dict[str, float] = {}  # of the last batch whose records have timestamps

    def set_error_policy(self, policy: ErrorPolicy, name: str) -> None:
        if not self.source.takes_error_policy:
            super().set_error_policy(policy, name)
        if policy.retries:
            raise ProgramError(
                f"on_error(): {name!r} reads files, which give the same each time: leave the "
                "retries out"
            )
        self.error_policy = None if policy.fails_at_once else policy

    def with_filter(self, expression: Any) -> SourceReaderOperator:
        """This operator, if records for which the expression is not true are dropped right behind
        it."""
        source = self.source.filtered(expression)
        if source is self.source:
            return self
        operator = copy.copy(self)
        operator.source = source
        return operator

    # -- life --------------------------------------------------------------------------------------

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._emit_batch = output.emit

    def initialize_state(self, restored: SavedState | None) -> None:
        super().initialize_state(restored)
        self._splits_state = self.context.operator_state.engine_list(SPLITS)
        self.context.operator_state.before_snapshot(self._save_splits)

    def open(self) -> None:
        self._host = socket.gethostname()
        self.batch_size = self.context.batch_records
        try:
            reader = self._reader = self.source.create_reader(self._reader_context())
            self._poll = reader.poll
            if restored := self._splits_state.get():
                reader.add_splits([loads(split) for split in restored])
            reader.start()
        except Exception as error:
            raise self._failed(error) from error
        self.context.send_operator_event(ReaderRegistered(self._host))

    def close(self) -> None:
        reader, self._reader = self._reader, None
        # frees what the reader holds now, although the task lives on
        self._rest = None
        self._poll = _nothing_more
        if self._timer is not None:
            self._timer.cancel()
        if reader is not None:
            reader.close()

    def _save_splits(self, checkpoint_id: int, timestamp_ms: int) -> None:
        splits = self._opened().snapshot_state(checkpoint_id)
        self._splits_state.update(
            [dumps_data(split, f"a split of {self.context.name}") for split in splits]
        )

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._opened().notify_checkpoint_complete(checkpoint_id)

    # -- data --------------------------------------------------------------------------------------

    def emit_next(self) -> InputStatus:
        if self._rest:
            self._emit(self._rest.take(self.batch_size))
            return _MORE
        try:
            polled = self._poll(self.batch_size)
        except Exception as error:
            raise self._failed(error) from error
        if type(polled) is InputStatus:
            return polled
        if isinstance(polled, WatermarkStatus):
            self._said_idle = polled.idle
            self.output.emit_control(polled)
            return _MORE
        if self._said_idle:
            self._said_idle = False
            self.output.emit_control(WatermarkStatus(idle=False))
        if isinstance(polled, Watermark):
            self.output.emit_control(polled)
            return _MORE
        if not isinstance(polled, (RowBatch, ColumnBatch)):
            raise self._failed(
                TypeError(
                    "poll() gives a RowBatch, a ColumnBatch, a Watermark or an "
                    "InputStatus, this "
                    f"is {polled!r:.80}"
                )
            )
        if polled.timestamps is not None and not self.source.gives_valid_times:
            polled = checked_times(polled, self.context, "poll()")
        if polled.timestamps is not None:
            self._lags["currentFetchEventTimeLag"] = self.context.clock.time_ms() - int(
                polled.timestamps[-1]
            )
        if type(polled) is RowBatch and len(polled.values) > self.batch_size:
            self._rest = RemainingRows(polled)
            polled = self._rest.take(self.batch_size)
        self._emit(polled)
        return _MORE

    def _emit(self, batch: Batch) -> None:
        self._emit_batch(batch)
        if type(batch) is RowBatch:
            self.rows_emitted += len(batch.values)
        if batch.timestamps is not None:
            self._lags["currentEmitEventTimeLag"] = self.context.clock.time_ms() - int(
                batch.timestamps[-1]
            )

    def measures(self, now_ms: int) -> dict[str, float]:
        pending = None if self._reader is None else self._reader.pending_records()
        return {**self._lags, **({} if pending is None else {"pendingRecords": pending})}

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """The reader's position is after its whole last batch, so the rest of that batch is emitted
        before the barrier."""
        if self._rest:
            self._emit(self._rest.take())

    def position(self) -> str | None:
        """Where the last batch came from (split and offset)."""
        return self._reader.position() if self._reader is not None else None

    # -- the coordinator ---------------------------------------------------------------------------

    def handle_operator_event(self, event: Any) -> None:
        try:
            self._handle_event(self._opened(), event)
        except Exception as error:
            raise self._failed(error) from error
        self.wake_up()

    def _handle_event(self, reader: SourceReader[Any], event: Any) -> None:
        if isinstance(event, SplitsAdded):
            reader.add_splits(loads(event.splits))
        elif isinstance(event, NoMoreSplits):
            reader.notify_no_more_splits()
        elif isinstance(event, CustomSourceEvent):
            reader.handle_source_event(loads(event.event))
        else:
            raise EngineError(f"source {self.context.name}: its coordinator sent {event!r:.100}")

    # -- the reader's context ----------------------------------------------------------------------

    def _reader_context(self) -> ReaderContext:
        task = self.context.task
        send = self.context.send_operator_event
        timer = self._timer = ReaderTimer(self.context.timers, lambda: self.wake_up())
        return ReaderContext(
            subtask_index=task.subtask_index,
            parallelism=task.parallelism,
            host=self._host,
            clock=self.context.clock,
            request_split=lambda: send(SplitRequested(self._host)),
            send_source_event=lambda event: send(
                CustomSourceEvent(dumps_data(event, f"an event of {self.context.name}"))
            ),
            wake_up=lambda: self.wake_up(),  # a lambda, because the task sets ``wake_up`` later
            wake_up_after=timer.set,
            split_begun=self.split_begun,
            split_finished=self.split_finished,
            diverts=self.error_policy is not None,
            leave_out=BrokenRecords(self.error_policy, self.context, self.output).leave_out,
            count=lambda metric, number: (
                RuntimeContext(self.context).get_metrics_group().counter(metric).inc(number)
            ),
        )

    def split_begun(self, split_id: str) -> None:
        """Called when the reader begins to read this split."""

    def split_finished(self, split_id: str) -> None:
        """Called when the reader has returned its last batch of this split."""

    def _opened(self) -> SourceReader[Any]:
        if self._reader is None:
            raise EngineError(f"source {self.context.name} is not open")
        return self._reader

    def _failed(self, error: BaseException) -> FlinkpyError:
        return as_user_error(
            error,
            self.context.name,
            uid=self.context.uid,
            subtask=self.context.task.subtask_name,
            origin=self.position(),
        )

    def __repr__(self) -> str:
        return (
            "<SourceReaderOperator of "
            f"{type(self.source).__name__}"
            f"{': ' + repr(self._reader) if self._reader is not None else ''}>"
        )
