"""Where keyed state lives while the job runs, under PyFlink's names. What survives a failure is in checkpoints, whichever is chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flinkpy.core import state_options as options
from flinkpy.core.config import read


class StateBackend(ABC):
    """One of :class:`HashMapStateBackend` and :class:`EmbeddedRocksDBStateBackend`; see ``env.set_state_backend(...)``."""

    @abstractmethod
    def kind(self) -> options.StateBackendKind:
        """The value of option ``state.backend.type``."""

    def settings(self) -> dict[str, Any]:
        """The options it stands for."""
        return {options.STATE_BACKEND.key: self.kind()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class HashMapStateBackend(StateBackend):
    """State in memory, as Python objects: the fastest, for as much state as memory holds. The default.

    >>> HashMapStateBackend().kind().value
    'hashmap'
    """

    def kind(self) -> options.StateBackendKind:
        return options.StateBackendKind.HASHMAP


class EmbeddedRocksDBStateBackend(StateBackend):
    """State in a RocksDB database on local disk: for more of it than memory holds. Each access pickles what it reads or writes.

    Needs ``pip install 'flinkpy[rocksdb]'``. Checkpoints are the same as the hash map's, so a job may go from one to the other.

    >>> backend = EmbeddedRocksDBStateBackend()
    >>> backend.set_db_storage_paths("/tmp/states")
    >>> backend.get_db_storage_paths()
    ['/tmp/states']
    """

    def __init__(self) -> None:
        self._directory: str | None = None

    def kind(self) -> options.StateBackendKind:
        return options.StateBackendKind.ROCKSDB

    def set_db_storage_paths(self, *paths: str) -> None:
        """The local folder for working files; one of them is enough here, further ones are refused."""
        if len(paths) != 1 or not isinstance(paths[0], str):
            from flinkpy.datastream.program import refuse

            raise refuse(f"set_db_storage_paths() takes one folder, this is {paths!r:.80}")
        self._directory = paths[0]

    def get_db_storage_paths(self) -> list[str] | None:
        """The folder, None for the default: under ``io.tmp.dirs``."""
        return None if self._directory is None else [self._directory]

    def settings(self) -> dict[str, Any]:
        from flinkpy.state.rocksdb_store import require_rocksdb

        require_rocksdb()
        return super().settings() | ({options.ROCKSDB_DIRECTORY.key: self._directory} if self._directory is not None else {})


def state_backend_of(values: dict[str, Any]) -> StateBackend:
    """The backend the options stand for."""
    if read(values, options.STATE_BACKEND) is options.StateBackendKind.HASHMAP:
        return HashMapStateBackend()
    made = EmbeddedRocksDBStateBackend()
    directory = read(values, options.ROCKSDB_DIRECTORY)
    if directory is not None:
        made.set_db_storage_paths(directory)
    return made


from flinkpy.datastream.older_state_backends import FsStateBackend as FsStateBackend  # noqa: E402  (PyFlink has all backends in this module)
from flinkpy.datastream.older_state_backends import MemoryStateBackend as MemoryStateBackend  # noqa: E402
