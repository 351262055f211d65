"""What the world knows of a job's checkpoints: every piece of state, who was told what, and what
must hold of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from flinkpy.core.elements import CheckpointOptions
from flinkpy.core.ids import ExecutionAttemptId, OperatorId
from flinkpy.core.keys import key_group_range
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.checkpointing import CheckpointRetention, CheckpointSettings
from flinkpy.graph.checkpoints import (
    SHARED,
    CompletedCheckpoint,
    KeyedPieces,
    OperatorCheckpoint,
    OperatorSubtaskState,
    StateHandle,
    SubtaskSnapshot,
    shared_files,
)
from flinkpy.graph.deployment import TaskDeploymentDescriptor
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.protocol import (
    CheckpointAcknowledged,
    CheckpointDiscarded,
    CheckpointStored,
    CheckpointStoreFailed,
    CoordinatorSnapshot,
    DiscardCheckpoint,
    DiscardOtherCheckpoints,
    DiscardSharedFiles,
    Event,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    ResetCoordinators,
    SnapshotEnded,
    SnapshotRequested,
    StoreCheckpoint,
    TriggerCheckpoint,
)

CheckpointCommand = (
    TriggerCheckpoint,
    StoreCheckpoint,
    DiscardCheckpoint,
    DiscardSharedFiles,
    DiscardOtherCheckpoints,
    NotifyCheckpointComplete,
    NotifyCheckpointAborted,
)
RETAINED = {
    (CheckpointRetention.RETAIN_ON_CANCELLATION, JobState.CANCELED),
    (CheckpointRetention.RETAIN_ON_CANCELLATION, JobState.FAILED),
    (CheckpointRetention.DELETE_ON_CANCELLATION, JobState.FAILED),
}


def handle(path: str) -> StateHandle:
    return StateHandle(7, 0, path=path)


def operator_of(attempt_id: ExecutionAttemptId) -> OperatorId:
    return OperatorId(attempt_id.vertex_id.lower())


def saved(
    attempt_id: ExecutionAttemptId, checkpoint_id: int, pieces: KeyedPieces | None = None
) -> CheckpointAcknowledged:
    """What a task says that has saved its state: one file of its own, and perhaps some that
    checkpoints share."""
    own = handle(
        f"chk-{checkpoint_id}/{attempt_id.vertex_id}{attempt_id.subtask_index}#{attempt_id.attempt}"
    )
    state = OperatorSubtaskState(keyed=own, pieces=pieces)
    return CheckpointAcknowledged(
        attempt_id, checkpoint_id, SubtaskSnapshot({operator_of(attempt_id): state})
    )


def grown(
    attempt_id: ExecutionAttemptId, checkpoint_id: int, base: KeyedPieces | None
) -> KeyedPieces:
    """The pieces of a state some time after ``base``: a new one, and most of the old ones."""
    kept = {
        name: each
        for name, each in (base.pieces.items() if base is not None else ())
        if (int(name) + checkpoint_id) % 3
    }
    new = handle(
        f"{SHARED}{checkpoint_id}-{attempt_id.vertex_id}{attempt_id.subtask_index}#{attempt_id.attempt}"
    )
    return KeyedPieces("rocksdb", {**kept, str(checkpoint_id): new})


def earlier_checkpoint(job_graph: JobGraph, checkpoint_id: int = 7) -> CompletedCheckpoint:
    """One that somebody made of the same job before."""
    return CompletedCheckpoint(
        checkpoint_id,
        0,
        {
            operator.operator_id: OperatorCheckpoint(
                operator.name,
                1,
                128,
                {
                    0: OperatorSubtaskState(
                        handle(f"earlier/{operator.name}"),
                        pieces=KeyedPieces("rocksdb", {"0": handle(f"{SHARED}0-{operator.name}")}),
                    )
                },
                handle(f"earlier/{operator.name}-enumerator") if vertex.sources else None,
            )
            for vertex in job_graph.vertices
            for operator in vertex.operators
        },
    )


def shares_of(
    saved: OperatorCheckpoint, task: TaskDeploymentDescriptor
) -> list[OperatorSubtaskState]:
    """Of each old subtask's state what the task needs: keyed state only if it has some of the
    task's key groups."""
    owned = set(
        key_group_range(task.attempt_id.subtask_index, task.max_parallelism, task.parallelism)
    )
    states = [
        saved.subtasks.get(index, OperatorSubtaskState()) for index in range(saved.parallelism)
    ]
    return [
        state
        if owned & set(key_group_range(index, task.max_parallelism, saved.parallelism))
        else replace(state, keyed=None, pieces=None)
        for index, state in enumerate(states)
    ]


