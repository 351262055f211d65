"""What a checkpoint promises."""

from enum import Enum


class CheckpointingMode(Enum):
    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"
