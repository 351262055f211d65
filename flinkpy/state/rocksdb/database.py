"""The database of one backend. It is opened when the first state is asked for, in a folder of its
own that is deleted with the backend.

Nothing in it outlives the process, as what has to survive is in snapshots. So there is no
write-ahead log and no compression. A crash leaves at most a folder behind, which the next process
that uses the same parent folder removes.

With incremental checkpoints, copies of its files are what survives. A file never changes, so a copy
is a hard link until it is written elsewhere. Then files are merged by size (universal compaction):
the large ones, which most checkpoints have in common, are rewritten seldom. Merging by level would
rewrite them after every fourth checkpoint."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from flinkpy.core.options import state as options
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.engine import spill_folders
from flinkpy.core.options.schema import read
from flinkpy.core.program.by_value import StreamPickler, define
from flinkpy.core.program.extras import imported
from flinkpy.metrics.definitions import ROCKSDB
from flinkpy.state.checkpoints.own_folder import OwnFolder
from flinkpy.state.rocksdb.file_handles import (
    file_handles,
    most_open_files,
    return_handles,
    take_handles,
)
from flinkpy.state.rocksdb.shared_memory import SharedMemory, shared_memory

if TYPE_CHECKING:
    from rocksdict import Rdict

_BLOOM_RATIO = 0.1
_KEEP_LOGS = 1
_LARGEST_LOG = 256 << 10  # bytes; each checkpoint adds some thousand
# sorted files that are merged: the more, the fewer bytes are written again, and the more files a
# read may have to ask
_RUNS = 8
_LARGEST_MANIFEST = 1 << 20  # bytes; each checkpoint has a copy
_turns = itertools.count()


@dataclass(frozen=True)
class RocksDBConfig:
    """The database's folder, and how much memory it takes (bytes)."""

    directory: str | None = None
    block_cache: int = 64 << 20
    write_buffer: int = 64 << 20
    incremental: bool = False  # whether its files are what checkpoints consist of
    objects: int = 64 << 20  # that operators keep in memory of what could lie here
    shared: SharedMemory | None = None  # with the process's other databases, in place of both sizes

    @property
    def buffer_size(self) -> int:
        """How much may be written now before it goes to a file."""
        if self.shared is None:
            return self.write_buffer
        return min(self.write_buffer, self.shared.write_buffer)

    @staticmethod
    def of(values: Mapping[str, Any]) -> RocksDBConfig:
        """If several folders are configured, each database of this process takes the next one."""
        named = options.folders(read(values, options.ROCKSDB_DIRECTORY)) or list(
            spill_folders(values)[:1]
        )
        directory = named[next(_turns) % len(named)] if named else None
        return RocksDBConfig(
            directory,
            read(values, options.ROCKSDB_BLOCK_CACHE),
            read(values, options.ROCKSDB_WRITE_BUFFER),
            read(values, CHECKPOINT_INCREMENTAL),
            read(values, options.ROCKSDB_OBJECTS),
            shared_memory(values),
        )


def require_rocksdb() -> None:
    """Raises ProgramError with what to install where the binding is missing."""
    imported("rocksdict", "rocksdb", "the rocksdb state backend")


