"""The managed memory of one slot: a ledger of who has reserved how many bytes.

Python objects cannot be placed into segments, so what is given out is a right and not an address.
It decides nothing about time, and writes nothing: who gets no reservation does."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from flinkpy.core.errors import EngineError
from flinkpy.core.options.memory_sizes import MemoryKind


@dataclass(frozen=True, eq=False)
class MemoryOwner:
    """An operator of an attempt, for memory of one kind: at most ``share`` bytes. Each object is an
    owner of its own."""

    name: str
    kind: MemoryKind
    share: int


@dataclass(frozen=True)
class MemoryStatistics:
    size: int
    reserved: int
    owners: int


class MemoryManager:
    """Gives out rights to ``size`` bytes. Tasks of a slot may run in several threads, so any thread
    may call."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._reserved: Counter[MemoryOwner] = Counter()
        self._sum = 0
        self._lock = threading.Lock()

    def reserve(self, owner: MemoryOwner, size: int) -> bool:
        """Whether the owner has got so many bytes more: within its share, and the slot's memory."""
        _check_not_negative(owner, size)
        with self._lock:
            held = self._reserved[owner]
            if held + size > owner.share or self._sum + size > self.size:
                return False
            self._reserved[owner] = held + size
            self._sum += size
            return True

    def release(self, owner: MemoryOwner, size: int) -> None:
        """The owner gives so many bytes back. Raises EngineError if it has less."""
        _check_not_negative(owner, size)
        with self._lock:
            held = self._reserved[owner]
            if size > held:
                raise EngineError(
                    f"{owner.name} gives back {size} bytes of managed memory, and has {held}"
                )
            self._reserved[owner] = held - size
            self._sum -= size

    def release_all(self, owner: MemoryOwner) -> int:
        """Takes back what the owner still has, and returns how much that was: a leak, at the end of
        its task."""
        with self._lock:
            leaked = self._reserved.pop(owner, 0)
            self._sum -= leaked
            return leaked

    def reserved_by(self, owner: MemoryOwner) -> int:
        """What the owner has now."""
        return self._reserved[owner]

    def statistics(self) -> MemoryStatistics:
        with self._lock:
            owners = sum(held > 0 for held in self._reserved.values())
            return MemoryStatistics(self.size, self._sum, owners)

    def check_invariants(self) -> None:
        """Raises EngineError when the ledger contradicts itself."""
        with self._lock:
            held = dict(self._reserved)
            if sum(held.values()) != self._sum or not 0 <= self._sum <= self.size:
                raise EngineError(f"{self!r}: its owners have {sum(held.values())} bytes")
            for owner, size in held.items():
                if not 0 <= size <= owner.share:
                    raise EngineError(f"{owner} has {size} bytes of managed memory")

    def __repr__(self) -> str:
        return f"<MemoryManager: {self._sum} of {self.size} bytes reserved>"


def _check_not_negative(owner: MemoryOwner, size: int) -> None:
    if size < 0:
        raise EngineError(f"{owner.name} asks for {size} bytes of managed memory")
