"""How a job is executed: typed access to the environment's options. Every setter writes an option,
every getter reads one.

Flink's settings for Java serialisers (Kryo, POJO and type registration) have no counterpart here
and are left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from flinkpy.common.execution_mode import ExecutionMode
from flinkpy.common.input_dependency_constraint import InputDependencyConstraint
from flinkpy.common.restart_strategy import RestartStrategyConfiguration, restart_strategy_of
from flinkpy.common.time import checked_milliseconds, to_milliseconds
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options import compatibility as kept_options
from flinkpy.core.options import engine as options
from flinkpy.core.options.checkpointing import SNAPSHOT_COMPRESSION
from flinkpy.core.options.schema import Option, read

PARAMETER_PREFIX = "user."  # of the program's own options, which get_job_parameter finds


class ExecutionConfig:
    """Returned by ``env.get_config()``; changes apply to the environment. Setters raise
    ConfigurationError or ProgramError for invalid values.

    >>> ExecutionConfig().set_parallelism(4).get_parallelism()
    4
    """

    PARALLELISM_DEFAULT: ClassVar[int] = -1
    PARALLELISM_UNKNOWN: ClassVar[int] = -2

    def __init__(self, values: dict[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {} if values is None else values

    def get_parallelism(self) -> int:
        return int(read(self._values, options.PARALLELISM))

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Sets the parallelism of operators that set none; PARALLELISM_DEFAULT restores the
        configured one."""
        if parallelism == self.PARALLELISM_DEFAULT:
            self._values.pop(options.PARALLELISM.key, None)
            return self
        self._values[options.PARALLELISM.key] = positive(parallelism, "parallelism")
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups; -1 if it is derived from the parallelism."""
        return int(read(self._values, options.MAX_PARALLELISM) or -1)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        self._values[options.MAX_PARALLELISM.key] = max_parallelism_of(max_parallelism)
        return self

    def enable_object_reuse(self) -> ExecutionConfig:
        """Hands the same object to all consumers of a record; none of them may change it."""
        self._values[options.OBJECT_REUSE.key] = True
        return self

    def disable_object_reuse(self) -> ExecutionConfig:
        self._values[options.OBJECT_REUSE.key] = False
        return self

    def is_object_reuse_enabled(self) -> bool:
        return bool(read(self._values, options.OBJECT_REUSE))

    def set_auto_watermark_interval(self, interval: int | timedelta) -> ExecutionConfig:
        """Sets how often periodic watermarks are emitted, in milliseconds or as a timedelta; 0
        turns them off."""
        milliseconds = checked_milliseconds(
            interval, "set_auto_watermark_interval(): the interval", 0
        )
        self._values[options.AUTO_WATERMARK_INTERVAL.key] = timedelta(milliseconds=milliseconds)
        return self

    def get_auto_watermark_interval(self) -> int:
        """The interval in milliseconds."""
        return to_milliseconds(read(self._values, options.AUTO_WATERMARK_INTERVAL))

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> ExecutionConfig:
        self._values.update(restart_strategy_configuration.options())
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """The restart strategy that the options describe; if none is set, the cluster's default."""
        return restart_strategy_of(self._values)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Operators without a uid get one from their place in the program. This is the default."""
        return self._set(kept_options.AUTO_GENERATED_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Requires a uid for every operator; ``execute`` raises ProgramError for one without."""
        return self._set(kept_options.AUTO_GENERATED_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        return bool(read(self._values, kept_options.AUTO_GENERATED_UIDS))

    def set_latency_tracking_interval(self, interval: int | timedelta) -> ExecutionConfig:
        """Sets how often sources send latency markers, in milliseconds; 0 or less turns them off.
        Operators keep a histogram per source, among the metrics of the job's result."""
        return self._set(
            kept_options.LATENCY_INTERVAL,
            timedelta(
                milliseconds=max(0, checked_milliseconds(interval, "the latency tracking interval"))
            ),
        )

    def get_latency_tracking_interval(self) -> int:
        return to_milliseconds(read(self._values, kept_options.LATENCY_INTERVAL))

    def set_task_cancellation_interval(self, interval: int | timedelta) -> ExecutionConfig:
        """Milliseconds between two interruptions of a function that does not return when its task
        is cancelled. The first one comes after a second at most; 0: none. Functions of tasks that
        share their thread with others are not interrupted."""
        return self._set(
            options.CANCELLATION_INTERVAL, _span(interval, "the cancellation interval")
        )

    def get_task_cancellation_interval(self) -> int:
        return to_milliseconds(read(self._values, options.CANCELLATION_INTERVAL))

    def set_task_cancellation_timeout(self, timeout: int | timedelta) -> ExecutionConfig:
        """Milliseconds after which a job does without a cancelled task's function that does not
        return; on Ray its worker ends. 0: never."""
        return self._set(options.CANCELLATION_TIMEOUT, _span(timeout, "the cancellation timeout"))

    def get_task_cancellation_timeout(self) -> int:
        return to_milliseconds(read(self._values, options.CANCELLATION_TIMEOUT))

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Sets whether keyed state in checkpoints is compressed. Stored; has no effect yet."""
        return self._set(SNAPSHOT_COMPRESSION, bool(use_snapshot_compression))

    def is_use_snapshot_compression(self) -> bool:
        return bool(read(self._values, SNAPSHOT_COMPRESSION))

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Stored without effect: it is for Java's closures. Functions travel by value, with what
        they use."""
        return self._set(kept_options.CLOSURE_CLEANER, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        return self._set(kept_options.CLOSURE_CLEANER, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        return str(read(self._values, kept_options.CLOSURE_CLEANER)) != "NONE"

    def get_registered_pojo_types(self) -> list[str]:
        """Always empty: there are no Java classes."""
        return []

    def set_execution_mode(self, execution_mode: ExecutionMode) -> ExecutionConfig:
        """Flink 1.x's setting. Stored without effect: the runtime mode decides."""
        return self._set(kept_options.EXECUTION_MODE, execution_mode.name)

    def get_execution_mode(self) -> ExecutionMode:
        return ExecutionMode[str(read(self._values, kept_options.EXECUTION_MODE))]

    def set_default_input_dependency_constraint(
        self, input_dependency_constraint: InputDependencyConstraint
    ) -> ExecutionConfig:
        """Flink 1.x's setting. Stored without effect."""
        return self._set(kept_options.INPUT_DEPENDENCY, input_dependency_constraint.name)

    def get_default_input_dependency_constraint(self) -> InputDependencyConstraint:
        return InputDependencyConstraint[str(read(self._values, kept_options.INPUT_DEPENDENCY))]

    def _set(self, wanted: Option[Any], value: object) -> ExecutionConfig:
        self._values[wanted.key] = value
        return self

    def set_global_job_parameters(
        self, global_job_parameters_dict: Mapping[str, Any]
    ) -> ExecutionConfig:
        """Sets values that every function can read with ``RuntimeContext.get_job_parameter``. They
        are stored as text."""
        for key, value in global_job_parameters_dict.items():
            if not isinstance(key, str):
                raise ConfigurationError(f"a job parameter's name is text, this is {key!r}")
            self._values[PARAMETER_PREFIX + key] = str(value)
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        return {
            key[len(PARAMETER_PREFIX) :]: str(value)
            for key, value in self._values.items()
            if key.startswith(PARAMETER_PREFIX)
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._values == other._values

    def __hash__(self) -> int:
        """The same for all: options change, and what is equal has one hash."""
        return hash(ExecutionConfig)

    def __repr__(self) -> str:
        return f"ExecutionConfig({self._values})"


def _span(span: int | timedelta, what: str) -> timedelta:
    return timedelta(milliseconds=checked_milliseconds(span, what, 0))


def positive(number: object, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ConfigurationError(f"{what} is a whole number from 1 on, this is {number!r}")
    return number


def max_parallelism_of(number: Any) -> int:
    if positive(number, "max parallelism") > 1 << 15:
        raise ConfigurationError(f"max parallelism is at most {1 << 15}, this is {number}")
    return int(number)
