"""Whatever a program may give as a sink, as a :class:`Sink`: the operator drives only that.

There are four sorts: a sink, a SinkFunction, an object with ``write_batch`` or ``write``, and a
plain callable. What an object has beside these is declared by the protocols below."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import repeat
from typing import Any, Protocol, cast, runtime_checkable

from flinkpy.core.codegen.idle_results import refuse_idle
from flinkpy.core.elements import Batch, RowBatch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.function_contexts.checkpointed import initialize_function
from flinkpy.operators.function_contexts.sink_context import SinkContext, takes_context
from flinkpy.operators.functions import Function, RuntimeContext, SinkFunction, open_function
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter
from flinkpy.operators.user_errors import user_code_error


@runtime_checkable
class WritesBatches(Protocol):
    """An object that takes whole batches; it is opened with the operator's context."""

    def open(self, context: OperatorContext) -> None: ...

    def write_batch(self, batch: Batch) -> None: ...


@runtime_checkable
class WritesValues(Protocol):
    """An object that takes one value at a time."""

    def write(self, value: Any) -> Any: ...


@runtime_checkable
class Opens(Protocol):
    def open(self) -> None: ...


@runtime_checkable
class Pauses(Protocol):
    """It may have no room, as a :class:`SinkWriter`."""

    @property
    def available(self) -> bool: ...


@runtime_checkable
class Wakes(Protocol):
    """It says when it has room again."""

    def set_listener(self, on_available: Callable[[], None]) -> None: ...


@runtime_checkable
class Flushes(Protocol):
    def flush(self) -> Any: ...


@runtime_checkable
class FlushesLater(Protocol):
    """Its ``flush`` does not wait."""

    @property
    def flushed(self) -> bool: ...


@runtime_checkable
class Finishes(Protocol):
    def finish(self) -> Any: ...


@runtime_checkable
class Closes(Protocol):
    def close(self) -> Any: ...


def sink_of(target: Any) -> Sink:
    """The sink, or one that writes with what the program gave. Raises ProgramError for anything
    that cannot write."""
    if isinstance(target, Sink):
        return target
    if isinstance(target, WritesBatches):
        return _AdaptedSink(target, _BatchesWriter)
    if isinstance(target, SinkFunction):
        return _AdaptedSink(
            target, _ContextWriter if takes_context(target.invoke) else _FunctionWriter
        )
    if isinstance(target, WritesValues):
        return _AdaptedSink(target, _ValuesWriter)
    if callable(target):
        return _AdaptedSink(target, _CallingWriter)
    raise ProgramError(
        f"{target!r:.80} is no sink: pass a Sink, a SinkFunction, a callable, or an object with "
        "write(value)"
    )


class _AdaptedSink(Sink):
    """Its writer uses ``target`` itself: the sink was copied for this subtask when it travelled."""

    def __init__(self, target: Any, writer: type[_AdaptedWriter]) -> None:
        self._target, self._writer = target, writer

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        writer = self._writer(self._target, context)
        try:
            writer.open()
        except BaseException:
            writer.close()
            raise
        return writer

    def __repr__(self) -> str:
        return repr(self._target)


class _AdaptedWriter(SinkWriter):
    """The calls that every object may have."""

    def __init__(self, target: Any, context: OperatorContext) -> None:
        self._target, self._context = target, context

    @abstractmethod
    def open(self) -> None: ...

    def flush(self) -> None:
        if isinstance(self._target, Flushes):
            refuse_idle(self._target.flush(), "flush()")

    def close(self) -> None:
        if isinstance(self._target, Closes):
            refuse_idle(self._target.close(), "close()")


class _BatchesWriter(_AdaptedWriter):
    def open(self) -> None:
        initialize_function(self._target, self._context, RuntimeContext(self._context))
        self._target.open(self._context)
        self._pauses = isinstance(self._target, Pauses)  # asked before every batch

    def write_batch(self, batch: Batch) -> None:
        refuse_idle(self._target.write_batch(batch))

    @property
    def available(self) -> bool:
        return not self._pauses or bool(self._target.available)

    def set_listener(self, on_available: Callable[[], None]) -> None:
        if isinstance(self._target, Wakes):
            self._target.set_listener(on_available)

    @property
    def flushed(self) -> bool:
        return not isinstance(self._target, FlushesLater) or bool(self._target.flushed)

    def finish(self) -> None:
        if isinstance(self._target, Finishes):
            self._target.finish()
        else:
            self.flush()


class _ValuesWriter(_AdaptedWriter):
    """Calls ``write`` of an object with each value."""

    @property
    def _write(self) -> Callable[..., Any]:
        write: Callable[..., Any] = self._target.write
        return write

    def open(self) -> None:
        open_function(self._target, self._context)
        if not isinstance(self._target, Function) and isinstance(self._target, Opens):
            refuse_idle(cast("Any", self._target).open(), "open()")

    def write_batch(self, batch: Batch) -> None:
        write = self._write
        value: Any = None
        try:
            for value in _values_of(batch):
                given = write(value)
                if given is not None:
                    refuse_idle(given)
        except BaseException as error:
            raise user_code_error(error, self._context, value) from error


class _CallingWriter(_ValuesWriter):
    """Calls the target itself."""

    @property
    def _write(self) -> Callable[..., Any]:
        write: Callable[..., Any] = self._target
        return write


class _FunctionWriter(_ValuesWriter):
    """Calls ``invoke`` of a SinkFunction."""

    @property
    def _write(self) -> Callable[..., Any]:
        write: Callable[..., Any] = self._target.invoke
        return write


class _ContextWriter(_FunctionWriter):
    """The same, with a context: what is known of the value."""

    def open(self) -> None:
        self._sink_context = SinkContext(self._context)
        super().open()

    def write_batch(self, batch: Batch) -> None:
        write, context = self._write, self._sink_context
        timestamps = batch.timestamps if batch.timestamps is not None else repeat(None)
        value: Any = None
        try:
            for value, context.event_time in zip(_values_of(batch), timestamps):
                given = write(value, context)
                if given is not None:
                    refuse_idle(given)
        except BaseException as error:
            raise user_code_error(error, self._context, value) from error

    def write_watermark(self, watermark: Watermark) -> None:
        self._sink_context.watermark = watermark.timestamp


def _values_of(batch: Batch) -> list[Any]:
    return batch.values if isinstance(batch, RowBatch) else batch.data.to_pylist()
