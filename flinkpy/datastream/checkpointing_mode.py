"""What a checkpoint promises."""

from enum import Enum


class CheckpointingMode(Enum):
    """How often a record counts in the state after a failure."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"
