"""Incremental cleanup: removes expired values that are not read, a few entries at a time.

Every access adds to the number of entries that are due to be looked at; when ``AT_ONCE`` are due,
the next keys are looked at together. The keys are listed when a round begins. One list of all keys
(8 bytes each) per round is cheaper than any structure that every write would have to maintain.

A round also finds the earliest touch among the entries that stay. Nothing can expire before that
entry does, so until then (``quiet_until``) there is nothing to do, and an access sees this by
comparing two numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from flinkpy.state.layers.overlay import at_most
from flinkpy.state.stored_forms import NEVER, Swept

AT_ONCE = 64

Sweep = Callable[["dict[Any, Any]", "list[Any]", int], Swept]


class Cleanup(Protocol):
    """A state reports its accesses to it."""

    @property
    def quiet_until(self) -> int:
        """Nothing expires before this time, in nanoseconds: accesses need not be reported."""

    def step(self, accesses: int = 1) -> None:
        """Reports so many accesses."""


class NoCleanup:
    """Expired values stay until they are read."""

    quiet_until = NEVER

    def step(self, accesses: int = 1) -> None:
        """Nothing to do."""


NO_CLEANUP = NoCleanup()


class IncrementalCleanup:
    """Goes over the entries of one state, ``size`` per access, and has ``sweep`` remove what was
    last touched ``ttl_ns`` ago or before."""

    __slots__ = (
        "_due",
        "_earliest",
        "_entries",
        "_now",
        "_round",
        "_size",
        "_sweep",
        "_ttl_ns",
        "looked_at",
        "quiet_until",
        "removed",
    )

    def __init__(
        self, entries: dict[Any, Any], sweep: Sweep, size: int, now: Callable[[], int], ttl_ns: int
    ) -> None:
        self._entries = entries
        self._sweep = sweep
        self._size = size
        self._now = now
        self._ttl_ns = ttl_ns
        self._round: list[Any] = []
        self._earliest = self.quiet_until = self._due = self.looked_at = self.removed = 0

    def rebind(self, entries: dict[Any, Any]) -> None:
        """The entries are in this dict from now on."""
        self._entries = entries

    def step(self, accesses: int = 1) -> None:
        """Reports so many accesses."""
        self._due += self._size * accesses
        if self._due >= AT_ONCE:
            # at most the rest of this round and all of the next
            self._run(min(self._due, len(self._round) + at_most(self._entries)))
            self._due = 0

    def _run(self, due: int) -> None:
        now = self._now()
        while due > 0 and now >= self.quiet_until:
            if not self._round:
                self._round = list(self._entries)
                self._round.reverse()  # the first written is looked at first
                self._earliest = now  # what is written from here on is touched then or later
            keys = self._round[-due:]
            del self._round[-due:]
            due -= len(keys)
            swept = self._sweep(self._entries, keys, now - self._ttl_ns)
            self.looked_at += len(keys)
            self.removed += swept.removed
            self._earliest = min(self._earliest, swept.earliest_ns)
            if not self._round:
                self.quiet_until = self._earliest + self._ttl_ns

    def __repr__(self) -> str:
        return (
            f"<IncrementalCleanup, {self._size} per access: {self.looked_at} looked at, "
            f"{self.removed} removed>"
        )
