"""How Flink 1.x exchanged data of bounded programs. Kept for programs that name it; flinkpy's runtime mode decides."""

from enum import Enum


class ExecutionMode(Enum):
    """``PIPELINED`` and ``BATCH``, and each of them forced."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3
