"""The file store of a simulated cluster: it fails at random for a while, and knows which files nobody could delete."""

from __future__ import annotations

import random
from collections.abc import Sequence

from flinkpy.core.ids import JobId
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.testing.simulation.simulated_file_store import HAPPENS, SimulatedFileStore, StorageFault

DIRECTORY = "simulated://store/checkpoints"


class ClusterFiles(SimulatedFileStore):
    """``faults_last`` ends the faults."""

    def __init__(self, chance: random.Random, failing: float = 0.0) -> None:
        super().__init__(self._strikes)
        self._chance, self._failing = chance, failing
        self.faults_last = True
        self._undeleted: set[str] = set()  # folders and files that a failed deletion has left, or half left
        self._at_end: dict[JobId, frozenset[str]] = {}

    def _strikes(self, step: int) -> StorageFault | None:
        if not self._failing or not self.faults_last or self._chance.random() >= self._failing:
            return None
        return StorageFault(self._chance.choice(HAPPENS))

    def store_of(self, location: str) -> FileStore:
        """For whoever asks which store a location is in."""
        return self

    def list(self, location: str) -> Sequence[str]:
        try:
            return super().list(location)
        except OSError:  # who wanted to delete what is there does not find it
            self._undeleted.add(location)
            raise

    def delete(self, location: str) -> None:
        self._note(location)
        super().delete(location)
        self._undeleted.discard(location)

    def delete_dir(self, location: str) -> None:
        self._note(location)
        super().delete_dir(location)
        self._undeleted = {each for each in self._undeleted if each != location and not each.startswith(f"{location}/")}

    def _note(self, location: str) -> None:
        """It is to be deleted. With ``_metadata`` all that is beside it is meant, too."""
        self._undeleted.add(location.removesuffix("/_metadata"))

    def _of(self, job_id: JobId) -> tuple[str, ...]:
        return tuple(sorted(self._below(f"{DIRECTORY}/{job_id}")))

    def left_of(self, job_id: JobId) -> tuple[str, ...]:
        """The job's files, but for those that were to be deleted and the store failed."""
        return tuple(
            file
            for file in self._of(job_id)
            if not any(file == each or file.startswith(f"{each}/") for each in self._undeleted)
        )

    def job_ended(self, job_id: JobId) -> None:
        """What appears from now on is late."""
        self._at_end[job_id] = frozenset(self._of(job_id))

    def late_of(self, job_id: JobId) -> tuple[str, ...]:
        """The files that appeared after the job's end."""
        return tuple(file for file in self._of(job_id) if file not in self._at_end.get(job_id, frozenset()))
