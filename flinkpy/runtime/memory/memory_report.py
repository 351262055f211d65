"""What takes a worker's memory, and which option limits it: a frozen value that travels with
heartbeats."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.core.options.memory_sizes import PROCESS

SHOWN = 10  # owners, in messages


@dataclass(frozen=True)
class OwnedMemory:
    """``size`` bytes that ``owner`` has: an operator of a subtask, or a part of the whole process.
    ``what`` says in a word or two what they are, ``option`` what would make them fewer."""

    owner: str
    what: str
    size: int
    option: str

    def __str__(self) -> str:
        return f"{self.owner}: {self.what}, {shown(self.size)} ({self.option})"


@dataclass(frozen=True)
class MemoryReport:
    """A worker's memory at one moment. ``used`` is what the process has, but for files that it maps
    as it runs, whose memory the system takes back; ``limit`` is the size that it may have, None if
    nothing says so, and ``limited_by`` what does. ``sources_rest`` because it is nearly used up.
    ``owners`` begin with the largest; they may have parts of each other, as Arrow's pool is where
    much state lies."""

    at_ms: int
    used: int
    limit: int | None
    managed_reserved: int
    managed_total: int
    owners: tuple[OwnedMemory, ...] = ()
    sources_rest: bool = False
    limited_by: str = PROCESS.key

    @property
    def share(self) -> float:
        """Of the limit; 0.0 without one."""
        return self.used / self.limit if self.limit else 0.0

    def largest(self, count: int = SHOWN) -> tuple[OwnedMemory, ...]:
        return self.owners[:count]

    def summary(self) -> str:
        """In a line: ``91 % of 4.0 GB: count (1/2): state in memory, 2.1 GB; ...``"""
        of_limit = f"{self.share:.0%} of {shown(self.limit)}" if self.limit else shown(self.used)
        parts = [f"{each.owner}: {each.what} {shown(each.size)}" for each in self.largest(4)]
        return of_limit + (": " + "; ".join(parts) if parts else "")


def shown(size: int) -> str:
    """
    >>> shown(1_811_939_328), shown(5 << 20), shown(900)
    ('1.7 GB', '5 MB', '900 bytes')
    """
    if size >= 1 << 30:
        return f"{size / (1 << 30):,.1f} GB"
    if size >= 1 << 20:
        return f"{size / (1 << 20):,.0f} MB"
    return f"{size >> 10} KB" if size >= 1 << 10 else f"{size} bytes"
