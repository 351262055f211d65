"""The states of a job, as clients see them."""

from __future__ import annotations

from enum import Enum

from flinkpy.core.lifecycles import JOB, JobState


class JobStatus(Enum):
    """The state of a job; ``flinkpy.core.lifecycles.JOB`` has the allowed transitions."""

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"
    RECONCILING = "RECONCILING"

    def is_globally_terminal_state(self) -> bool:
        """Whether the job has ended for good: FINISHED, CANCELED or FAILED."""
        return self in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)

    def is_terminal_state(self) -> bool:
        """Whether this JobMaster has ended it; a SUSPENDED job may continue elsewhere.

        >>> (
        ...     JobStatus.SUSPENDED.is_terminal_state(),
        ...     JobStatus.SUSPENDED.is_globally_terminal_state(),
        ... )
        (True, False)
        """
        return self is not JobStatus.RECONCILING and JOB.is_terminal(JobState[self.name])
