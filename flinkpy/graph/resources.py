"""The resources of a slot: CPUs, GPUs, memory, named Ray resources, and the runtime environment of
its process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResourceProfile:
    """The demand of a slot sharing group, or the supply of a slot. ``ANY`` demands nothing in
    particular."""

    cpus: float = 0.0
    gpus: float = 0.0
    memory: int = 0
    extended: tuple[tuple[str, float], ...] = ()  # named Ray resources, sorted
    # Ray's runtime_env as canonical JSON; jobs with different ones share no process
    environment: str = ""

    @property
    def is_any(self) -> bool:
        return self == ANY

    def fits_in(self, supply: ResourceProfile) -> bool:
        """Whether a slot with ``supply`` meets this demand: it must be equal to it, or the demand
        must be ``ANY``.

        A larger slot does not meet a smaller demand: a job of many small slots could hold all of a
        cluster's CPUs in a few large slots, and wait for ever for the rest. Nor does a process with
        a runtime environment meet a demand without one."""
        return self == supply or (self.is_any and not supply.environment)


ANY = ResourceProfile()
