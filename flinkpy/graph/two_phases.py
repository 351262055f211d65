"""An operator in two phases: the tasks that send aggregate what they can before the exchange; the
rest is done after it.

Flink's SQL does the same; here it is used for windows of the DataStream API
(docs/decisions/two-phase-windows.md), and for operators that see all records in one subtask:
aggregates without keys, and ``limit``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flinkpy.graph.partitioning import KeySpec


@dataclass(frozen=True)
class TwoPhases:
    """``local`` runs in the sender's chain and has no state; ``merging`` runs in place of the
    operator, and is of its class, so that it finds its state. ``key`` says where the local results
    have their key; None: they go where the records would."""

    local: Any
    merging: Any
    key: KeySpec | None
    # Within a process an exchange passes batches by reference, so saving a record is worth less
    # there.
    pays_within_process: bool
    in_batch: bool = False  # in BATCH too
