"""Settings of checkpoints and state backends, as methods of StreamExecutionEnvironment."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

from flinkpy.core.options import compatibility as kept_options
from flinkpy.core.options.checkpointing import SAVEPOINT_DIRECTORY
from flinkpy.core.options.schema import read
from flinkpy.datastream.checkpoint_config import CheckpointConfig
from flinkpy.datastream.checkpointing_mode import CheckpointingMode
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.env.state_backends import StateBackend, state_backend_of
from flinkpy.datastream.streams.recorded_program import RecordedProgram

Self = TypeVar("Self", bound="CheckpointSettings")


class CheckpointSettings:
    """The settings as methods, which write the options of ``program``; jobs are submitted with
    these."""

    program: RecordedProgram

    def enable_checkpointing(
        self: Self,
        interval: int | timedelta,
        mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE,
    ) -> Self:
        """Takes a checkpoint every ``interval`` milliseconds, and restarts the job from the last
        one after a failure. Raises ConfigurationError for an invalid interval or mode."""
        with located():
            self.get_checkpoint_config().set_checkpoint_interval(interval).set_checkpointing_mode(
                mode
            )
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The checkpoint settings; changes to them apply to this environment."""
        return CheckpointConfig(self.program.values)

    def get_checkpoint_interval(self) -> int:
        """The interval in milliseconds; -1: no checkpoints."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE or AT_LEAST_ONCE."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """The same as ``get_checkpointing_mode`` (Flink 2's name)."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers may overtake records."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether barriers may do so even where records of several channels meet out of order."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def set_default_savepoint_directory(self: Self, directory: str) -> Self:
        """Sets where savepoints go by default: each into a folder of its own there."""
        self.program.values[SAVEPOINT_DIRECTORY.key] = directory
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """The directory that was set, or None."""
        directory: str | None = read(self.program.values, SAVEPOINT_DIRECTORY)
        return directory

    def set_state_backend(self: Self, state_backend: StateBackend) -> Self:
        """Sets where keyed state is kept: ``HashMapStateBackend()`` (default) or
        ``EmbeddedRocksDBStateBackend()``; option ``state.backend.type``. Raises ProgramError for
        anything else."""
        if not isinstance(state_backend, StateBackend):
            raise refuse(
                "set_state_backend() takes HashMapStateBackend() or "
                f"EmbeddedRocksDBStateBackend(), this is {state_backend!r:.80}"
            )
        with located():
            self.program.values.update(state_backend.settings())
        return self

    def get_state_backend(self) -> StateBackend:
        """The state backend that the options describe."""
        return state_backend_of(self.program.values)

    def enable_changelog_state_backend(self: Self, enabled: bool) -> Self:
        """Sets whether state changes are logged between checkpoints. Stored; has no effect yet."""
        self.program.values[kept_options.CHANGELOG.key] = bool(enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """The value that was set, or None."""
        enabled: bool | None = read(self.program.values, kept_options.CHANGELOG)
        return enabled
