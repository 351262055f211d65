"""What becomes of a job's checkpoints when it is cancelled."""

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """Kept, deleted, or kept by nobody."""

    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"