@dataclass
class CheckpointLedger:
    """``answers`` are on their way to the scheduler; ``past`` have been there. State is known by
    its path."""

    settings: CheckpointSettings = field(default_factory=CheckpointSettings)
    latest: CompletedCheckpoint | None = None  # what the job must restore from
    answers: list[Event] = field(default_factory=list)
    past: list[Event] = field(default_factory=list)
    participants: dict[int, set[ExecutionAttemptId]] = field(default_factory=dict)
    # what each will acknowledge
    said: dict[tuple[ExecutionAttemptId, int], CheckpointAcknowledged] = field(default_factory=dict)
    stores: dict[int, CompletedCheckpoint] = field(default_factory=dict)
    durable: set[int] = field(default_factory=set)
    complete: dict[int, CompletedCheckpoint] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)  # aborted, or not kept any more
    claimed: int | None = None
    # stored, or about to be, and not complete: a JobManager that takes over would start from them
    findable: set[int] = field(default_factory=set)
    written: set[str | None] = field(default_factory=set)  # that the scheduler has heard of
    discarded: Counter[str | None] = field(default_factory=Counter)
    savepoints: dict[int, CheckpointOptions] = field(default_factory=dict)  # by number
    asked: dict[str, CheckpointOptions] = field(default_factory=dict)  # not answered yet
    answered: dict[str, SnapshotEnded] = field(default_factory=dict)

    def restore(self, checkpoint: CompletedCheckpoint, claim: bool, is_own: bool) -> None:
        self.latest = checkpoint
        self.claimed = checkpoint.checkpoint_id if claim else None
        if claim or is_own:
            self.complete[checkpoint.checkpoint_id] = checkpoint
            self.written.update(each.path for each in checkpoint.handles())

    def heard(self, event: Event) -> None:
        """The event reaches the scheduler."""
        if event in self.answers:
            self.answers.remove(event)
        if isinstance(event, SnapshotRequested):
            self.asked[event.request_id] = event.options
            return
        self.past.append(event)
        if isinstance(event, CheckpointAcknowledged):
            self.written.update(
                each.path for state in event.snapshot.operators.values() for each in state.handles()
            )
        elif isinstance(event, CoordinatorSnapshot):
            self.written.update(each.path for each in event.states.values())
        elif isinstance(event, CheckpointStored):
            self.durable.add(event.checkpoint_id)
        elif isinstance(event, CheckpointDiscarded):
            self.findable.discard(event.checkpoint_id)
        elif isinstance(event, CheckpointStoreFailed):
            self.answers = [
                each
                for each in self.answers
                if not (
                    isinstance(each, CheckpointStored) and each.checkpoint_id == event.checkpoint_id
                )
            ]

    def lose(self, event: Event) -> None:
        """The event never reaches the scheduler."""
        assert not isinstance(event, CheckpointDiscarded), "it is tried until it is done"
        self.answers.remove(event)

    # -- commands ----------------------------------------------------------------------------------

    def carry_out(
        self,
        command: object,
        barrier_sources: Collection[ExecutionAttemptId],
        live: Collection[ExecutionAttemptId],
    ) -> None:
        if isinstance(command, TriggerCheckpoint):
            self._trigger(command, barrier_sources, live)
        elif isinstance(command, StoreCheckpoint):
            assert command.target == self._target(command.checkpoint.checkpoint_id)
            self._store(command.checkpoint)
        elif isinstance(command, DiscardCheckpoint):
            number = command.checkpoint.checkpoint_id
            assert command.target == (None if number in self.complete else self._target(number))
            assert number not in self.complete or number not in self.savepoints, (
                "a savepoint belongs to whoever asked for it"
            )
            self.over.add(command.checkpoint.checkpoint_id)
            if command.is_awaited:
                self.answers.append(CheckpointDiscarded(number))
            self._discard(
                each.path for each in command.checkpoint.handles() if each.shared_file is None
            )
        elif isinstance(command, DiscardSharedFiles):
            assert not set(command.files) & self._needed_files(), "a checkpoint would lack a file"
            self._discard(SHARED + name for name in command.files)
        elif isinstance(command, DiscardOtherCheckpoints):
            kept = self.complete.keys() - self.over - self.savepoints.keys()
            if self.claimed is not None and kept == {self.claimed}:
                kept = set()  # it is another job's, and stays where it is
            assert set(command.kept) == kept, "others are kept than those that are complete"
            assert command.shared == {
                name for number in kept for name in self.complete[number].shared_files()
            }
        elif isinstance(command, NotifyCheckpointComplete):
            number = command.checkpoint_id
            assert (
                number not in self.savepoints or self.savepoints[number].snapshot_type.stops_job
            ), "sinks commit for a savepoint"
            assert number in self.durable - self.over - self.complete.keys(), (
                "complete without being stored, or twice, or after it was aborted"
            )
            assert set(command.attempts) == set(live), "not all that run are told"
            self.latest = self.complete[number] = self.stores[number]
            self.findable.discard(number)
        elif isinstance(command, NotifyCheckpointAborted):
            assert command.checkpoint_id not in self.over | self.complete.keys()
            assert set(command.attempts) == self.participants[command.checkpoint_id] & set(live)

    def _discard(self, paths: Iterable[str | None]) -> None:
        for path in paths:
            assert path in self.written, f"{path} is of nobody"
            self.discarded[path] += 1
            # who was late may name a file that is gone; no other has its name
            late = (path or "").startswith(SHARED)
            assert self.discarded[path] == 1 or late, f"{path} is discarded twice"

    def _needed_files(self) -> frozenset[str]:
        """The shared files of all checkpoints that are complete or may become so."""
        live = [
            checkpoint
            for number, checkpoint in (self.complete | self.stores).items()
            if number not in self.over
        ]
        expected = [
            said
            for (_, number), said in self.said.items()
            if number not in self.over | self.complete.keys()
        ]
        return shared_files(
            each for checkpoint in live for each in checkpoint.handles()
        ) | shared_files(each for said in expected for each in said.snapshot.handles())

    def _acknowledgement(
        self, attempt_id: ExecutionAttemptId, command: TriggerCheckpoint
    ) -> CheckpointAcknowledged:
        """Of a task that uses what the checkpoint may build on, and nothing else."""
        # a savepoint has all of its own
        if not self.settings.incremental or command.options.snapshot_type.is_savepoint:
            return saved(attempt_id, command.checkpoint_id)
        base = (
            self.complete[command.options.builds_on]
            if command.options.builds_on is not None
            else None
        )
        operator = base.operators.get(operator_of(attempt_id)) if base is not None else None
        state = operator.subtasks.get(attempt_id.subtask_index) if operator is not None else None
        return saved(
            attempt_id,
            command.checkpoint_id,
            grown(attempt_id, command.checkpoint_id, state.pieces if state is not None else None),
        )

    def _trigger(
        self,
        command: TriggerCheckpoint,
        barrier_sources: Collection[ExecutionAttemptId],
        live: Collection[ExecutionAttemptId],
    ) -> None:
        number = command.checkpoint_id
        assert number > max(self.participants, default=0), "a number is used once"
        assert set(command.attempts) == set(barrier_sources), (
            "a task gets no barrier, or one too many"
        )
        self.participants[number] = set(live)
        under_way = self.participants.keys() - self.complete.keys() - self.over
        assert len(under_way) <= self.settings.max_concurrent
        if command.options.snapshot_type.is_savepoint:
            assert under_way == {number}, "a savepoint is taken alone"
            assert command.options.target not in [
                each.target for each in self.savepoints.values()
            ], "a folder is used once"
            self.savepoints[number] = command.options
        assert not any(each in self.savepoints for each in under_way - {number}), (
            "beside a savepoint"
        )
        self.answers.append(
            CoordinatorSnapshot(
                number,
                {operator: handle(f"chk-{number}/{operator}") for operator in command.coordinators},
            )
        )
        assert command.options.builds_on not in self.over, "it builds on a checkpoint that is gone"
        self.said.update(
            {
                (attempt_id, number): self._acknowledgement(attempt_id, command)
                for attempt_id in live
            }
        )
        self.answers += [self.said[attempt_id, number] for attempt_id in live]

    def _store(self, checkpoint: CompletedCheckpoint) -> None:
        number = checkpoint.checkpoint_id
        assert number not in self.stores, "stored twice"
        expected: Counter[str | None] = Counter()
        for attempt_id in self.participants[number]:
            states = self.said[attempt_id, number].snapshot.operators.items()
            assert all(
                checkpoint.operators[operator_id].subtasks[attempt_id.subtask_index] == state
                for operator_id, state in states
            )
            expected.update(each.path for _, state in states for each in state.handles())
        enumerators = [
            each
            for each in self.past
            if isinstance(each, CoordinatorSnapshot) and each.checkpoint_id == number
        ]
        expected.update(each.path for each in enumerators[0].states.values())
        assert Counter(each.path for each in checkpoint.handles()) == expected
        self.stores[number] = checkpoint
        if number not in self.savepoints or self.savepoints[number].snapshot_type.stops_job:
            self.findable.add(number)
        self.answers.append(CheckpointStored(number, self._target(number)))

    def _target(self, number: int) -> str | None:
        return self.savepoints[number].target if number in self.savepoints else None

    def answer_request(self, command: SnapshotEnded, state: JobState | None) -> None:
        """A request is answered once, with a folder only if the savepoint is complete and, if the
        job was to stop with it, has stopped."""
        options = self.asked.pop(command.request_id)
        self.answered[command.request_id] = command
        if command.error is not None or not options.snapshot_type.is_savepoint:
            return
        number = next(
            number for number, each in self.savepoints.items() if each.target == command.location
        )
        assert number in self.durable - self.over
        self.complete[number] = self.stores[number]
        assert (command.location or "").startswith(options.target or "?")
        assert state is JobState.RUNNING, "the answer comes before the job's end is told"

    # -- what must hold ----------------------------------------------------------------------------

    def check_restore(self, descriptor: TaskDeploymentDescriptor) -> None:
        """A task starts from the newest checkpoint that is complete, and from all of its operator's
        state."""
        restore = descriptor.restore
        assert not self.findable, "another JobManager would start from a newer one"
        assert (restore and restore.checkpoint_id) == (self.latest and self.latest.checkpoint_id)
        if restore is not None and self.latest is not None:
            operator = self.latest.operators.get(operator_of(descriptor.attempt_id))
            assert set(restore.operators) == (
                {operator_of(descriptor.attempt_id)} if operator is not None else set()
            )
            for operator_id, part in restore.operators.items():
                assert list(part.subtasks) == shares_of(
                    self.latest.operators[operator_id], descriptor
                )
            ends = self.latest.checkpoint_id in self.savepoints
            assert restore.stops == ends, (
                "a job that was stopped with a savepoint goes on, or another one ends"
            )
            assert restore.finished == (
                operator is not None and len(operator.finished) == operator.parallelism
            )

    def check_reset(self, command: ResetCoordinators, job_graph: JobGraph) -> None:
        """An enumerator goes back as a whole if all its readers do."""
        if self.latest is None:
            assert (command.checkpoint_id, command.states) == (None, {})
            return
        assert command.checkpoint_id == self.latest.checkpoint_id
        readers = Counter(attempt_id.vertex_id for attempt_id in command.attempts)
        for vertex in job_graph.vertices:
            for operator_id, _ in vertex.sources:
                if (
                    readers[vertex.id] == vertex.parallelism
                    and operator_id in self.latest.operators
                ):
                    assert (
                        command.states[operator_id]
                        == self.latest.operators[operator_id].coordinator
                    )
                elif command.attempts and 0 < readers[vertex.id] < vertex.parallelism:
                    assert operator_id not in command.states

    def check_retained(self, end: JobState | None) -> None:
        """The newest few are whole; the others are gone. At the end, also those that are not to
        outlive the job, and all that was never complete."""
        own = [number for number in self.complete if number not in self.savepoints]
        kept = own[-self.settings.retained :]
        stays = kept == [self.claimed] and end is not JobState.FINISHED
        if end is not None and (self.settings.retention, end) not in RETAINED and not stays:
            kept = []
        kept += [number for number in self.complete if number in self.savepoints]
        remaining = {each.path for number in kept for each in self.complete[number].handles()}
        assert not remaining & self.discarded.keys(), "state that is retained was discarded"
        gone = {
            each.path
            for number, checkpoint in self.complete.items()
            if number not in kept
            for each in checkpoint.handles()
        } - remaining
        # one under way may build on what is gone
        if self.participants.keys() - self.complete.keys() - self.over:
            gone = {path for path in gone if not (path or "").startswith(SHARED)}
        assert gone <= self.discarded.keys(), "checkpoints too many are kept"
        if end is not None:
            assert self.written == remaining | self.discarded.keys(), (
                "state of a checkpoint that was never complete is left over"
            )
