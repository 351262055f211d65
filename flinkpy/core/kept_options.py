"""Options that programs may set today and that take effect with a later milestone: checkpoints and shipping Python files.

They are declared so that a program which sets them runs, and so that a wrong value is refused now.
"""

from __future__ import annotations

from datetime import timedelta

from flinkpy.core.config import option

CHECKPOINT_INTERVAL = option("execution.checkpointing.interval", timedelta, None, "How often checkpoints are taken; never when absent.")
CHECKPOINT_MODE = option("execution.checkpointing.mode", str, "EXACTLY_ONCE", "EXACTLY_ONCE or AT_LEAST_ONCE.")
CHECKPOINT_TIMEOUT = option("execution.checkpointing.timeout", timedelta, timedelta(minutes=10), "A checkpoint not complete by then is aborted.")
CHECKPOINT_MIN_PAUSE = option("execution.checkpointing.min-pause", timedelta, timedelta(), "Pause between the end of one checkpoint and the next.")
CHECKPOINT_MAX_CONCURRENT = option("execution.checkpointing.max-concurrent-checkpoints", int, 1, "Checkpoints under way at the same time at most.")
CHECKPOINT_TOLERABLE_FAILURES = option("execution.checkpointing.tolerable-failed-checkpoints", int, 0,
                                       "Failed checkpoints in a row before the job fails.")
CHECKPOINT_UNALIGNED = option("execution.checkpointing.unaligned.enabled", bool, False, "Barriers overtake records.",
                              aliases=("execution.checkpointing.unaligned",))
CHECKPOINT_UNALIGNED_FORCED = option("execution.checkpointing.unaligned.forced", bool, False,
                                     "Unaligned also where records of several channels meet out of order.")
CHECKPOINT_ALIGNED_TIMEOUT = option("execution.checkpointing.aligned-checkpoint-timeout", timedelta, timedelta(),
                                    "An aligned checkpoint that takes longer turns unaligned; never with 0.")
CHECKPOINT_RETENTION = option("execution.checkpointing.externalized-checkpoint-retention", str, "NO_EXTERNALIZED_CHECKPOINTS",
                              "What becomes of checkpoints when the job is cancelled.")
SAVEPOINT_DIRECTORY = option("execution.checkpointing.savepoint-dir", str, None, "Where savepoints go by default.", aliases=("state.savepoints.dir",))

PYTHON_FILES = option("python.files", str, None, "Python files and packages the program needs, separated by commas.")
PYTHON_ARCHIVES = option("python.archives", str, None, "Archives the program needs, separated by commas.")
PYTHON_REQUIREMENTS = option("python.requirements", str, None, "A requirements.txt, and a folder of packages behind '#'.")
PYTHON_EXECUTABLE = option("python.executable", str, None, "The interpreter of the workers.")
