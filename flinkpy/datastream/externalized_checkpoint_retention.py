"""What happens to a job's checkpoints when it is cancelled."""

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """Whether checkpoints are deleted or retained when the job is cancelled, or are not kept
    outside it at all."""

    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"
