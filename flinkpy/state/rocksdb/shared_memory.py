"""The memory that the RocksDB databases of a process take together: one cache, and one limit of
what was written and is in no file yet, which counts against the cache.

A worker whose size is given says how much it manages. Where no size is given, each database has
the cache and the buffers of its own that its options name."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flinkpy.core.options import state as options
from flinkpy.core.options.engine import TASK_SLOTS
from flinkpy.core.options.schema import key_in, read

if TYPE_CHECKING:
    from rocksdict import Cache, Rdict, WriteBufferManager


_FEW = 8  # write buffers fit into the limit, at least
_SMALLEST = 64 << 10


class SharedMemory:
    """One cache and one limit of write buffers, for so many bytes. The split is Flink's: what is
    written may exceed its limit by half before it reaches the files, so that the sum stays."""

    def __init__(self, size: int, write_buffer_ratio: float) -> None:
        from rocksdict import Cache, WriteBufferManager

        self.size = size
        self.write_buffer_ratio = write_buffer_ratio
        self.cache: Cache = Cache(int((3 - write_buffer_ratio) * size / 3))
        buffers = int(2 * size * write_buffer_ratio / 3)
        self.buffers: WriteBufferManager = WriteBufferManager.new_write_buffer_manager_with_cache(
            buffers, False, self.cache
        )
        self._all_buffers = buffers
        self._lock = threading.Lock()
        self._databases: list[Rdict] = []

    @property
    def write_buffer(self) -> int:
        """How much a database may hold before it writes a file, so that all of them fit when each
        has a full buffer, which is on its way to a file, beside the one that it fills."""
        return max(_SMALLEST, self._all_buffers // max(_FEW, 2 * len(self._databases)))

    def opened(self, database: Rdict) -> None:
        """Another database shares the memory."""
        with self._lock:
            self._databases.append(database)
            self._divide()

    def closes(self, database: Rdict) -> None:
        """The database, which is still open, shares no longer."""
        with self._lock:
            self._databases.remove(database)
            self._divide()

    def _divide(self) -> None:
        size = str(self.write_buffer)
        for database in self._databases:
            database.set_options({"write_buffer_size": size})


class _OfProcess:
    """What the process manages, and what its databases share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._managed: int | None = None
        self._shared: SharedMemory | None = None

    def manage(self, size: int | None) -> None:
        with self._lock:
            self._managed = size

    def shared(self, values: Mapping[str, Any]) -> SharedMemory | None:
        ratio = read(values, options.ROCKSDB_WRITE_BUFFER_RATIO)
        with self._lock:
            size = _size(values, self._managed)
            if size is None:
                return None
            shared = self._shared
            if shared is None or (shared.size, shared.write_buffer_ratio) != (size, ratio):
                shared = self._shared = SharedMemory(size, ratio)
            return shared


def _size(values: Mapping[str, Any], managed: int | None) -> int | None:
    """In Flink's order of precedence. A cache of its own that a program asks for is one."""
    per_slot = read(values, options.ROCKSDB_MEMORY_PER_SLOT)
    if per_slot is not None:
        return int(per_slot * (read(values, TASK_SLOTS) or 1))
    per_worker: int | None = read(values, options.ROCKSDB_MEMORY_PER_WORKER)
    if per_worker is not None:
        return per_worker
    own_cache = key_in(values, options.ROCKSDB_BLOCK_CACHE) in values
    if not managed or own_cache or not read(values, options.ROCKSDB_MEMORY_MANAGED):
        return None
    return managed


_PROCESS = _OfProcess()


def manage_memory(size: int | None) -> None:
    """A worker's process begins: its databases may take so many bytes together; with None, each has
    its own."""
    _PROCESS.manage(size)


def shared_memory(values: Mapping[str, Any]) -> SharedMemory | None:
    """What a database with these options shares with the others of the process; None if it has
    memory of its own. Databases whose options name other sizes share with those that name the
    same."""
    return _PROCESS.shared(values)
