"""A checkpoint on its way: who still has to acknowledge it, and the state that was acknowledged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from flinkpy.core.elements import ALIGNED_CHECKPOINT, CheckpointOptions
from flinkpy.core.errors import EngineError
from flinkpy.core.ids import ExecutionAttemptId, IntermediateDataSetId, JobVertexId, OperatorId
from flinkpy.core.lifecycles import CHECKPOINT, CheckpointState, StateMachine
from flinkpy.graph.checkpoints import (
    ChannelState,
    CompletedCheckpoint,
    DataSetState,
    OperatorCheckpoint,
    OperatorSubtaskState,
    StateHandle,
    SubtaskSnapshot,
)
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.checkpointing.checkpoint_plan import CheckpointPlan


class PendingCheckpoint:
    """Gathers acknowledgements until none is awaited any more. It goes on listening when it was
    aborted: what comes late is discarded too."""

    def __init__(
        self,
        checkpoint_id: int,
        timestamp_ms: int,
        started: float,
        plan: CheckpointPlan,
        job_graph: JobGraph,
        options: CheckpointOptions = ALIGNED_CHECKPOINT,
        *,
        is_requested: bool = False,
    ) -> None:
        self.options, self.is_requested = options, is_requested
        self.checkpoint_id = checkpoint_id
        self.timestamp_ms = timestamp_ms
        self.started = started
        self.plan = plan
        self._machine = StateMachine(CHECKPOINT, f"checkpoint {checkpoint_id}")
        self._job_graph = job_graph
        self.awaited = set(plan.acknowledge)
        # the subtasks that had finished before, and those that acknowledge having done so
        self._finished = list(plan.finished)
        self.awaits_coordinators = any(vertex.sources for vertex in job_graph.vertices)
        self._states: defaultdict[OperatorId, dict[int, OperatorSubtaskState]] = defaultdict(dict)
        self._coordinators: dict[OperatorId, StateHandle] = {}
        self._channels: defaultdict[IntermediateDataSetId, list[ChannelState]] = defaultdict(list)

    @property
    def state(self) -> CheckpointState:
        return self._machine.state

    @property
    def is_fully_acknowledged(self) -> bool:
        return not self.awaited and not self.awaits_coordinators

    def rest_s(self, now: float, timeout_s: float) -> float:
        """How long it may still take."""
        return self.started + timeout_s - now

    def move(self, state: CheckpointState, why: str = "") -> None:
        self._machine.move(state, why)

    def acknowledge(self, attempt_id: ExecutionAttemptId, snapshot: SubtaskSnapshot) -> bool:
        """Whether this was awaited: who acknowledges a second time, or was not asked, says nothing
        new."""
        if attempt_id not in self.awaited:
            return False
        self.awaited.discard(attempt_id)
        if snapshot.had_finished:
            self._finished.append(attempt_id.vertex)
        for operator_id, state in snapshot.operators.items():
            self._states[operator_id][attempt_id.subtask_index] = state
        for channel in snapshot.channels:
            self._channels[channel.channel.data_set_id].append(channel)
        return True

    def acknowledge_coordinators(self, states: Mapping[OperatorId, StateHandle]) -> bool:
        """Whether they were awaited."""
        if not self.awaits_coordinators:
            return False
        self.awaits_coordinators = False
        self._coordinators.update(states)
        return True

    def contents(self) -> CompletedCheckpoint:
        """What was acknowledged, and not taken since."""
        operators = self._operators()
        strange = (self._states.keys() | self._coordinators.keys()) - operators.keys()
        if strange:
            raise EngineError(
                f"checkpoint {self.checkpoint_id} has state of operators that are not in the "
                f"job: {sorted(strange)}"
            )
        return CompletedCheckpoint(
            self.checkpoint_id, self.timestamp_ms, operators, in_flight=self._in_flight()
        )

    def take_contents(self) -> CompletedCheckpoint:
        """The same, to be discarded: once."""
        contents = self.contents()
        self._states.clear()
        self._coordinators.clear()
        self._channels.clear()
        return contents

    def _in_flight(self) -> dict[IntermediateDataSetId, DataSetState]:
        found = {}
        for vertex in self._job_graph.vertices:
            for edge in vertex.inputs:
                channels = self._channels.get(edge.data_set.id)
                if channels:
                    producers = self._job_graph.vertex(edge.data_set.producer).parallelism
                    found[edge.data_set.id] = DataSetState(
                        producers,
                        vertex.parallelism,
                        vertex.id,
                        edge.input_index,
                        edge.ship_strategy,
                        tuple(channels),
                        edge.is_partial,
                    )
        return found

    def _operators(self) -> dict[OperatorId, OperatorCheckpoint]:
        finished: defaultdict[JobVertexId, set[int]] = defaultdict(set)
        for subtask in self._finished:
            finished[subtask.vertex_id].add(subtask.subtask_index)
        found = {}
        for vertex in self._job_graph.vertices:
            for operator in vertex.operators:
                states = self._states.get(operator.operator_id, {})
                coordinator = self._coordinators.get(operator.operator_id)
                if states or coordinator is not None or finished[vertex.id]:
                    found[operator.operator_id] = OperatorCheckpoint(
                        operator.name,
                        vertex.parallelism,
                        vertex.max_parallelism,
                        dict(states),
                        coordinator,
                        frozenset(finished[vertex.id]),
                        operator.uid,
                        operator.key_kind,
                    )
        return found

    def __repr__(self) -> str:
        return (
            f"<checkpoint {self.checkpoint_id}: {self.state.name}, {len(self.awaited)} "
            "subtasks awaited>"
        )
