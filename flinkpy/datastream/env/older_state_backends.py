"""Flink 1.x's state backends, which choose two things at once: state in memory as Python objects,
and where its checkpoints go."""

from __future__ import annotations

from typing import Any, ClassVar

from flinkpy.datastream.checkpoint_storage import (
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from flinkpy.datastream.env.state_backends import HashMapStateBackend


class MemoryStateBackend(HashMapStateBackend):
    """HashMapStateBackend with JobManagerCheckpointStorage.

    >>> MemoryStateBackend(max_state_size=1000).get_max_state_size()
    1000
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE

    def __init__(
        self,
        checkpoint_path: str | None = None,
        savepoint_path: str | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self._storage = JobManagerCheckpointStorage(checkpoint_path, max_state_size)
        self._savepoint_path = savepoint_path

    def get_max_state_size(self) -> int:
        """The greatest size of state in bytes."""
        return self._storage.get_max_state_size()

    def is_using_asynchronous_snapshots(self) -> bool:
        """Always True, as in Flink since 1.13."""
        return True

    def settings(self) -> dict[str, Any]:
        return super().settings() | self._storage.options() | _savepoints(self._savepoint_path)


class FsStateBackend(HashMapStateBackend):
    """HashMapStateBackend with FileSystemCheckpointStorage.

    >>> FsStateBackend("file:///tmp/checkpoints").get_checkpoint_path()
    'file:///tmp/checkpoints'
    """

    def __init__(
        self,
        checkpoint_directory_uri: str,
        default_savepoint_directory_uri: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        buffer = -1 if write_buffer_size is None else write_buffer_size
        self._storage = FileSystemCheckpointStorage(
            checkpoint_directory_uri, file_state_size_threshold, buffer
        )
        self._savepoint_path = default_savepoint_directory_uri

    def get_checkpoint_path(self) -> str:
        return self._storage.get_checkpoint_path()

    def get_min_file_size_threshold(self) -> int:
        """The threshold in bytes: smaller state is stored in the checkpoint's metadata."""
        return self._storage.get_min_file_size_threshold()

    def get_write_buffer_size(self) -> int:
        """The size of the write buffer in bytes."""
        return self._storage.get_write_buffer_size()

    def is_using_asynchronous_snapshots(self) -> bool:
        """Always True, as in Flink since 1.13."""
        return True

    def settings(self) -> dict[str, Any]:
        return super().settings() | self._storage.options() | _savepoints(self._savepoint_path)


def _savepoints(path: str | None) -> dict[str, Any]:
    from flinkpy.core.options.checkpointing import SAVEPOINT_DIRECTORY

    return {} if path is None else {SAVEPOINT_DIRECTORY.key: path}
