"""Which checkpoints and savepoints the jobs of a cluster have claimed. A job deletes what it has
claimed when it has a newer checkpoint, so only one job may, and no other may start from it."""

from __future__ import annotations

import os

from flinkpy.core.errors import ProgramError
from flinkpy.core.ids import JobId
from flinkpy.core.options.checkpointing import RECOVERY_CLAIM, RECOVERY_PATH, RecoveryClaimMode
from flinkpy.core.options.schema import read
from flinkpy.graph.job_graph import JobGraph
from flinkpy.state.checkpoints.locations import absolute, local_path, scheme_of


class ClaimedCheckpoints:
    """The claims of the jobs that have not ended."""

    def __init__(self) -> None:
        self._by: dict[str, JobId] = {}  # location -> the job

    def check(self, job_graph: JobGraph) -> None:
        """Raises ProgramError if the job starts from what another one has claimed."""
        path = read(job_graph.configuration, RECOVERY_PATH)
        owner = None if path is None else self._by.get(_place(path))
        if owner not in (None, job_graph.job_id):
            raise ProgramError(
                f"{path} was claimed by job {owner}, which still runs and deletes it when it has a "
                "newer checkpoint: start jobs that share a savepoint without CLAIM, or take a "
                "savepoint of that job"
            )

    def add(self, job_graph: JobGraph) -> None:
        """The job runs, or is about to."""
        values = job_graph.configuration
        path = read(values, RECOVERY_PATH)
        if path is not None and read(values, RECOVERY_CLAIM) is RecoveryClaimMode.CLAIM:
            self._by.setdefault(_place(path), job_graph.job_id)

    def remove(self, job_id: JobId) -> None:
        """The job has ended, or does not begin."""
        self._by = {place: owner for place, owner in self._by.items() if owner != job_id}


def _place(path: str) -> str:
    """The same for all names of a folder on this machine, and for its manifest."""
    location = absolute(path)
    if scheme_of(location) in (None, "file"):
        location = os.path.realpath(local_path(location))
    return location.removesuffix("/_metadata")
