"""The resources of a slot: CPUs, GPUs, memory, named Ray resources, the runtime environment of its
process, and who in it shares the managed memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flinkpy.core.options.memory_sizes import MemoryKind


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


@dataclass(frozen=True)
class ManagedMemoryUse:
    """What the operators that may be in a slot at the same time want of its managed memory:
    ``weights`` is the sum of theirs, by kind. ``slots`` are those of the whole job."""

    weights: Mapping[MemoryKind, int] = field(default_factory=dict)
    slots: int = 1

    def share(
        self, size: int, kind: MemoryKind, weight: int, of_kinds: Mapping[MemoryKind, int]
    ) -> int:
        """What an operator of that weight has of a slot with so many bytes. ``of_kinds`` says how
        the kinds that are there share it (``consumer_weights``)."""
        total = self.weights.get(kind, 0)
        present = sum(of_kinds.get(each, 0) for each, used in self.weights.items() if used)
        if not total or not present:
            return 0
        return size * of_kinds.get(kind, 0) * weight // (present * total)
