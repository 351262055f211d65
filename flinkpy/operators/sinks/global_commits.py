"""The two operators of a sink with a global committer: writers that send on what they prepare, and
the committer behind them.

A writer emits its committables directly before a checkpoint's barrier. Barriers are aligned at the
committer, so what has come when it takes a checkpoint is what all writers prepared for that one. It
is kept in its state until the checkpoint is complete. A barrier that overtook committables would
leave some of them to the next checkpoint, so a job with a global committer takes no unaligned
checkpoints (``datastream.env.submission`` refuses them)."""

from __future__ import annotations

from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.options.checkpointing import takes_checkpoints
from flinkpy.core.program.coroutines import refuse_coroutine_methods
from flinkpy.core.users_values import bounded_repr
from flinkpy.graph.operator_port import ChainingStrategy
from flinkpy.operators.base import BatchForm, OneInputOperator
from flinkpy.operators.sinks.pending_commits import PendingCommits
from flinkpy.operators.sinks.sink_operator import COMMITTABLES, WritingOperator
from flinkpy.operators.sinks.sink_port import GlobalCommitter, SupportsGlobalCommitter


class SinkWriterOperator(WritingOperator):
    """Writes, and emits what its writer prepared, one record for each committable."""

    emits_changes = INSERT_ONLY  # committables, whatever kinds of rows were written

    def emit_before_barrier(self, checkpoint_id: int) -> None:
        if not self._finished:
            self.writer.flush()  # more may have been written since the last one, at a timer
            self._emit_prepared()

    def _hand_on_rest(self) -> None:
        self._emit_prepared()

    def _emit_prepared(self) -> None:
        prepared = self._prepared()
        if prepared:
            self.output.emit(RowBatch(prepared))


class GlobalCommitterOperator(OneInputOperator):
    """Commits what all writers prepared for a checkpoint, once it is complete; in one subtask.

    A new attempt commits at once what the restored checkpoint has. It may have been committed
    before. What comes behind the last checkpoint, when the writers end, goes with the next one; in
    a job without checkpoints it is committed when the input ends."""

    batch_form = BatchForm.AS_IN_STREAM
    chaining = ChainingStrategy.ALWAYS

    def __init__(self, sink: SupportsGlobalCommitter) -> None:
        self.sink = sink
        self._committer: GlobalCommitter | None = None

    def open(self) -> None:
        state = self.context.operator_state
        committer = self._committer = self._made_committer()
        self._committables = state.engine_list(COMMITTABLES)
        self._pending = PendingCommits(committer.commit, type(committer).__name__)
        self._pending.restore(self._committables.get())
        self._pending.commit_all()
        state.before_snapshot(self._snapshot)

    def _made_committer(self) -> GlobalCommitter:
        made = self.sink.create_global_committer(self.context)
        call = f"{type(self.sink).__name__}.create_global_committer()"
        if not isinstance(made, GlobalCommitter):
            raise TypeError(
                f"{call} gives {bounded_repr(made, 60)}; it must return a GlobalCommitter"
            )
        refuse_coroutine_methods(type(made), call)
        return made

    def process_batch(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        self._pending.add(batch.values, None)

    def _snapshot(self, checkpoint_id: int, timestamp_ms: int) -> None:
        prepared_by = f"prepare_commit() of the writers of {type(self.sink).__name__}"
        self._pending.save(self._committables, checkpoint_id, prepared_by)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._pending.commit_up_to(checkpoint_id)

    def finish(self) -> None:
        if not takes_checkpoints(self.context.configuration):
            self._pending.commit_at_last()

    @property
    def waits_for_final_checkpoint(self) -> bool:
        return self._pending.waiting

    def close(self) -> None:
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close()
