"""The events a scheduler is told of, and the commands it answers with. The JobMaster feeds the events and carries the commands out.

``Scheduler.handle(event, now) -> list[Command]`` is pure: the same events at the same times give the same commands.
``now`` is the monotonic time in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from flinkpy.core.ids import AllocationId, ExecutionAttemptId, ResourceId, SlotRequestId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskManagerLocation
from flinkpy.graph.resources import ResourceProfile

# -- events -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StartScheduling:
    """The JobMaster leads: begin."""


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
    """A TaskExecutor is gone, with the blocking results that were there. The tasks that ran there are reported by SlotLost."""

    resource_id: ResourceId


@dataclass(frozen=True)
class TaskStateChanged:
    """A task reported a new state. Reports of attempts that are not current any more are ignored."""

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
    """Something outside the tasks failed (an enumerator): if the restart strategy allows, the whole job restarts."""

    error: BaseException


@dataclass(frozen=True)
class TimerFired:
    """A timer the scheduler asked for."""

    timer_id: str


Event: TypeAlias = (StartScheduling | SlotAssigned | SlotRequestFailed | SlotLost | ResultsLost | TaskStateChanged | DeploymentRejected
                    | CancelJob | FailJob | TimerFired)

# -- commands -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RequestSlot:
    """Get a slot; answered by SlotAssigned or SlotRequestFailed. ``preferred`` names TaskExecutors that would suit (sticky, local)."""

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
    """Tell the TaskExecutor to cancel; answered by TaskStateChanged(CANCELED) (or another terminal state)."""

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
    """These subtasks start anew: their source enumerators take back splits that were assigned to them."""

    attempts: tuple[ExecutionAttemptId, ...]  # the attempts that failed or were cancelled


@dataclass(frozen=True)
class JobStateChanged:
    """The job is in a new state; terminal ones come once, last, and carry the error that failed the job."""

    state: JobState
    error: BaseException | None = None


Command: TypeAlias = (RequestSlot | CancelSlotRequest | ReleaseSlot | DeployTasks | CancelTask | ReleaseResults | SetTimer | ResetCoordinators
                      | JobStateChanged)
