"""Functions that fail at a record, once: with a source that gives a few records for each
checkpoint, each failure falls where a test wants it, between two checkpoints, without waiting for a
clock. And how such a job is run, and what it shows."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing.connectors.paced_source import PacedSource

__all__ = ["PacedSource", "failing_at", "failures", "run_until_it_fails", "visible_lines"]


def failing_at(folder: Path, *wanted: Any) -> Callable[[Any], Any]:
    """A map function that gives the record, and raises for each of these once, however often the
    job restarts."""
    folder.mkdir(parents=True, exist_ok=True)
    values = list(wanted)

    def pass_or_fail(record: Any) -> Any:
        if record in values:
            marker = folder / str(values.index(record))
            if not marker.exists():
                marker.touch()
                raise ValueError(f"{record} fails for the first time, in process {os.getpid()}")
        return record

    return pass_or_fail


def failures(folder: Path) -> int:
    """How many of them have failed."""
    return len(list(folder.iterdir()))


def run_until_it_fails(env: StreamExecutionEnvironment) -> None:
    """Runs a job to its end, or until one of its functions fails for the first time."""
    try:
        env.execute()
    except JobExecutionError as error:
        if "for the first time" not in str(error):
            raise


def visible_lines(folder: Path) -> list[str]:
    """What can be seen in the folder of a file sink; nothing, if there is none yet."""
    parts = (
        [part for part in folder.iterdir() if not part.name.startswith(".")]
        if folder.exists()
        else []
    )
    return [line for part in parts for line in part.read_text().splitlines()]
