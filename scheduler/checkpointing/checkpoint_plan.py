"""Who takes part in a checkpoint, as the job's subtasks are at its beginning."""

from __future__ import annotations

from typing import NamedTuple

from flinkpy.core.ids import ExecutionAttemptId, ExecutionVertexId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.scheduler.execution_graph import ExecutionGraph

_S = ExecutionState


class CheckpointPlan(NamedTuple):
    """Barriers begin at the attempts in ``trigger``: those that no running producer sends one to.
    All that run acknowledge. Those that had finished have no state any more."""

    trigger: tuple[ExecutionAttemptId, ...]
    acknowledge: tuple[ExecutionAttemptId, ...]
    finished: tuple[ExecutionVertexId, ...]


def may_checkpoint(graph: ExecutionGraph) -> bool:
    """Whether something runs, and all that has not finished does."""
    running = graph.count(_S.RUNNING)
    return running > 0 and running + graph.count(_S.FINISHED) == graph.size


def checkpoint_plan(graph: ExecutionGraph) -> CheckpointPlan:
    """The plan for now, when the graph may be checkpointed."""
    running = [vertex for vertex in graph.vertices if vertex.execution.state is _S.RUNNING]
    return CheckpointPlan(
        tuple(
            vertex.execution.attempt_id
            for vertex in running
            if not any(group.unfinished for group in vertex.input_groups)
        ),
        tuple(vertex.execution.attempt_id for vertex in running),
        tuple(
            vertex.execution.attempt_id.vertex
            for vertex in graph.vertices
            if vertex.execution.state is _S.FINISHED
        ),
    )
