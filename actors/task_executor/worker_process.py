"""The process that a TaskExecutor runs in, as the TaskExecutor uses it."""

from __future__ import annotations

from flinkpy.actors.task_executor_info import ProcessDescription


class WorkerProcess:
    """This one is nothing but a place: it goes on, whatever happens. ``description`` says what it
    is. A process that belongs to one worker overrides what it reacts to."""

    def __init__(self, description: ProcessDescription | None = None) -> None:
        self.description = description or ProcessDescription()

    def refused(self, reason: str) -> None:
        """The ResourceManager does not accept this worker: the process should end."""

    def stuck(self, reason: str) -> None:
        """A cancelled task does not end. Its slot would be lost, so the process should end: Flink's
        watchdog."""

    def idle(self) -> None:
        """Nothing of any job is left here."""
