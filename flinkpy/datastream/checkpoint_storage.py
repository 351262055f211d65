"""Where checkpoints are kept: in the JobManager's memory, or in files. Each class sets options
(``execution.checkpointing.*``).

The options are stored; they take effect with the checkpoints milestone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options import checkpointing as options
from flinkpy.core.options import compatibility as kept
from flinkpy.core.options.schema import read


class CheckpointStorage(ABC):
    """The base class of the checkpoint storages."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The options that it sets."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.options() == other.options()

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.options().items())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options()})"


class JobManagerCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints in the JobManager's memory: for tests and small state. ``max_state_size``
    is in bytes.

    >>> JobManagerCheckpointStorage().get_max_state_size()
    5242880
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    def __init__(
        self, checkpoint_path: str | None = None, max_state_size: int | None = None
    ) -> None:
        self._path = None if checkpoint_path is None else _without_end(checkpoint_path)
        self._max_state_size = _whole(
            self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size,
            "max_state_size",
            1,
        )

    def get_checkpoint_path(self) -> str | None:
        """Where checkpoint metadata is written; None: nowhere."""
        return self._path

    def get_savepoint_path(self) -> str | None:
        """None: the default savepoint directory."""
        return None

    def get_max_state_size(self) -> int:
        """Bytes."""
        return self._max_state_size

    def options(self) -> dict[str, Any]:
        found = {
            options.CHECKPOINT_STORAGE.key: "jobmanager",
            options.CHECKPOINT_MAX_STATE.key: self._max_state_size,
        }
        return (
            found if self._path is None else {**found, options.CHECKPOINT_DIRECTORY.key: self._path}
        )


def _without_end(path: str) -> str:
    """The folder without a slash behind its name, as Flink gives it."""
    shortened = path.rstrip("/")
    return path if not shortened or shortened.endswith(":") else shortened


class FileSystemCheckpointStorage(CheckpointStorage):
    """In files below ``checkpoint_path``, a folder or a URI. State smaller than the threshold
    (bytes) is kept in the checkpoint's metadata.

    >>> FileSystemCheckpointStorage("file:///tmp/checkpoints").get_checkpoint_path()
    'file:///tmp/checkpoints'
    """

    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if not isinstance(checkpoint_path, str) or not checkpoint_path:
            raise ConfigurationError(
                "FileSystemCheckpointStorage takes a folder or a URI, this is "
                f"{checkpoint_path!r:.80}"
            )
        threshold = (
            -1
            if file_state_size_threshold is None
            else _whole(file_state_size_threshold, "file_state_size_threshold", -1)
        )
        if threshold > self.MAX_FILE_STATE_THRESHOLD:
            raise ConfigurationError(
                f"file_state_size_threshold is at most {self.MAX_FILE_STATE_THRESHOLD} bytes, "
                f"this is {threshold}"
            )
        self._path = _without_end(checkpoint_path)
        self._threshold = threshold
        self._buffer = _whole(write_buffer_size, "write_buffer_size", -1)

    def get_checkpoint_path(self) -> str:
        return self._path

    def get_savepoint_path(self) -> str | None:
        """None: the default savepoint directory."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """The threshold in bytes: smaller state is stored in the checkpoint's metadata."""
        return (
            self._threshold
            if self._threshold >= 0
            else int(options.CHECKPOINT_FILE_THRESHOLD.default)
        )

    def get_write_buffer_size(self) -> int:
        """The size of the write buffer in bytes."""
        return self._buffer if self._buffer >= 0 else int(kept.CHECKPOINT_WRITE_BUFFER.default)

    def options(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            options.CHECKPOINT_STORAGE.key: "filesystem",
            options.CHECKPOINT_DIRECTORY.key: self._path,
        }
        if self._threshold >= 0:
            found[options.CHECKPOINT_FILE_THRESHOLD.key] = self._threshold
        if self._buffer >= 0:
            found[kept.CHECKPOINT_WRITE_BUFFER.key] = self._buffer
        return found


def storage_of(values: Mapping[str, Any]) -> CheckpointStorage | None:
    """The storage that the options describe; None if they name none."""
    kind = read(values, options.CHECKPOINT_STORAGE)
    path = read(values, options.CHECKPOINT_DIRECTORY)
    if kind is None and path is None:
        return None
    if str(kind).lower() == "jobmanager":
        return JobManagerCheckpointStorage(path, read(values, options.CHECKPOINT_MAX_STATE))
    if path is None:
        raise ConfigurationError(
            f"option {options.CHECKPOINT_STORAGE.key}: {kind} needs "
            f"{options.CHECKPOINT_DIRECTORY.key}"
        )
    threshold = values.get(options.CHECKPOINT_FILE_THRESHOLD.key)
    buffer = values.get(kept.CHECKPOINT_WRITE_BUFFER.key)
    return FileSystemCheckpointStorage(
        path, None if threshold is None else int(threshold), -1 if buffer is None else int(buffer)
    )


def _whole(number: object, what: str, least: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ConfigurationError(f"{what} is a whole number from {least} on, this is {number!r}")
    return number
