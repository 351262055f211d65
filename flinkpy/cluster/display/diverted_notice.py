"""Tells the user at the end of a job that some records failed and were diverted: nobody may look at
them otherwise."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from flinkpy.metrics.reported import without_metrics
from flinkpy.operators.guarding.dead_letters import DIVERTED


def tell_diverted(job_name: str, accumulators: Mapping[str, Any]) -> None:
    """Writes to standard error how many records of which operators were diverted, if there are
    any."""
    notice = diverted_notice(job_name, accumulators)
    if notice and sys.stderr is not None:
        sys.stderr.write(notice + "\n")
        sys.stderr.flush()


def diverted_notice(job_name: str, accumulators: Mapping[str, Any]) -> str:
    """The sentence; empty if no record was diverted.

    >>> diverted_notice(
    ...     "ratios",
    ...     {"flinkpy.metrics": [("Map.0.numRecordsDiverted", 2), ("Map.1.numRecordsDiverted", 1)]},
    ... )
    "job 'ratios': 3 records failed and were diverted to side outputs ('Map': 3)"
    """
    counts: dict[str, int] = {}
    for identifier, value in without_metrics(accumulators)[1].items():
        name, _, metric = identifier.rpartition(".")
        if metric == DIVERTED:
            operator = name.rpartition(".")[0]
            counts[operator] = counts.get(operator, 0) + value
    if not counts:
        return ""
    total = sum(counts.values())
    records = "1 record failed and was" if total == 1 else f"{total:,} records failed and were"
    return (
        f"job {job_name!r}: {records} diverted to side outputs "
        f"({', '.join(f'{name!r}: {count:,}' for name, count in counts.items())})"
    )
