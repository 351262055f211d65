"""How Flink 1.x exchanged data of bounded programs. Kept for programs that set it; in flinkpy the
runtime mode decides."""

from enum import Enum


class ExecutionMode(Enum):
    """``PIPELINED`` and ``BATCH``, each also in a forced form."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3
