"""What a client shows a job's progress to while a program waits for the job."""

from __future__ import annotations

from typing import Protocol

from flinkpy.actors.gateways import JobDetails


class Watcher(Protocol):
    """Gets the job's state while a program waits for it (the progress display)."""

    interval_s: float

    def update(self, details: JobDetails) -> None: ...

    def close(self) -> None: ...
