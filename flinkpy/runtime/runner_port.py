"""How a TaskExecutor and what runs its tasks see each other.

The real runner is ``flinkpy.runtime.task_runner``; the simulation has one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from flinkpy.core.ids import ExecutionAttemptId, JobId
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskExecutionState, TaskMetrics
from flinkpy.metrics.readings import ProcessReading
from flinkpy.runtime.memory.memory_report import MemoryReport
from flinkpy.runtime.task_messages import MessageFromTask, MessageToTask


class TaskReporter(Protocol):
    """What a running task tells its TaskExecutor; called from any thread."""

    def state_changed(self, state: TaskExecutionState) -> None: ...

    def send_message(self, attempt_id: ExecutionAttemptId, message: MessageFromTask) -> None:
        """To the JobMaster, or to a coordinator there: once, and in the order of these calls."""
        ...


@dataclass(frozen=True)
class RunnerStatistics:
    """What a runner holds; all zero when nothing runs."""

    tasks: int
    partitions: int
    gates: int
    segments_in_use: int


class TaskRunner(Protocol):
    """Runs tasks in slots. Started by who makes it; all other calls come from the TaskExecutor's
    main thread and return at once."""

    @property
    def data_address(self) -> tuple[str, int]:
        """Host and port of the data connection; known after ``start``."""
        ...

    def start(self) -> None:
        """Opens the data port. ResourceUnavailableError where that cannot be had."""
        ...

    def submit(
        self, slot_index: int, descriptor: TaskDeploymentDescriptor, reporter: TaskReporter
    ) -> None:
        """Starts the task; from then on every state it reaches is reported, ending with exactly one
        terminal one."""
        ...

    def cancel(self, attempt_id: ExecutionAttemptId) -> float:
        """Cancels it; unknown or ended attempts are ignored. Returns the seconds that it may take
        (``task.cancellation.timeout``); 0.0: no limit."""
        ...

    def overdue(self) -> str | None:
        """What hinders a cancellation that is past its time (``task.cancellation.timeout``): a
        function that does not return. None in general."""
        ...

    def fail(self, attempt_id: ExecutionAttemptId, error: BaseException) -> None:
        """Fails it from outside (a lost JobMaster); unknown or ended attempts are ignored."""
        ...

    def deliver_message(self, attempt_id: ExecutionAttemptId, message: MessageToTask) -> None:
        """From the JobMaster, or from a coordinator there; unknown or ended attempts ignore it."""
        ...

    def release_partitions(self, attempt_ids: Iterable[ExecutionAttemptId]) -> None:
        """Drops the blocking results these attempts left behind; unknown ones are ignored."""
        ...

    def leave_job(self, job_id: JobId) -> None:
        """The job has no slots and no results here any more: drops what was kept so that its tasks
        could restart."""
        ...

    def metrics(self) -> list[TaskMetrics]:
        """The counters of what runs now, at once; accumulators as they were last read."""
        ...

    def read_accumulators(self, then: Callable[[], object]) -> None:
        """Has the accumulators of what runs read in the tasks' threads, when they come to it; if
        they changed, ``then`` is called there, for each thread."""
        ...

    def reading(self) -> ProcessReading:
        """All metrics now, at once, from any thread; those of functions as they were last read."""
        ...

    def read_functions(self, then: Callable[[], object]) -> None:
        """Has the metrics of functions read in the tasks' threads, when they come to it; ``then``
        is called when those of all tasks were read. That may take as long as a function does not
        return. From any thread."""
        ...

    def memory(self) -> MemoryReport | None:
        """What takes the process's memory; the state of tasks as they last told. None where the
        system does not tell. From any thread."""
        ...

    def on_memory_pressure(self, listener: Callable[[], None]) -> None:
        """Calls it, in any thread, when the sources here begin or end to rest because the
        process's memory is nearly used up."""
        ...

    def statistics(self) -> RunnerStatistics: ...

    def glance(self) -> list[tuple[int, ExecutionAttemptId | None]]:
        """From any thread: the ids of the threads in which tasks run, each with the attempt that
        has its turn there. Old at once."""
        ...

    def stop(self) -> None:
        """Fails what still runs, and gives back threads, sockets and memory."""
        ...
