"""A runner of tasks in the simulated cluster, as the cluster and its invariants see it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.runtime.runner_port import TaskRunner


class WatchedRunner(TaskRunner, Protocol):
    """``SimulatedTaskRunner`` runs stand-ins for tasks, ``MachineTaskRunner`` real tasks on a
    simulated machine."""

    def check_invariants(self) -> None:
        """Raises EngineError if something belongs to no task."""
        ...

    def tasks_in_slots(self) -> dict[ExecutionAttemptId, int]:
        """The attempts that run, each with the index of its slot."""
        ...

    def keeps(self, attempt_id: ExecutionAttemptId) -> bool:
        """Whether the attempt runs here or left its results here."""
        ...

    def lost_results(self, kept: Collection[ExecutionAttemptId]) -> set[ExecutionAttemptId]:
        """Those of them whose results are not here."""
        ...

    def held(self) -> str | None:
        """What is left though no task runs; None in general."""
        ...

    def process_gone(self) -> None:
        """The process has ended or crashed: its connections end."""
        ...
