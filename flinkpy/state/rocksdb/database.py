"""The database of one backend. It is opened when the first state is asked for, in a folder of its own that is deleted with the backend.

Nothing in it outlives the process, as what has to survive is in snapshots. So there is no write-ahead log and no compression. A crash leaves at
most a folder behind, which the next process that uses the same parent folder removes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import ProgramError
from flinkpy.core.options import state as options
from flinkpy.core.options.engine import spill_folders
from flinkpy.core.options.schema import read
from flinkpy.state.rocksdb.folders import OwnFolder

if TYPE_CHECKING:
    from rocksdict import Rdict

MISSING_PACKAGE = "the rocksdb state backend needs a package that is not installed: pip install 'flinkpy[rocksdb]'"
_BLOOM_RATIO = 0.1
_KEEP_LOGS = 1
_turns = itertools.count()


@dataclass(frozen=True)
class RocksDBConfig:
    """The database's folder, and how much memory it takes (bytes)."""

    directory: str | None = None
    block_cache: int = 64 << 20
    write_buffer: int = 64 << 20

    @staticmethod
    def of(values: Mapping[str, Any]) -> RocksDBConfig:
        """If several folders are configured, each database of this process takes the next one."""
        named = options.folders(read(values, options.ROCKSDB_DIRECTORY)) or list(spill_folders(values)[:1])
        directory = named[next(_turns) % len(named)] if named else None
        return RocksDBConfig(directory, read(values, options.ROCKSDB_BLOCK_CACHE), read(values, options.ROCKSDB_WRITE_BUFFER))


def require_rocksdb() -> None:
    """Raises ProgramError with what to install where the binding is missing."""
    try:
        import rocksdict  # noqa: F401
    except ImportError as error:
        raise ProgramError(MISSING_PACKAGE) from error


class RocksDBStore:
    """Bytes to bytes, in the order of the keys."""

    def __init__(self, config: RocksDBConfig) -> None:
        require_rocksdb()
        from rocksdict import Rdict, WriteOptions

        self._unlogged = WriteOptions()
        self._unlogged.disable_wal = True  # type: ignore[method-assign, assignment]  # a property, its stub says a method
        self._folder = OwnFolder(config.directory)
        try:
            self._db: Rdict | None = Rdict(self._folder.database, _database_options(config))
        except BaseException:
            self._folder.remove()
            raise
        self.get = self._db.get

    @property
    def directory(self) -> str:
        return str(self._folder.path)

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Puts each; None deletes."""
        from rocksdict import WriteBatch

        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        for key, data in changes:
            if data is None:
                delete(key)
            else:
                put(key, data)
        if self._db is not None and len(batch):
            self._db.write(batch, self._unlogged)

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """All entries with the prefix at the time of the call, in order, beginning at ``start``."""
        assert self._db is not None
        entries: Any = self._db.items(from_key=max(prefix, start))
        return _while_prefixed(entries, prefix)

    def last_before(self, key: bytes) -> bytes | None:
        """The last key before this one."""
        assert self._db is not None
        keys: Any = self._db.keys(backwards=True, from_key=key)
        return next((found for found in keys if found < key), None)

    def close(self) -> None:
        """Deletes everything; a second call does nothing."""
        database, self._db = self._db, None
        if database is not None:
            try:
                database.close()
            finally:
                self._folder.remove()


def _while_prefixed(entries: Iterator[tuple[bytes, bytes]], prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    for entry in entries:
        if not entry[0].startswith(prefix):
            return
        yield entry


def _database_options(config: RocksDBConfig) -> Any:
    from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options

    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(10, False)
    blocks.set_block_cache(Cache(config.block_cache))
    chosen = Options(raw_mode=True)
    chosen.create_if_missing(True)
    chosen.set_block_based_table_factory(blocks)
    chosen.set_write_buffer_size(config.write_buffer)
    chosen.set_memtable_whole_key_filtering(True)  # a key that was never written is recognised without a search
    chosen.set_memtable_prefix_bloom_ratio(_BLOOM_RATIO)
    chosen.set_compression_type(DBCompressionType.none())
    chosen.set_keep_log_file_num(_KEEP_LOGS)
    return chosen
