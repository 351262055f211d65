"""An operator in two phases: what can be put together before the exchange is, in the tasks that send; the rest is done behind it.

Flink's SQL does the same; here it serves windows of the DataStream API (docs/decisions/two-phase-windows.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flinkpy.graph.partitioning import KeySpec


@dataclass(frozen=True)
class TwoPhases:
    """``local`` runs in the sender's chain, ``merging`` in place of the operator; ``key`` says where the local results have their key."""

    local: Any
    merging: Any
    key: KeySpec
    pays_within_process: bool  # there an exchange hands batches over as they are, so a record saved is worth less
