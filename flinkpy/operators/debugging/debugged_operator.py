"""Runs an operator one record at a time, with a debugger that stops at its function."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.core.elements import Batch, ControlElement, RowBatch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.core.users_values import bounded_repr
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator, StreamOperator, TwoInputOperator, Work
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.debugging.debugger import Debugger, Wanted, nowhere, untraced
from flinkpy.operators.row_batches import each_record, single_row
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.wrapping_operator import Process, WrappingOperator, bare


@dataclass(frozen=True)
class Stops:
    """Where the debugger stops: at each call, or only for the ``key`` that is shown like this, in
    this ``subtask``; with ``only_errors`` nowhere but where the function raises."""

    key: str | None = None
    subtask: int | None = None
    only_errors: bool = False


class DebuggedOperator(WrappingOperator):
    """Wraps an operator, without its error policy."""

    parks = True

    def __init__(self, wrapped: StreamOperator, stops: Stops) -> None:
        super().__init__(wrapped)
        self.stops = stops

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._debugger = Debugger()
        self._here = self.stops.subtask in (None, context.task.subtask_index)
        self.wrapped.do = lambda work: self.do(self._steps(work, self._at_time))
        self.wrapped.setup(context, _Untraced(output))

    def open(self) -> None:
        with self._debugger.watching(nowhere):  # so that nothing is inlined
            super().open()
        self._debugger.leave_out(
            key_function(key) for key in self._keys if key.selector is not None
        )

    @property
    def _keys(self) -> tuple[KeySpec, ...]:
        held = getattr(self.wrapped, "keys", None) or (
            getattr(self.wrapped, "key", None),
            getattr(getattr(self.wrapped, "store", None), "key", None),
        )
        return tuple(key for key in held if isinstance(key, KeySpec))

    def close(self) -> None:
        super().close()
        if (
            self._here
            and self.stops.key is not None
            and not self._debugger.stops
            and not self._debugger.quitting
        ):
            self._debugger.message(
                f"no record with the key {self.stops.key} came to {self.context.name!r} "
                f"in subtask {self.context.task.subtask_index}"
            )

    def process_watermark(self, watermark: Watermark) -> Work:
        return self._steps(self.wrapped.process_watermark(watermark), self._at_time)

    def replay(self, process: Process, key: KeySpec | None, batch: Batch) -> Work:
        """Gives the operator the records of the batch one at a time; columns as a whole."""
        if not isinstance(batch, RowBatch):
            yield from self._processed(
                process, batch, lambda: self._told(f"a batch of {len(batch)} rows", None)
            )
            return
        for record, timestamp in each_record(batch):
            yield from self._processed(
                process, single_row(record, timestamp), self._shown(record, timestamp, key)
            )

    def _processed(self, process: Process, batch: Batch, wanted: Wanted) -> Work:
        with self._debugger.watching(wanted):
            work = process(batch)
        return self._steps(work, wanted)

    def _steps(self, work: Work | None, wanted: Wanted) -> Work:
        while work is not None:
            with self._debugger.watching(wanted):
                if next(work, self) is self:
                    return
            yield

    def _shown(self, record: object, timestamp: int | None, key: KeySpec | None) -> Wanted:
        """Says whether the debugger stops for the record: then what it is."""
        if self.stops.key is None and key is None:
            return lambda: self._told(f"record {bounded_repr(record)}", timestamp)
        found = None if key is None else key_function(key)(record)
        if not self._is_key(found):
            return nowhere
        return lambda: self._told(f"record {bounded_repr(record)}, key {found!r}", timestamp)

    def _at_time(self) -> str | None:
        """The same for a timer or a window, whose key is the backend's current one."""
        backend = getattr(self.wrapped, "backend", None)
        if backend is None:
            return self._told("a timer", None) if self.stops.key is None else None
        key = backend.current.key
        return (
            self._told(f"a timer or a window of key {key!r}", None) if self._is_key(key) else None
        )

    def _told(self, what: str, timestamp: int | None) -> str | None:
        if not self._here or self.stops.only_errors:
            return None
        time = "" if timestamp is None else f", event time {timestamp}"
        return f"\n{self.context.name}, subtask {self.context.task.subtask_index}: {what}{time}"

    def _is_key(self, key: object) -> bool:
        return self.stops.key is None or self.stops.key in (str(key), repr(key))


class DebuggedInput(DebuggedOperator, OneInputOperator):
    """Wraps an operator with one input."""

    wrapped: OneInputOperator

    def process_batch(self, batch: Batch) -> Work:
        return self.replay(self.wrapped.process_batch, next(iter(self._keys), None), batch)


class DebuggedInputs(DebuggedOperator, TwoInputOperator):
    """Wraps an operator with two inputs."""

    wrapped: TwoInputOperator

    def process_batch1(self, batch: Batch) -> Work:
        return self.replay(self.wrapped.process_batch1, next(iter(self._keys), None), batch)

    def process_batch2(self, batch: Batch) -> Work:
        return self.replay(self.wrapped.process_batch2, next(iter(self._keys[1:]), None), batch)

    def end_input(self, input_index: int) -> None:
        self.wrapped.end_input(input_index)


def debugged(operator: StreamOperator, stops: Stops, label: str) -> DebuggedOperator:
    """The operator under a debugger. Raises ProgramError for one that calls no function in the
    task's thread; ``label`` is how errors name it."""
    operator = bare(operator)
    if isinstance(operator, TwoInputOperator):
        return DebuggedInputs(operator, stops)
    if (
        not isinstance(operator, OneInputOperator)
        or hasattr(operator, "sink")
        or hasattr(operator, "descriptor")
    ):
        raise ProgramError(
            f"{label} cannot be debugged: sources, sinks and asynchronous functions are not "
            "called by the task itself"
        )
    return DebuggedInput(operator, stops)


class _Untraced(Output):
    """Passes everything on without the debugger: the operators behind this one are called from it,
    and they have functions too."""

    def __init__(self, target: Output) -> None:
        self._target = target

    def emit(self, batch: Batch) -> None:
        with untraced():
            self._target.emit(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        with untraced():
            self._target.emit_side(tag_id, batch)

    def emit_control(self, element: ControlElement) -> None:
        with untraced():
            self._target.emit_control(element)
