"""What new attempts and source enumerators start from: their part of the latest completed
checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from flinkpy.core.errors import BoundToParallelismError, SavepointRestoreError
from flinkpy.core.ids import JobVertexId, OperatorId
from flinkpy.core.options.checkpointing import RECOVERY_IGNORE_UNCLAIMED
from flinkpy.core.options.engine import AGGREGATE_PHASES
from flinkpy.graph.checkpoints import (
    CompletedCheckpoint,
    DataSetState,
    OperatorCheckpoint,
    OperatorRestore,
    OperatorSubtaskState,
    OutputRestore,
    StateHandle,
    TaskRestore,
)
from flinkpy.graph.job_graph import JobEdge, JobGraph, JobVertex
from flinkpy.scheduler.checkpointing.checkpoint_stats_tracker import CheckpointStatsTracker
from flinkpy.scheduler.checkpointing.completed_checkpoint_store import CompletedCheckpointStore
from flinkpy.scheduler.checkpointing.subtask_restores import SubtaskRestores
from flinkpy.scheduler.execution_graph import ExecutionGraph
from flinkpy.scheduler.execution_model import Execution, ExecutionVertex
from flinkpy.scheduler.protocol import ResetCoordinators


class StateAssignment:
    """No checkpoint completes between a restart and the deployment that follows, because none is
    triggered before all subtasks run. So whoever asks in between gets the same one."""

    def __init__(
        self,
        graph: ExecutionGraph,
        completed: CompletedCheckpointStore,
        statistics: CheckpointStatsTracker,
    ) -> None:
        self._graph = graph
        self._completed = completed
        self._statistics = statistics
        self._checkpoint_id: int | None = None  # whose parts these are:
        self._parts: dict[JobVertexId, SubtaskRestores] = {}

    def restore_of(self, vertex: JobVertex, subtask: int) -> TaskRestore | None:
        """What the subtask of the vertex starts from."""
        checkpoint = self._completed.latest
        if checkpoint is None:
            return None
        if checkpoint.checkpoint_id != self._checkpoint_id:
            self._checkpoint_id = checkpoint.checkpoint_id
            self._parts.clear()
        if vertex.id not in self._parts:
            whole = replace(
                task_restore(checkpoint, vertex, self._graph.job_graph),
                stops=self._completed.must_end,
            )
            self._parts[vertex.id] = SubtaskRestores(whole, vertex)
        return self._parts[vertex.id].of(subtask)

    @property
    def takes_all_along(self) -> bool:
        """Whether all subtasks restart whichever fails: the job is being stopped, so some have
        ended that have not read their input to its end."""
        return self._completed.is_stopping

    def start(self) -> list[ResetCoordinators]:
        """What the enumerators of a job do that starts from a checkpoint."""
        return (
            [self._reset((), dict.fromkeys(self._graph.vertices))]
            if self._completed.latest is not None
            else []
        )

    def restart(
        self, old: Iterable[Execution], vertices: dict[ExecutionVertex, None]
    ) -> ResetCoordinators:
        """These subtasks start anew, of which ``old`` are the attempts that had begun."""
        return self._reset(old, vertices)

    def _reset(
        self, old: Iterable[Execution], vertices: dict[ExecutionVertex, None]
    ) -> ResetCoordinators:
        attempts = tuple(execution.attempt_id for execution in old)
        checkpoint = self._completed.latest
        if checkpoint is None:
            return ResetCoordinators(attempts)
        self._statistics.restored(checkpoint, self._graph.now)
        states: dict[OperatorId, StateHandle] = {}
        for job_vertex in dict.fromkeys(vertex.job_vertex for vertex in vertices):
            if all(vertex in vertices for vertex in job_vertex.vertices):
                states.update(_coordinators(checkpoint, job_vertex.vertex))
        return ResetCoordinators(attempts, checkpoint.checkpoint_id, states, checkpoint.location)


def _coordinators(
    checkpoint: CompletedCheckpoint, vertex: JobVertex
) -> dict[OperatorId, StateHandle]:
    saved = {
        operator_id: checkpoint.operators[operator_id].coordinator
        for operator_id, _ in vertex.sources
        if operator_id in checkpoint.operators
    }
    return {operator_id: state for operator_id, state in saved.items() if state is not None}


def task_restore(
    checkpoint: CompletedCheckpoint, vertex: JobVertex, job_graph: JobGraph
) -> TaskRestore:
    """The checkpoint's part for the subtasks of the vertex. What was in flight goes to those that
    produced it: they send it again, and so their partitioner decides where it goes now."""
    found = {
        operator.operator_id: checkpoint.operators[operator.operator_id]
        for operator in vertex.operators
        if operator.operator_id in checkpoint.operators
    }
    finished = (
        bool(found)
        and len(found) == len(vertex.operators)
        and all(operator.is_fully_finished for operator in found.values())
    )
    return TaskRestore(
        checkpoint.checkpoint_id,
        checkpoint.location,
        {
            operator_id: OperatorRestore(
                tuple(
                    operator.subtasks.get(index, OperatorSubtaskState())
                    for index in range(operator.parallelism)
                )
            )
            for operator_id, operator in found.items()
        },
        finished,
        tuple(_outputs(checkpoint, vertex, job_graph)),
    )


def _outputs(
    checkpoint: CompletedCheckpoint, vertex: JobVertex, job_graph: JobGraph
) -> Iterator[OutputRestore]:
    for output in vertex.outputs:
        edge = job_graph.edge_of(output.id)
        if edge is None:
            continue
        state, inputs = _in_flight(checkpoint, edge), job_graph.vertex(edge.consumer).inputs
        is_barred = any(_has_rescaled(checkpoint, each, job_graph) for each in inputs)
        if state is not None or is_barred:
            channels = () if state is None else state.channels
            yield OutputRestore(
                output.output_index, channels, _has_rescaled(checkpoint, edge, job_graph), is_barred
            )


def has_rescaled_in_flight(checkpoint: CompletedCheckpoint, job_graph: JobGraph) -> bool:
    """Whether a job that starts from the checkpoint sends records another way than they were on."""
    return any(
        _has_rescaled(checkpoint, edge, job_graph)
        for vertex in job_graph.vertices
        for edge in vertex.inputs
    )


def _has_rescaled(checkpoint: CompletedCheckpoint, edge: JobEdge, job_graph: JobGraph) -> bool:
    state = _in_flight(checkpoint, edge)
    return state is not None and _is_rescaled(state, edge, job_graph)


def _in_flight(checkpoint: CompletedCheckpoint, edge: JobEdge) -> DataSetState | None:
    state = checkpoint.in_flight.get(edge.data_set.id)
    return state if state is not None and _is_same(state, edge) else None


def _is_same(state: DataSetState, edge: JobEdge) -> bool:
    """Whether the edge leads where it led, and carries what it carried: its data set's id follows
    from its place among the outputs, which may be another's now."""
    leads_there = (state.consumer, state.input_index) == (edge.consumer, edge.input_index)
    return leads_there and state.is_partial in (None, edge.is_partial)


