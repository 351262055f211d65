"""What a task's operators have of the managed memory of its slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.memory_sizes import (
    CONSUMER_WEIGHTS,
    MANAGED,
    MANAGED_FRACTION,
    MemoryKind,
    consumer_weights,
)
from flinkpy.graph.resources import ManagedMemoryUse
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.context import ManagedMemory
from flinkpy.runtime.memory.memory_manager import MemoryManager, MemoryOwner

LEAST_SHARE = 1 << 20
"""An operator that sorts or keeps hash tables cannot do with less."""

_UNLIMITED = 1 << 60


class SourcesRest:
    """Whether the sources of a process rest, because its memory is nearly used up. Any thread may
    set it; a source looks before each batch."""

    __slots__ = ("is_on",)

    def __init__(self) -> None:
        self.is_on = False


@dataclass(frozen=True)
class SlotMemory:
    """The managed memory of a slot, how the kinds that it contains divide it, and whether sources
    rest."""

    manager: MemoryManager = field(default_factory=partial(MemoryManager, _UNLIMITED))
    of_kinds: Mapping[MemoryKind, int] = field(default_factory=partial(consumer_weights, {}))
    sources_rest: SourcesRest = field(default_factory=SourcesRest)


@dataclass(frozen=True)
class Leak:
    """What an operator has not given back when its task ended."""

    operator: str
    kind: MemoryKind
    size: int

    def __str__(self) -> str:
        return f"{self.operator} ended with {self.size} bytes of {self.kind.value} memory reserved"


class TaskMemory:
    """Divides the memory of a slot among the operators of one attempt. ``use`` says with whom else
    they share it."""

    def __init__(self, slot: SlotMemory | None = None, use: ManagedMemoryUse | None = None) -> None:
        self._slot = slot or SlotMemory()
        self._use = use or ManagedMemoryUse()
        self._owners: list[MemoryOwner] = []

    def of_operator(self, name: str, operator: StreamOperator) -> ManagedMemory:
        """The operator's memory. Raises ConfigurationError, which names the option, if that is too
        little to work with."""
        owners = {
            kind: MemoryOwner(
                name,
                kind,
                self._use.share(self._slot.manager.size, kind, weight, self._slot.of_kinds),
            )
            for kind, weight in operator.memory_weights.items()
        }
        sorts = owners.get(MemoryKind.OPERATOR)
        if sorts is not None and sorts.share < LEAST_SHARE:
            raise self._too_little(sorts)
        self._owners.extend(owners.values())
        return _OperatorMemory(self._slot.manager, owners)

    def _too_little(self, owner: MemoryOwner) -> ConfigurationError:
        kind, size = owner.kind, self._slot.manager.size
        if not self._slot.of_kinds.get(kind):
            return ConfigurationError(
                f"{owner.name} sorts or keeps hash tables, and {CONSUMER_WEIGHTS.key} leaves it no "
                f"memory; add {kind.value}:70 to it"
            )
        if not size:
            return ConfigurationError(
                f"{owner.name} sorts or keeps hash tables, and its slot has no managed memory; set "
                f"{MANAGED.key} or {MANAGED_FRACTION.key} above 0"
            )
        return ConfigurationError(
            f"{owner.name} has {_kb(owner.share)} of managed memory, and needs "
            f"{_kb(LEAST_SHARE)}: its slot has {_kb(size)}, which the job's operators share; raise "
            f"{MANAGED.key} at least {-(-LEAST_SHARE // max(1, owner.share))} times, or set "
            "fewer taskmanager.numberOfTaskSlots"
        )

    def reserved(self) -> list[tuple[str, MemoryKind, int]]:
        """What each operator has reserved: its name, the kind, the bytes. From any thread."""
        held = self._slot.manager.reserved_by
        return [(owner.name, owner.kind, held(owner)) for owner in list(self._owners)]

    @property
    def sources_rest(self) -> SourcesRest:
        """Whether sources of this process have to rest."""
        return self._slot.sources_rest

    def release_all(self) -> list[Leak]:
        """The task has ended: takes everything back, and returns what was not given back."""
        found = [
            Leak(owner.name, owner.kind, leaked)
            for owner in self._owners
            if (leaked := self._slot.manager.release_all(owner))
        ]
        self._owners = []
        return found


class _OperatorMemory:
    """Implements ``ManagedMemory``."""

    def __init__(self, manager: MemoryManager, owners: Mapping[MemoryKind, MemoryOwner]) -> None:
        self._manager = manager
        self._owners = owners

    def share_of(self, kind: MemoryKind) -> int:
        owner = self._owners.get(kind)
        return 0 if owner is None else owner.share

    def reserve(self, size: int, kind: MemoryKind = MemoryKind.OPERATOR) -> bool:
        owner = self._owners.get(kind)
        return owner is not None and self._manager.reserve(owner, size)

    def release(self, size: int, kind: MemoryKind = MemoryKind.OPERATOR) -> None:
        self._manager.release(self._owners[kind], size)

    @property
    def reserved(self) -> int:
        return sum(map(self._manager.reserved_by, self._owners.values()))


def _kb(size: int) -> str:
    return f"{size / 1024:,.0f} KB"
