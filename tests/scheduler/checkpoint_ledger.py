"""What the world knows of a job's checkpoints: every piece of state, who was told what, and what must hold of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from flinkpy.core.ids import ExecutionAttemptId, OperatorId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.checkpointing import CheckpointRetention, CheckpointSettings
from flinkpy.graph.checkpoints import CompletedCheckpoint, OperatorCheckpoint, OperatorSubtaskState, StateHandle, SubtaskSnapshot
from flinkpy.graph.deployment import TaskDeploymentDescriptor
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.protocol import (
    CheckpointAcknowledged,
    CheckpointStored,
    CheckpointStoreFailed,
    CoordinatorSnapshot,
    DiscardCheckpoint,
    DiscardOtherCheckpoints,
    Event,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    ResetCoordinators,
    StoreCheckpoint,
    TriggerCheckpoint,
)

CheckpointCommand = (
    TriggerCheckpoint, StoreCheckpoint, DiscardCheckpoint, DiscardOtherCheckpoints, NotifyCheckpointComplete,
    NotifyCheckpointAborted,
)
RETAINED = {
    (CheckpointRetention.RETAIN_ON_CANCELLATION, JobState.CANCELED), (CheckpointRetention.RETAIN_ON_CANCELLATION, JobState.FAILED),
    (CheckpointRetention.DELETE_ON_CANCELLATION, JobState.FAILED),
}


def handle(path: str) -> StateHandle:
    return StateHandle(7, 0, path=path)


def operator_of(attempt_id: ExecutionAttemptId) -> OperatorId:
    return OperatorId(attempt_id.vertex_id.lower())


def saved(attempt_id: ExecutionAttemptId, checkpoint_id: int) -> CheckpointAcknowledged:
    """What a task says that has saved its state: one file."""
    state = OperatorSubtaskState(keyed=handle(f"chk-{checkpoint_id}/{attempt_id.vertex_id}{attempt_id.subtask_index}#{attempt_id.attempt}"))
    return CheckpointAcknowledged(attempt_id, checkpoint_id, SubtaskSnapshot({operator_of(attempt_id): state}))


def earlier_checkpoint(job_graph: JobGraph, checkpoint_id: int = 7) -> CompletedCheckpoint:
    """One that somebody made of the same job before."""
    return CompletedCheckpoint(checkpoint_id, 0, {
        operator.operator_id: OperatorCheckpoint(operator.name, 1, 128, {0: OperatorSubtaskState(keyed=handle(f"earlier/{operator.name}"))},
                                                 handle(f"earlier/{operator.name}-enumerator") if vertex.sources else None)
        for vertex in job_graph.vertices for operator in vertex.operators
    })


@dataclass
class CheckpointLedger:
    """``answers`` are on their way to the scheduler; ``past`` have been there. State is known by its path."""

    settings: CheckpointSettings = field(default_factory=CheckpointSettings)
    latest: CompletedCheckpoint | None = None  # what the job must restore from
    answers: list[Event] = field(default_factory=list)
    past: list[Event] = field(default_factory=list)
    participants: dict[int, set[ExecutionAttemptId]] = field(default_factory=dict)
    stores: dict[int, CompletedCheckpoint] = field(default_factory=dict)
    durable: set[int] = field(default_factory=set)
    complete: dict[int, CompletedCheckpoint] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)  # aborted, or not kept any more
    written: set[str | None] = field(default_factory=set)  # that the scheduler has heard of
    discarded: Counter[str | None] = field(default_factory=Counter)

    def restore(self, checkpoint: CompletedCheckpoint, claim: bool) -> None:
        self.latest = checkpoint
        if claim:
            self.complete[checkpoint.checkpoint_id] = checkpoint
            self.written.update(each.path for each in checkpoint.handles())

    def heard(self, event: Event) -> None:
        """The event reaches the scheduler."""
        if event in self.answers:
            self.answers.remove(event)
        self.past.append(event)
        if isinstance(event, CheckpointAcknowledged):
            self.written.update(each.path for state in event.snapshot.operators.values() for each in state.handles())
        elif isinstance(event, CoordinatorSnapshot):
            self.written.update(each.path for each in event.states.values())
        elif isinstance(event, CheckpointStored):
            self.durable.add(event.checkpoint_id)
        elif isinstance(event, CheckpointStoreFailed):
            self.answers = [each for each in self.answers if not (isinstance(each, CheckpointStored) and each.checkpoint_id == event.checkpoint_id)]

    def lose(self, event: Event) -> None:
        """The event never reaches the scheduler."""
        self.answers.remove(event)

    # -- commands --------------------------------------------------------------------------------------------------------------

    def carry_out(self, command: object, barrier_sources: Collection[ExecutionAttemptId], live: Collection[ExecutionAttemptId]) -> None:
        if isinstance(command, TriggerCheckpoint):
            self._trigger(command, barrier_sources, live)
        elif isinstance(command, StoreCheckpoint):
            self._store(command.checkpoint)
        elif isinstance(command, DiscardCheckpoint):
            self.over.add(command.checkpoint.checkpoint_id)
            for each in command.checkpoint.handles():
                assert each.path in self.written, f"{each} is of nobody"
                self.discarded[each.path] += 1
                assert self.discarded[each.path] == 1, f"{each} is discarded twice"
        elif isinstance(command, DiscardOtherCheckpoints):
            assert set(command.kept) == self.complete.keys() - self.over, "others are kept than those that are complete"
        elif isinstance(command, NotifyCheckpointComplete):
            number = command.checkpoint_id
            assert number in self.durable - self.over - self.complete.keys(), "complete without being stored, or twice, or after it was aborted"
            assert set(command.attempts) == set(live), "not all that run are told"
            self.latest = self.complete[number] = self.stores[number]
        elif isinstance(command, NotifyCheckpointAborted):
            assert command.checkpoint_id not in self.over | self.complete.keys()
            assert set(command.attempts) == self.participants[command.checkpoint_id] & set(live)

    def _trigger(self, command: TriggerCheckpoint, barrier_sources: Collection[ExecutionAttemptId], live: Collection[ExecutionAttemptId]) -> None:
        number = command.checkpoint_id
        assert number > max(self.participants, default=0), "a number is used once"
        assert set(command.attempts) == set(barrier_sources), "a task gets no barrier, or one too many"
        self.participants[number] = set(live)
        assert len(self.participants.keys() - self.complete.keys() - self.over) <= self.settings.max_concurrent
        self.answers.append(CoordinatorSnapshot(number, {operator: handle(f"chk-{number}/{operator}") for operator in command.coordinators}))
        self.answers += [saved(attempt_id, number) for attempt_id in live]

    def _store(self, checkpoint: CompletedCheckpoint) -> None:
        number = checkpoint.checkpoint_id
        assert number not in self.stores, "stored twice"
        expected: Counter[str | None] = Counter()
        for attempt_id in self.participants[number]:
            states = saved(attempt_id, number).snapshot.operators.items()
            assert all(checkpoint.operators[operator_id].subtasks[attempt_id.subtask_index] == state for operator_id, state in states)
            expected.update(each.path for _, state in states for each in state.handles())
        enumerators = [each for each in self.past if isinstance(each, CoordinatorSnapshot) and each.checkpoint_id == number]
        expected.update(each.path for each in enumerators[0].states.values())
        assert Counter(each.path for each in checkpoint.handles()) == expected
        self.stores[number] = checkpoint
        self.answers.append(CheckpointStored(number))

    # -- what must hold --------------------------------------------------------------------------------------------------------

    def check_restore(self, descriptor: TaskDeploymentDescriptor) -> None:
        """A task starts from the newest checkpoint that is complete, and from all of its operator's state."""
        restore = descriptor.restore
        assert (restore and restore.checkpoint_id) == (self.latest and self.latest.checkpoint_id)
        if restore is not None and self.latest is not None:
            operator = self.latest.operators.get(operator_of(descriptor.attempt_id))
            assert set(restore.operators) == ({operator_of(descriptor.attempt_id)} if operator is not None else set())
            for operator_id, part in restore.operators.items():
                assert dict(enumerate(part.subtasks)) == {
                    index: self.latest.operators[operator_id].subtasks.get(index, OperatorSubtaskState()) for index in range(len(part.subtasks))}
            assert restore.finished == (operator is not None and len(operator.finished) == operator.parallelism)

    def check_reset(self, command: ResetCoordinators, job_graph: JobGraph) -> None:
        """An enumerator goes back as a whole if all its readers do."""
        if self.latest is None:
            assert (command.checkpoint_id, command.states) == (None, {})
            return
        assert command.checkpoint_id == self.latest.checkpoint_id
        readers = Counter(attempt_id.vertex_id for attempt_id in command.attempts)
        for vertex in job_graph.vertices:
            for operator_id, _ in vertex.sources:
                if readers[vertex.id] == vertex.parallelism and operator_id in self.latest.operators:
                    assert command.states[operator_id] == self.latest.operators[operator_id].coordinator
                elif command.attempts and 0 < readers[vertex.id] < vertex.parallelism:
                    assert operator_id not in command.states

    def check_retained(self, end: JobState | None) -> None:
        """The newest few are whole; the others are gone. At the end, also those that are not to outlive the job, and all that was never complete."""
        kept = list(self.complete)[-self.settings.retained:]
        if end is not None and (self.settings.retention, end) not in RETAINED:
            kept = []
        remaining = {each.path for number in kept for each in self.complete[number].handles()}
        assert not remaining & self.discarded.keys(), "state that is retained was discarded"
        gone = {each.path for number, checkpoint in self.complete.items() if number not in kept for each in checkpoint.handles()}
        assert gone <= self.discarded.keys(), "checkpoints too many are kept"
        if end is not None:
            assert self.written == remaining | self.discarded.keys(), "state of a checkpoint that was never complete is left over"
