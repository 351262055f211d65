"""Removing what has expired from the database, a few slots at a time: a place to go on from walks over the state, round after round.

RocksDB's compaction filter is written in C++ and so out of reach from here; this does the same without waiting for a compaction.
"""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.state.cleanup import AT_ONCE
from flinkpy.state.rocksdb_slots import Slots, touched_ms


class RangeCleanup:
    """Goes over the slots of one state, ``size`` per access, and removes those last touched at or before ``deadline()``."""

    def __init__(self, slots: Slots, size: int, deadline: Callable[[], int]) -> None:
        self._slots, self._size, self._deadline = slots, size, deadline
        self._next = b""
        self._due = self.looked_at = self.removed = 0

    def step(self, accesses: int = 1) -> None:
        """So many accesses more."""
        self._due += self._size * accesses
        if self._due >= AT_ONCE:
            self._run()

    def _run(self) -> None:
        due, deadline, self._due = self._due, self._deadline(), 0
        due -= self._sweep(due, deadline)
        if due > 0:  # the round ended: the next one begins
            self._sweep(due, deadline)

    def _sweep(self, count: int, deadline: int) -> int:
        """Looks at so many from where the last sweep ended; at fewer if the state ends before."""
        seen = 0
        for entry in self._slots.scan_from(self._next):
            if seen == count:
                self._next = entry[0]
                break
            seen += 1
            if touched_ms(entry[1]) <= deadline:
                self._slots.delete(self._slots.read_slot(*entry))
                self.removed += 1
        else:
            self._next = b""
        self.looked_at += seen
        return seen

    def __repr__(self) -> str:
        return f"<RangeCleanup, {self._size} per access: {self.looked_at} looked at, {self.removed} removed>"
