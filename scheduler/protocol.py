"""The events a scheduler is told of, and the commands it answers with. The JobMaster feeds the
events and carries the commands out.

``Scheduler.handle(event, now) -> list[Command]`` is pure: the same events at the same times give
the same commands. ``now`` is the monotonic time in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from flinkpy.core.elements import ALIGNED_CHECKPOINT, CheckpointOptions
from flinkpy.core.errors import SavepointError
from flinkpy.core.ids import (
    AllocationId,
    ExecutionAttemptId,
    JobVertexId,
    OperatorId,
    ResourceId,
    SlotRequestId,
)
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.checkpoint_messages import UNMEASURED, CheckpointMetrics
from flinkpy.graph.checkpoints import CompletedCheckpoint, StateHandle, SubtaskSnapshot
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskManagerLocation
from flinkpy.graph.resources import ResourceProfile

# -- events ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StartScheduling:
    """The JobMaster leads: begin. ``time_ms`` is the time of day, from which checkpoints get
    theirs."""

    time_ms: int = 0


@dataclass(frozen=True)
class ParallelismDecided:
    """The job is to have these numbers of subtasks: at once, if it has not started; else when all
    of it restarts next. Until then each failure restarts all of it. Check the numbers with
    ``at_parallelism`` first: what cannot be is an error of the engine here."""

    parallelism: Mapping[JobVertexId, int]


@dataclass(frozen=True)
class SlotAssigned:
    """A requested slot is there: the JobMaster accepted a TaskExecutor's offer for it."""

    request_id: SlotRequestId
    allocation_id: AllocationId
    location: TaskManagerLocation


@dataclass(frozen=True)
class SlotRequestFailed:
    """The slot will not come: impossible, or timed out."""

    request_id: SlotRequestId
    error: BaseException


@dataclass(frozen=True)
class SlotLost:
    """An assigned slot is gone (its TaskExecutor died, or took it back); what ran in it failed."""

    allocation_id: AllocationId
    error: BaseException


@dataclass(frozen=True)
class ResultsLost:
    """A TaskExecutor is gone, with the blocking results that were there. The tasks that ran there
    are reported by SlotLost."""

    resource_id: ResourceId


@dataclass(frozen=True)
class TaskStateChanged:
    """A task reported a new state. Reports of attempts that are not current any more are
    ignored."""

    attempt_id: ExecutionAttemptId
    state: ExecutionState
    error: BaseException | None = None


@dataclass(frozen=True)
class DeploymentRejected:
    """The TaskExecutor did not take the task."""

    attempt_id: ExecutionAttemptId
    error: BaseException


@dataclass(frozen=True)
class CancelJob:
    """The user cancels the job."""


@dataclass(frozen=True)
class FailJob:
    """Something outside the tasks failed (an enumerator): if the restart strategy allows, the whole
    job restarts."""

    error: BaseException


@dataclass(frozen=True)
class TimerFired:
    """A timer the scheduler asked for."""

    timer_id: str


@dataclass(frozen=True)
class RestoreFrom:
    """Comes before StartScheduling: the job begins with the state of that checkpoint. ``is_own``:
    this job took it, under another JobManager; ``older`` are earlier checkpoints of that kind,
    oldest first. With ``claim`` this job becomes the owner of another job's checkpoint and deletes
    it when it is no longer needed, like a checkpoint it took itself. State of operators that the
    job does not have is refused, unless ``allow_non_restored``. ``stops``: the request of the
    savepoint with which the job was stopping; the checkpoint is that savepoint."""

    checkpoint: CompletedCheckpoint
    allow_non_restored: bool = False
    claim: bool = False
    is_own: bool = False
    older: tuple[CompletedCheckpoint, ...] = ()
    stops: SnapshotRequested | None = None


@dataclass(frozen=True)
class CoordinatorSnapshot:
    """The states of the source enumerators a TriggerCheckpoint named, of those that have some."""

    checkpoint_id: int
    states: Mapping[OperatorId, StateHandle]


