"""Checkpoints on disk that no job has written: the states of a few operators, saved as tasks and
the JobMaster would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from flinkpy.common.typeinfo import Types
from flinkpy.core.ids import JobId, OperatorId
from flinkpy.core.keys import channel_of_key_group, key_group, key_group_range
from flinkpy.graph.checkpoints import CompletedCheckpoint, OperatorCheckpoint, OperatorSubtaskState
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.descriptors import ListStateDescriptor, MapStateDescriptor
from flinkpy.state.operator_backend import OperatorStateBackend
from flinkpy.state.snapshots.saved_state import FrozenState
from tests.state.helpers import MAX_PARALLELISM, backend, states

JOB = JobId("5f3a0c9e" * 4)
COUNTS, SOURCE = OperatorId("0c" * 16), OperatorId("50" * 16)


def keyed_states(keys: Sequence[object], parallelism: int) -> list[FrozenState]:
    """One state of each kind, in which each key has its own place in ``keys``; frozen, of each
    subtask."""
    frozen = []
    for subtask in range(parallelism):
        heap = backend(groups=key_group_range(subtask, MAX_PARALLELISM, parallelism))
        made = states(heap)
        for number, key in enumerate(keys):
            if (
                channel_of_key_group(key_group(key, MAX_PARALLELISM), MAX_PARALLELISM, parallelism)
                == subtask
            ):
                heap.current.key = key
                made["value"].update(number)
                made["list"].add_all([number, number + 1])
                made["map"].put("n", number)
                made["reducing"].add(number)
                made["aggregating"].add(number)
        frozen.append(FrozenState(heap.freeze()))
    return frozen


def operator_states(parallelism: int) -> list[FrozenState]:
    """A list of two, a union list of one and a broadcast state of two in each subtask; frozen."""
    frozen = []
    for subtask in range(parallelism):
        held = OperatorStateBackend()
        held.get_list_state(ListStateDescriptor("offsets", Types.LONG())).add_all(
            [subtask * 10, subtask * 10 + 1]
        )
        held.get_union_list_state(ListStateDescriptor("owners", Types.STRING())).add(
            f"subtask {subtask}"
        )
        rules = held.get_broadcast_state(
            MapStateDescriptor("rules", Types.STRING(), Types.DOUBLE())
        )
        rules.put_all({"limit": 1.5, "floor": -0.0})
        frozen.append(FrozenState(operator=held.snapshot(1, 2)))
    return frozen


def stored(
    folder: Path,
    operators: Mapping[OperatorId, tuple[str, Sequence[FrozenState]]],
    checkpoint_id: int = 7,
) -> CompletedCheckpoint:
    """A completed checkpoint of these operators, below the folder."""
    storage = FileCheckpointStorage(str(folder), JOB, threshold=100)
    found = {}
    for operator_id, (name, subtasks) in operators.items():
        saved = {}
        for subtask, frozen in enumerate(subtasks):
            with storage.state_writer(checkpoint_id, f"{operator_id}-{subtask}", 0) as writer:
                keyed, listed, *_ = frozen.write()
                saved[subtask] = OperatorSubtaskState(
                    None if keyed is None else writer.write(keyed),
                    None if listed is None else writer.write(listed),
                )
        found[operator_id] = OperatorCheckpoint(name, len(subtasks), MAX_PARALLELISM, saved)
    return storage.store(CompletedCheckpoint(checkpoint_id, 1_700_000_000_000, found))


def usual(folder: Path, checkpoint_id: int = 7) -> CompletedCheckpoint:
    """Keyed states of two subtasks, and operator states of three."""
    keys = [f"key {number}" for number in range(50)]
    return stored(
        folder,
        {
            COUNTS: ("counts", keyed_states(keys, 2)),
            SOURCE: ("Source: numbers", operator_states(3)),
        },
        checkpoint_id,
    )
