"""The gateway of a ProcessInspector, and the values in its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from flinkpy.core.futures import Future

INSPECTOR = "inspector"  # the endpoint's name, in every process


@dataclass(frozen=True)
class ProcessFigures:
    """Of the whole process, at one moment. In an embedded session all endpoints share one process, and so these figures."""

    at_ms: int
    threads: int
    rss: int  # bytes of memory in use; 0 where the system does not tell
    cpu_s: float  # since the process began, all threads together
    collections: tuple[int, ...]  # of garbage, in each generation
    collected: tuple[int, ...]  # objects freed by these


class ProcessInspectorGateway(Protocol):
    """For those who look into a process. Nothing changes by asking."""

    def request_figures(self) -> Future[ProcessFigures]: ...
