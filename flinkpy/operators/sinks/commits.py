"""The two phases of one sink subtask: what its writer prepared is pending until the checkpoint that
has it is complete.

- At a checkpoint the writer flushes and prepares. Its committables become operator state, under the
  checkpoint's id.
- When a checkpoint is complete, all that was prepared for it or an earlier one is committed.
- An aborted checkpoint changes nothing: its committables go with the next one that completes.
- A new attempt commits at once what the restored checkpoint has. It may have been committed before.
- When the input ends, the rest is prepared. It is committed with the last checkpoint; in a job
  without checkpoints, or in batch mode, at once.

A committer that raises fails the task. The restarted job commits the same again, from its state.
What a committer gives back stays pending, and goes with the next checkpoint that completes."""

from __future__ import annotations

from typing import Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.options.checkpointing import takes_checkpoints
from flinkpy.core.program.coroutines import refuse_coroutine_methods
from flinkpy.core.users_values import several
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter
from flinkpy.state.api import ListState

COMMITTABLES, WRITER_STATES = "_committables", "_writer-states"


class SinkCommits:
    """Opens the sink of one subtask, and commits for it."""

    def __init__(self, sink: Sink, context: OperatorContext) -> None:
        self._sink, self._context = sink, context
        self._committer: Committer | None = None
        # by the checkpoint that has them, oldest first
        self._pending: list[tuple[int, list[Any]]] = []
        self._rest: list[Any] = []  # prepared at the end, and part of no checkpoint yet
        self._ending = self._finished = False

    def open(self) -> None:
        """Commits what the restored checkpoint has, makes the writer, and keeps state if either has
        some."""
        context, state = self._context, self._context.operator_state
        self._committer = self._sink.create_committer(context)
        if self._committer is not None:
            refuse_coroutine_methods(
                type(self._committer), f"{type(self._sink).__name__}.create_committer()"
            )
            self._pending = sorted(state.engine_list(COMMITTABLES).get(), key=lambda each: each[0])
            self.commit_all()
        if state.restored:
            self._sink.open(context, state.engine_list(WRITER_STATES).get())
        else:
            self._sink.open(context)
        self._writer = self._sink.writer
        keeps_state = type(self._writer).snapshot_state is not SinkWriter.snapshot_state
        self._writer_states: ListState[Any] | None = (
            state.engine_list(WRITER_STATES) if keeps_state else None
        )
        if self._committer is not None or keeps_state:
            state.before_snapshot(self._snapshot)

    def _snapshot(self, checkpoint_id: int, timestamp_ms: int) -> None:
        if not self._finished:
            self._writer.flush()
        if self._committer is not None:
            prepared = self._rest if self._finished else self._prepared()
            self._rest = []
            if prepared:
                self._pending.append((checkpoint_id, prepared))
            try:
                self._context.operator_state.engine_list(COMMITTABLES).update(self._pending)
            except TypeError as error:
                raise TypeError(
                    f"what {type(self._writer).__name__}.prepare_commit() gives must be "
                    "picklable, as it is part of the checkpoint: "
                    f"{error}"
                ) from None
        if self._writer_states is not None:
            states = list(
                several(
                    self._writer.snapshot_state(checkpoint_id),
                    f"{type(self._writer).__name__}.snapshot_state()",
                    "states",
                )
            )
            if states and type(self._sink).restore_writer is Sink.restore_writer:
                writer, sink = type(self._writer).__name__, type(self._sink).__name__
                raise ProgramError(
                    f"what snapshot_state() of {writer} gives would be lost after a failure: "
                    "define "
                    f"restore_writer(self, context, states) in {sink}"
                )
            self._writer_states.update(states)

    def _prepared(self) -> list[Any]:
        return list(
            several(
                self._writer.prepare_commit(),
                f"{type(self._writer).__name__}.prepare_commit()",
                "committables",
            )
        )

    def commit_up_to(self, checkpoint_id: int) -> None:
        """This checkpoint is complete, and with it all before it."""
        postponed: list[tuple[int, list[Any]]] = []
        while self._pending and self._pending[0][0] <= checkpoint_id:
            number, committables = self._pending[0]
            if left := self._commit(committables):
                postponed.append((number, left))
            del self._pending[0]
        self._pending[:0] = postponed

    def commit_all(self) -> None:
        """Commits everything that was prepared, or as much as the committer can."""
        if self._pending:
            self.commit_up_to(self._pending[-1][0])
        if self._rest:
            self._rest = self._commit(self._rest)

    def _commit(self, committables: list[Any]) -> list[Any]:
        """Gives back what the committer could not commit yet."""
        assert self._committer is not None
        left = self._committer.commit(committables)
        return (
            []
            if left is None
            else list(several(left, f"{type(self._committer).__name__}.commit()", "committables"))
        )

    def finish(self) -> None:
        """The input has ended well: what was written goes out."""
        self._sink.finish()
        self._ending = True
        self.ended()

    def ended(self) -> bool:
        """Asked behind ``finish``: whether all is out. Then the rest is prepared."""
        if self._ending and not self._finished and self._sink.flushed:
            if self._committer is not None:
                self._rest += self._prepared()
            self._finished = True
            if not takes_checkpoints(self._context.configuration):
                self._commit_at_last()
        return self._finished

    def _commit_at_last(self) -> None:
        """No checkpoint follows with which it could be tried again."""
        self.commit_all()
        if self.waiting:
            left = len(self._rest) + sum(len(committables) for _, committables in self._pending)
            raise ProgramError(
                f"{type(self._committer).__name__} put off {left} committables, and no "
                "checkpoint follows at which they could be "
                "committed: take checkpoints "
                "(execution.checkpointing.interval), or let commit() wait"
            )

    @property
    def waiting(self) -> bool:
        """Whether something was prepared and not committed."""
        return bool(self._rest or self._pending)

    def close(self) -> None:
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close()
