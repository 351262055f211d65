"""A job whose end is a sink, without a cluster: its subtasks, checkpoints and what goes wrong about
them, crashes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.elements import Batch, CheckpointBarrier, ControlElement, RowBatch
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.sinks.global_commits import GlobalCommitterOperator, SinkWriterOperator
from flinkpy.operators.sinks.sink_operator import SinkOperator, WritingOperator
from flinkpy.operators.sinks.sink_port import Sink, SupportsGlobalCommitter
from flinkpy.state.snapshots.saved_state import SavedState, redistribute_all
from flinkpy.testing.connectors.source_world import (
    Collected,
    ManualTimers,
    operator_context,
    travelled,
)

WITH_CHECKPOINTS = {"execution.checkpointing.interval": "1 s"}
WITHOUT_CHECKPOINTS: dict[str, Any] = {}


@dataclass
class Checkpoint:
    """What all subtasks saved, and how many records had come by then."""

    checkpoint_id: int
    position: int
    states: list[SavedState]
    of_committer: SavedState | None = None  # of a global committer, if all writers got as far


class SinkWorld:
    """Feeds whole numbers, 0, 1, 2 …, shared out among the subtasks by their remainder;
    ``batch_of`` makes other records of them."""

    def __init__(
        self,
        sink: Sink,
        parallelism: int = 1,
        configuration: dict[str, Any] | None = None,
        batch_of: Callable[[list[int]], Batch] = RowBatch,
        patience_s: float = 30.0,
    ) -> None:
        self.sink = sink
        self.configuration = WITH_CHECKPOINTS if configuration is None else configuration
        self.parallelism = parallelism
        self._batch_of = batch_of
        self._patience_s = patience_s
        self.attempt = 0
        self.next_id = 1
        self.position = 0
        self.furthest = 0  # the greatest position of any attempt
        self.running: list[Checkpoint] = []  # of this attempt, neither complete nor aborted
        self.completed: Checkpoint | None = None
        self.timers = ManualTimers(operator_context().clock)
        self.mail: deque[Callable[[], None]] = deque()  # from threads of the writers
        self.operators: list[WritingOperator] = []
        self.committer: GlobalCommitterOperator | None = None  # behind them, if the sink has one
        self.old: list[WritingOperator | GlobalCommitterOperator] = []  # cut off, and still there
        self._deploy([None] * parallelism, None)

    def context(self, subtask: int, parallelism: int | None = None) -> OperatorContext:
        made = operator_context(
            subtask,
            parallelism or self.parallelism,
            self.attempt,
            timers=self.timers,
            clock=self.timers.clock,
        )
        return replace(made, configuration=self.configuration, run_in_task=self.mail.append)

    def _deploy(self, states: Sequence[SavedState | None], of_committer: SavedState | None) -> None:
        self.operators = []
        output: Output = Collected()
        if isinstance(self.sink, SupportsGlobalCommitter):
            committer = travelled(GlobalCommitterOperator(self.sink))
            committer.setup(self.context(0, 1), output)
            committer.initialize_state(of_committer)
            self.committer, output = committer, _ToCommitter(committer)
            committer.open()
        for subtask, state in enumerate(states):
            operator = travelled(self._operator())
            operator.set_listener(lambda: None)
            context = self.context(subtask)
            operator.setup(context, output)
            operator.initialize_state(state)
            self.operators.append(operator)
            operator.open()

    def _operator(self) -> WritingOperator:
        if isinstance(self.sink, SupportsGlobalCommitter):
            return SinkWriterOperator(self.sink)
        return SinkOperator(self.sink)

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Until that holds: the mail of the writers' threads is handled meanwhile, and their timers
        fire."""
        deadline = SYSTEM_CLOCK.monotonic() + self._patience_s
        while True:
            while self.mail:
                self.mail.popleft()()
            if holds():
                return
            if SYSTEM_CLOCK.monotonic() > deadline:
                raise AssertionError(f"the writer is not {what} after {self._patience_s:g} s")
            threading.Event().wait(0.001)
            self.timers.clock.advance(0.001)  # type: ignore[attr-defined]  # it is the test's own
            self.timers.fire()

    def feed(self, count: int, size: int = 3) -> None:
        """Gives each writer its part of the next records, as soon as it has room."""
        for first in range(self.position, self.position + count, size):
            batch = range(first, min(first + size, self.position + count))
            for subtask, operator in enumerate(self.operators):
                values = [value for value in batch if value % self.parallelism == subtask]
                if values:
                    # called at once
                    self.wait_until(lambda: operator.available, "available")  # noqa: B023
                    operator.process_batch(self._batch_of(values))
        self.position += count
        self.furthest = max(self.furthest, self.position)

    def barrier(self, subtasks: int | None = None) -> Checkpoint:
        """A checkpoint begins; only the first so many subtasks get as far as that, where it says
        so."""
        barrier = CheckpointBarrier(self.next_id, 0)
        self.next_id += 1
        states = []
        for operator in self.operators[:subtasks]:
            operator.prepare_snapshot_pre_barrier(barrier.checkpoint_id)
            self.wait_until(lambda: operator.flushed, "flushed")  # noqa: B023  # called at once
            operator.emit_before_barrier(barrier.checkpoint_id)
            states.append(operator.freeze_state(barrier).write())
        made = Checkpoint(barrier.checkpoint_id, self.position, states)
        if len(states) == len(self.operators):
            if self.committer is not None:
                made.of_committer = self.committer.freeze_state(barrier).write()
            self.running.append(made)
        return made

    def abort(self, checkpoint: Checkpoint) -> None:
        if checkpoint in self.running:
            self.running.remove(checkpoint)
        for operator in self.all_operators():
            operator.notify_checkpoint_aborted(checkpoint.checkpoint_id)

    def complete(
        self, checkpoint: Checkpoint, told: Callable[[int], bool] = lambda subtask: True
    ) -> None:
        """It is durable; the subtasks are notified, but for those whose notice is lost. A global
        committer is notified if the first writer is."""
        self.completed = checkpoint
        self.running = [
            each for each in self.running if each.checkpoint_id > checkpoint.checkpoint_id
        ]
        for subtask, operator in enumerate(self.operators):
            if told(subtask):
                operator.notify_checkpoint_complete(checkpoint.checkpoint_id)
        if self.committer is not None and told(0):
            self.committer.notify_checkpoint_complete(checkpoint.checkpoint_id)

    def all_operators(self) -> list[WritingOperator | GlobalCommitterOperator]:
        """Those of this attempt, the writers first."""
        return [*self.operators, *([] if self.committer is None else [self.committer])]

    def crash(self, parallelism: int | None = None, *, closed: bool = True) -> None:
        """All subtasks fail, and new ones go on from the last complete checkpoint. Not ``closed``:
        the old ones are cut off, and end long after the new ones have begun."""
        if not closed:
            self.old += self.all_operators()
            self.operators, self.committer = [], None
        for operator in self.all_operators():
            operator.close()
        self.attempt += 1
        self.running = []
        self.parallelism = parallelism or self.parallelism
        if self.completed is None:
            self.position = 0
            self._deploy([None] * self.parallelism, None)
            return
        self.position = self.completed.position
        self._deploy(
            redistribute_all(self.completed.states, 128, self.parallelism),
            self.completed.of_committer,
        )

    def end_input(self) -> None:
        for operator in self.operators:
            operator.finish()
        for operator in self.operators:
            # called at once
            self.wait_until(lambda: operator.drained, "done with its input")  # noqa: B023
        if self.committer is not None:
            self.committer.finish()

    def last_checkpoint(self) -> None:
        """The one that operators wait for behind the end of their input."""
        operators = self.all_operators()
        if any(operator.waits_for_final_checkpoint for operator in operators):
            self.complete(self.barrier())
        assert not any(operator.waits_for_final_checkpoint for operator in operators), (
            "the last checkpoint leaves something to commit"
        )

    def close(self) -> None:
        with ExitStack() as closing:  # all of them, also behind one that fails
            for operator in reversed([*self.all_operators(), *self.old]):
                closing.callback(operator.close)


class _ToCommitter(Output):
    """What writers emit, on its way to the global committer."""

    def __init__(self, committer: GlobalCommitterOperator) -> None:
        self._committer = committer

    def emit(self, batch: Batch) -> None:
        self._committer.process_batch(batch)

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        """Writers have no side outputs."""

    def emit_control(self, element: ControlElement) -> None:
        """The committer needs no event time."""
