"""The options of the state backends, under Flink's keys."""

from __future__ import annotations

import os
from enum import Enum

from flinkpy.core.options.schema import option


class StateBackendKind(Enum):
    HASHMAP = "hashmap"
    ROCKSDB = "rocksdb"


STATE_BACKEND = option(
    "state.backend.type", StateBackendKind, StateBackendKind.HASHMAP, "hashmap (in memory) or rocksdb (on local disk).", aliases=("state.backend",))
ROCKSDB_DIRECTORY = option(
    "state.backend.rocksdb.localdir", str, None,
    "Where RocksDB keeps its working files: folders, separated by commas, taken in turn; one under io.tmp.dirs when absent.")
ROCKSDB_BLOCK_CACHE = option(
    "state.backend.rocksdb.block.cache-size", int, 64 << 20, "Bytes of read data kept in memory, per operator and subtask.", memory=True)
ROCKSDB_WRITE_BUFFER = option(
    "state.backend.rocksdb.writebuffer.size", int, 64 << 20, "Bytes of written data kept in memory before it goes to a file.", memory=True)


def folders(text: str | None) -> list[str]:
    """The folders that an option lists, separated as Flink allows: by commas, or as in ``PATH``.

    >>> folders("/a, /b"), folders(None)
    (['/a', '/b'], [])
    """
    return [folder for part in (text or "").replace(os.pathsep, ",").split(",") if (folder := part.strip())]
