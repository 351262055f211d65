"""The options of the state backends, under Flink's keys."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.schema import key_in, option, read


class StateBackendKind(Enum):
    HASHMAP = "hashmap"
    ROCKSDB = "rocksdb"


STATE_BACKEND = option(
    "state.backend.type",
    StateBackendKind,
    StateBackendKind.HASHMAP,
    "hashmap (in memory) or rocksdb (on local disk).",
    aliases=("state.backend",),
)
ROCKSDB_DIRECTORY = option(
    "state.backend.rocksdb.localdir",
    str,
    None,
    (
        "Where RocksDB keeps its working files: folders, separated by commas, taken in turn; "
        "one under io.tmp.dirs when absent."
    ),
)
ROCKSDB_BLOCK_CACHE = option(
    "state.backend.rocksdb.block.cache-size",
    int,
    64 << 20,
    "Bytes of read data kept in memory, per operator and subtask.",
    memory=True,
)
ROCKSDB_WRITE_BUFFER = option(
    "state.backend.rocksdb.writebuffer.size",
    int,
    64 << 20,
    "Bytes of written data kept in memory before it goes to a file.",
    memory=True,
)
ROCKSDB_MEMORY_MANAGED = option(
    "state.backend.rocksdb.memory.managed",
    bool,
    True,
    "Whether the databases of a TaskExecutor share its managed memory, where its size is given.",
)
ROCKSDB_MEMORY_PER_SLOT = option(
    "state.backend.rocksdb.memory.fixed-per-slot",
    int,
    None,
    "Bytes that the databases of a TaskExecutor share, for each of its slots.",
    memory=True,
    at_least=1,
)
ROCKSDB_MEMORY_PER_WORKER = option(
    "state.backend.rocksdb.memory.fixed-per-tm",
    int,
    None,
    "Bytes that the databases of a TaskExecutor share, unless fixed-per-slot is given.",
    memory=True,
    at_least=1,
)
ROCKSDB_WRITE_BUFFER_RATIO = option(
    "state.backend.rocksdb.memory.write-buffer-ratio",
    float,
    0.5,
    "The share of that memory for what was written and is in no file yet.",
    at_least=0,
    at_most=1,
)
ROCKSDB_HIGH_PRIORITY_RATIO = option(
    "state.backend.rocksdb.memory.high-prio-pool-ratio",
    float,
    0.1,
    "The share of that memory for indexes and filters.",
    without_effect="RocksDB's Python binding has caches without such a part",
)
ROCKSDB_OBJECTS = option(
    "state.backend.rocksdb.memory.objects",
    int,
    64 << 20,
    "Bytes of Python objects that windows, interval joins and timers of a subtask keep in memory, "
    "by estimate; what is beyond lies in the database.",
    memory=True,
    at_least=0,
)
COLUMNS_MEMORY = option(
    "state.backend.columns.memory",
    int,
    None,
    "Bytes of rows that an operator of tables keeps in memory, per subtask: joins, and top-n over "
    "changes. Further rows lie in mapped files under io.tmp.dirs. When absent, all are in memory; "
    "with rocksdb as many as state.backend.rocksdb.memory.objects says.",
    memory=True,
)


_FILE_URL = re.compile(r"(?<![^,:\s])file:(//[^/,]*)?(?=/)")  # up to its path
_URL = re.compile(r"(?<![^,:\s])[A-Za-z][\w+.-]+://")


def manages_state(values: Mapping[str, Any]) -> bool:
    """Whether state takes its memory from what a worker manages: RocksDB, unless a program gives it
    a size of its own."""
    return (
        read(values, STATE_BACKEND) is StateBackendKind.ROCKSDB
        and read(values, ROCKSDB_MEMORY_MANAGED)
        and read(values, ROCKSDB_MEMORY_PER_SLOT) is None
        and read(values, ROCKSDB_MEMORY_PER_WORKER) is None
        and key_in(values, ROCKSDB_BLOCK_CACHE) not in values
    )


def folders(text: str | None) -> list[str]:
    """The folders that an option lists, separated as Flink allows: by commas, or as in ``PATH``. A
    folder may be a ``file:`` URL. Raises ConfigurationError for another URL, as these are folders
    of the machine.

    >>> folders("/a, /b"), folders("file:///tmp/a/,file:///tmp/b"), folders(None)
    (['/a', '/b'], ['/tmp/a', '/tmp/b'], [])
    """
    paths = _FILE_URL.sub("", text or "")
    remote = _URL.search(paths)
    if remote is not None:
        raise ConfigurationError(
            f"{remote.group()}...: local folders are needed here, or file: URLs of them, not "
            f"{paths!r:.200}"
        )
    parts = [part.strip() for part in paths.replace(os.pathsep, ",").split(",")]
    return [part.rstrip("/") or "/" for part in parts if part]
