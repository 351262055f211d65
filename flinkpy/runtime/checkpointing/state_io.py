"""One thread in which all tasks of a process write their state, and read it back: the slot loop never waits for files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from flinkpy.core.ids import OperatorId
from flinkpy.core.keys import key_group_range
from flinkpy.graph.checkpoints import OperatorRestore, OperatorSubtaskState, SubtaskSnapshot, TaskRestore
from flinkpy.operators.context import TaskInfo
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.checkpoints.state_writer import StateWriter
from flinkpy.state.saved_state import FrozenState, SavedState, share_of


class StateIO:
    """The thread. It starts with the first action."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._executor: ThreadPoolExecutor | None = None
        self._stopped = False

    def run(self, action: Callable[[], None]) -> None:
        """From the slot loop's thread. After ``stop`` the action is dropped."""
        if self._stopped:
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"state of {self._name}")
        self._executor.submit(action)

    def stop(self) -> None:
        """What has not begun is dropped."""
        self._stopped = True
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


def write_snapshot(
    storage: CheckpointStorage, checkpoint_id: int, task: TaskInfo, frozen: Mapping[OperatorId, FrozenState],
) -> SubtaskSnapshot:
    """Writes the state of all operators of a subtask. Raises what the store raises; then nothing of it is left there."""
    name = f"{task.attempt_id.vertex_id}-{task.subtask_index}"
    with storage.state_writer(checkpoint_id, name, task.attempt_id.attempt) as writer:
        return SubtaskSnapshot({operator_id: _written(writer, state) for operator_id, state in frozen.items()})


def _written(writer: StateWriter, frozen: FrozenState) -> OperatorSubtaskState:
    keyed, operator = frozen.write()
    return OperatorSubtaskState(None if keyed is None else writer.write(keyed), None if operator is None else writer.write(operator))


def read_states(storage: CheckpointStorage, restore: TaskRestore, task: TaskInfo) -> dict[OperatorId, SavedState]:
    """What each operator of the subtask starts from. Raises CheckpointDamagedError, and what the store raises."""
    reader = storage.reader(restore.location)
    return {operator_id: _share(reader, found, task) for operator_id, found in restore.operators.items()}


def _share(reader: StateReader, found: OperatorRestore, task: TaskInfo) -> SavedState:
    """The subtask's share of what the operator's subtasks saved, however many there were. Keyed state is read only of those that had some of its
    key groups."""
    groups, before = key_group_range(task.subtask_index, task.max_parallelism, task.parallelism), len(found.subtasks)
    saved = []
    for subtask, state in enumerate(found.subtasks):
        owned = key_group_range(subtask, task.max_parallelism, before)
        shares_groups = owned.start < groups.stop and groups.start < owned.stop
        keyed = reader.read(state.keyed) if state.keyed is not None and shares_groups else None
        saved.append(SavedState(keyed, None if state.operator is None else reader.read(state.operator)))
    return share_of(saved, task.max_parallelism, task.parallelism, task.subtask_index)