class RocksDBStore:
    """Bytes to bytes, in the order of the keys. A new database, or the one in ``folder``, whose
    pickles need the classes of ``definitions``.

    A simulation sets ``merges_in_background`` to False. Then files are merged when they are frozen,
    so a run can be repeated."""

    merges_in_background: ClassVar[bool] = True

    def __init__(
        self,
        config: RocksDBConfig,
        folder: OwnFolder | None = None,
        definitions: Mapping[str, bytes] | None = None,
    ) -> None:
        require_rocksdb()
        from rocksdict import Rdict, WriteOptions

        self._unlogged = WriteOptions()
        # a property, its stub says a method
        self._unlogged.disable_wal = True  # type: ignore[method-assign, assignment]
        self._config, self._folder = config, folder or OwnFolder(config.directory)
        self.definitions = dict(definitions or {})
        self._classes = define(self.definitions)
        self.by_value = StreamPickler(
            only_here=True, definitions=self.definitions if config.incremental else None
        )
        try:
            take_handles(file_handles())
        except BaseException:
            self._folder.remove()
            raise
        self._write_buffer = config.buffer_size
        try:
            chosen = _database_options(config, self._write_buffer)
            self._db: Rdict | None = Rdict(self._folder.database, chosen)
        except BaseException:
            return_handles()
            self._folder.remove()
            raise
        if config.shared is not None:
            config.shared.opened()
        self.get = self._db.get

    @property
    def directory(self) -> str:
        return str(self._folder.path)

    def get_all(self, keys: list[bytes]) -> list[bytes | None]:
        """What is stored for each of these keys."""
        assert self._db is not None
        found: Any = self._db.get(keys)  # type: ignore[arg-type]  # its stub knows no bytes here
        return list(found)

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Puts each; None deletes. RocksDB takes a batch as a whole, beyond its write buffer if the
        batch is larger: so each is at most as large."""
        from rocksdict import WriteBatch

        if self._db is None:
            return
        self._take_buffer_size()
        most, size = self._write_buffer, 0
        batch = WriteBatch(raw_mode=True)
        for key, data in changes:
            size += len(key)
            if data is None:
                batch.delete(key)
            else:
                batch.put(key, data)
                size += len(data)
            if size > most:
                self._db.write(batch, self._unlogged)
                batch, size = WriteBatch(raw_mode=True), 0
        if len(batch):
            self._db.write(batch, self._unlogged)

    def _take_buffer_size(self) -> None:
        assert self._db is not None
        if self._write_buffer != self._config.buffer_size:
            self._write_buffer = self._config.buffer_size
            self._db.set_options({"write_buffer_size": str(self._write_buffer)})

    def frozen_files(self) -> OwnFolder:
        """A folder with the files of the database as it is now. They are hard links, but for what
        was in memory, which is written now."""
        from rocksdict import Checkpoint

        assert self._db is not None
        if not self.merges_in_background and len(self._db.live_files()) >= _RUNS:
            self._db.compact_range(None, None)
        folder = OwnFolder(self._config.directory)
        try:
            Checkpoint(self._db).create_checkpoint(folder.database)
        except BaseException:
            folder.remove()
            raise
        return folder

    def delete_range(self, begin: bytes, end: bytes) -> None:
        """All entries from ``begin`` on and before ``end``."""
        assert self._db is not None
        if begin < end:
            self._db.delete_range(begin, end, self._unlogged)

    def ingest(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Takes entries in that come in the order of their keys, as one file. None of the keys is
        there yet."""
        from rocksdict import IngestExternalFileOptions, SstFileWriter

        assert self._db is not None
        file = str(self._folder.path / "ingested.sst")
        writer = SstFileWriter(_database_options(self._config, self._write_buffer))
        is_empty = True
        writer.open(file)
        for key, data in entries:
            writer[key], is_empty = data, False
        if not is_empty:  # a file without entries is refused
            writer.finish()
            moved = IngestExternalFileOptions()
            moved.set_move_files(True)
            self._db.ingest_external_file([file], moved)

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """All entries with the prefix at the time of the call, in order, beginning at ``start``."""
        assert self._db is not None
        entries: Any = self._db.items(from_key=max(prefix, start))
        return _while_prefixed(entries, prefix)

    def scan_range(self, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All entries from ``begin`` on and before ``end``, in order, as of the call."""
        assert self._db is not None
        entries: Any = self._db.items(from_key=begin)
        return _before(entries, end)

    def last_before(self, key: bytes) -> bytes | None:
        """The last key before this one."""
        assert self._db is not None
        keys: Any = self._db.keys(backwards=True, from_key=key)
        return next((found for found in keys if found < key), None)

    def measures(self) -> dict[str, float]:
        """What RocksDB tells of itself, by the names of the table of metrics."""
        if self._db is None:
            return {}
        return {
            name: found
            for name in ROCKSDB
            if (found := self._db.property_int_value(name)) is not None
        }

    def close(self) -> None:
        """Deletes everything; a second call does nothing."""
        database, self._db = self._db, None
        if database is not None:
            try:
                database.close()
            finally:
                if self._config.shared is not None:
                    self._config.shared.closed()
                return_handles()
                self._folder.remove()


def _while_prefixed(
    entries: Iterator[tuple[bytes, bytes]], prefix: bytes
) -> Iterator[tuple[bytes, bytes]]:
    for entry in entries:
        if not entry[0].startswith(prefix):
            return
        yield entry


def _before(entries: Iterator[tuple[bytes, bytes]], end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries before this key. RocksDB has an upper bound of its own, but the binding frees the
    bytes of it together with the options, which an iterator does not keep."""
    for entry in entries:
        if entry[0] >= end:
            return
        yield entry


def _database_options(config: RocksDBConfig, write_buffer: int) -> Any:
    from rocksdict import BlockBasedOptions, Cache, DBCompactionStyle, DBCompressionType, Options

    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(10, False)
    chosen = Options(raw_mode=True)
    if config.shared is None:
        blocks.set_block_cache(Cache(config.block_cache))
    else:
        blocks.set_block_cache(config.shared.cache)
        # or they would lie beside the cache, without limit
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
        chosen.set_write_buffer_manager(config.shared.buffers)
    chosen.create_if_missing(True)
    chosen.set_block_based_table_factory(blocks)
    chosen.set_write_buffer_size(write_buffer)
    # a key that was never written is recognised without a search
    chosen.set_memtable_whole_key_filtering(True)
    chosen.set_memtable_prefix_bloom_ratio(_BLOOM_RATIO)
    chosen.set_compression_type(DBCompressionType.none())
    chosen.set_keep_log_file_num(_KEEP_LOGS)
    chosen.set_max_log_file_size(_LARGEST_LOG)
    chosen.set_max_open_files(most_open_files(file_handles()))
    chosen.set_disable_auto_compactions(not RocksDBStore.merges_in_background)
    if config.incremental:
        chosen.set_compaction_style(DBCompactionStyle.universal())
        chosen.set_level_zero_file_num_compaction_trigger(_RUNS)
        chosen.set_max_manifest_file_size(_LARGEST_MANIFEST)
    return chosen
