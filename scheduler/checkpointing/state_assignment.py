"""What new attempts and source enumerators start from: their part of the latest completed checkpoint."""

from __future__ import annotations

from collections.abc import Iterable

from flinkpy.core.errors import SavepointRestoreError
from flinkpy.core.ids import JobVertexId, OperatorId
from flinkpy.graph.checkpoints import CompletedCheckpoint, OperatorCheckpoint, OperatorRestore, OperatorSubtaskState, StateHandle, TaskRestore
from flinkpy.graph.job_graph import JobGraph, JobVertex
from flinkpy.scheduler.checkpointing.completed_checkpoint_store import CompletedCheckpointStore
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import Execution, ExecutionVertex
from flinkpy.scheduler.protocol import ResetCoordinators


class StateAssignment:
    """No checkpoint completes between a restart and the deployment that follows, because none is triggered before all subtasks run. So
    whoever asks in between gets the same one."""

    def __init__(self, graph: ExecutionGraph, completed: CompletedCheckpointStore) -> None:
        self._graph, self._completed = graph, completed
        self._checkpoint_id: int | None = None  # whose parts these are:
        self._parts: dict[JobVertexId, TaskRestore] = {}

    def restore_of(self, vertex: JobVertex) -> TaskRestore | None:
        """What each subtask of the vertex starts from: one object for all, which take their shares of it."""
        checkpoint = self._completed.latest
        if checkpoint is None:
            return None
        if checkpoint.checkpoint_id != self._checkpoint_id:
            self._checkpoint_id = checkpoint.checkpoint_id
            self._parts.clear()
        if vertex.id not in self._parts:
            self._parts[vertex.id] = task_restore(checkpoint, vertex)
        return self._parts[vertex.id]

    def start(self) -> list[ResetCoordinators]:
        """What the enumerators of a job do that starts from a checkpoint."""
        return [self._reset((), dict.fromkeys(self._graph.vertices))] if self._completed.latest is not None else []

    def restart(self, old: Iterable[Execution], vertices: dict[ExecutionVertex, None]) -> ResetCoordinators:
        """These subtasks start anew, of which ``old`` are the attempts that had begun."""
        return self._reset(old, vertices)

    def _reset(self, old: Iterable[Execution], vertices: dict[ExecutionVertex, None]) -> ResetCoordinators:
        attempts = tuple(execution.attempt_id for execution in old)
        checkpoint = self._completed.latest
        if checkpoint is None:
            return ResetCoordinators(attempts)
        states: dict[OperatorId, StateHandle] = {}
        for job_vertex in dict.fromkeys(vertex.job_vertex for vertex in vertices):
            if all(vertex in vertices for vertex in job_vertex.vertices):
                states.update(_coordinators(checkpoint, job_vertex.vertex))
        return ResetCoordinators(attempts, checkpoint.checkpoint_id, states, checkpoint.location)


def _coordinators(checkpoint: CompletedCheckpoint, vertex: JobVertex) -> dict[OperatorId, StateHandle]:
    saved = {operator_id: checkpoint.operators[operator_id].coordinator for operator_id, _ in vertex.sources if operator_id in checkpoint.operators}
    return {operator_id: state for operator_id, state in saved.items() if state is not None}


def task_restore(checkpoint: CompletedCheckpoint, vertex: JobVertex) -> TaskRestore:
    """The checkpoint's part for the subtasks of the vertex."""
    found = {operator.operator_id: checkpoint.operators[operator.operator_id] for operator in vertex.operators
             if operator.operator_id in checkpoint.operators}
    finished = bool(found) and len(found) == len(vertex.operators) and all(operator.is_fully_finished for operator in found.values())
    return TaskRestore(checkpoint.checkpoint_id, checkpoint.location, {
        operator_id: OperatorRestore(tuple(operator.subtasks.get(index, OperatorSubtaskState()) for index in range(operator.parallelism)))
        for operator_id, operator in found.items()
    }, finished)


def check_restorable(checkpoint: CompletedCheckpoint, job_graph: JobGraph, allow_non_restored: bool) -> None:
    """Raises SavepointRestoreError when state has no operator to go to, or was cut into other key groups than the job has."""
    vertices = {operator.operator_id: vertex for vertex in job_graph.vertices for operator in vertex.operators}
    with_state = {operator_id: operator for operator_id, operator in checkpoint.operators.items() if any(operator.handles())}
    homeless = [operator.name for operator_id, operator in with_state.items() if operator_id not in vertices]
    if homeless and not allow_non_restored:
        raise SavepointRestoreError(
            f"checkpoint {checkpoint.checkpoint_id} has state of operators that the job does not have: {', '.join(map(repr, homeless))}; give "
            "operators uids, so that they are found again when the program changes, or allow that state is left behind")
    changed = [f"{operator.name!r} (from {operator.max_parallelism} to {vertices[operator_id].max_parallelism})"
               for operator_id, operator in with_state.items()
               if operator_id in vertices and _has_keys(operator) and operator.max_parallelism != vertices[operator_id].max_parallelism]
    if changed:
        raise SavepointRestoreError(
            f"the max parallelism of operators with keyed state has changed since checkpoint {checkpoint.checkpoint_id}: {', '.join(changed)}; "
            "set it to what it was (set_max_parallelism, or option pipeline.max-parallelism)")


def _has_keys(operator: OperatorCheckpoint) -> bool:
    return any(state.keyed is not None for state in operator.subtasks.values())