def _is_rescaled(state: DataSetState, edge: JobEdge, job_graph: JobGraph) -> bool:
    producers = job_graph.vertex(edge.data_set.producer).parallelism
    consumers = job_graph.vertex(edge.consumer).parallelism
    return (state.producers, state.consumers, state.ship_strategy) != (
        producers,
        consumers,
        edge.ship_strategy,
    )


def check_restorable(
    checkpoint: CompletedCheckpoint, job_graph: JobGraph, allow_non_restored: bool
) -> None:
    """Raises SavepointRestoreError when state has no operator to go to, or was cut into other key
    groups than the job has."""
    vertices = {
        operator.operator_id: vertex
        for vertex in job_graph.vertices
        for operator in vertex.operators
    }
    infos = {
        operator.operator_id: operator
        for vertex in job_graph.vertices
        for operator in vertex.operators
    }
    with_state = {
        operator_id: operator
        for operator_id, operator in checkpoint.operators.items()
        if any(operator.handles())
    }
    homeless = [
        operator.label
        for operator_id, operator in with_state.items()
        if operator_id not in vertices
    ]
    if homeless and not allow_non_restored:
        raise SavepointRestoreError(
            f"checkpoint {checkpoint.checkpoint_id} has state of operators that the job "
            f"does not have: {', '.join(homeless)}; give "
            "operators the uids that they had, so that they are found again when the "
            "program changes, or allow that this state is left behind "
            f"(--allow-non-restored-state, option {RECOVERY_IGNORE_UNCLAIMED.key})"
        )
    regrouped = [
        (operator, vertices[operator_id])
        for operator_id, operator in with_state.items()
        if operator_id in vertices
        and _has_keys(operator)
        and operator.max_parallelism != vertices[operator_id].max_parallelism
    ]
    changed = [
        f"{operator.name!r} (from {operator.max_parallelism} to {vertex.max_parallelism})"
        for operator, vertex in regrouped
        if vertex.max_parallelism_is_set
    ]
    if changed:
        raise SavepointRestoreError(
            "the max parallelism of operators with keyed state has changed since "
            f"checkpoint {checkpoint.checkpoint_id}: {', '.join(changed)}; "
            "set it to what it was (set_max_parallelism, or option pipeline.max-parallelism)"
        )
    too_wide = [
        (
            f"{operator.name!r} ({vertex.parallelism} subtasks, max parallelism "
            f"{operator.max_parallelism})"
        )
        for operator, vertex in regrouped
        if operator.max_parallelism < vertex.parallelism
    ]
    if too_wide:
        raise SavepointRestoreError(
            "more subtasks than the max parallelism that operators with keyed state had "
            "in checkpoint "
            f"{checkpoint.checkpoint_id}, which cannot be changed: {', '.join(too_wide)}; "
            "lower their parallelism"
        )
    other_keys = [
        f"{operator.label} (from {operator.key_kind} to {infos[operator_id].key_kind})"
        for operator_id, operator in with_state.items()
        if operator_id in infos
        and _has_keys(operator)
        and _differ(operator.key_kind, infos[operator_id].key_kind)
    ]
    if other_keys:
        raise SavepointRestoreError(
            f"the type of keys has changed since checkpoint {checkpoint.checkpoint_id}: "
            f"{', '.join(other_keys)}; no key would find its state: key by "
            "what it was, or give the operator another uid, and it begins without state"
        )
    _check_in_flight(checkpoint, job_graph, allow_non_restored)


