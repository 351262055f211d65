"""The settings of a program: its options, parallelism, mode, chaining and restarts, as methods of
StreamExecutionEnvironment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar

from flinkpy.common.configuration import Configuration
from flinkpy.common.execution_config import ExecutionConfig, positive
from flinkpy.common.foreign_options import check_options
from flinkpy.common.restart_strategy import RestartStrategyConfiguration
from flinkpy.common.time import checked_milliseconds, to_milliseconds
from flinkpy.core.options import compatibility as kept_options
from flinkpy.core.options import engine as options
from flinkpy.core.options.schema import SCHEMA, read
from flinkpy.core.program.python_files import put_on_path
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.execution_mode import RuntimeExecutionMode
from flinkpy.datastream.slot_sharing_group import SlotSharingGroup
from flinkpy.datastream.streams.recorded_program import RecordedProgram
from flinkpy.datastream.time_characteristic import TimeCharacteristic

Self = TypeVar("Self", bound="ProgramSettings")

_default_local_parallelism: int | None = None


class ProgramSettings:
    """The settings as methods, which write the options of ``program``; jobs are submitted with
    these."""

    program: RecordedProgram

    def configure(self: Self, configuration: Configuration | Mapping[str, Any]) -> Self:
        """Sets options by key. Raises ConfigurationError for an unknown key, and names the nearest
        known one; keys under ``user.`` belong to the program. In a program written for PyFlink
        (``flinkpy run --pyflink``), unknown keys are stored without effect, and one warning names
        them."""
        values = Configuration(configuration)
        found: dict[str, Any] = {}
        values.add_all_to_dict(found)
        with located():
            check_options(found)
            put_on_path(found)
        self.program.values.update(
            {SCHEMA.get(key).key if key in SCHEMA else key: value for key, value in found.items()}
        )
        return self

    def get_config(self) -> ExecutionConfig:
        """The options as a typed ExecutionConfig; changes apply to this environment."""
        return ExecutionConfig(self.program.values)

    def get_configuration(self) -> Configuration:
        """A copy of all options that were set."""
        return Configuration(self.program.values)

    def set_parallelism(self: Self, parallelism: int) -> Self:
        """Sets the parallelism of operators that set none."""
        with located():
            self.get_config().set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """The parallelism of operators that set none."""
        return self.get_config().get_parallelism()

    def set_max_parallelism(self: Self, max_parallelism: int) -> Self:
        """Sets the number of key groups, at most 32768; no later parallelism can be greater."""
        with located():
            self.get_config().set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups; -1 if it is derived from the parallelism."""
        return self.get_config().get_max_parallelism()

    def set_runtime_mode(self: Self, execution_mode: RuntimeExecutionMode) -> Self:
        """Sets the mode: STREAMING (default); BATCH, for bounded sources; or AUTOMATIC, which is
        BATCH if all sources are bounded and there is no loop.

        In BATCH each stage runs after the stages before it have ended, so a job may have more
        stages and subtasks than there are slots. Keyed operators get one key after the other, each
        key's records in order of time. Of running results (``sum``, ``reduce``) only each key's
        last one is emitted. Event time jumps to its end after the last record, so nothing is late
        (Flink's semantics, FLIP-134)."""
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise refuse(
                f"set_runtime_mode() takes a RuntimeExecutionMode, this is {execution_mode!r:.80}"
            )
        self.program.values[options.RUNTIME_MODE.key] = execution_mode
        return self

    def set_buffer_timeout(self: Self, timeout_millis: int | timedelta) -> Self:
        """Sets after how many milliseconds at most a partly filled batch is sent; 0: at once; -1:
        only when it is full or the task is idle. Raises ProgramError for other values."""
        milliseconds = checked_milliseconds(timeout_millis, "set_buffer_timeout(): the timeout", -1)
        self.program.values[options.BUFFER_TIMEOUT.key] = timedelta(milliseconds=milliseconds)
        return self

    def get_buffer_timeout(self) -> int:
        """The buffer timeout in milliseconds."""
        return to_milliseconds(read(self.program.values, options.BUFFER_TIMEOUT))

    def disable_operator_chaining(self: Self) -> Self:
        """Runs every operator in a task of its own."""
        self.program.values[options.OPERATOR_CHAINING.key] = False
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators may run in one task."""
        return bool(read(self.program.values, options.OPERATOR_CHAINING))

    def set_restart_strategy(
        self: Self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> Self:
        """Sets what a failed job does next. Raises ProgramError unless it is one of
        RestartStrategies."""
        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise refuse(
                "set_restart_strategy() takes one of RestartStrategies, this is "
                f"{restart_strategy_configuration!r:.80}"
            )
        self.get_config().set_restart_strategy(restart_strategy_configuration)
        return self

    def register_slot_sharing_group(self: Self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Declares what slots of this group must have; operators then only name the group."""
        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise refuse(
                "register_slot_sharing_group() takes a SlotSharingGroup, this is "
                f"{slot_sharing_group!r:.80}"
            )
        self.program.register_group(slot_sharing_group)
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The restart strategy that was set, or else configured."""
        return self.get_config().get_restart_strategy()

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Always False: all operators of a task have the same max parallelism."""
        return False

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Sets the parallelism that environments made later in this process start with, unless
        their options set one."""
        global _default_local_parallelism
        with located():
            _default_local_parallelism = positive(parallelism, "parallelism")

    def get_default_local_parallelism(self) -> int:
        """The default that was set; else option ``parallelism.default``."""
        return _default_local_parallelism or self.get_parallelism()

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Flink 1.x's setting: ProcessingTime turns periodic watermarks off, the others emit them
        every 200 ms. Otherwise event time depends only on whether timestamps are assigned."""
        if not isinstance(characteristic, TimeCharacteristic):
            raise refuse(
                "set_stream_time_characteristic() takes a TimeCharacteristic, this is "
                f"{characteristic!r:.80}"
            )
        self.program.values[kept_options.TIME_CHARACTERISTIC.key] = characteristic.name
        self.get_config().set_auto_watermark_interval(
            0 if characteristic is TimeCharacteristic.ProcessingTime else 200
        )

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """The setting; event time by default."""
        return TimeCharacteristic[str(read(self.program.values, kept_options.TIME_CHARACTERISTIC))]


def default_options() -> dict[str, Any]:
    """The options that a new program starts with: from the configuration file, the environment,
    ``-D``, and this process's default parallelism. What ``python.files`` names is put on
    ``sys.path``."""
    from flinkpy.cluster.option_sources import program_settings

    values = program_settings()
    put_on_path(values)
    if _default_local_parallelism is not None:
        values.setdefault(options.PARALLELISM.key, _default_local_parallelism)
    return values
