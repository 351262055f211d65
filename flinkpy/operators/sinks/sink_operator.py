"""The operators that write: they drive a sink's writer, and hand on what it prepares.

What a writer prepares is either committed in its own subtask (:class:`SinkOperator`), or sent to
the global committer behind all writers (``SinkWriterOperator`` of ``global_commits``). Both prepare
alike:

- At a checkpoint the writer flushes and prepares.
- An aborted checkpoint changes nothing: its committables go with the next one that completes.
- When the input ends, the rest is prepared. It is committed with the last checkpoint; in a job
  without checkpoints, or in batch mode, at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, cast

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.codegen.idle_results import refuse_idle
from flinkpy.core.elements import Batch, Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.core.options.checkpointing import takes_checkpoints
from flinkpy.core.program.coroutines import refuse_coroutine_methods
from flinkpy.core.users_values import bounded_repr, several
from flinkpy.graph.operator_port import ChainingStrategy
from flinkpy.operators.base import BatchForm, OneInputOperator
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.function_contexts.checkpointed import initialize_function
from flinkpy.operators.functions import RuntimeContext
from flinkpy.operators.row_kinds import check_kinds
from flinkpy.operators.sinks.adapted_sinks import sink_of
from flinkpy.operators.sinks.pending_commits import PendingCommits
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter
from flinkpy.state.api import ListState

COMMITTABLES, WRITER_STATES = "_committables", "_writer-states"


class WritingOperator(OneInputOperator):
    """Drives the writer of one subtask. ``sink`` is a :class:`Sink`, or whatever else
    ``sink_of`` takes for one."""

    batch_form = BatchForm.AS_IN_STREAM
    chaining = ChainingStrategy.ALWAYS
    is_sink = True

    def __init__(self, sink: Any) -> None:
        self.sink: Sink = sink_of(sink)
        self._writer: SinkWriter | None = None
        self._listener: Callable[[], None] | None = None
        self._writer_states: ListState[Any] | None = None  # None: the writer keeps none
        self._ending = self._finished = False

    @property
    def owned(self) -> str | None:
        """What only one sink of a job may write with."""
        return self.sink.owned

    @property
    def writer(self) -> SinkWriter:
        """The writer; raises RuntimeError before ``open``."""
        if self._writer is None:
            raise RuntimeError(f"{self.sink!r:.80} was not opened")
        return self._writer

    def open(self) -> None:
        initialize_function(self.sink, self.context, RuntimeContext(self.context))
        self._open_committer()
        self._writer = _made_writer(self.sink, self.context)
        if self._listener is not None:
            self._writer.set_listener(self._listener)
        state = self.context.operator_state
        if type(self._writer).snapshot_state is not SinkWriter.snapshot_state:
            self._writer_states = state.engine_list(WRITER_STATES)
        if self._writer_states is not None or self._keeps_committables:
            state.before_snapshot(self._snapshot)

    def _open_committer(self) -> None:
        """Before there is a writer: commits what the restored checkpoint has, if it is kept
        here."""

    @property
    def _keeps_committables(self) -> bool:
        return False

    @property
    def available(self) -> bool:
        return self._writer is None or self._writer.available

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._listener = on_available
        if self._writer is not None:
            self._writer.set_listener(on_available)

    def process_batch(self, batch: Batch) -> None:
        assert self._writer is not None
        if not self.sink.takes_kinds:
            check_kinds(batch, INSERT_ONLY, self.context.name)
        refuse_idle(cast("Any", self._writer).write_batch(batch), "write_batch()")

    def process_watermark(self, watermark: Watermark) -> None:
        self.writer.write_watermark(watermark)
        super().process_watermark(watermark)

    # -- checkpoints -------------------------------------------------------------------------------

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        if not self._has_finished():
            self.writer.flush()

    @property
    def flushed(self) -> bool:
        return self.writer.flushed

    def _snapshot(self, checkpoint_id: int, timestamp_ms: int) -> None:
        if self._writer_states is None:
            return
        writer, sink = type(self.writer).__name__, type(self.sink).__name__
        found = self.writer.snapshot_state(checkpoint_id)
        states = list(several(found, f"{writer}.snapshot_state()", "states"))
        if states and type(self.sink).restore_writer is Sink.restore_writer:
            raise ProgramError(
                f"what snapshot_state() of {writer} gives would be lost after a failure: "
                f"define restore_writer(self, context, states) in {sink}"
            )
        self._writer_states.update(states)

    def _prepared(self) -> list[Any]:
        """What the writer has written since the last call, as committables."""
        found = self.writer.prepare_commit()
        return list(several(found, self._prepared_by, "committables"))

    @property
    def _prepared_by(self) -> str:
        return f"{type(self.writer).__name__}.prepare_commit()"

    # -- the end -----------------------------------------------------------------------------------

    def finish(self) -> None:
        self.writer.finish()
        self._ending = True
        self._has_finished()

    @property
    def drained(self) -> bool:
        return self._has_finished()

    def _has_finished(self) -> bool:
        """Asked behind ``finish``: whether all is out. Then the rest is handed on, once."""
        if self._ending and not self._finished and self.writer.flushed:
            self._finished = True
            self._hand_on_rest()
        return self._finished

    @abstractmethod
    def _hand_on_rest(self) -> None:
        """The input has ended, and everything is written."""

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


class SinkOperator(WritingOperator):
    """Writes, and commits what its own writer prepared, if the sink has a committer.

    A new attempt commits at once what the restored checkpoint has. It may have been committed
    before. A committer that raises fails the task: the restarted job commits the same again, from
    its state. What a committer gives back goes with the next checkpoint that completes."""

    def __init__(self, sink: Any) -> None:
        super().__init__(sink)
        self._committer: Committer | None = None
        self._pending: PendingCommits | None = None  # None: the sink has no committer

    def _open_committer(self) -> None:
        committer = self._committer = self.sink.create_committer(self.context)
        if committer is not None:
            name = type(committer).__name__
            refuse_coroutine_methods(
                type(committer), f"{type(self.sink).__name__}.create_committer()"
            )
            self._pending = PendingCommits(lambda ready, _: committer.commit(ready), name)
            self._pending.restore(self.context.operator_state.engine_list(COMMITTABLES).get())
            self._pending.commit_all()

    @property
    def _keeps_committables(self) -> bool:
        return self._pending is not None

    def _snapshot(self, checkpoint_id: int, timestamp_ms: int) -> None:
        if not self._finished:  # more may have been written since the flush, at a timer
            self.writer.flush()
        if self._pending is not None:
            if not self._finished:
                self._pending.add(self._prepared(), checkpoint_id)
            state = self.context.operator_state.engine_list(COMMITTABLES)
            self._pending.save(state, checkpoint_id, self._prepared_by)
        super()._snapshot(checkpoint_id, timestamp_ms)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._pending is not None:
            self._pending.commit_up_to(checkpoint_id)

    def _hand_on_rest(self) -> None:
        if self._pending is not None:
            self._pending.add(self._prepared(), None)
            if not takes_checkpoints(self.context.configuration):
                self._pending.commit_at_last()

    @property
    def waits_for_final_checkpoint(self) -> bool:
        return self._pending is not None and self._pending.waiting

    def commit_pending(self) -> None:
        """Makes visible what was prepared, without waiting for a checkpoint: for a job that takes
        none any more."""
        if self._pending is not None:
            self._pending.commit_all()

    def close(self) -> None:
        committer, self._committer = self._committer, None
        try:
            super().close()
        finally:
            if committer is not None:
                committer.close()


def _made_writer(sink: Sink, context: OperatorContext) -> SinkWriter:
    """A new writer, or one that goes on with the state of earlier ones."""
    state = context.operator_state
    if state.restored:
        call = "restore_writer"
        made = sink.restore_writer(context, state.engine_list(WRITER_STATES).get())
    else:
        call = "create_writer"
        made = sink.create_writer(context)
    of_sink = f"{type(sink).__name__}.{call}()"
    if not isinstance(made, SinkWriter):
        raise TypeError(f"{of_sink} gives {bounded_repr(made, 60)}; it must return a SinkWriter")
    refuse_coroutine_methods(type(made), of_sink)
    return made
