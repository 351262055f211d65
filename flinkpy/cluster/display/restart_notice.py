"""Tells the user that a job has restarted, and why: with a restart strategy that never gives up, a
mistake in a function would look like a slow job."""

from __future__ import annotations

import sys

from flinkpy.actors.gateways import JobDetails
from flinkpy.cluster.display.watcher import Watcher

INTERVAL_S = 1.0


class RestartNotice:
    """Writes to standard error when the job has restarted since the last look, and then lets
    ``display`` show its part. The same failure is told in full once."""

    def __init__(self, display: Watcher | None = None) -> None:
        self.display = display
        self.interval_s = INTERVAL_S if display is None else min(INTERVAL_S, display.interval_s)
        self._restarts, self._told = 0, ""

    def update(self, details: JobDetails) -> None:
        """Checks whether the job has restarted."""
        if details.restarts > self._restarts and sys.stderr is not None:
            self._restarts = details.restarts
            sys.stderr.write(self._notice(details) + "\n")
            sys.stderr.flush()
        if self.display is not None:
            self.display.update(details)

    def _notice(self, details: JobDetails) -> str:
        times = "once" if details.restarts == 1 else f"{details.restarts} times"
        summary = details.last_failure.partition("\n")[0]  # what follows names the attempt
        told, self._told = self._told, summary
        where = (
            "anew" if details.checkpoint_id is None else f"from checkpoint {details.checkpoint_id}"
        )
        begun = f"job {details.overview.name!r} has restarted {times}, the last time {where}"
        return (
            f"{begun}: the same failure again"
            if summary == told
            else f"{begun}: {details.last_failure}"
        )

    def close(self) -> None:
        """Closes the display."""
        if self.display is not None:
            self.display.close()
