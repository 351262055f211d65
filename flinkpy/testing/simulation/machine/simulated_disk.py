"""The disk of one simulated machine, for local backups: it fails, and gives back files that are not
what was written."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import count
from typing import Any

from flinkpy.state.checkpoints.local_backup import BackupFolder
from flinkpy.testing.simulation.simulated_file_store import SimulatedFileStore, seeded_faults

DAMAGED = 0.3  # of the files: cut short, altered, or another one's


class SimulatedDisk(SimulatedFileStore):
    """``failing`` is how likely a step fails, and ``DAMAGED`` how likely a file is damaged as it
    appears. ``seed`` decides, so that nothing else of a simulation changes with it."""

    def __init__(self, seed: str, failing: float) -> None:
        self._chance = random.Random(seed)
        super().__init__(seeded_faults(self._chance, failing, crashing=0.0))
        self._folders = count()

    def backup_folder(self, values: Mapping[str, Any]) -> BackupFolder:
        """A new one."""
        path = f"disk/{next(self._folders)}"

        def remove() -> None:
            self.files = {
                location: data
                for location, data in self.files.items()
                if not location.startswith(f"{path}/")
            }

        return BackupFolder(self, path, remove)

    def appears(self, location: str, data: bytes) -> None:
        super().appears(location, self._damaged(data) if self._chance.random() < DAMAGED else data)

    def _damaged(self, data: bytes) -> bytes:
        at = self._chance.randrange(len(data) + 1)
        altered = (
            data[:at] + bytes([data[at] ^ 1 << self._chance.randrange(8)]) + data[at + 1 :]
            if at < len(data)
            else data
        )
        return self._chance.choice((data[:at], altered, *list(self.files.values())[:1]))
