"""When checkpoints are taken, where they go, and how many are kept, under Flink's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.engine import RUNTIME_MODE, RuntimeMode
from flinkpy.core.options.schema import choices, option, read


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
    """The owner of the checkpoint that a job starts from (Flink's RecoveryClaimMode)."""

    NO_CLAIM = "NO_CLAIM"
    CLAIM = "CLAIM"


CHECKPOINT_INTERVAL = option(
    "execution.checkpointing.interval",
    timedelta,
    None,
    "How often checkpoints are taken; never when absent.",
    at_least=timedelta(milliseconds=10),
)
CHECKPOINT_MODE = option(
    "execution.checkpointing.mode",
    CheckpointMode,
    CheckpointMode.EXACTLY_ONCE,
    "EXACTLY_ONCE or AT_LEAST_ONCE.",
)
CHECKPOINT_TIMEOUT = option(
    "execution.checkpointing.timeout",
    timedelta,
    timedelta(minutes=10),
    "A checkpoint that takes longer than this is aborted.",
    at_least=timedelta(milliseconds=10),
)
CHECKPOINT_MIN_PAUSE = option(
    "execution.checkpointing.min-pause",
    timedelta,
    timedelta(),
    "How long to wait after a checkpoint has ended before the next one starts. With a "
    "pause, one checkpoint runs at a "
    "time.",
    at_least=timedelta(),
)
CHECKPOINT_MAX_CONCURRENT = option(
    "execution.checkpointing.max-concurrent-checkpoints",
    int,
    1,
    "How many checkpoints may be under way at the same time.",
    at_least=1,
)
CHECKPOINT_TOLERABLE_FAILURES = option(
    "execution.checkpointing.tolerable-failed-checkpoints",
    int,
    0,
    ("How many checkpoints in a row may fail before the job fails."),
    at_least=0,
)
CHECKPOINT_RETENTION = option(
    "execution.checkpointing.externalized-checkpoint-retention",
    CheckpointRetention,
    CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
    "Which jobs leave their checkpoints behind: with DELETE_ON_CANCELLATION those that fail, with "
    "RETAIN_ON_CANCELLATION also those that are cancelled.",
)
CHECKPOINTS_RETAINED = option(
    "execution.checkpointing.num-retained",
    int,
    1,
    "How many completed checkpoints are kept.",
    at_least=1,
    aliases=("state.checkpoints.num-retained",),
)
CHECKPOINT_UNALIGNED = option(
    "execution.checkpointing.unaligned.enabled",
    bool,
    False,
    "Barriers overtake records, and the checkpoint keeps those overtaken: under "
    "back-pressure it is complete sooner, "
    "and larger.",
    aliases=("execution.checkpointing.unaligned",),
)
CHECKPOINT_ALIGNED_TIMEOUT = option(
    "execution.checkpointing.aligned-checkpoint-timeout",
    timedelta,
    timedelta(),
    "With unaligned checkpoints: how long a checkpoint may take before its barriers "
    "overtake records. 0: they "
    "overtake at once.",
    at_least=timedelta(),
)

CHECKPOINT_INCREMENTAL = option(
    "execution.checkpointing.incremental",
    bool,
    False,
    "A checkpoint writes only what the complete one before does not have: of a RocksDB "
    "state its new files, of state in "
    "memory the key groups that have changed.",
    aliases=("state.backend.incremental",),
)

SNAPSHOT_COMPRESSION = option(
    "execution.checkpointing.snapshot-compression",
    bool,
    False,
    (
        "State in checkpoints and savepoints is compressed (zstd). RocksDB's files in "
        "incremental checkpoints are not."
    ),
)

CHECKPOINT_STORAGE = option(
    "execution.checkpointing.storage",
    str,
    None,
    (
        "jobmanager (in memory) or filesystem. When absent: filesystem if a folder is set, "
        "else jobmanager."
    ),
    aliases=("state.checkpoint-storage",),
    choices=choices("jobmanager", "filesystem"),
)
CHECKPOINT_DIRECTORY = option(
    "execution.checkpointing.dir",
    str,
    None,
    "The folder or URL in which each job keeps its checkpoints.",
    aliases=("state.checkpoints.dir",),
)
CHECKPOINT_FILE_THRESHOLD = option(
    "execution.checkpointing.data-inline-threshold",
    int,
    20 << 10,
    (
        "State smaller than this is kept in the checkpoint's own file, larger state in files "
        "beside it."
    ),
    aliases=("state.storage.fs.memory-threshold",),
    memory=True,
)
CHECKPOINT_MAX_STATE = option(
    "execution.checkpointing.jobmanager.max-state-size",
    int,
    5 << 20,
    (
        "How much state of one operator the JobManager keeps in its memory (with the storage "
        "jobmanager)."
    ),
    at_least=1,
)

SAVEPOINT_DIRECTORY = option(
    "execution.checkpointing.savepoint-dir",
    str,
    None,
    "The folder or URL in which each savepoint gets a folder.",
    aliases=("state.savepoints.dir",),
)
RECOVERY_PATH = option(
    "execution.state-recovery.path",
    str,
    None,
    ("The checkpoint that the job starts from: its folder, or the folder of a job for its newest."),
    aliases=("execution.savepoint.path",),
)
RECOVERY_IGNORE_UNCLAIMED = option(
    "execution.state-recovery.ignore-unclaimed-state",
    bool,
    False,
    (
        "Whether the job starts without the state that none of its operators asks for. If "
        "not, it is refused."
    ),
    aliases=("execution.savepoint.ignore-unclaimed-state",),
)
RECOVERY_CLAIM = option(
    "execution.state-recovery.claim-mode",
    RecoveryClaimMode,
    RecoveryClaimMode.NO_CLAIM,
    ("CLAIM: the checkpoint becomes the job's, which deletes it when it has newer ones."),
    aliases=("execution.savepoint-restore-mode",),
)
RECOVER_FROM_LOCAL = option(
    "execution.state-recovery.from-local",
    bool,
    False,
    (
        "A task that restarts on its worker reads the copies there of what it had saved, "
        "where they are intact."
    ),
    aliases=("state.backend.local-recovery",),
)
LOCAL_BACKUP = option(
    "execution.checkpointing.local-backup.enabled",
    bool,
    None,
    (
        "Each worker keeps copies of what its subtasks save for checkpoints in files. When "
        "absent: as execution.state-recovery.from-local."
    ),
)
LOCAL_BACKUP_DIRECTORIES = option(
    "execution.checkpointing.local-backup.dirs",
    str,
    None,
    (
        "Where workers keep these copies: folders, separated by commas, taken in turn by "
        "jobs; those of io.tmp.dirs when absent."
    ),
    aliases=("taskmanager.state.local.root-dirs",),
)

CHECKPOINT_HISTORY = option(
    "web.checkpoints.history",
    int,
    10,
    "Of how many checkpoints, the latest of a job, REST and the history tell details.",
    at_least=1,
)


def keeps_local_backups(values: Mapping[str, Any]) -> bool:
    """Whether workers keep copies of what is saved for checkpoints."""
    enabled = read(values, LOCAL_BACKUP)
    return bool(read(values, RECOVER_FROM_LOCAL) if enabled is None else enabled)


def takes_checkpoints(values: Mapping[str, Any]) -> bool:
    """Whether the job takes checkpoints. A job in BATCH takes none: a task that failed reads the
    results before it again."""
    return (
        read(values, CHECKPOINT_INTERVAL) is not None
        and read(values, RUNTIME_MODE) is not RuntimeMode.BATCH
    )


@dataclass(frozen=True)
class CheckpointSettings:
    """What the checkpoint coordinator needs to know. Times in seconds; without an interval no
    checkpoints are taken."""

    interval_s: float | None = None
    min_pause_s: float = 0.0
    timeout_s: float = 600.0
    max_concurrent: int = 1
    tolerable_failures: int = 0
    mode: CheckpointMode = CheckpointMode.EXACTLY_ONCE
    retention: CheckpointRetention = CheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    retained: int = 1
    incremental: bool = False
    # after which barriers overtake records; None: they never do
    alignment_timeout_ms: int | None = None
    history: int = 10  # checkpoints of which details are told

    @staticmethod
    def of(values: Mapping[str, Any]) -> CheckpointSettings:
        """From the job's configuration."""
        interval = read(values, CHECKPOINT_INTERVAL) if takes_checkpoints(values) else None
        min_pause_s = read(values, CHECKPOINT_MIN_PAUSE).total_seconds()
        return CheckpointSettings(
            None if interval is None else interval.total_seconds(),
            min_pause_s,
            read(values, CHECKPOINT_TIMEOUT).total_seconds(),
            1 if min_pause_s > 0 else read(values, CHECKPOINT_MAX_CONCURRENT),
            read(values, CHECKPOINT_TOLERABLE_FAILURES),
            read(values, CHECKPOINT_MODE),
            read(values, CHECKPOINT_RETENTION),
            read(values, CHECKPOINTS_RETAINED),
            read(values, CHECKPOINT_INCREMENTAL),
            _alignment_timeout_ms(values),
            read(values, CHECKPOINT_HISTORY),
        )


def _alignment_timeout_ms(values: Mapping[str, Any]) -> int | None:
    """Raises ConfigurationError for several unaligned checkpoints at a time: a barrier would
    overtake another's."""
    if (
        not read(values, CHECKPOINT_UNALIGNED)
        or read(values, CHECKPOINT_MODE) is CheckpointMode.AT_LEAST_ONCE
    ):
        return None
    if (
        read(values, CHECKPOINT_MIN_PAUSE) == timedelta()
        and read(values, CHECKPOINT_MAX_CONCURRENT) > 1
    ):
        raise ConfigurationError(
            f"option {CHECKPOINT_MAX_CONCURRENT.key}: unaligned checkpoints are taken one at "
            "a time; "
            f"leave it at 1, or {CHECKPOINT_UNALIGNED.key} at false"
        )
    timeout: timedelta = read(values, CHECKPOINT_ALIGNED_TIMEOUT)
    return round(timeout / timedelta(milliseconds=1))
