"""The memory that the RocksDB databases of a process take together: one cache, and one limit of
what was written and is in no file yet, which counts against the cache.

In a worker operators lend RocksDB their share of the managed memory, unless options name another
size. Elsewhere each database has the cache and the buffers of its own that its options name."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flinkpy.core.options import state as options
from flinkpy.core.options.engine import TASK_SLOTS
from flinkpy.core.options.schema import read
from flinkpy.core.options.state import manages_state

if TYPE_CHECKING:
    from rocksdict import Cache, WriteBufferManager


_FEW = 8  # write buffers fit into the limit, at least
_SMALLEST = 64 << 10
_LEAST = 16 << 20  # bytes that databases share before an operator has lent any
_WHEN_SHORT = 0.5  # of its size, while the process is short of memory


class SharedMemory:
    """One cache and one limit of write buffers, for so many bytes. The split is Flink's: what is
    written may exceed its limit by half before it reaches the files, so that the sum stays. Without
    a size it has what operators lend of their managed memory."""

    def __init__(self, size: int | None, write_buffer_ratio: float) -> None:
        from rocksdict import Cache, WriteBufferManager

        self.write_buffer_ratio = write_buffer_ratio
        self.is_lent = size is None
        self._fixed, self._lent, self._is_short = size, 0, False
        self.cache: Cache = Cache(self._cache_size())
        self.buffers: WriteBufferManager = WriteBufferManager.new_write_buffer_manager_with_cache(
            self._all_buffers(), False, self.cache
        )
        self._lock = threading.Lock()
        self._databases = 0
        self.write_buffer = self._buffer_of_each()
        """How much a database may hold before it writes a file. Each takes a new size at its next
        write, in its own thread: a database is touched by nobody else."""

    @property
    def size(self) -> int:
        """What its databases may take together."""
        return max(_LEAST, self._lent) if self._fixed is None else self._fixed

    def lend(self, size: int) -> None:
        """An operator lends so many bytes; fewer than 0: it has them back."""
        with self._lock:
            self._lent += size
            self._resize()

    def be_short(self, is_short: bool) -> None:
        """The process is short of memory, or no longer."""
        with self._lock:
            self._is_short = is_short
            self._resize()

    def _resize(self) -> None:
        self.cache.set_capacity(self._cache_size())
        self.buffers.set_buffer_size(self._all_buffers())
        self.write_buffer = self._buffer_of_each()

    def _cache_size(self) -> int:
        size = int((3 - self.write_buffer_ratio) * self.size / 3)
        return int(size * _WHEN_SHORT) if self._is_short else size

    def _all_buffers(self) -> int:
        return int(2 * self.size * self.write_buffer_ratio / 3)

    def _buffer_of_each(self) -> int:
        """So that all of them fit when each has a full buffer, which is on its way to a file,
        beside the one that it fills. A power of two, so that it changes seldom."""
        equal = self._all_buffers() // max(_FEW, 2 * self._databases)
        return max(_SMALLEST, 1 << (equal.bit_length() - 1))

    def opened(self) -> None:
        """Another database shares the memory."""
        self._count(1)

    def closed(self) -> None:
        """A database shares no longer."""
        self._count(-1)

    def _count(self, more: int) -> None:
        with self._lock:
            self._databases += more
            self.write_buffer = self._buffer_of_each()


class _OfProcess:
    """What the databases of the process share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_managed = False
        self._shared: SharedMemory | None = None

    def manage(self, is_managed: bool) -> None:
        with self._lock:
            self._is_managed = is_managed

    def shared(self, values: Mapping[str, Any]) -> SharedMemory | None:
        size = _fixed_size(values)
        if size is None and not (self._is_managed and manages_state(values)):
            return None
        ratio = read(values, options.ROCKSDB_WRITE_BUFFER_RATIO)
        with self._lock:
            shared = self._shared
            if shared is None or not _is_for(shared, size, ratio):
                shared = self._shared = SharedMemory(size, ratio)
            return shared

    @property
    def current(self) -> SharedMemory | None:
        return self._shared


def _fixed_size(values: Mapping[str, Any]) -> int | None:
    """In Flink's order of precedence."""
    per_slot = read(values, options.ROCKSDB_MEMORY_PER_SLOT)
    if per_slot is not None:
        return int(per_slot * (read(values, TASK_SLOTS) or 1))
    per_worker: int | None = read(values, options.ROCKSDB_MEMORY_PER_WORKER)
    return per_worker


def _is_for(shared: SharedMemory, size: int | None, ratio: float) -> bool:
    has_size = shared.is_lent if size is None else not shared.is_lent and shared.size == size
    return has_size and shared.write_buffer_ratio == ratio


_PROCESS = _OfProcess()


def manage_memory(is_managed: bool = True) -> None:
    """This is a worker's process: its databases share what operators lend them of their managed
    memory, and no longer have a cache each."""
    _PROCESS.manage(is_managed)


def shared_memory(values: Mapping[str, Any]) -> SharedMemory | None:
    """What a database with these options shares with the others of the process; None if it has
    memory of its own. Databases whose options name other sizes share with those that name the
    same."""
    return _PROCESS.shared(values)


def memory_of_databases() -> SharedMemory | None:
    """What the process's newest databases share; None if there are none, or they share nothing."""
    return _PROCESS.current
