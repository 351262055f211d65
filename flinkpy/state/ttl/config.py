"""StateTtlConfig: how long a state's values live after they were last touched, under PyFlink's
names."""

from __future__ import annotations

import datetime
from enum import Enum
from typing import TypeAlias, TypeVar

from flinkpy.common.time import Time, to_milliseconds
from flinkpy.core.program.program_line import refuse
from flinkpy.state.ttl import cleanup_strategies as strategies
from flinkpy.state.ttl.cleanup_strategies import Span

E = TypeVar("E", bound=Enum)


def _one_of(kind: type[E], given: object) -> E:
    if not isinstance(given, kind):
        raise refuse(
            f"StateTtlConfig: a {kind.__name__} is needed, such as "
            f"StateTtlConfig.{next(iter(kind))}, this is {given!r:.80}"
        )
    return given


class UpdateType(Enum):
    """What prolongs a value's life."""

    Disabled = 0  # nothing expires
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class StateVisibility(Enum):
    """Whether an expired value that was not removed yet is returned."""

    ReturnExpiredIfNotCleanedUp = 0  # once: reading it removes it
    NeverReturnExpired = 1


class TtlTimeCharacteristic(Enum):
    """The time by which values expire."""

    ProcessingTime = 0


class StateTtlConfig:
    """How long values live, what prolongs their life, and how expired ones are removed.

    >>> from flinkpy.common.time import Duration
    >>> config = (
    ...     StateTtlConfig.new_builder(Duration.of_hours(1))
    ...     .update_ttl_on_read_and_write()
    ...     .never_return_expired()
    ...     .build()
    ... )
    >>> config.get_update_type()
    <UpdateType.OnReadAndWrite: 2>
    """

    UpdateType: TypeAlias = UpdateType
    StateVisibility: TypeAlias = StateVisibility
    TtlTimeCharacteristic: TypeAlias = TtlTimeCharacteristic
    CleanupStrategies: TypeAlias = strategies.CleanupStrategies

    def __init__(
        self,
        update_type: UpdateType,
        state_visibility: StateVisibility,
        ttl_time_characteristic: TtlTimeCharacteristic,
        ttl: Span,
        cleanup_strategies: strategies.CleanupStrategies,
    ) -> None:
        if not isinstance(ttl, (datetime.timedelta, Time)):
            raise refuse(
                "a time to live is a Duration (or Time), such as Duration.of_hours(1), not "
                f"{ttl!r:.80}"
            )
        if to_milliseconds(ttl) <= 0:
            raise refuse(
                f"a time to live is longer than nothing, this is {to_milliseconds(ttl)} ms"
            )
        self._update_type = update_type
        self._visibility = state_visibility
        self._characteristic = ttl_time_characteristic
        self._ttl, self._cleanup = ttl, cleanup_strategies

    @staticmethod
    def new_builder(ttl: Span) -> StateTtlConfig.Builder:
        """Values live for ``ttl`` after their last write; the other options have defaults."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        return self._update_type

    def get_state_visibility(self) -> StateVisibility:
        return self._visibility

    def get_ttl(self) -> Span:
        return self._ttl

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        return self._characteristic

    def is_enabled(self) -> bool:
        return self._update_type is not UpdateType.Disabled

    def get_cleanup_strategies(self) -> strategies.CleanupStrategies:
        return self._cleanup

    def __repr__(self) -> str:
        return (
            f"<StateTtlConfig {to_milliseconds(self._ttl)} ms, {self._update_type.name}, "
            f"{self._visibility.name}>"
        )

    class Builder:
        """Collects the options; each method returns the builder."""

        def __init__(self, ttl: Span) -> None:
            self._ttl = ttl
            self._update_type = UpdateType.OnCreateAndWrite
            self._visibility = StateVisibility.NeverReturnExpired
            self._characteristic = TtlTimeCharacteristic.ProcessingTime
            self._strategies: dict[strategies.Strategies, strategies.CleanupStrategy] = {}
            self._in_background = True

        def set_update_type(self, update_type: UpdateType) -> StateTtlConfig.Builder:
            self._update_type = _one_of(UpdateType, update_type)
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            return self.set_update_type(UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            return self.set_update_type(UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateVisibility) -> StateTtlConfig.Builder:
            self._visibility = _one_of(StateVisibility, state_visibility)
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            return self.set_state_visibility(StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            return self.set_state_visibility(StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            self._characteristic = _one_of(TtlTimeCharacteristic, ttl_time_characteristic)
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            return self.set_ttl_time_characteristic(TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Snapshots leave expired values out; the state at hand keeps them until they are
            read."""
            self._strategies[strategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = (
                strategies.CleanupStrategies.EMPTY_STRATEGY
            )
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Every access looks at so many entries, and every record too if asked for."""
            chosen = strategies.IncrementalCleanupStrategy(
                cleanup_size, run_cleanup_for_every_record
            )
            self._strategies[strategies.Strategies.INCREMENTAL_CLEANUP] = chosen
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Span | None = None
        ) -> StateTtlConfig.Builder:
            """For the RocksDB backend; the heap backend does its incremental cleanup."""
            self._strategies[strategies.Strategies.ROCKSDB_COMPACTION_FILTER] = (
                strategies.RocksdbCompactFilterCleanupStrategy(
                    query_time_after_num_entries, periodic_compaction_time
                )
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            self._in_background = False
            return self

        def set_ttl(self, ttl: Span) -> StateTtlConfig.Builder:
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """The configuration; raises ProgramError if the time to live is none."""
            cleanup = strategies.CleanupStrategies(self._strategies, self._in_background)
            return StateTtlConfig(
                self._update_type, self._visibility, self._characteristic, self._ttl, cleanup
            )
