"""The source coordinators of one job, and which attempt of each source subtask they talk to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.connectors.source_api.coordinator import SourceCoordinator
from flinkpy.connectors.source_api.watermark_alignment import AlignmentGroups
from flinkpy.core.errors import EngineError
from flinkpy.core.futures import Future
from flinkpy.core.ids import ExecutionAttemptId, ExecutionVertexId, JobVertexId, OperatorId
from flinkpy.core.program.code import loads
from flinkpy.graph.job_graph import JobGraph, JobVertex
from flinkpy.runtime.task_messages import OperatorEvent
from flinkpy.scheduler.protocol import ResetCoordinators


class SourceCoordinators:
    """All calls come from the main thread of ``endpoint``, the JobMaster. ``send(attempt, event)``
    delivers an event once and in order. ``fail`` fails the whole job, because an enumerator cannot
    be restarted on its own; when the job restarts, ``reset_attempts`` creates a new one."""

    def __init__(
        self,
        job_graph: JobGraph,
        endpoint: RpcEndpoint,
        send: Callable[[ExecutionAttemptId, OperatorEvent], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._send = send
        self.endpoint = endpoint
        self.fail = fail
        self._sources = {
            vertex.id: tuple(operator_id for operator_id, _ in vertex.sources)
            for vertex in job_graph.vertices
            if vertex.sources
        }
        self._current: dict[ExecutionVertexId, ExecutionAttemptId] = {}
        self._alignment = AlignmentGroups()
        self._makers: dict[OperatorId, Callable[..., SourceCoordinator]] = {
            operator_id: partial(self._make, vertex, operator_id, source)
            for vertex in job_graph.vertices
            for operator_id, source in vertex.sources
        }
        self._coordinators = {operator_id: make() for operator_id, make in self._makers.items()}

    def _make(
        self,
        vertex: JobVertex,
        operator_id: OperatorId,
        source: bytes,
        restored: bytes | None = None,
    ) -> SourceCoordinator:
        name = next(
            (operator.name for operator in vertex.operators if operator.operator_id == operator_id),
            vertex.name,
        )
        return SourceCoordinator(
            operator_id,
            partial(loads, source, vertex.out_of_band),
            vertex.parallelism,
            _Context(self, vertex.id, operator_id),
            name,
            restored,
            self._alignment,
        )

    def send(self, subtask: ExecutionVertexId, event: OperatorEvent) -> None:
        """To the subtask's current attempt, if it has one."""
        attempt_id = self._current.get(subtask)
        if attempt_id is not None:
            self._send(attempt_id, event)

    def start(self) -> None:
        """Starts the coordinators, before any task is deployed."""
        for coordinator in self._coordinators.values():
            coordinator.start()

    def attempts_deployed(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        """From now on the coordinators send the events of these subtasks to these attempts."""
        self._current.update(
            (attempt_id.vertex, attempt_id)
            for attempt_id in attempt_ids
            if attempt_id.vertex_id in self._sources
        )

    def handle_event(self, attempt_id: ExecutionAttemptId, message: OperatorEvent) -> None:
        """Hands a reader's event to its coordinator. Events of attempts that are not current any
        more are ignored."""
        coordinator = self._coordinators.get(message.operator_id)
        if coordinator is None:
            raise EngineError(
                f"{attempt_id} speaks to a coordinator of operator {message.operator_id}, which "
                "is no source of this job"
            )
        if self._current.get(attempt_id.vertex) == attempt_id:
            coordinator.handle_event(attempt_id.subtask_index, message.event, attempt_id.attempt)

    def attempt_ended(self, attempt_id: ExecutionAttemptId) -> None:
        """The attempt has ended, in whatever way, and sends nothing more: watermark alignment does
        not wait for it."""
        if self._current.get(attempt_id.vertex) == attempt_id:
            for operator_id in self._sources.get(attempt_id.vertex_id, ()):
                self._alignment.forget((operator_id, attempt_id.subtask_index))

    # -- checkpoints -------------------------------------------------------------------------------

    def snapshot(
        self, checkpoint_id: int, operator_ids: tuple[OperatorId, ...]
    ) -> dict[OperatorId, bytes]:
        """The state of these enumerators. Raises what an enumerator raises, as an error of its
        program."""
        return {
            operator_id: self._coordinators[operator_id].snapshot_state(checkpoint_id)
            for operator_id in operator_ids
        }

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        for coordinator in self._coordinators.values():
            coordinator.notify_checkpoint_complete(checkpoint_id)

    def reset_attempts(
        self, command: ResetCoordinators, states: Mapping[OperatorId, bytes]
    ) -> None:
        """These attempts are over: the splits assigned to them since the checkpoint go back.
        Enumerators in ``states`` begin with that; one that failed begins anew."""
        for attempt_id in command.attempts:
            for operator_id in self._sources.get(attempt_id.vertex_id, ()):
                if operator_id not in states:
                    self._coordinators[operator_id].subtask_reset(
                        attempt_id.subtask_index, attempt_id.attempt, command.checkpoint_id
                    )
            if self._current.get(attempt_id.vertex) == attempt_id:
                del self._current[attempt_id.vertex]
        for operator_id, coordinator in list(self._coordinators.items()):
            if coordinator.failed or operator_id in states:
                coordinator.close()
                self._coordinators[operator_id] = self._makers[operator_id](
                    restored=states.get(operator_id)
                )
                self._coordinators[operator_id].start()

    def close(self) -> None:
        for coordinator in self._coordinators.values():
            coordinator.close()

    def __repr__(self) -> str:
        return f"<SourceCoordinators {list(self._coordinators.values())}>"


class _Context:
    """What one coordinator has the JobMaster do."""

    def __init__(
        self, coordinators: SourceCoordinators, vertex_id: JobVertexId, operator_id: OperatorId
    ) -> None:
        self._coordinators = coordinators
        self._vertex_id = vertex_id
        self._operator_id = operator_id

    def send_event(self, subtask: int, event: Any) -> None:
        self._coordinators.send(
            ExecutionVertexId(self._vertex_id, subtask), OperatorEvent(self._operator_id, event)
        )

    def run_in_background(self, function: Callable[[], Any]) -> Future[Any]:
        return self._coordinators.endpoint.run_in_background(function)

    def schedule(self, delay_s: float, action: Callable[[], None]) -> object:
        return self._coordinators.endpoint.schedule_run_async(delay_s, action)

    def fail_job(self, error: BaseException) -> None:
        self._coordinators.fail(error)
