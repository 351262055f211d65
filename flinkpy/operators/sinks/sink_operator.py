"""The operator at the end of a stream, for sinks of every kind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

from flinkpy.core.elements import Batch, RowBatch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.graph.chain_config import ChainingStrategy
from flinkpy.operators.base import BatchForm, OneInputOperator
from flinkpy.operators.checkpointed import initialize_function
from flinkpy.operators.functions import Function, RuntimeContext, SinkFunction, open_function
from flinkpy.operators.sink_context import SinkContext, takes_context
from flinkpy.operators.sinks.commits import SinkCommits
from flinkpy.operators.sinks.sink_port import Sink
from flinkpy.operators.user_errors import user_code_error


class SinkOperator(OneInputOperator):
    """The end of a stream: a connector's sink (``write_batch``), a SinkFunction, a callable, or any
    object with ``write``.

    A :class:`Sink` with a committer shows each record exactly once (``sinks.commits``); all others
    at least once."""

    batch_form = BatchForm.AS_IN_STREAM
    chaining = ChainingStrategy.ALWAYS
    is_sink = True

    def __init__(self, sink: Any) -> None:
        if not (
            hasattr(sink, "write_batch")
            or hasattr(sink, "write")
            or isinstance(sink, SinkFunction)
            or callable(sink)
        ):
            raise ProgramError(
                f"{sink!r:.80} is no sink: pass a Sink, a SinkFunction, a callable, or an "
                "object with write(value)"
            )
        self.sink = sink
        self._has_own_batches = hasattr(sink, "write_batch")
        self._opened = False
        self._listener: Callable[[], None] | None = None
        self._sink_context: SinkContext | None = None
        self._commits: SinkCommits | None = None

    @property
    def owned(self) -> str | None:
        """What only one sink of a job may write with."""
        return self.sink.owned if isinstance(self.sink, Sink) else None

    def open(self) -> None:
        self._opened = True
        if self._has_own_batches:
            initialize_function(self.sink, self.context, RuntimeContext(self.context))
            if isinstance(self.sink, Sink):
                self._commits = SinkCommits(self.sink, self.context)
                self._commits.open()
            else:
                self.sink.open(self.context)
            if self._listener is not None and hasattr(self.sink, "set_listener"):
                self.sink.set_listener(self._listener)
        else:
            open_function(self.sink, self.context)
            if not isinstance(self.sink, Function) and callable(getattr(self.sink, "open", None)):
                self.sink.open()
            self._write = (
                self.sink.invoke
                if isinstance(self.sink, SinkFunction)
                else getattr(self.sink, "write", self.sink)
            )
            if isinstance(self.sink, SinkFunction) and takes_context(self.sink.invoke):
                self._sink_context = SinkContext(self.context)

    @property
    def may_pause(self) -> bool:
        return self._has_own_batches and hasattr(self.sink, "available")

    @property
    def available(self) -> bool:
        return bool(self.sink.available) if self.may_pause else True

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._listener = on_available

    def process_batch(self, batch: Batch) -> None:
        if self._has_own_batches:
            self.sink.write_batch(batch)
            return
        value: Any = None
        write, context = self._write, self._sink_context
        values = batch.values if isinstance(batch, RowBatch) else batch.data.to_pylist()
        try:
            if context is None:
                for value in values:
                    write(value)
            else:
                for value, context._timestamp in zip(values, batch.timestamps or repeat(None)):
                    write(value, context)
        except Exception as error:
            raise user_code_error(error, self.context, value) from error

    def process_watermark(self, watermark: Watermark) -> None:
        if self._sink_context is not None:
            self._sink_context._watermark = watermark.timestamp
        super().process_watermark(watermark)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        if self._commits is None or not self._commits.ended():
            self._flush()

    @property
    def flushed(self) -> bool:
        return bool(getattr(self.sink, "flushed", True)) if self._has_own_batches else True

    @property
    def drained(self) -> bool:
        return self.flushed if self._commits is None else self._commits.ended()

    def _flush(self) -> None:
        flush = getattr(self.sink, "flush", None)
        if callable(flush):
            flush()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._commits is not None:
            self._commits.commit_up_to(checkpoint_id)

    def finish(self) -> None:
        if self._commits is not None:
            self._commits.finish()
        elif self._has_own_batches and hasattr(self.sink, "finish"):
            self.sink.finish()
        else:
            self._flush()

    @property
    def waits_for_final_checkpoint(self) -> bool:
        return self._commits is not None and self._commits.waiting

    def commit_pending(self) -> None:
        """Makes visible what was prepared, without waiting for a checkpoint: for a job that takes
        none any more."""
        if self._commits is not None:
            self._commits.commit_all()

    def close(self) -> None:
        if not self._opened:
            return
        try:
            close = getattr(self.sink, "close", None)
            if callable(close):
                close()
        finally:
            if self._commits is not None:
                self._commits.close()
