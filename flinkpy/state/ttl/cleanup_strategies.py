"""Where and how expired values are removed: the cleanup strategies of a StateTtlConfig, under
PyFlink's names."""

from __future__ import annotations

import datetime
from enum import Enum
from typing import TypeAlias

from flinkpy.common.time import Time
from flinkpy.core.program.program_line import refuse

Span: TypeAlias = "datetime.timedelta | Time"

DEFAULT_CLEANUP_SIZE = 5


class Strategies(Enum):
    """Where expired values are removed without being read."""

    FULL_STATE_SCAN_SNAPSHOT = 0  # they are left out of snapshots
    INCREMENTAL_CLEANUP = 1  # a few entries are looked at with every access
    ROCKSDB_COMPACTION_FILTER = 2


class CleanupStrategy:
    """Any of them."""


class EmptyCleanupStrategy(CleanupStrategy):
    """One without options."""


class IncrementalCleanupStrategy(CleanupStrategy):
    """``cleanup_size`` entries are looked at with every access, and with every record too if asked
    for."""

    def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
        if cleanup_size < 1:
            raise refuse(
                f"an incremental cleanup looks at 1 or more entries at a time, not {cleanup_size}"
            )
        self._cleanup_size, self._every_record = cleanup_size, run_cleanup_for_every_record

    def get_cleanup_size(self) -> int:
        return self._cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        return self._every_record

    def __repr__(self) -> str:
        return f"IncrementalCleanupStrategy({self._cleanup_size}, {self._every_record})"


class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
    """Expired values go when RocksDB compacts its files. The heap backend does its incremental
    cleanup instead."""

    def __init__(
        self, query_time_after_num_entries: int, periodic_compaction_time: Span | None = None
    ) -> None:
        self._entries = query_time_after_num_entries
        self._period = (
            periodic_compaction_time
            if periodic_compaction_time is not None
            else datetime.timedelta(days=30)
        )

    def get_query_time_after_num_entries(self) -> int:
        return self._entries

    def get_periodic_compaction_time(self) -> Span:
        return self._period


class CleanupStrategies:
    """The chosen ones. In the background some cleanup runs unless it was disabled."""

    CleanupStrategy: TypeAlias = CleanupStrategy
    EmptyCleanupStrategy: TypeAlias = EmptyCleanupStrategy
    IncrementalCleanupStrategy: TypeAlias = IncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy: TypeAlias = RocksdbCompactFilterCleanupStrategy
    Strategies: TypeAlias = Strategies
    EMPTY_STRATEGY = EmptyCleanupStrategy()

    def __init__(
        self, strategies: dict[Strategies, CleanupStrategy], is_cleanup_in_background: bool
    ) -> None:
        self._strategies, self._in_background = dict(strategies), is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        return self._in_background

    def in_full_snapshot(self) -> bool:
        """Whether snapshots leave expired values out."""
        return Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
        """The chosen one, the default one where cleanup runs in the background, or None."""
        chosen = self._strategies.get(Strategies.INCREMENTAL_CLEANUP)
        if isinstance(chosen, IncrementalCleanupStrategy):
            return chosen
        return (
            IncrementalCleanupStrategy(DEFAULT_CLEANUP_SIZE, False) if self._in_background else None
        )

    def get_rocksdb_compact_filter_cleanup_strategy(
        self,
    ) -> RocksdbCompactFilterCleanupStrategy | None:
        chosen = self._strategies.get(Strategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(chosen, RocksdbCompactFilterCleanupStrategy):
            return chosen
        return RocksdbCompactFilterCleanupStrategy(1000) if self._in_background else None
