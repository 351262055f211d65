"""Removing what has expired without anybody reading it, a few entries at a time.

Every access adds to what is due, and once that is worth it (``AT_ONCE`` entries) the next keys are looked at together; after the last key it begins
again. The keys are listed when a round begins: one list of all keys (8 bytes each) per round is cheaper than any structure that would have to be kept
with every write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

AT_ONCE = 64

Sweep = Callable[["dict[Any, Any]", "list[Any]", int], int]


class Cleanup(Protocol):
    """What a state tells about its accesses."""

    def step(self, accesses: int = 1) -> None:
        """So many accesses more."""


class IncrementalCleanup:
    """Goes over the entries of one state, ``size`` per access. ``sweep`` removes those of the keys last touched at or before ``deadline()``."""

    __slots__ = ("_deadline", "_due", "_entries", "_round", "_size", "_sweep", "looked_at", "removed")

    def __init__(self, entries: dict[Any, Any], sweep: Sweep, size: int, deadline: Callable[[], int]) -> None:
        self._entries, self._sweep, self._size, self._deadline = entries, sweep, size, deadline
        self._round: list[Any] = []
        self._due = self.looked_at = self.removed = 0

    def step(self, accesses: int = 1) -> None:
        """So many accesses more."""
        self._due += self._size * accesses
        if self._due >= AT_ONCE:
            self._run()

    def _run(self) -> None:
        due = min(self._due, len(self._round) + len(self._entries))  # the rest of this round, and all of the next
        self._due, deadline = 0, self._deadline()
        while due > 0 and (self._round or self._entries):
            if not self._round:
                self._round = list(self._entries)
                self._round.reverse()  # the first written is looked at first
            keys = self._round[-due:]
            del self._round[-due:]
            due -= len(keys)
            self.looked_at += len(keys)
            self.removed += self._sweep(self._entries, keys, deadline)

    def __repr__(self) -> str:
        return f"<IncrementalCleanup, {self._size} per access: {self.looked_at} looked at, {self.removed} removed>"
