"""When checkpoints are taken, where they go, and how many are kept, under Flink's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from flinkpy.core.options.engine import RUNTIME_MODE, RuntimeMode
from flinkpy.core.options.schema import option, read


class CheckpointMode(Enum):
    """What a checkpoint promises (PyFlink's CheckpointingMode)."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


class CheckpointRetention(Enum):
    """What becomes of checkpoints at the job's end (PyFlink's ExternalizedCheckpointRetention)."""

    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"


class RecoveryClaimMode(Enum):
    """Whose the checkpoint is that a job starts from (Flink's RecoveryClaimMode)."""

    NO_CLAIM = "NO_CLAIM"
    CLAIM = "CLAIM"


CHECKPOINT_INTERVAL = option("execution.checkpointing.interval", timedelta, None, "How often checkpoints are taken; never when absent.")
CHECKPOINT_MODE = option("execution.checkpointing.mode", CheckpointMode, CheckpointMode.EXACTLY_ONCE, "EXACTLY_ONCE or AT_LEAST_ONCE.")
CHECKPOINT_TIMEOUT = option("execution.checkpointing.timeout", timedelta, timedelta(minutes=10), "A checkpoint not complete by then is aborted.")
CHECKPOINT_MIN_PAUSE = option("execution.checkpointing.min-pause", timedelta, timedelta(),
                              "Pause between the end of one checkpoint and the next; with one, there is one checkpoint at a time.")
CHECKPOINT_MAX_CONCURRENT = option("execution.checkpointing.max-concurrent-checkpoints", int, 1, "Checkpoints under way at the same time at most.",
                                   at_least=1)
CHECKPOINT_TOLERABLE_FAILURES = option("execution.checkpointing.tolerable-failed-checkpoints", int, 0,
                                       "Failed checkpoints in a row that the job survives.", at_least=0)
CHECKPOINT_RETENTION = option(
    "execution.checkpointing.externalized-checkpoint-retention", CheckpointRetention, CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
    "Which checkpoints outlive their job: with DELETE_ON_CANCELLATION those of a failed one, with RETAIN_ON_CANCELLATION also of a cancelled one.")
CHECKPOINTS_RETAINED = option("execution.checkpointing.num-retained", int, 1, "Completed checkpoints that are kept.", at_least=1,
                              aliases=("state.checkpoints.num-retained",))

CHECKPOINT_STORAGE = option("execution.checkpointing.storage", str, None, "jobmanager or filesystem; filesystem where there is a directory.",
                            aliases=("state.checkpoint-storage",))
CHECKPOINT_DIRECTORY = option("execution.checkpointing.dir", str, None, "The folder or URL in which each job keeps its checkpoints.",
                              aliases=("state.checkpoints.dir",))
CHECKPOINT_FILE_THRESHOLD = option("execution.checkpointing.data-inline-threshold", int, 20 << 10, "Smaller state stands in the checkpoint itself.",
                                   aliases=("state.storage.fs.memory-threshold",), memory=True)
CHECKPOINT_MAX_STATE = option("execution.checkpointing.jobmanager.max-state-size", int, 5 << 20,
                              "State the JobManager's memory takes of one operator.")

RECOVERY_PATH = option("execution.state-recovery.path", str, None,
                       "The checkpoint that the job starts from: its folder, or the folder of a job for its newest.",
                       aliases=("execution.savepoint.path",))
RECOVERY_IGNORE_UNCLAIMED = option("execution.state-recovery.ignore-unclaimed-state", bool, False, "Leave state behind that no operator asks for.",
                                   aliases=("execution.savepoint.ignore-unclaimed-state",))
RECOVERY_CLAIM = option("execution.state-recovery.claim-mode", RecoveryClaimMode, RecoveryClaimMode.NO_CLAIM,
                        "CLAIM: the checkpoint becomes the job's, which deletes it when it has newer ones.",
                        aliases=("execution.savepoint-restore-mode",))


def takes_checkpoints(values: Mapping[str, Any]) -> bool:
    """Whether the job takes checkpoints. A job in BATCH takes none: a task that failed reads the results before it again."""
    return read(values, CHECKPOINT_INTERVAL) is not None and read(values, RUNTIME_MODE) is not RuntimeMode.BATCH


@dataclass(frozen=True)
class CheckpointSettings:
    """What the checkpoint coordinator needs to know. Times in seconds; without an interval no checkpoints are taken."""

    interval_s: float | None = None
    min_pause_s: float = 0.0
    timeout_s: float = 600.0
    max_concurrent: int = 1
    tolerable_failures: int = 0
    mode: CheckpointMode = CheckpointMode.EXACTLY_ONCE
    retention: CheckpointRetention = CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    retained: int = 1

    @staticmethod
    def of(values: Mapping[str, Any]) -> CheckpointSettings:
        """From the job's configuration."""
        interval = read(values, CHECKPOINT_INTERVAL) if takes_checkpoints(values) else None
        min_pause_s = read(values, CHECKPOINT_MIN_PAUSE).total_seconds()
        return CheckpointSettings(
            None if interval is None else interval.total_seconds(), min_pause_s, read(values, CHECKPOINT_TIMEOUT).total_seconds(),
            1 if min_pause_s > 0 else read(values, CHECKPOINT_MAX_CONCURRENT), read(values, CHECKPOINT_TOLERABLE_FAILURES),
            read(values, CHECKPOINT_MODE), read(values, CHECKPOINT_RETENTION), read(values, CHECKPOINTS_RETAINED),
        )