def take_over_max_parallelism(checkpoint: CompletedCheckpoint, job_graph: JobGraph) -> None:
    """A vertex with keyed state has the max parallelism of the checkpoint, unless the program sets
    one: it says which keys belong together. The checkpoint was found to be restorable."""
    for vertex in job_graph.vertices:
        for each in vertex.operators:
            saved = checkpoint.operators.get(each.operator_id)
            if saved is not None and _has_keys(saved) and not vertex.max_parallelism_is_set:
                vertex.max_parallelism = saved.max_parallelism


BOUND_TO_SUBTASKS = frozenset({"FORWARD", "BROADCAST"})
"""What is in flight between two vertices connected so belongs to one of the consumer's subtasks; it
has no other place at another parallelism."""


def _check_in_flight(
    checkpoint: CompletedCheckpoint, job_graph: JobGraph, allow_non_restored: bool
) -> None:
    for data_set_id, state in checkpoint.in_flight.items():
        edge = job_graph.edge_of(data_set_id)
        if edge is None or not _is_same(state, edge):
            if allow_non_restored:
                continue
            problem = (
                f"checkpoint {checkpoint.checkpoint_id} is unaligned, and has records on "
                "their way between operators that the job does not have, or "
                "connects otherwise: "
            )
            if _had_other_phases(state, job_graph):
                was, now = ("two phases", "one") if state.is_partial else ("one phase", "two")
                raise BoundToParallelismError(
                    f"{problem}what was aggregated in {was} is in {now} now. Set "
                    f"{AGGREGATE_PHASES.key} to "
                    f"{'TWO_PHASE' if state.is_partial else 'ONE_PHASE'}, or start from a savepoint"
                )
            raise SavepointRestoreError(
                f"{problem}start the changed program from a savepoint, or allow "
                "that state is left behind"
            )
        if BOUND_TO_SUBTASKS & {state.ship_strategy, edge.ship_strategy} and _is_rescaled(
            state, edge, job_graph
        ):
            producer = job_graph.vertex(edge.data_set.producer)
            consumer = job_graph.vertex(edge.consumer)
            raise BoundToParallelismError(
                f"checkpoint {checkpoint.checkpoint_id} is unaligned, and has records on "
                f"their {state.ship_strategy} way from {producer.name!r} to "
                f"{consumer.name!r}, which cannot go to other subtasks: start with the "
                "parallelism it was taken with "
                f"({state.producers} and {state.consumers}), or from a savepoint"
            )


def _had_other_phases(state: DataSetState, job_graph: JobGraph) -> bool:
    """Whether its consumer aggregated in two phases, and has one now, or the other way round."""
    return state.is_partial is not None and any(
        (edge.consumer, edge.is_partial) == (state.consumer, not state.is_partial)
        for vertex in job_graph.vertices
        for edge in vertex.inputs
    )


def _differ(before: str | None, now: str | None) -> bool:
    return before is not None and now is not None and before != now


def _has_keys(operator: OperatorCheckpoint) -> bool:
    return any(state.has_keys for state in operator.subtasks.values())
