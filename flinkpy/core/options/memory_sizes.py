"""How much memory a process may take, and its parts, under Flink's keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.schema import option, read

_MB = 1 << 20

# -- a TaskExecutor --------------------------------------------------------------------------------

PROCESS = option(
    "taskmanager.memory.process.size",
    int,
    None,
    "All memory of a TaskExecutor's process. Ray places the process where it has that much.",
    memory=True,
    at_least=1,
)
FLINK = option(
    "taskmanager.memory.flink.size",
    int,
    None,
    "The memory of a TaskExecutor without the interpreter's and the overhead.",
    memory=True,
    at_least=1,
)
FRAMEWORK_HEAP = option(
    "taskmanager.memory.framework.heap.size",
    int,
    128 * _MB,
    "Python objects of the engine itself.",
    memory=True,
)
FRAMEWORK_OFF_HEAP = option(
    "taskmanager.memory.framework.off-heap.size",
    int,
    128 * _MB,
    "Memory of the engine outside of Python objects, such as blocking results.",
    memory=True,
)
TASK_HEAP = option(
    "taskmanager.memory.task.heap.size",
    int,
    None,
    "Python objects of the tasks: records, state in memory, windows. When absent, what the other "
    "parts leave.",
    memory=True,
)
TASK_OFF_HEAP = option(
    "taskmanager.memory.task.off-heap.size",
    int,
    0,
    "Arrow's and numpy's memory of the tasks' own functions.",
    memory=True,
)
MANAGED = option(
    "taskmanager.memory.managed.size",
    int,
    None,
    "Memory for state on disk, for sorting and for hash tables. When absent, the managed.fraction "
    "of flink.size.",
    memory=True,
)
MANAGED_FRACTION = option(
    "taskmanager.memory.managed.fraction",
    float,
    0.4,
    "The share of flink.size that is managed, unless managed.size says how much.",
    at_least=0,
    at_most=1,
)
CONSUMER_WEIGHTS = option(
    "taskmanager.memory.managed.consumer-weights",
    str,
    "OPERATOR:70,STATE_BACKEND:70,PYTHON:30",
    "How a slot's managed memory is divided among those who may have it: OPERATOR (sorting, hash "
    "tables), STATE_BACKEND (rocksdb), PYTHON (processes of an operator's own). Only kinds that "
    "the slot contains share it.",
)
REST_TIMEOUT = option(
    "taskmanager.memory.sources-rest.timeout",
    timedelta,
    timedelta(minutes=1),
    "How long sources may rest because the process has used 90 % of process.size, until the task "
    "that grew most fails.",
    at_least=timedelta(),
)
NETWORK_FRACTION = option(
    "taskmanager.memory.network.fraction",
    float,
    0.1,
    "The share of flink.size for batches on their way. It counts where the size of the process or "
    "of its parts is given.",
    at_least=0,
    at_most=1,
)
NETWORK_MIN = option(
    "taskmanager.memory.network.min",
    int,
    64 * _MB,
    "The least that network.fraction gives.",
    memory=True,
)
NETWORK_MAX = option(
    "taskmanager.memory.network.max",
    int,
    None,
    "The most that network.fraction gives; any amount when absent.",
    memory=True,
)
NETWORK = option(
    "taskmanager.memory.network.size",
    int,
    None,
    "Bytes of batches that one TaskExecutor may have on their way, in place of network.fraction. "
    "64 MB when neither this nor the size of the process or of its parts is given.",
    memory=True,
    at_least=1,
)
INTERPRETER = option(
    "taskmanager.memory.jvm-metaspace.size",
    int,
    256 * _MB,
    "The interpreter and the libraries it has imported.",
    memory=True,
    aliases=("taskmanager.memory.interpreter.size",),
)
OVERHEAD_FRACTION = option(
    "taskmanager.memory.jvm-overhead.fraction",
    float,
    0.1,
    "The share of process.size for stacks of threads, code, and what the allocator cannot use.",
    at_least=0,
    at_most=1,
)
OVERHEAD_MIN = option(
    "taskmanager.memory.jvm-overhead.min",
    int,
    192 * _MB,
    "The least that jvm-overhead.fraction gives.",
    memory=True,
)
OVERHEAD_MAX = option(
    "taskmanager.memory.jvm-overhead.max",
    int,
    1024 * _MB,
    "The most that jvm-overhead.fraction gives.",
    memory=True,
)

# -- the JobManager --------------------------------------------------------------------------------

MASTER_PROCESS = option(
    "jobmanager.memory.process.size",
    int,
    None,
    "All memory of the JobManager's process. Ray places the process where it has that much.",
    memory=True,
    at_least=1,
)
MASTER_FLINK = option(
    "jobmanager.memory.flink.size",
    int,
    None,
    "The memory of the JobManager without the interpreter's and the overhead.",
    memory=True,
    at_least=1,
)
MASTER_HEAP = option(
    "jobmanager.memory.heap.size",
    int,
    None,
    "Python objects of the JobManager. When absent, what the other parts leave.",
    memory=True,
)
MASTER_OFF_HEAP = option(
    "jobmanager.memory.off-heap.size",
    int,
    128 * _MB,
    "Memory of the JobManager outside of Python objects.",
    memory=True,
)
MASTER_INTERPRETER = option(
    "jobmanager.memory.jvm-metaspace.size",
    int,
    256 * _MB,
    "The interpreter and the libraries it has imported.",
    memory=True,
    aliases=("jobmanager.memory.interpreter.size",),
)
MASTER_OVERHEAD_FRACTION = option(
    "jobmanager.memory.jvm-overhead.fraction",
    float,
    0.1,
    "The share of process.size for stacks of threads, code, and what the allocator cannot use.",
    at_least=0,
    at_most=1,
)
MASTER_OVERHEAD_MIN = option(
    "jobmanager.memory.jvm-overhead.min",
    int,
    192 * _MB,
    "The least that jvm-overhead.fraction gives.",
    memory=True,
)
MASTER_OVERHEAD_MAX = option(
    "jobmanager.memory.jvm-overhead.max",
    int,
    1024 * _MB,
    "The most that jvm-overhead.fraction gives.",
    memory=True,
)


# -- who shares the managed memory -----------------------------------------------------------------


class MemoryKind(Enum):
    """Who may have managed memory, by Flink's names."""

    OPERATOR = "OPERATOR"
    STATE_BACKEND = "STATE_BACKEND"
    PYTHON = "PYTHON"


def consumer_weights(values: Mapping[str, Any]) -> dict[MemoryKind, int]:
    """The weight of each kind; one that is not named has none, and gets nothing. Raises
    ConfigurationError for what is no weight.

    >>> consumer_weights({CONSUMER_WEIGHTS.key: "OPERATOR:3, PYTHON:1"})[MemoryKind.OPERATOR]
    3
    """
    found = dict.fromkeys(MemoryKind, 0)
    text: str = read(values, CONSUMER_WEIGHTS)
    for part in text.split(","):
        name, _, weight = (piece.strip() for piece in part.partition(":"))
        if name == "DATAPROC":  # Flink's older name
            name = MemoryKind.OPERATOR.name
        if name not in MemoryKind.__members__ or not weight.isdecimal():
            raise ConfigurationError(
                f"option {CONSUMER_WEIGHTS.key}: {part.strip()!r} is not a kind with its weight; "
                f"write for example {CONSUMER_WEIGHTS.default!r}"
            )
        found[MemoryKind[name]] = int(weight)
    return found
