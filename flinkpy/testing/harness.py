"""Harnesses: they run a user function, or a short piece of a stream, without a job.

The test pushes elements and watermarks in and sets the time, which otherwise stands still; the
harness records all output. The operators are those of a job, built by the same calls of the
DataStream API, and the function is copied into the harness as it would be to a worker. So the test
must look at the output, or at ``harness.function``, not at the function that it passed."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    CheckpointBarrier,
    RowBatch,
    Watermark,
)
from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.core.program.code import dumps, loads
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.context import OperatorContext, TaskInfo
from flinkpy.operators.process.key_timers import KeyedTimerService
from flinkpy.state.snapshots.saved_state import SavedState, share_of
from flinkpy.testing.harness_mail import HarnessMail
from flinkpy.testing.manual_time import ManualClock, ManualTimers
from flinkpy.testing.recorder import Recorder
from flinkpy.testing.wiring import Piece, Wiring

H = TypeVar("H", bound="OperatorHarness")
MAX_PARALLELISM = 128
_BATCH_RECORDS = 4096


class OperatorHarness:
    """What all harnesses share. It is created from a pickled piece of stream; the other harnesses
    are created from a function or a stream."""

    _number_of_inputs = 1

    def __init__(
        self,
        recipe: bytes,
        *,
        snapshots: Sequence[bytes] = (),
        parallelism: int = 1,
        subtask_index: int = 0,
        max_parallelism: int = MAX_PARALLELISM,
        configuration: Mapping[str, Any] | None = None,
        start_ms: int = 0,
    ) -> None:
        self._recipe = recipe
        self._max_parallelism = max_parallelism
        self._configuration = dict(configuration or {})
        attempt = ExecutionAttemptId(JobId("test"), JobVertexId("harness"), subtask_index, 0)
        self._task = TaskInfo("test", "harness", attempt, parallelism, max_parallelism)
        self.clock = ManualClock(start_ms)
        self._timers = ManualTimers(self.clock)
        self._recorder = Recorder()
        self._mail = HarnessMail()
        piece: Piece = loads(recipe)
        self._operators = piece.operators
        wiring = Wiring(piece, self._number_of_inputs, self._recorder)
        self._inputs = wiring.inputs
        self._watermarks = [MIN_TIMESTAMP] * len(self._inputs)
        self._closed = False
        for position, (operator, output) in enumerate(zip(self._operators, wiring.outputs)):
            operator.setup(self._context(position), output)
        try:
            self._start(snapshots)
        except BaseException:
            self.close()
            raise

    def _context(self, position: int) -> OperatorContext:
        name = type(self._operators[position]).__name__
        return OperatorContext(
            OperatorId(f"operator-{position}"),
            name,
            None,
            self._task,
            self.clock,
            self._timers,
            run_in_task=self._mail.put,
            send_operator_event=lambda event: None,
            configuration=self._configuration,
            batch_records=_BATCH_RECORDS,
        )

    def _start(self, snapshots: Sequence[bytes]) -> None:
        saved = [[SavedState(*each) for each in pickle.loads(snapshot)] for snapshot in snapshots]
        if any(len(each) != len(self._operators) for each in saved):
            raise ProgramError(
                f"the snapshot is one of {len(saved[0])} operators, this harness has "
                f"{len(self._operators)}: restore what it saved itself"
            )
        for position in reversed(range(len(self._operators))):
            of_operator = [each[position] for each in saved]
            restored = (
                share_of(
                    of_operator,
                    self._max_parallelism,
                    self._task.parallelism,
                    self._task.subtask_index,
                )
                if saved
                else None
            )
            self._operators[position].initialize_state(restored)
        for operator in reversed(self._operators):
            operator.open()

    # -- pushing -----------------------------------------------------------------------------------

    def _push(self, index: int, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self._mail.run_all()
        if values:
            self._inputs[index].emit(
                RowBatch(list(values), None if timestamps is None else list(timestamps))
            )

    def _push_watermark(self, index: int, timestamp: int) -> None:
        if timestamp < self._watermarks[index]:
            raise ValueError(
                f"a watermark does not go back (from {self._watermarks[index]} to {timestamp})"
            )
        self._mail.run_all()
        if timestamp > self._watermarks[index]:
            self._watermarks[index] = timestamp
            self._inputs[index].emit_control(Watermark(timestamp))

    def set_processing_time(self, now_ms: int) -> None:
        """Sets the processing time, in milliseconds, and fires the timers whose millisecond is
        over: a timer for 1000 fires at 1001."""
        self._mail.run_all()
        self._timers.set_ms(now_ms)

    def end_input(self) -> None:
        """Ends the input and event time: the operators emit the rest of their results. Waits for
        asynchronous functions."""
        for index in range(len(self._inputs)):
            self._push_watermark(index, MAX_TIMESTAMP)
        for operator in self._operators:
            operator.finish()
            while operator.has_rest:
                operator.emit_rest()
            while not operator.drained:
                self._mail.wait_and_run(operator.context.name)

    # -- what came out -----------------------------------------------------------------------------

    @property
    def output(self) -> list[Any]:
        """The values emitted, in order."""
        self._mail.run_all()
        return [value for value, _ in self._recorder.stamped]

    @property
    def stamped_output(self) -> list[tuple[Any, int | None]]:
        """(value, event time in milliseconds or None) for each value emitted."""
        self._mail.run_all()
        return self._recorder.stamped

    @property
    def watermarks(self) -> list[int]:
        """The timestamps of the watermarks emitted, in milliseconds."""
        return self._recorder.watermarks

    @property
    def elements(self) -> list[Any]:
        """All output in order: (value, event time) pairs and control elements."""
        return list(self._recorder.elements)

    def side_output(self, tag: OutputTag) -> list[Any]:
        """The values emitted to that side output."""
        return list(self._recorder.sides.get(tag.tag_id, ()))

    def clear_output(self) -> None:
        """Forgets the output so far."""
        self._recorder.elements.clear()
        self._recorder.sides.clear()

    # -- state -------------------------------------------------------------------------------------

    @property
    def function(self) -> Any:
        """The harness's copy of the function (that of the last operator, if there are several)."""
        return getattr(self._operators[-1], "function", None)

    def num_keyed_state_entries(self, name: str | None = None) -> int:
        """Returns how many keys have a value, in the state of that name or in all states
        together."""
        counts = [
            backend.statistics.keys
            for operator in self._operators
            if (backend := getattr(operator, "backend", None)) is not None
        ]
        return sum(
            count
            for of_operator in counts
            for state, count in of_operator.items()
            if name is None or state == name
        )

    @property
    def num_event_time_timers(self) -> int:
        return sum(len(service.event_timers) for service in _timer_services(self._operators))

    @property
    def num_processing_time_timers(self) -> int:
        return sum(len(service.processing_timers) for service in _timer_services(self._operators))

    def snapshot(self, checkpoint_id: int = 1) -> bytes:
        """Returns what a checkpoint would save of this subtask; pass it to ``restore``."""
        for operator in self._operators:
            operator.prepare_snapshot_pre_barrier(checkpoint_id)
        for operator in self._operators:
            operator.emit_before_barrier(checkpoint_id)
        barrier = CheckpointBarrier(checkpoint_id, self.clock.time_ms())
        return pickle.dumps(
            [tuple(operator.freeze_state(barrier).write()) for operator in self._operators]
        )

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Tells the operators that the checkpoint is complete."""
        for operator in self._operators:
            operator.notify_checkpoint_complete(checkpoint_id)

    def restore(
        self: H,
        *snapshots: bytes,
        parallelism: int = 1,
        subtask_index: int = 0,
        configuration: Mapping[str, Any] | None = None,
    ) -> H:
        """Returns a new harness that continues from ``snapshots``, those of all former subtasks, as
        one of ``parallelism`` subtasks. Its clock starts at this harness's time. ``configuration``
        replaces this harness's, for example to use another state backend."""
        made = object.__new__(type(self))
        OperatorHarness.__init__(
            made,
            self._recipe,
            snapshots=snapshots,
            parallelism=parallelism,
            subtask_index=subtask_index,
            max_parallelism=self._max_parallelism,
            configuration=self._configuration if configuration is None else configuration,
            start_ms=self.clock.time_ms(),
        )
        return made

    # -- end ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the operators. A second call does nothing."""
        if not self._closed:
            self._closed = True
            for operator in self._operators:
                operator.close()

    def __enter__(self: H) -> H:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        names = " → ".join(type(operator).__name__ for operator in self._operators)
        return f"<{type(self).__name__} of {names}: {len(self._recorder.stamped)} values out>"


def _timer_services(operators: Sequence[StreamOperator]) -> list[KeyedTimerService]:
    found = [getattr(operator, "timer_service", None) for operator in operators]
    return [service for service in found if isinstance(service, KeyedTimerService)]


def pickled(piece: Piece, what: str) -> bytes:
    """Pickles a piece of stream, from which a harness is created."""
    return dumps(piece, what)
