"""Options of PyFlink's programs that most of the engine does not look at: of checkpoints those that
take effect with a later milestone (the others are in ``checkpointing``); what a program ships to
its workers; and what Flink 1.x asked for.

They are declared so that a program that sets them runs, and so that a wrong value is refused now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.schema import choices, option, parse_bool, read

CHECKPOINT_UNALIGNED_FORCED = option(
    "execution.checkpointing.unaligned.forced",
    bool,
    False,
    ("Unaligned also where records of several channels meet out of order."),
    without_effect=("a job with iterate() takes no checkpoints, all others may be unaligned"),
)

PYTHON_FILES = option(
    "python.files", str, None, "Python files and packages the program needs, separated by commas."
)
PYTHON_ARCHIVES = option(
    "python.archives", str, None, "Archives the program needs, separated by commas."
)
PYTHON_REQUIREMENTS = option(
    "python.requirements", str, None, "A requirements.txt, and a folder of packages behind '#'."
)
PYTHON_EXECUTABLE = option(
    "python.executable",
    str,
    None,
    ("The interpreter of the workers on Ray; embedded, one that is not the program's own is told."),
)
CACHED_FILES = option(
    "pipeline.cached-files",
    str,
    None,
    (
        "Files that functions find by name: "
        "'name:model,path:/data/model.bin,executable:true;name:…'."
    ),
)


def registered_files(values: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Name and path of each cached file, and whether it is to be executable. Raises
    ConfigurationError for an entry without them.

    >>> files = "name:m,path:s3://b/m,executable:true;name:n,path:/n"
    >>> list(registered_files({"pipeline.cached-files": files}))
    [('m', 's3://b/m', True), ('n', '/n', False)]
    """
    for entry in filter(str.strip, (read(values, CACHED_FILES) or "").split(";")):
        fields = {
            key.strip(): value.strip()
            for key, _, value in (part.partition(":") for part in entry.split(","))
        }
        if (
            not fields.get("name")
            or not fields.get("path")
            or set(fields) - {"name", "path", "executable"}
        ):
            raise _wrong_entry(
                entry, "write name:NAME,path:PATH, with ,executable:true if it may be executed"
            )
        try:
            executable = parse_bool(fields.get("executable", "false"))
        except ValueError as error:
            raise _wrong_entry(entry, f"executable: {error}") from None
        yield fields["name"], fields["path"], executable


def _wrong_entry(entry: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"option {CACHED_FILES.key}: in {entry.strip()!r}: {why}")


AUTO_GENERATED_UIDS = option(
    "pipeline.auto-generate-uids",
    bool,
    True,
    "Whether an operator without a uid gets one. If not, it is refused.",
)
LATENCY_INTERVAL = option(
    "metrics.latency.interval",
    timedelta,
    timedelta(),
    "How often sources send latency markers. 0: never.",
)
CHANGELOG = option(
    "state.changelog.enabled",
    bool,
    None,
    "Write state changes to a log between checkpoints.",
    aliases=("state.backend.changelog.enabled",),
    without_effect=(
        "there is no log of changes; execution.checkpointing.incremental writes what has changed"
    ),
)
CHECKPOINT_WRITE_BUFFER = option(
    "execution.checkpointing.write-buffer-size",
    int,
    4096,
    "Bytes gathered before a checkpoint's file is written.",
    aliases=("state.storage.fs.write-buffer-size",),
    without_effect="state is written in pieces as large as they come",
)
ROCKSDB_PREDEFINED_OPTIONS = option(
    "state.backend.rocksdb.predefined-options",
    str,
    "DEFAULT",
    ("DEFAULT, SPINNING_DISK_OPTIMIZED, SPINNING_DISK_OPTIMIZED_HIGH_MEM or FLASH_SSD_OPTIMIZED."),
    choices=choices(
        "DEFAULT",
        "SPINNING_DISK_OPTIMIZED",
        "SPINNING_DISK_OPTIMIZED_HIGH_MEM",
        "FLASH_SSD_OPTIMIZED",
    ),
    without_effect="RocksDB's options are chosen for what flinkpy stores",
)
ROCKSDB_OPTIONS_FACTORY = option(
    "state.backend.rocksdb.options-factory",
    str,
    None,
    "The name of a Java class that sets options of RocksDB.",
    without_effect="there are no Java classes",
)
ROCKSDB_TRANSFER_THREADS = option(
    "state.backend.rocksdb.checkpoint.transfer.thread.num",
    int,
    4,
    "Threads that move files of a checkpoint.",
    without_effect=(
        "the subtasks of a worker write their files at the same time, each one after the other"
    ),
)

# Flink 1.x: programs may set these; they have no effect.
CLOSURE_CLEANER = option(
    "pipeline.closure-cleaner-level",
    str,
    "RECURSIVE",
    "NONE, TOP_LEVEL or RECURSIVE: how Flink cleans Java's closures.",
    without_effect="there are no Java closures",
)
LEAST_SEGMENT = option(
    "taskmanager.memory.min-segment-size",
    int,
    256,
    "How small Flink's debloating makes its buffers.",
    memory=True,
    without_effect="buffers are batches, whose number and bytes have options of their own",
)
DIRECT_MEMORY_LIMIT = option(
    "jobmanager.memory.enable-jvm-direct-memory-limit",
    bool,
    False,
    "Whether Java is limited to off-heap.size.",
    without_effect="there is no Java; jobmanager.memory.process.size is asked of Ray",
)
EXECUTION_MODE = option(
    "execution.mode",
    str,
    "PIPELINED",
    "How Flink 1.x exchanged data of bounded programs; the runtime mode decides.",
    without_effect="execution.runtime-mode decides",
)
INPUT_DEPENDENCY = option(
    "pipeline.input-dependency-constraint",
    str,
    "ANY",
    "When Flink 1.x scheduled a consumer.",
    without_effect="jobmanager.scheduler.strategy decides",
)
TIME_CHARACTERISTIC = option(
    "pipeline.time-characteristic",
    str,
    "EventTime",
    "ProcessingTime, IngestionTime or EventTime (Flink 1.x).",
    without_effect="windows and timers say which time is theirs",
)
