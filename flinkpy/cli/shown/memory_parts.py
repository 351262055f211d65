"""``flinkpy memory``: the parts of a TaskExecutor's and the JobManager's memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from flinkpy.cli.checkpoint_commands import in_bytes
from flinkpy.cli.run import gather
from flinkpy.cli.tell import tell
from flinkpy.core.options import memory_sizes as options
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.options.process_memory import JobManagerMemory, WorkerMemory

_WORKER_PARTS = {
    "framework_heap": "objects of the engine",
    "task_heap": "objects of the tasks, state in memory",
    "framework_off_heap": "the engine outside of objects",
    "task_off_heap": "Arrow and numpy of the tasks' functions",
    "managed": "state on disk, sorting, hash tables",
    "network": "batches on their way",
    "interpreter": "Python and its libraries",
    "overhead": "stacks, code, what the allocator cannot use",
}
_MASTER_PARTS = {
    "heap": "objects",
    "off_heap": "outside of objects",
    "interpreter": "Python and its libraries",
    "overhead": "stacks, code, what the allocator cannot use",
}


def show_memory(definitions: Sequence[str], conf: Path | None) -> None:
    """Prints the parts of both processes. Raises ConfigurationError if options contradict each
    other."""
    values = gather(conf, definitions, None, None)
    NetworkConfig.of(values)  # refuses a network that holds no segment
    options.consumer_weights(values)  # refuses what are no weights
    worker = WorkerMemory.of(values) if WorkerMemory.is_given(values) else None
    master = JobManagerMemory.of(values) if JobManagerMemory.is_given(values) else None
    for line in [
        *_shown("a TaskExecutor", worker, _WORKER_PARTS, options.PROCESS.key),
        *_shown("the JobManager", master, _MASTER_PARTS, options.MASTER_PROCESS.key),
    ]:
        tell(line)


def _shown(
    name: str, memory: WorkerMemory | JobManagerMemory | None, parts: dict[str, str], key: str
) -> Iterator[str]:
    if memory is None:
        yield f"{name}: not limited; -D {key}=2g would limit it"
        return
    rows: list[tuple[str, int, Any]] = [
        (each.name.replace("_", " "), getattr(memory, each.name), parts[each.name])
        for each in fields(memory)
    ]
    yield f"{name}: {in_bytes(memory.process)}, {in_bytes(memory.flink)} of it Flink memory"
    for part, size, what in rows:
        yield f"  {part.ljust(18)}  {in_bytes(size).rjust(10)}  {what}"
