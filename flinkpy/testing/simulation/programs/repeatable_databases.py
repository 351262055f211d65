"""RocksDB without threads of its own: which files a database has then follows from what was written
to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flinkpy.state.rocksdb.database import RocksDBStore


@contextmanager
def repeatable_databases() -> Iterator[None]:
    """Within the block, databases merge files only when they are frozen."""
    RocksDBStore.merges_in_background = False
    try:
        yield
    finally:
        RocksDBStore.merges_in_background = True
