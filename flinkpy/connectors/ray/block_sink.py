"""A sink that writes column batches as blocks into Ray's object store: in parallel, without passing
through the driver, and owned by a keeper.

A subtask's blocks are committed when the checkpoint that has them is complete; in a job without
checkpoints, when the subtask ends well. Batches are gathered into blocks of a useful size; a
checkpoint ends a block. A subtask with ``WAITING_BLOCKS`` blocks on their way into the store takes
no input, so memory is bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.ray.written_blocks import BlockRange
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.options.checkpointing import takes_checkpoints
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter

if TYPE_CHECKING:
    import pyarrow as pa

LOG = engine_logger(__name__)

BLOCK_BYTES = 32 << 20
WAITING_BLOCKS = 2  # how many blocks of a subtask may be on their way into the store


class RayBlockSink(Sink):
    """Writes blocks of about ``block_bytes`` for the keeper of that name. Takes only column
    batches, which ``stream.to_ray_dataset()`` ensures."""

    def __init__(self, keeper: str, block_bytes: int = BLOCK_BYTES) -> None:
        self.keeper, self.block_bytes = keeper, block_bytes

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _BlockWriter(self, context)

    def create_committer(self, context: OperatorContext) -> Committer:
        return _BlockCommitter(self.keeper)

    def block_of(self, table: pa.Table) -> Any:
        """The block to store for these records."""
        from flinkpy.connectors.ray.object_store import normalize_for_ray

        return normalize_for_ray(table.combine_chunks())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.keeper})"


class _BlockWriter(SinkWriter):
    def __init__(self, sink: RayBlockSink, context: OperatorContext) -> None:
        from flinkpy.connectors.ray.object_store import Store

        self._sink, self._store = sink, Store(sink.keeper)
        self._subtask = context.task.subtask_index
        self._attempt = context.task.attempt_id.attempt
        self._subtasks = context.task.parallelism
        self._begins_anew = not takes_checkpoints(context.configuration)
        self._put_so_far, self._finished = 0, False
        self._run_in_task = context.run_in_task
        self._listener: Callable[[], None] = lambda: None
        self._waiting = 0
        self._gathered: list[Any] = []
        self._bytes = 0

    def write_batch(self, batch: Batch) -> None:
        if not isinstance(batch, ColumnBatch):
            raise ProgramError(
                "blocks are made of columns, and rows came: declare their type where they are "
                "made, output_type=Types.ROW_NAMED(...)"
            )
        self._gathered.append(batch.data)
        self._bytes += batch.data.nbytes
        if self._bytes >= self._sink.block_bytes:
            self._put()

    def _put(self) -> None:
        import pyarrow as pa

        gathered, self._gathered, self._bytes = self._gathered, [], 0
        if gathered:
            self._waiting += 1
            self._put_so_far += 1
            block = self._sink.block_of(pa.Table.from_batches(gathered))
            self._store.put(
                block, self._subtask, self._attempt, lambda: self._run_in_task(self._taken)
            )

    def _taken(self) -> None:
        self._waiting -= 1
        if self._waiting == WAITING_BLOCKS - 1:
            self._listener()

    @property
    def available(self) -> bool:
        return self._waiting < WAITING_BLOCKS

    def set_listener(self, on_available: Callable[[], None]) -> None:
        self._listener = on_available

    def flush(self) -> None:
        """Does nothing: an incomplete block is kept until there is more, or until the end."""

    def finish(self) -> None:
        self._finished = True

    def prepare_commit(self) -> Sequence[BlockRange]:
        """Waits until the blocks are in the store, because a checkpoint that has them must not be
        lost with this worker."""
        self._put()
        self._store.await_written(self._subtask, self._attempt)
        last = self._subtasks if self._finished else None
        return [
            BlockRange(
                self._sink.keeper,
                self._subtask,
                self._attempt,
                self._put_so_far,
                last,
                self._begins_anew,
            )
        ]

    def close(self) -> None:
        self._gathered = []


class _BlockCommitter(Committer):
    def __init__(self, keeper: str) -> None:
        self._keeper = keeper

    def commit(self, committables: Sequence[BlockRange]) -> None:
        from flinkpy.connectors.ray.object_store import Store

        for blocks in committables:
            if blocks.keeper == self._keeper:
                Store(self._keeper).commit_written(blocks)
            else:
                # from a checkpoint of another program: its blocks were seen there, or have ended
                # with it
                LOG.warning(
                    "blocks that an earlier program has written before the checkpoint are not "
                    "part of this program's results"
                )
