"""The cleanup strategies of a StateTtlConfig, gathered."""

from __future__ import annotations

from typing import TypeAlias

from flinkpy.state.ttl import choices as options


class CleanupStrategies:
    """The chosen ones. In the background some cleanup runs unless it was disabled."""

    CleanupStrategy: TypeAlias = options.CleanupStrategy
    EmptyCleanupStrategy: TypeAlias = options.EmptyCleanupStrategy
    IncrementalCleanupStrategy: TypeAlias = options.IncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy: TypeAlias = options.RocksdbCompactFilterCleanupStrategy
    Strategies: TypeAlias = options.Strategies
    EMPTY_STRATEGY = options.EmptyCleanupStrategy()

    def __init__(self, strategies: dict[options.Strategies, options.CleanupStrategy], is_cleanup_in_background: bool) -> None:
        self._strategies, self._in_background = dict(strategies), is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        return self._in_background

    def in_full_snapshot(self) -> bool:
        """Whether snapshots leave expired values out."""
        return options.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> options.IncrementalCleanupStrategy | None:
        """The chosen one, the default one where cleanup runs in the background, or None."""
        chosen = self._strategies.get(options.Strategies.INCREMENTAL_CLEANUP)
        if isinstance(chosen, options.IncrementalCleanupStrategy):
            return chosen
        return options.IncrementalCleanupStrategy(options.DEFAULT_CLEANUP_SIZE, False) if self._in_background else None

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> options.RocksdbCompactFilterCleanupStrategy | None:
        chosen = self._strategies.get(options.Strategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(chosen, options.RocksdbCompactFilterCleanupStrategy):
            return chosen
        return options.RocksdbCompactFilterCleanupStrategy(1000) if self._in_background else None
