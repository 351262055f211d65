"""Removes expired values from the database, a few slots at a time, scanning the state in rounds.

RocksDB's compaction filter would have to be written in C++. This does the same without waiting for
a compaction. As on the heap, it knows until when there is nothing to do
(``flinkpy.state.states.incremental_cleanup``)."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.state.rocksdb.slot_cache import Slots, touched_ns
from flinkpy.state.states.incremental_cleanup import AT_ONCE


class RangeCleanup:
    """Goes over the slots of one state, ``size`` per access, and removes what was last touched
    ``ttl_ns`` ago or before."""

    def __init__(self, slots: Slots, size: int, now: Callable[[], int], ttl_ns: int) -> None:
        self._slots = slots
        self._size = size
        self._now = now
        self._ttl_ns = ttl_ns
        self._next = b""
        self._earliest = self.quiet_until = self._due = self.looked_at = self.removed = 0

    def step(self, accesses: int = 1) -> None:
        """Reports so many accesses."""
        self._due += self._size * accesses
        if self._due >= AT_ONCE:
            self._run(self._due)
            self._due = 0

    def _run(self, due: int) -> None:
        now = self._now()
        if now >= self.quiet_until:
            due -= self._sweep(due, now)
        if due > 0 and now >= self.quiet_until:  # the round ended: the next one begins
            self._sweep(due, now)

    def _sweep(self, count: int, now: int) -> int:
        """Looks at so many slots, from where the last sweep ended; at fewer if the state ends
        before. Returns how many it looked at."""
        seen, deadline = 0, now - self._ttl_ns
        if not self._next:
            self._earliest = now
        for entry in self._slots.scan_from(self._next):
            if seen == count:
                self._next = entry[0]
                break
            seen += 1
            touched = touched_ns(entry[1])
            if touched <= deadline:
                self._slots.delete(self._slots.read_slot(*entry))
                self.removed += 1
            else:
                self._earliest = min(self._earliest, touched)
        else:
            self._next = b""
            self.quiet_until = self._earliest + self._ttl_ns
        self.looked_at += seen
        return seen

    def __repr__(self) -> str:
        return (
            f"<RangeCleanup, {self._size} per access: {self.looked_at} looked at, "
            f"{self.removed} removed>"
        )