@dataclass(frozen=True)
class CheckpointAcknowledged:
    """A task has saved its state for the checkpoint. May be told twice, late, or of a checkpoint
    that is over."""

    attempt_id: ExecutionAttemptId
    checkpoint_id: int
    snapshot: SubtaskSnapshot
    metrics: CheckpointMetrics = UNMEASURED


@dataclass(frozen=True)
class CheckpointDeclined:
    """A task could not save its state for the checkpoint."""

    attempt_id: ExecutionAttemptId
    checkpoint_id: int
    reason: str


@dataclass(frozen=True)
class CheckpointAwaited:
    """The task's input has ended, and its last results wait for a checkpoint: the next one is due
    at once."""

    attempt_id: ExecutionAttemptId


@dataclass(frozen=True)
class CheckpointStored:
    """The manifest of a StoreCheckpoint is durable. ``location`` is the checkpoint's folder, None
    in memory."""

    checkpoint_id: int
    location: str | None = None


@dataclass(frozen=True)
class CheckpointStoreFailed:
    """The enumerators' state of a TriggerCheckpoint, or the manifest of a StoreCheckpoint, could
    not be written."""

    checkpoint_id: int
    error: BaseException


@dataclass(frozen=True)
class CheckpointDiscarded:
    """What a DiscardCheckpoint that ``is_awaited`` names is gone: nobody will find this
    checkpoint."""

    checkpoint_id: int


@dataclass(frozen=True)
class SnapshotRequested:
    """Somebody asks for a savepoint, or for a checkpoint out of turn; answered by SnapshotEnded
    under the same id. ``options`` name the savepoint's folder, which nobody else uses. ``refused``:
    that folder cannot be written to."""

    request_id: str
    options: CheckpointOptions
    refused: SavepointError | None = None


CheckpointEvent: TypeAlias = (
    RestoreFrom
    | CoordinatorSnapshot
    | CheckpointAcknowledged
    | CheckpointDeclined
    | CheckpointAwaited
    | CheckpointStored
    | CheckpointStoreFailed
    | CheckpointDiscarded
    | SnapshotRequested
)
Event: TypeAlias = (
    StartScheduling
    | ParallelismDecided
    | SlotAssigned
    | SlotRequestFailed
    | SlotLost
    | ResultsLost
    | TaskStateChanged
    | DeploymentRejected
    | CancelJob
    | FailJob
    | TimerFired
    | CheckpointEvent
)

# -- commands --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RequestSlot:
    """Get a slot; answered by SlotAssigned or SlotRequestFailed. ``preferred`` names TaskExecutors
    that would suit (sticky, local)."""

    request_id: SlotRequestId
    profile: ResourceProfile
    preferred: tuple[ResourceId, ...] = ()


@dataclass(frozen=True)
class CancelSlotRequest:
    """The slot is not needed any more."""

    request_id: SlotRequestId


@dataclass(frozen=True)
class ReleaseSlot:
    """The slot's last task ended and the job does not need it any more."""

    allocation_id: AllocationId


@dataclass(frozen=True)
class DeployTasks:
    """Submit these to one TaskExecutor, in one message."""

    location: TaskManagerLocation
    descriptors: tuple[TaskDeploymentDescriptor, ...]


@dataclass(frozen=True)
class CancelTask:
    """Tell the TaskExecutor to cancel; answered by TaskStateChanged(CANCELED) (or another terminal
    state)."""

    location: TaskManagerLocation
    attempt_id: ExecutionAttemptId


@dataclass(frozen=True)
class ReleaseResults:
    """The blocking results of these finished attempts are not needed any more."""

    location: TaskManagerLocation
    attempt_ids: tuple[ExecutionAttemptId, ...]


@dataclass(frozen=True)
class SetTimer:
    """Send TimerFired(timer_id) in so many seconds; asking again under the same id replaces it."""

    timer_id: str
    delay_s: float


