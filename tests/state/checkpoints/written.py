"""Checkpoints for the tests: state of several sizes, written as tasks and the JobMaster would, and
read back."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TypeAlias

from flinkpy.core.ids import JobId, OperatorId
from flinkpy.graph.checkpoints import (
    CompletedCheckpoint,
    OperatorCheckpoint,
    OperatorSubtaskState,
    StateHandle,
)
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.checkpoints.state_writer import StateWriter

JOB = JobId("5f3a0c9e" * 4)
THRESHOLD = 100
NAME = 'counts "für" \n \ud800'  # a lone surrogate is no text in UTF-8
SOURCE, COUNTS = OperatorId("0000aaaa"), OperatorId("0000bbbb")
# operator, subtask and kind of state -> its bytes
Contents: TypeAlias = Mapping[tuple[str, object], bytes]


def state_of(checkpoint_id: int, size: int, *more: object) -> bytes:
    """Bytes that are others for each checkpoint and place."""
    return random.Random(f"{checkpoint_id} {size} {more}").randbytes(size)


def written(storage: CheckpointStorage, checkpoint_id: int) -> CompletedCheckpoint:
    """Two subtasks of two operators, small state and large, and a coordinator; not stored yet."""
    sources, counts = {}, {}
    for subtask in range(2):
        with storage.state_writer(checkpoint_id, f"0a-{subtask}", 0) as writer:
            sources[subtask] = OperatorSubtaskState(
                operator=_write(writer, checkpoint_id, 10, subtask)
            )
            large, larger = (_write(writer, checkpoint_id, size, subtask) for size in (150, 400))
            counts[subtask] = OperatorSubtaskState(large, larger)
    with storage.state_writer(checkpoint_id, "coordinator", 0) as writer:
        coordinator = _write(writer, checkpoint_id, 120)
    operators = {
        SOURCE: OperatorCheckpoint("Source: numbers", 2, 128, sources, coordinator),
        COUNTS: OperatorCheckpoint(NAME, 2, 128, counts),
    }
    return CompletedCheckpoint(checkpoint_id, 1_700_000_000_000 + checkpoint_id, operators)


def _write(writer: StateWriter, checkpoint_id: int, size: int, *more: object) -> StateHandle:
    return writer.write(state_of(checkpoint_id, size, *more))


def contents(storage: CheckpointStorage, checkpoint: CompletedCheckpoint) -> Contents:
    """All state of a checkpoint, read back."""
    reader = storage.reader(checkpoint.location)
    found: dict[tuple[str, object], bytes] = {}
    for operator_id, operator in checkpoint.operators.items():
        for subtask, state in operator.subtasks.items():
            for kind, handle in (("keyed", state.keyed), ("operator", state.operator)):
                if handle is not None:
                    found[operator_id, (subtask, kind)] = reader.read(handle)
        if operator.coordinator is not None:
            found[operator_id, "coordinator"] = reader.read(operator.coordinator)
    return found


def contents_of(checkpoint_id: int) -> Contents:
    """What ``contents`` gives for a checkpoint that ``written`` made."""
    found: dict[tuple[str, object], bytes] = {(SOURCE, "coordinator"): state_of(checkpoint_id, 120)}
    for subtask in range(2):
        found[SOURCE, (subtask, "operator")] = state_of(checkpoint_id, 10, subtask)
        found[COUNTS, (subtask, "keyed")] = state_of(checkpoint_id, 150, subtask)
        found[COUNTS, (subtask, "operator")] = state_of(checkpoint_id, 400, subtask)
    return found
