"""The live progress display of a notebook: one output of the cell, drawn over itself while the job runs, and empty when it has ended."""

from __future__ import annotations

from typing import Any

from flinkpy.actors.gateways import JobDetails
from flinkpy.cluster.display.job_picture import Looks
from flinkpy.core.clock import SYSTEM_CLOCK, Clock


class NotebookProgress:
    """Drawn from 0.5 s on: shorter jobs show nothing."""

    interval_s = 0.5

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock, self._looks = clock, Looks()
        self._handle: Any = None

    def update(self, details: JobDetails) -> None:
        """Draws anew."""
        picture = self._looks.picture(details, self._clock.time_ms())
        self._draw({"text/plain": str(picture), "text/html": picture.html()})

    def close(self) -> None:
        """Leaves nothing behind."""
        if self._handle is not None:
            self._draw({"text/plain": "", "text/html": ""})
            self._handle = None

    def _draw(self, forms: dict[str, str]) -> None:
        if self._handle is not None:
            self._handle.update(forms, raw=True)
            return
        import IPython.display

        make: Any = IPython.display.DisplayHandle
        self._handle = make()  # before it is drawn: Ctrl-C may come in between, and close() must find it
        self._handle.display(forms, raw=True)
