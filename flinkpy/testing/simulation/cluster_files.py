"""The file store of a simulated cluster: it fails at random for a while, and knows which files
nobody could delete."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from flinkpy.core.ids import JobId
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.testing.simulation.simulated_file_store import (
    HAPPENS,
    SimulatedFileStore,
    StorageCrash,
    StorageFault,
)

CRASHES = 0.2  # of the faults: the process dies with them
DIRECTORY = "simulated://store/checkpoints"
SAVEPOINTS = "simulated://store/savepoints"


class ClusterFiles(SimulatedFileStore):
    """``faults_last`` ends the faults."""

    def __init__(self, chance: random.Random, failing: float = 0.0) -> None:
        super().__init__(self._strikes)
        self._chance, self._failing = chance, failing
        self.faults_last = True
        # a JobManager that takes over cannot know whether such a checkpoint was complete, and ends
        # the job
        self.tears_manifests = True
        # may kill the process that uses the store now
        self.process_dies: Callable[[], object] | None = None
        self.is_used_by_dead: Callable[[], bool] = lambda: False
        # is told of each manifest of a savepoint, torn ones too
        self.savepoint_appears: Callable[[str], object] = lambda location: None
        # a JobManager could not find out whether it still leads, and left its files alone
        self._nobody_deletes = False
        # folders and files that a failed deletion has left, or half left
        self._undeleted: set[str] = set()
        self._at_end: dict[JobId, frozenset[str]] = {}

    def _strikes(self, step: int) -> StorageFault | None:
        if not self._failing or not self.faults_last or self._chance.random() >= self._failing:
            return None
        fault = StorageFault(self._chance.choice(HAPPENS))
        if self.process_dies is not None and self._chance.random() < CRASHES:
            self.process_dies()
        return fault

    def step(self, effect: Callable[[float], None]) -> None:
        """A process that died in the middle of its work does nothing more."""
        if self.is_used_by_dead():
            raise StorageCrash("the process is dead")
        super().step(effect)

    def close_step(self, location: str, effect: Callable[[float], None]) -> None:
        is_manifest = location.endswith("/_metadata")

        def appear(share: float) -> None:
            if share == 1.0 or self.tears_manifests or not is_manifest:
                effect(share)
                if is_manifest and location.startswith(SAVEPOINTS):
                    self.savepoint_appears(location.removesuffix("/_metadata"))

        super().close_step(location, appear)

    def store_of(self, location: str) -> FileStore:
        """For whoever asks which store a location is in."""
        return self

    def list(self, location: str) -> Sequence[str]:
        try:
            return super().list(location)
        except OSError:
            # who wanted to delete what is there does not find it; nor does who asked there whether
            # to delete
            self._undeleted.add(location)
            self._nobody_deletes = self._nobody_deletes or not location.startswith(
                (DIRECTORY, SAVEPOINTS)
            )
            raise

    def delete(self, location: str) -> None:
        self._note(location)
        super().delete(location)
        self._undeleted.discard(location)

    def delete_dir(self, location: str) -> None:
        self._note(location)
        super().delete_dir(location)
        self._undeleted = {
            each
            for each in self._undeleted
            if each != location and not each.startswith(f"{location}/")
        }

    def _note(self, location: str) -> None:
        """It is to be deleted. With ``_metadata`` all that is beside it is meant, too."""
        self._undeleted.add(location.removesuffix("/_metadata"))

    def as_seen(self) -> FileStore:
        """The files that are there now, for somebody who is no part of the cluster."""
        store = SimulatedFileStore()
        store.files = dict(self.files)
        return store

    def has_checkpoint(self, job_id: JobId) -> bool:
        """Whether some checkpoint of the job is there."""
        return any(file.endswith("/_metadata") for file in self._of(job_id))

    def newest_checkpoint(self, job_id: JobId) -> int:
        """The highest number of a manifest of the job; 0 if there is none."""
        names = [file.rsplit("/", 2)[1] for file in self._of(job_id) if file.endswith("/_metadata")]
        return max((int(name.removeprefix("chk-")) for name in names), default=0)

    def is_left(self, job_id: JobId, checkpoint_id: int) -> bool:
        """Whether the checkpoint is there, though nobody failed to delete it."""
        folder = f"{DIRECTORY}/{job_id}/chk-{checkpoint_id}"
        return any(file.startswith(f"{folder}/") for file in self.left_of(job_id))

    def _of(self, job_id: JobId) -> tuple[str, ...]:
        return tuple(sorted(self._below(f"{DIRECTORY}/{job_id}")))

    def left_of(self, job_id: JobId) -> tuple[str, ...]:
        """The job's files, but for those that were to be deleted and the store failed."""
        return tuple(
            file
            for file in self._of(job_id)
            if not self._nobody_deletes
            and not any(file == each or file.startswith(f"{each}/") for each in self._undeleted)
        )

    def savepoints_left(self) -> frozenset[str]:
        """The folders of savepoints that are there as a whole, but for those that were to be
        deleted and the store failed."""
        folders = {
            file.removesuffix("/_metadata")
            for file in self._below(SAVEPOINTS)
            if file.endswith("/_metadata")
        }
        return frozenset(folders - self._undeleted)

    def job_ended(self, job_id: JobId) -> None:
        """What appears from now on is late."""
        self._at_end[job_id] = frozenset(self._of(job_id))

    def late_of(self, job_id: JobId) -> tuple[str, ...]:
        """The files that appeared after the job's end."""
        known = self._at_end.get(job_id)
        # None: the masters died with the job's end
        return (
            () if known is None else tuple(file for file in self._of(job_id) if file not in known)
        )
