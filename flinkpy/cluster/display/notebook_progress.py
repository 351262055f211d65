"""The live progress display of a notebook: one output of the cell, redrawn in place while the job
runs, and emptied at its end."""

from __future__ import annotations

from typing import Any

from flinkpy.actors.gateways import JobDetails
from flinkpy.cluster.display.job_picture import JobPictures
from flinkpy.core.clock import SYSTEM_CLOCK, Clock


class NotebookProgress:
    """First drawn after 0.5 s, so shorter jobs show nothing."""

    interval_s = 0.5

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock, self._pictures = clock, JobPictures()
        self._handle: Any = None

    def update(self, details: JobDetails) -> None:
        """Redraws the display."""
        picture = self._pictures.picture(details, self._clock.time_ms())
        self._draw({"text/plain": str(picture), "text/html": picture.html()})

    def close(self) -> None:
        """Empties the display."""
        if self._handle is not None:
            self._draw({"text/plain": "", "text/html": ""})
            self._handle = None

    def _draw(self, forms: dict[str, str]) -> None:
        if self._handle is not None:
            self._handle.update(forms, raw=True)
            return
        import IPython.display

        make: Any = IPython.display.DisplayHandle
        # set before it is drawn: Ctrl-C may come in between, and close() must find it
        self._handle = make()
        self._handle.display(forms, raw=True)
