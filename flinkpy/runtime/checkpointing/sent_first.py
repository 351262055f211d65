"""What was in flight behind a task's outputs when the job stopped: read with its state, and sent
before any output of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkpy.core.elements import CheckpointBarrier, WatermarkStatus
from flinkpy.core.errors import ProgramError
from flinkpy.graph.checkpoints import TaskRestore
from flinkpy.network.channel_state import read_elements
from flinkpy.network.port import RecordWriter
from flinkpy.operators.context import TaskInfo
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage


@dataclass(frozen=True)
class InFlight:
    """What a task sends of what was in flight in one channel: through that channel again, or with
    None where its partitioner sends it now."""

    output_index: int
    channel: int | None
    stored: bytes


@dataclass(frozen=True)
class SentFirst:
    """What a task that starts from a checkpoint sends before any output of its own; behind it, to
    the outputs in ``barred``, a barrier of that checkpoint."""

    checkpoint_id: int
    in_flight: tuple[InFlight, ...] = ()
    barred: tuple[int, ...] = ()


def read_in_flight(storage: CheckpointStorage, restore: TaskRestore, task: TaskInfo) -> SentFirst:
    """The subtask's share of what was in flight behind its outputs. Raises as ``read_states``."""
    reader = storage.reader(restore.location)
    found = [
        InFlight(
            output.output_index,
            None if output.is_rescaled else state.channel.subpartition,
            reader.read(state.handle),
        )
        for output in restore.outputs
        for state in output.share_of(task.subtask_index, task.parallelism)
    ]
    return SentFirst(
        restore.checkpoint_id,
        tuple(found),
        tuple(output.output_index for output in restore.outputs if output.is_barred),
    )


def send_first(first: SentFirst, writers: Sequence[RecordWriter]) -> None:
    """Sends it. Raises ProgramError if a record cannot be unpickled.

    A channel that was idle in it is active behind it: the task begins as an active one, and would
    never say so."""
    idle: set[tuple[int, int | None]] = set()  # channels of outputs
    for part in first.in_flight:
        try:
            elements = list(read_elements(part.stored))
        except Exception as error:  # unpickling runs code of the user's classes
            raise ProgramError(
                f"records that were in flight in checkpoint {first.checkpoint_id} cannot "
                f"be read by this program ({error!r}); start a changed "
                "program from a savepoint"
            ) from error
        for element in elements:
            writers[part.output_index].restore(part.channel, element)
            if isinstance(element, WatermarkStatus):
                (idle.add if element.idle else idle.discard)((part.output_index, part.channel))
    for output_index in sorted({output for output, _ in idle}):
        writers[output_index].emit_control(WatermarkStatus(idle=False))
    for output_index in first.barred:
        writers[output_index].emit_control(CheckpointBarrier(first.checkpoint_id, 0))
