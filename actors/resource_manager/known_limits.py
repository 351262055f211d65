"""How many slots the cluster can have, as its driver says."""

from __future__ import annotations

from flinkpy.actors.gateways import WorkerDriver
from flinkpy.graph.resources import ResourceProfile


class KnownLimits:
    """Keeps the driver's answers until ``forget``, since they may be slow."""

    def __init__(self, driver: WorkerDriver) -> None:
        self._driver = driver
        self._limits: dict[ResourceProfile, int | None] = {}

    def of(self, profile: ResourceProfile) -> int | None:
        """The most slots of that profile; None if there is no limit."""
        if profile not in self._limits:
            self._limits[profile] = self._driver.max_slots(profile)
        return self._limits[profile]

    def forget(self) -> None:
        self._limits.clear()
