"""The gateway of a ProcessInspector, and the values in its answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId, JobVertexId
from flinkpy.metrics.readings import ProcessReading
from flinkpy.runtime.memory.memory_report import MemoryReport

INSPECTOR = "inspector"  # the endpoint's name, in every process
LONGEST_PIECE = 1 << 20  # bytes of a log in one answer


@dataclass(frozen=True)
class ProcessFigures:
    """Figures of the whole process, at one moment. In an embedded session all endpoints share one
    process, and so these figures."""

    at_ms: int
    threads: int
    rss: int  # bytes of memory in use; 0 where the system does not tell
    cpu_s: float  # since the process began, all threads together
    collections: tuple[int, ...]  # of garbage, in each generation
    collected: tuple[int, ...]  # objects freed by these
    memory: MemoryReport | None = None  # and who has it; None of a JobManager's process


@dataclass(frozen=True)
class ThreadInfo:
    """A thread, and its stack as Python prints it: the newest call last."""

    name: str
    is_daemon: bool
    stack: str


class LogKind(Enum):
    """What comes into a log file."""

    STDOUT = "stdout"
    STDERR = "stderr"
    LOGGING = "logging"  # a handler of Python's logging writes it
    OLDER = "older"  # rotated: such a handler has written it


@dataclass(frozen=True)
class LogFile:
    """``name`` tells it from the process's other logs, and holds no folder."""

    name: str
    kind: LogKind
    size: int  # bytes
    modified_ms: int


@dataclass(frozen=True)
class StackSample:
    """How often a subtask was found in this stack: the outermost call first, each as
    ``module.function:line``. ``subtask_index`` is None where the thread waited for work, which all
    subtasks of the process share."""

    subtask_index: int | None
    on_cpu: bool
    stack: tuple[str, ...]
    count: int


class ProcessInspectorGateway(Protocol):
    """For those who look into a process. Nothing changes by asking."""

    def request_figures(self) -> Future[ProcessFigures]: ...

    def request_thread_dump(self) -> Future[tuple[ThreadInfo, ...]]: ...

    def list_logs(self) -> Future[tuple[LogFile, ...]]: ...

    def read_log(self, name: str, offset: int, size: int) -> Future[bytes]:
        """At most ``LONGEST_PIECE`` bytes from there on; none behind the end. ProgramError if
        ``list_logs`` has no such name."""
        ...

    def sample_vertex(
        self, job_id: JobId, vertex_id: JobVertexId
    ) -> Future[tuple[StackSample, ...]]:
        """What the subtasks of the vertex did here in the last half minute or more. Looking begins
        with the first question, whose answer is empty, and ends soon after the last one."""
        ...

    def request_metrics(self) -> Future[ProcessReading]:
        """The metrics of the process and of its tasks. Those of functions are as they were last
        read if a function has not returned for a while."""
        ...
