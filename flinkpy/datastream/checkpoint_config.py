"""Checkpoint settings: the options ``execution.checkpointing.*`` with types."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any, ClassVar

from flinkpy.common.time import Time, to_milliseconds
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options import checkpointing as options
from flinkpy.core.options import compatibility as kept
from flinkpy.core.options.schema import Option, read
from flinkpy.core.program.program_line import located
from flinkpy.datastream.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    storage_of,
)
from flinkpy.datastream.checkpointing_mode import CheckpointingMode
from flinkpy.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention


class ExternalizedCheckpointCleanup(Enum):
    """Flink 1.x's name for :class:`ExternalizedCheckpointRetention`."""

    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"


class CheckpointConfig:
    """Returned by ``env.get_checkpoint_config()``; changes apply to the environment. Durations are
    in milliseconds unless a method says timedelta. Setters raise ConfigurationError for invalid
    values.

    >>> CheckpointConfig().set_checkpoint_interval(5000).get_checkpoint_interval()
    5000
    """

    DEFAULT_MODE: ClassVar[CheckpointingMode] = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT: ClassVar[int] = 10 * 60 * 1000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS: ClassVar[int] = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS: ClassVar[int] = 1

    def __init__(self, values: dict[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {} if values is None else values

    def _set(
        self, wanted: Option[Any], value: object, *, is_right: bool = True, what: str = ""
    ) -> CheckpointConfig:
        with located():
            if not is_right:
                raise ConfigurationError(f"option {wanted.key}: {what}, this is {value!r:.80}")
            wanted.parse(value)
        self._values[wanted.key] = value
        return self

    def _set_span(self, wanted: Option[Any], span: int | timedelta) -> CheckpointConfig:
        is_right = isinstance(span, (int, float, timedelta, Time)) and not isinstance(span, bool)
        value: object = span
        try:
            if is_right:
                value = timedelta(milliseconds=to_milliseconds(span))
        except (ValueError, OverflowError):  # NaN, an infinity, or longer than any timedelta
            is_right = False
        return self._set(wanted, value, is_right=is_right, what="milliseconds or a timedelta")

    def _set_number(self, wanted: Option[Any], number: int) -> CheckpointConfig:
        return self._set(
            wanted,
            number,
            is_right=isinstance(number, int) and not isinstance(number, bool),
            what="a whole number",
        )

    def is_checkpointing_enabled(self) -> bool:
        return read(self._values, options.CHECKPOINT_INTERVAL) is not None

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return CheckpointingMode(read(self._values, options.CHECKPOINT_MODE).value)

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        with located():
            if not isinstance(checkpointing_mode, CheckpointingMode):
                raise ConfigurationError(
                    f"{checkpointing_mode!r:.80} is no CheckpointingMode: EXACTLY_ONCE or "
                    "AT_LEAST_ONCE"
                )
        return self._set(options.CHECKPOINT_MODE, checkpointing_mode.value)

    def get_checkpoint_interval(self) -> int:
        """The interval in milliseconds; -1: no checkpoints."""
        interval = read(self._values, options.CHECKPOINT_INTERVAL)
        return -1 if interval is None else to_milliseconds(interval)

    def set_checkpoint_interval(self, checkpoint_interval: int | timedelta) -> CheckpointConfig:
        return self._set_span(options.CHECKPOINT_INTERVAL, checkpoint_interval)

    def get_checkpoint_timeout(self) -> int:
        return to_milliseconds(read(self._values, options.CHECKPOINT_TIMEOUT))

    def set_checkpoint_timeout(self, checkpoint_timeout: int | timedelta) -> CheckpointConfig:
        return self._set_span(options.CHECKPOINT_TIMEOUT, checkpoint_timeout)

    def get_min_pause_between_checkpoints(self) -> int:
        return to_milliseconds(read(self._values, options.CHECKPOINT_MIN_PAUSE))

    def set_min_pause_between_checkpoints(
        self, min_pause_between_checkpoints: int | timedelta
    ) -> CheckpointConfig:
        return self._set_span(options.CHECKPOINT_MIN_PAUSE, min_pause_between_checkpoints)

    def get_max_concurrent_checkpoints(self) -> int:
        return int(read(self._values, options.CHECKPOINT_MAX_CONCURRENT))

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        return self._set_number(options.CHECKPOINT_MAX_CONCURRENT, max_concurrent_checkpoints)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        return int(read(self._values, options.CHECKPOINT_TOLERABLE_FAILURES))

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        return self._set_number(
            options.CHECKPOINT_TOLERABLE_FAILURES, tolerable_checkpoint_failure_number
        )

    def is_fail_on_checkpointing_errors(self) -> bool:
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(
        self, fail_on_checkpointing_errors: bool
    ) -> CheckpointConfig:
        """With False, any number of checkpoints may fail."""
        return self.set_tolerable_checkpoint_failure_number(
            0 if fail_on_checkpointing_errors else 2**31 - 1
        )

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return bool(read(self._values, options.CHECKPOINT_UNALIGNED))

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        return self._set(options.CHECKPOINT_UNALIGNED, bool(enabled))

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        return self.enable_unaligned_checkpoints(False)

    def is_force_unaligned_checkpoints(self) -> bool:
        return bool(read(self._values, kept.CHECKPOINT_UNALIGNED_FORCED))

    def set_force_unaligned_checkpoints(
        self, force_unaligned_checkpoints: bool = True
    ) -> CheckpointConfig:
        return self._set(kept.CHECKPOINT_UNALIGNED_FORCED, bool(force_unaligned_checkpoints))

    def get_aligned_checkpoint_timeout(self) -> timedelta:
        timeout: timedelta = read(self._values, options.CHECKPOINT_ALIGNED_TIMEOUT)
        return timeout

    def set_aligned_checkpoint_timeout(
        self, alignment_timeout: int | timedelta
    ) -> CheckpointConfig:
        return self._set_span(options.CHECKPOINT_ALIGNED_TIMEOUT, alignment_timeout)

    def get_alignment_timeout(self) -> timedelta:
        return self.get_aligned_checkpoint_timeout()

    def set_alignment_timeout(self, alignment_timeout: int | timedelta) -> CheckpointConfig:
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        return ExternalizedCheckpointRetention(
            read(self._values, options.CHECKPOINT_RETENTION).value
        )

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        return self._set(
            options.CHECKPOINT_RETENTION, getattr(retention_mode, "value", retention_mode)
        )

    def is_externalized_checkpoints_enabled(self) -> bool:
        return (
            self.get_externalized_checkpoint_retention()
            is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    def get_externalized_checkpoint_cleanup(self) -> ExternalizedCheckpointCleanup:
        return ExternalizedCheckpointCleanup(read(self._values, options.CHECKPOINT_RETENTION).value)

    def set_externalized_checkpoint_cleanup(
        self, cleanup_mode: ExternalizedCheckpointCleanup
    ) -> CheckpointConfig:
        return self._set(options.CHECKPOINT_RETENTION, getattr(cleanup_mode, "value", cleanup_mode))

    def enable_externalized_checkpoints(
        self, cleanup_mode: ExternalizedCheckpointCleanup
    ) -> CheckpointConfig:
        return self.set_externalized_checkpoint_cleanup(cleanup_mode)

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Sets where checkpoints are kept, as an object (Flink 1.x): JobManagerCheckpointStorage or
        FileSystemCheckpointStorage."""
        with located():
            if not isinstance(storage, CheckpointStorage):
                raise ConfigurationError(
                    f"set_checkpoint_storage() takes a CheckpointStorage, this is {storage!r:.80}"
                )
        self._values.update(storage.options())
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Keeps checkpoints in files below that folder or URI."""
        return self.set_checkpoint_storage(FileSystemCheckpointStorage(checkpoint_path))

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        """The storage that was set; None if the options name neither a storage nor a directory."""
        return storage_of(self._values)

    def __repr__(self) -> str:
        shown = {
            key: value
            for key, value in self._values.items()
            if key.startswith("execution.checkpointing.")
        }
        return f"CheckpointConfig({shown})"
