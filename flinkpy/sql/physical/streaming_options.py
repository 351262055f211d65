"""What a session says about plans of STREAMING, from its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from flinkpy.core.options.schema import parse_duration
from flinkpy.sql.sql_errors import ValidationError


@dataclass(frozen=True)
class MiniBatch:
    """Rows may wait for others: so long, and until there are so many."""

    latency_ms: int
    most_rows: int


@dataclass(frozen=True)
class StreamingOptions:
    """``state_ttl_ms``: when state that rests is dropped; 0: never. ``has_duplicates``: sources of
    changes may give one twice. ``mini_batch``: rows gather. ``in_phases``: groups of gathered rows
    are aggregated also before these are sent. ``buckets``: distinct values are counted in so many
    parts first; 0: where their group is."""

    state_ttl_ms: int = 0
    has_duplicates: bool = False
    mini_batch: MiniBatch | None = None
    in_phases: bool = False
    buckets: int = 0

    @staticmethod
    def of(options: Mapping[str, str]) -> StreamingOptions:
        """Those of a session. Raises ValidationError for mini-batches of no time or no rows."""
        mini_batch = _mini_batch(options)
        strategy = options.get("table.optimizer.agg-phase-strategy", "auto").lower()
        splits = _is_true(options, "table.optimizer.distinct-agg.split.enabled")
        buckets = int(options.get("table.optimizer.distinct-agg.split.bucket-num", "1024"))
        return StreamingOptions(
            _milliseconds(options.get("table.exec.state.ttl", "0 ms")),
            _is_true(options, "table.exec.source.cdc-events-duplicate"),
            mini_batch,
            mini_batch is not None and strategy != "one_phase",
            buckets if splits and mini_batch is not None else 0,
        )


def _mini_batch(options: Mapping[str, str]) -> MiniBatch | None:
    if not _is_true(options, "table.exec.mini-batch.enabled"):
        return None
    latency_ms = _milliseconds(options.get("table.exec.mini-batch.allow-latency", "0 ms"))
    size = int(options.get("table.exec.mini-batch.size", "-1"))
    if latency_ms <= 0:
        raise ValidationError(
            "MiniBatch Latency must be greater than 0 ms: set "
            "'table.exec.mini-batch.allow-latency' to how long rows may wait, for example 1 s"
        )
    if size <= 0:
        raise ValidationError(
            f"Key: 'table.exec.mini-batch.size' must be > 0, and is {size}: set it to how many "
            "rows may wait for each other, for example 5000"
        )
    return MiniBatch(latency_ms, size)


def _is_true(options: Mapping[str, str], key: str) -> bool:
    return options.get(key, "false").lower() == "true"


def _milliseconds(duration: str) -> int:
    return parse_duration(duration) // timedelta(milliseconds=1)