@dataclass(frozen=True)
class ResetCoordinators:
    """These subtasks start anew, from that checkpoint if there is one. The enumerators in
    ``states`` go back to that state as a whole, for all their readers start anew. The others take
    back the splits that were assigned to these attempts since the checkpoint."""

    attempts: tuple[ExecutionAttemptId, ...]  # the attempts that failed or were cancelled
    checkpoint_id: int | None = None
    states: Mapping[OperatorId, StateHandle] = field(default_factory=dict)
    location: str | None = None  # the checkpoint's folder


@dataclass(frozen=True)
class JobStateChanged:
    """The job is in a new state. Terminal ones come once, last, and carry the error that failed the
    job; RESTARTING carries why."""

    state: JobState
    error: BaseException | None = None


@dataclass(frozen=True)
class TriggerCheckpoint:
    """Snapshot the enumerators of these operators, answered by CoordinatorSnapshot; then tell these
    attempts to send barriers. The others get barriers through their inputs. All that run answer
    with CheckpointAcknowledged or CheckpointDeclined."""

    checkpoint_id: int
    timestamp_ms: int
    attempts: tuple[ExecutionAttemptId, ...]
    coordinators: tuple[OperatorId, ...] = ()
    options: CheckpointOptions = ALIGNED_CHECKPOINT


@dataclass(frozen=True)
class StoreCheckpoint:
    """Write the manifest; answered by CheckpointStored or CheckpointStoreFailed. What is stored and
    discarded is done in the order of the commands. ``target`` is the folder of a savepoint,
    ``stops`` the request for one that the job stops with: as soon as the manifest is there, whoever
    takes the job over has it stop, too."""

    checkpoint: CompletedCheckpoint
    target: str | None = None
    stops: SnapshotRequested | None = None


@dataclass(frozen=True)
class DiscardCheckpoint:
    """Nobody will restore from this: delete what its handles name, and its manifest. A
    StoreCheckpoint of it may be under way. ``target`` is the folder of a savepoint that did not
    succeed. With ``is_awaited`` it is answered by CheckpointDiscarded, and tried until then."""

    checkpoint: CompletedCheckpoint
    target: str | None = None
    is_awaited: bool = False


@dataclass(frozen=True)
class DiscardSharedFiles:
    """No checkpoint uses these files any more: delete them. ``location`` is that of the claimed
    checkpoint whose job they were of; None: the job's own."""

    files: tuple[str, ...]
    location: str | None = None


@dataclass(frozen=True)
class DiscardOtherCheckpoints:
    """The job ends. Keep only these of its own checkpoints, with the shared files that they use.
    Delete all other checkpoints, and files that a task wrote but never reported because it died
    first."""

    kept: tuple[int, ...] = ()
    shared: frozenset[str] = frozenset()


@dataclass(frozen=True)
class NotifyCheckpointComplete:
    """The checkpoint is durable, and a failure leads back to it or to a later one: these attempts
    may commit."""

    checkpoint_id: int
    attempts: tuple[ExecutionAttemptId, ...]


@dataclass(frozen=True)
class NotifyCheckpointAborted:
    """The checkpoint will never be complete: these attempts stop working on it."""

    checkpoint_id: int
    attempts: tuple[ExecutionAttemptId, ...]


@dataclass(frozen=True)
class SnapshotEnded:
    """The answer to a SnapshotRequested: where the snapshot is (None for a checkpoint in memory)
    and its number, or why there is none."""

    request_id: str
    location: str | None = None
    error: BaseException | None = None
    checkpoint_id: int | None = None


Command: TypeAlias = (
    RequestSlot
    | CancelSlotRequest
    | ReleaseSlot
    | DeployTasks
    | CancelTask
    | ReleaseResults
    | SetTimer
    | ResetCoordinators
    | JobStateChanged
    | TriggerCheckpoint
    | StoreCheckpoint
    | DiscardCheckpoint
    | DiscardSharedFiles
    | DiscardOtherCheckpoints
    | NotifyCheckpointComplete
    | NotifyCheckpointAborted
    | SnapshotEnded
)
