"""The memory of batches in flight, counted in segments: one pool for each TaskExecutor, shared by
local pools of gates and partitions.

Batches are Python objects, so nothing is allocated here; a segment is the right to hold
``segment_size`` bytes. The holder of a batch takes segments first and returns them when the batch
has left, so the batches in flight never exceed the pool. Every local pool has a reserved part
(``minimum``). The rest is divided in proportion to what each pool could use beyond its minimum, and
divided again whenever a pool is created or closed. A pool that becomes smaller than what it has
lent lends nothing until enough has been returned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from flinkpy.core.errors import ConfigurationError, EngineError, ResourceUnavailableError
from flinkpy.core.ids import JobId


@dataclass(frozen=True)
class PoolStatistics:
    """``pools`` local pools share ``total`` segments; ``in_use`` are lent, ``reserved`` is the sum
    of the minimums."""

    total: int
    in_use: int
    reserved: int
    pools: int


class NetworkBufferPool:
    """All segments of one TaskExecutor. Whoever touches them, or a partition, a gate or a
    connection whose segments are counted here, holds the ``lock``: tasks on threads of their own do
    so at the same time as the slot loop."""

    def __init__(self, total_segments: int) -> None:
        if total_segments < 1:
            raise ResourceUnavailableError(
                f"the network needs at least one segment, not {total_segments}; raise "
                "taskmanager.memory.network.size"
            )
        self.total = total_segments
        self.lock = threading.RLock()
        self.in_use = 0
        self._reserved = 0
        self._pools: list[LocalBufferPool] = []
        self._starving: list[LocalBufferPool] = []

    def create_pool(
        self, owner: str, minimum: int, maximum: int, job_id: JobId | None = None
    ) -> LocalBufferPool:
        """A local pool that can always lend ``minimum`` segments, and never lends more than
        ``maximum``.

        If the minimum cannot be reserved it raises ResourceUnavailableError, or ConfigurationError
        if the job's own pools leave no room for it: then a restart would change nothing.
        """
        minimum = max(1, minimum)
        if minimum > self.unreserved:
            own = sum(pool.minimum for pool in self._pools if job_id and pool.job_id == job_id)
            is_lasting = own + minimum > self.total
            kind = ConfigurationError if is_lasting else ResourceUnavailableError
            raise kind(
                f"not enough network memory for {owner}: it needs at least {minimum} "
                f"segments, {self.unreserved} of {self.total} are "
                "not promised to others; "
                "raise taskmanager.memory.network.size, or lower the parallelism or "
                "taskmanager.network.memory.buffers-per-channel"
            )
        pool = LocalBufferPool(self, owner, minimum, max(minimum, maximum), job_id)
        self._pools.append(pool)
        self._reserved += minimum
        self._redistribute()
        return pool

    @property
    def unreserved(self) -> int:
        """The number of segments that no pool has reserved."""
        return self.total - self._reserved

    def statistics(self) -> PoolStatistics:
        return PoolStatistics(self.total, self.in_use, self._reserved, len(self._pools))

    def __repr__(self) -> str:
        return (
            f"NetworkBufferPool({self.in_use} of {self.total} segments in use, "
            f"{len(self._pools)} pools)"
        )

    def _redistribute(self) -> None:
        """Divides the unreserved segments; with running sums, rounding errors cancel out instead of
        adding up."""
        spare = self.unreserved
        usable = [min(pool.maximum - pool.minimum, spare) for pool in self._pools]
        total_usable = sum(usable)
        shared = min(spare, total_usable)
        seen = given = 0
        for pool, use in zip(self._pools, usable):
            seen += use
            upto = seen * shared // total_usable if total_usable else 0
            pool.size = pool.minimum + upto - given
            given = upto
        for pool in list(self._pools):
            pool.notify_room()

    def _remove(self, pool: LocalBufferPool) -> None:
        self._pools.remove(pool)
        if pool in self._starving:
            self._starving.remove(pool)
        self._reserved -= pool.minimum
        self._redistribute()

    def note_starving(self, pool: LocalBufferPool) -> None:
        if pool not in self._starving:
            self._starving.append(pool)

    def segments_returned(self, count: int) -> None:
        self.in_use -= count
        if self._starving:
            waiting, self._starving = self._starving, []
            for pool in waiting:
                pool.notify_room()


class LocalBufferPool:
    """The pool of one gate or partition. ``on_room`` is called when a failed ``take_segments`` may
    succeed.

    >>> pool = NetworkBufferPool(8).create_pool("gate", 1, 4)
    >>> pool.take_segments(3), pool.take_segments(2), pool.in_use
    (True, False, 3)
    """

    __slots__ = (
        "_failed",
        "_pool",
        "closed",
        "in_use",
        "job_id",
        "lock",
        "maximum",
        "minimum",
        "on_room",
        "owner",
        "size",
    )

    def __init__(
        self,
        pool: NetworkBufferPool,
        owner: str,
        minimum: int,
        maximum: int,
        job_id: JobId | None = None,
    ) -> None:
        self._pool = pool
        self.lock = pool.lock
        self.owner = owner
        self.job_id = job_id
        self.minimum = minimum
        self.maximum = maximum
        self.size = minimum
        self.in_use = 0
        self.closed = False
        self.on_room: Callable[[], None] | None = None
        self._failed = False

    @property
    def available(self) -> int:
        """The number of segments that ``take_segments`` could take now."""
        return max(0, min(self.size - self.in_use, self._pool.total - self._pool.in_use))

    def take_segments(self, count: int) -> bool:
        """Takes all ``count`` segments; if that is not possible, takes none, and has ``on_room``
        called when there is room."""
        pool = self._pool
        if (
            self.in_use + count <= self.size
            and pool.in_use + count <= pool.total
            and not self.closed
        ):
            self.in_use += count
            pool.in_use += count
            return True
        self.wait_for_room()
        return False

    def take_segments_up_to(self, count: int, reserved: bool = False) -> int:
        """Takes as many segments as there are, at most ``count``. ``reserved`` segments belong to
        the minimum: they may be taken even if the pool has become smaller than what it has lent."""
        if self.closed:
            return 0
        room = self._pool.total - self._pool.in_use
        granted = max(0, min(count, room if reserved else min(room, self.size - self.in_use)))
        self.in_use += granted
        self._pool.in_use += granted
        return granted

    def return_segments(self, count: int) -> None:
        """Returns segments that were taken. (A closed pool has returned them all.)"""
        if self.closed:
            return
        if count > self.in_use:
            raise EngineError(f"{self.owner} gives back {count} segments and holds {self.in_use}")
        self.in_use -= count
        self._pool.segments_returned(count)
        if self._failed:
            self.notify_room()

    def notify_room(self) -> None:
        """Calls ``on_room`` if a take has failed since the last call."""
        if self._failed:
            self._failed = False
            if self.on_room is not None:
                self.on_room()

    def close_pool(self) -> None:
        """Returns all segments; later takes fail. May be called again."""
        if not self.closed:
            self.closed, self.on_room = True, None
            lent, self.in_use = self.in_use, 0
            self._pool.segments_returned(lent)
            self._pool._remove(self)

    def wait_for_return(self) -> None:
        """Has ``on_room`` called once, when segments lent by this pool are returned."""
        if not self.closed:
            self._failed = True

    def wait_for_room(self) -> None:
        """Has ``on_room`` called once, when segments are returned or the pool has grown."""
        self.wait_for_return()
        if not self.closed and (self._pool.in_use >= self._pool.total or self.in_use < self.size):
            self._pool.note_starving(self)

    def __repr__(self) -> str:
        return f"LocalBufferPool({self.owner}: {self.in_use} of {self.size} segments in use)"
