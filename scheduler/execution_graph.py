"""The ExecutionGraph: every subtask, its current attempt, and who reads from whom. Attempts change
their state only through this graph, so that its counts hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from flinkpy.core.errors import EngineError
from flinkpy.core.ids import ExecutionAttemptId, JobVertexId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.execution_model import (
    Execution,
    ExecutionJobVertex,
    ExecutionVertex,
    IntermediateResult,
    PartitionGroup,
)

_STARTED = (ExecutionState.RUNNING, ExecutionState.FINISHED)


class GraphInUse(Protocol):
    """Knows by which graph the job runs now: after its plan was replaced, that is another one."""

    @property
    def graph(self) -> ExecutionGraph: ...


class ExecutionGraph:
    """All of it. ``touched`` gathers the vertices whose attempts moved, for the check of
    invariants; ``now`` is the time of these moves. Attempts are numbered from ``first_attempt`` on;
    of each subtask, the latest ``attempts_kept`` that have ended are remembered."""

    def __init__(
        self, job_graph: JobGraph, first_attempt: int = 0, attempts_kept: int = 16
    ) -> None:
        self.job_graph, self._attempts_kept = job_graph, attempts_kept
        self.job_vertices = {
            vertex.id: ExecutionJobVertex(job_graph, vertex, first_attempt)
            for vertex in job_graph.vertices
        }
        for vertex in job_graph.vertices:
            consumer = self.job_vertices[vertex.id]
            for edge in vertex.inputs:
                consumer.inputs.append(
                    IntermediateResult(edge, self.job_vertices[edge.data_set.producer], consumer)
                )
        for consumer in self.job_vertices.values():
            for result in consumer.inputs:
                result.producer.outputs.append(result)
        for producer in self.job_vertices.values():
            producer.outputs.sort(key=lambda result: result.edge.data_set.output_index)
        self.size = sum(vertex.parallelism for vertex in job_graph.vertices)
        # over all vertices: asked for with every event
        self.counts = dict.fromkeys(ExecutionState, 0)
        self.counts[ExecutionState.CREATED] = self.size
        self.touched: set[ExecutionVertex] = set()
        self.now = 0.0

    def begin(self, now: float) -> None:
        """The job is about to be scheduled: its first attempts are created now."""
        for vertex in self.vertices:
            vertex.execution.entered[ExecutionState.CREATED] = now

    @property
    def vertices(self) -> Iterator[ExecutionVertex]:
        """Every subtask, in topological order of the job vertices."""
        return (
            vertex for job_vertex in self.job_vertices.values() for vertex in job_vertex.vertices
        )

    @property
    def results(self) -> Iterator[IntermediateResult]:
        return (result for job_vertex in self.job_vertices.values() for result in job_vertex.inputs)

    def count(self, *states: ExecutionState) -> int:
        """How many current attempts are in one of the states."""
        counts = self.counts
        return sum([counts[state] for state in states])

    def current(self, attempt_id: ExecutionAttemptId) -> Execution | None:
        """The attempt, if it is its subtask's current one."""
        job_vertex = self.job_vertices.get(JobVertexId(attempt_id.vertex_id))
        if job_vertex is None or not 0 <= attempt_id.subtask_index < len(job_vertex.vertices):
            return None
        execution = job_vertex.vertices[attempt_id.subtask_index].execution
        return execution if execution.attempt_id == attempt_id else None

    def move(
        self, execution: Execution, state: ExecutionState, why: str = ""
    ) -> list[PartitionGroup]:
        """The only way an attempt changes its state. Answers with the groups that became consumable
        by it."""
        vertex = execution.vertex
        before = execution.machine.state
        execution.machine.move(state, why)
        execution.entered[state] = self.now
        for counts in (vertex.job_vertex.counts, self.counts):
            counts[before] -= 1
            counts[state] += 1
        self.touched.add(vertex)
        return self._count_progress(execution, state) if state in _STARTED else []

    def reset(self, vertex: ExecutionVertex) -> Execution:
        """Replaces an ended attempt by a new one, and undoes what its progress meant for its
        consumers."""
        old = vertex.execution
        vertex.earlier = self._history(vertex)
        was_finished = old.state is ExecutionState.FINISHED
        for group in vertex.output_groups:
            group.unstarted += old.started
            group.unfinished += was_finished
            group.forget_descriptors()
        if was_finished:
            for group in vertex.input_groups:
                group.unconsumed += 1
        for counts in (vertex.job_vertex.counts, self.counts):
            counts[old.state] -= 1
            counts[ExecutionState.CREATED] += 1
        vertex.execution = Execution(
            vertex, old.attempt_id._replace(attempt=old.attempt_id.attempt + 1), self.now
        )
        self.touched.add(vertex)
        return vertex.execution

    @property
    def next_attempt(self) -> int:
        """A number that no attempt which has begun has."""
        return max(
            (
                vertex.execution.attempt_id.attempt + vertex.execution.has_begun
                for vertex in self.vertices
            ),
            default=0,
        )

    def succeed(self, earlier: ExecutionGraph, now: float) -> None:
        """Takes the place of a graph of the same job, of which no attempt is alive: subtasks that
        both have keep their history."""
        self.now = now
        self.begin(now)
        for vertex_id, job_vertex in self.job_vertices.items():
            for vertex, before in zip(
                job_vertex.vertices, earlier.job_vertices[vertex_id].vertices
            ):
                vertex.earlier = (
                    self._history(before) if before.execution.has_begun else before.earlier
                )
        self.touched.update(self.vertices)

    def _history(self, vertex: ExecutionVertex) -> tuple[Execution, ...]:
        """The attempts of the subtask when its current one, which has ended, is an earlier one."""
        old = vertex.execution
        if not old.is_terminal:
            raise EngineError(f"{old} is replaced before it ended")
        if old.error is not None:
            old.failure, old.error = f"{type(old.error).__name__}: {old.error}", None
        return (old, *vertex.earlier)[: self._attempts_kept]

    def _count_progress(self, execution: Execution, state: ExecutionState) -> list[PartitionGroup]:
        consumable = []
        for group in execution.vertex.output_groups:
            was_consumable = group.is_consumable
            group.unstarted -= not execution.started
            group.unfinished -= state is ExecutionState.FINISHED
            if group.is_consumable and not was_consumable:
                consumable.append(group)
        if state is ExecutionState.FINISHED:
            for group in execution.vertex.input_groups:
                group.unconsumed -= 1
        execution.started = True
        return consumable
